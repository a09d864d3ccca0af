// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IACLManager} from "aave-v3/interfaces/IACLManager.sol";
import {ConfiguratorInputTypes} from "aave-v3/protocol/libraries/types/ConfiguratorInputTypes.sol";
import {IPool} from "aave-v3/interfaces/IPool.sol";
import {IPoolConfigurator} from "aave-v3/interfaces/IPoolConfigurator.sol";
import {IPoolAddressesProvider} from "aave-v3/interfaces/IPoolAddressesProvider.sol";
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC4626} from "@openzeppelin/contracts/interfaces/IERC4626.sol";
import {IMorpho, Id, MarketParams} from "morpho-blue/interfaces/IMorpho.sol";
import {IMetaMorpho} from "metamorpho/interfaces/IMetaMorpho.sol";
import {Test} from "forge-std/Test.sol";
import {FareboxVault} from "../../src/FareboxVault.sol";
import {PermitDeposit} from "../../src/PermitDeposit.sol";
import {IAavePool, IComet, Protocol} from "../../src/interfaces/Protocols.sol";
import {SandboxComet} from "../../sandbox/SandboxComet.sol";
import {SandboxPriceFeed} from "../../sandbox/SandboxPriceFeed.sol";
import {Built} from "./Built.sol";
import {IMintable, RealComet} from "./RealComet.sol";
import {IFiatToken, Usdc} from "./Usdc.sol";

/// A collateral for those who borrow.
contract Weth is ERC20("Wrapped Ether", "WETH") {
    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }
}

/// USDC, Aave v3.6, Morpho Blue with a MetaMorpho, and the double of Comet, each with borrowers, so that all pay interest;
/// and a vault over them. Aave, Morpho and USDC are the real code; Comet is too where `REAL_COMET` says so.
abstract contract World is Test {
    uint256 internal constant USDC_1 = 1e6;
    uint256 internal constant YEAR = 365 days;

    IFiatToken internal usdc;
    Weth internal weth;
    IPool internal aave;
    IPoolConfigurator internal aaveConfigurator;
    IERC20 internal aUsdc;
    SandboxComet internal comet;
    IMorpho internal morpho;
    IMetaMorpho internal metaMorpho;
    MarketParams internal market;
    FareboxVault internal vault;

    address internal owner = makeAddr("owner");
    address internal keeper = makeAddr("keeper");
    address internal guardian = makeAddr("guardian");
    address internal treasury = makeAddr("treasury");
    address internal alice = makeAddr("alice");
    address internal bob = makeAddr("bob");
    /// Owes to all three.
    address internal borrower = makeAddr("borrower");

    function setUp() public virtual {
        vm.warp(1_800_000_000);
        usdc = Usdc.deploy();
        weth = new Weth();
        _makeAave();
        _makeComet();
        _makeMorpho();
        vault = makeVault(Protocol.Aave);
        for (uint256 n = 0; n < 2; n++) {
            address who = n == 0 ? alice : bob;
            usdc.mint(who, 10_000_000 * USDC_1);
            vm.prank(who);
            usdc.approve(address(vault), type(uint256).max);
        }
    }

    function setupOf(Protocol active) internal view returns (FareboxVault.Setup memory) {
        return FareboxVault.Setup({
            name: "Farebox USDC",
            symbol: "fbUSDC",
            usdc: usdc,
            aavePool: IAavePool(address(aave)),
            comet: IComet(address(comet)),
            metaMorpho: IERC4626(address(metaMorpho)),
            active: active,
            roles: FareboxVault.Roles({owner: owner, keeper: keeper, guardian: guardian, feeRecipient: treasury}),
            fees: FareboxVault.Fees({entryBps: 50, performanceBps: 1_500}),
            limits: FareboxVault.MoveLimits({maxShareBps: 10_000, maxOfLiquidityBps: 5_000, cooldownSeconds: 6 hours})
        });
    }

    function makeVault(Protocol active) internal returns (FareboxVault) {
        return build(setupOf(active));
    }

    /// With its seed in, as one is that is deployed.
    function build(FareboxVault.Setup memory setup) internal returns (FareboxVault made) {
        made = buildUnseeded(setup);
        seed(made);
    }

    function buildUnseeded(FareboxVault.Setup memory setup) internal returns (FareboxVault) {
        return FareboxVault(_create("VAULT_ARTIFACT", "FareboxVault", abi.encode(setup)));
    }

    /// By this contract.
    function seed(FareboxVault of_) internal returns (uint256 shares) {
        usdc.mint(address(this), USDC_1);
        usdc.approve(address(of_), USDC_1);
        return of_.seed();
    }

    function makeHelper(FareboxVault of_) internal returns (PermitDeposit) {
        return PermitDeposit(_create("PERMIT_DEPOSIT_ARTIFACT", "PermitDeposit", abi.encode(of_)));
    }

    /// From the compiled contract, so that another one can be put in its place: `npm run contracts:mutate` does.
    function _create(string memory variable, string memory name, bytes memory arguments)
        private
        returns (address made)
    {
        string memory artifact = vm.envOr(variable, string.concat("contracts/out/", name, ".sol/", name, ".json"));
        bytes memory code = abi.encodePacked(vm.getCode(artifact), arguments);
        assembly ("memory-safe") {
            made := create(0, add(code, 32), mload(code))
            if iszero(made) {
                returndatacopy(code, 0, returndatasize())
                revert(code, returndatasize())
            }
        }
    }

    function deposit(address who, uint256 assets) internal returns (uint256 shares) {
        vm.prank(who);
        return vault.deposit(assets, who);
    }

    function redeemAll(address who) internal returns (uint256 assets) {
        uint256 shares = vault.balanceOf(who);
        vm.prank(who);
        return vault.redeem(shares, who, who);
    }

    /// Lets time pass, and the protocols accrue.
    function pass(uint256 time) internal {
        vm.warp(block.timestamp + time);
    }

    // --------------------------------------------------------------------------- what may happen to a protocol

    /// Somebody borrows all that a protocol has.
    function drain(Protocol protocol) internal {
        if (protocol == Protocol.Aave) {
            uint256 cash = aave.getVirtualUnderlyingBalance(address(usdc));
            _collateralInAave(cash);
            vm.prank(borrower);
            aave.borrow(address(usdc), cash, 2, 0, borrower);
        } else if (protocol == Protocol.Compound) {
            comet.sandboxBorrow(usdc.balanceOf(address(comet)));
        } else {
            uint256 cash = usdc.balanceOf(address(morpho));
            _borrowFromMorpho(cash);
        }
    }

    /// It takes nothing, pays nothing out, and hands nothing over.
    function pauseAll(Protocol protocol) internal {
        if (protocol == Protocol.Aave) aaveConfigurator.setReservePause(address(usdc), true);
        else if (protocol == Protocol.Compound) comet.sandboxPause(true, true, true);
        else vm.mockCallRevert(address(metaMorpho), bytes(""), bytes("paused"));
    }

    /// It cannot even be read.
    function breakIt(Protocol protocol) internal {
        address target = protocol == Protocol.Aave
            ? address(aUsdc)
            : protocol == Protocol.Compound ? address(comet) : address(metaMorpho);
        vm.mockCallRevert(target, bytes(""), bytes("broken"));
    }

    // -------------------------------------------------------------------------------------------- its making

    function _makeAave() private {
        IPoolAddressesProvider provider =
            IPoolAddressesProvider(Built.make("PoolAddressesProvider", abi.encode("Test", address(this))));
        address strategy = Built.make("DefaultReserveInterestRateStrategyV2", abi.encode(provider));
        provider.setACLAdmin(address(this));
        IACLManager acl = IACLManager(Built.make("ACLManager", abi.encode(provider)));
        provider.setACLManager(address(acl));
        acl.addPoolAdmin(address(this));
        address[] memory assets = new address[](2);
        (assets[0], assets[1]) = (address(usdc), address(weth));
        address[] memory feeds = new address[](2);
        (feeds[0], feeds[1]) = (address(new SandboxPriceFeed(1e8)), address(new SandboxPriceFeed(3_000e8)));
        bytes memory prices = abi.encode(provider, assets, feeds, address(0), address(0), 1e8);
        provider.setPriceOracle(Built.make("AaveOracle", prices));
        provider.setPoolImpl(Built.make("PoolInstance", abi.encode(provider, strategy)));
        aave = IPool(provider.getPool());
        provider.setPoolConfiguratorImpl(Built.make("PoolConfiguratorInstance", ""));
        aaveConfigurator = IPoolConfigurator(provider.getPoolConfigurator());

        address aToken = Built.make("ATokenInstance", abi.encode(aave, address(0), address(0xfee)));
        address debtToken = Built.make("VariableDebtTokenInstance", abi.encode(aave, address(0)));
        ConfiguratorInputTypes.InitReserveInput[] memory reserves = new ConfiguratorInputTypes.InitReserveInput[](2);
        for (uint256 n = 0; n < 2; n++) {
            reserves[n] = ConfiguratorInputTypes.InitReserveInput({
                aTokenImpl: aToken,
                variableDebtTokenImpl: debtToken,
                underlyingAsset: assets[n],
                aTokenName: "Aave",
                aTokenSymbol: "a",
                variableDebtTokenName: "Debt",
                variableDebtTokenSymbol: "d",
                params: "",
                interestRateData: abi.encode(uint16(9_000), uint32(0), uint32(550), uint32(4_000))
            });
        }
        aaveConfigurator.initReserves(reserves);
        aaveConfigurator.setReserveBorrowing(address(usdc), true);
        aaveConfigurator.setReserveFactor(address(usdc), 1_000);
        aaveConfigurator.configureReserveAsCollateral(address(weth), 8_000, 8_300, 10_500);
        aUsdc = IERC20(aave.getReserveAToken(address(usdc)));

        usdc.mint(address(this), 10_000_000 * USDC_1);
        usdc.approve(address(aave), type(uint256).max);
        aave.supply(address(usdc), 10_000_000 * USDC_1, address(this), 0);
        _collateralInAave(8_000_000 * USDC_1);
        vm.prank(borrower);
        aave.borrow(address(usdc), 8_000_000 * USDC_1, 2, 0, borrower);
    }

    /// So much that it covers a loan twice, beside what is owed already, which grows for as long as nobody repays.
    function _collateralInAave(uint256 loan) private {
        (, uint256 owed,,,,) = aave.getUserAccountData(borrower);
        uint256 amount = (loan + owed / 100) * 2 * 1e12 / 3_000 + 1 ether;
        weth.mint(borrower, amount);
        vm.startPrank(borrower);
        weth.approve(address(aave), amount);
        aave.supply(address(weth), amount, borrower, 0);
        vm.stopPrank();
    }

    function _makeComet() private {
        SandboxComet.Curve memory supplied = SandboxComet.Curve(0.85e18, 0, 0.048e18, 1.6e18);
        SandboxComet.Curve memory borrowed = SandboxComet.Curve(0.85e18, 0.015e18, 0.053e18, 1.8e18);
        comet = vm.envOr("REAL_COMET", false)
            ? RealComet.make(usdc, IMintable(address(weth)), supplied, borrowed)
            : new SandboxComet(address(usdc), address(this), supplied, borrowed);
        usdc.mint(address(this), 5_000_000 * USDC_1);
        usdc.approve(address(comet), type(uint256).max);
        comet.supply(address(usdc), 5_000_000 * USDC_1);
        // The market is this contract: it owes beside what it supplied, so its debt is another account's.
        comet.transfer(address(0x5a5a), 5_000_000 * USDC_1);
        comet.sandboxBorrow(4_100_000 * USDC_1);
    }

    function _makeMorpho() private {
        morpho = IMorpho(Built.make("Morpho", abi.encode(address(this))));
        address irm = Built.make("AdaptiveCurveIrm", abi.encode(morpho));
        SandboxPriceFeed oracle = new SandboxPriceFeed(3_000e24);
        morpho.enableIrm(irm);
        morpho.enableLltv(0.86e18);
        market = MarketParams(address(usdc), address(weth), address(oracle), irm, 0.86e18);
        morpho.createMarket(market);
        bytes memory setup = abi.encode(address(this), morpho, 1 days, usdc, "Test USDC", "tUSDC");
        metaMorpho = IMetaMorpho(Built.make("MetaMorpho", setup));
        metaMorpho.setFeeRecipient(address(0xfee));
        metaMorpho.setFee(0.1e18);
        metaMorpho.submitCap(market, type(uint184).max);
        vm.warp(block.timestamp + 1 days + 1);
        metaMorpho.acceptCap(market);
        Id[] memory queue = new Id[](1);
        queue[0] = Id.wrap(keccak256(abi.encode(market)));
        metaMorpho.setSupplyQueue(queue);
        usdc.mint(address(this), 5_000_000 * USDC_1);
        usdc.approve(address(metaMorpho), type(uint256).max);
        metaMorpho.deposit(5_000_000 * USDC_1, address(this));
        _borrowFromMorpho(4_000_000 * USDC_1);
    }

    /// As `_collateralInAave`.
    function _borrowFromMorpho(uint256 loan) private {
        morpho.accrueInterest(market);
        uint256 owed = morpho.market(Id.wrap(keccak256(abi.encode(market)))).totalBorrowAssets;
        uint256 amount = (loan + owed) * 2 * 1e12 / 3_000 + 1 ether;
        weth.mint(borrower, amount);
        vm.startPrank(borrower);
        weth.approve(address(morpho), amount);
        morpho.supplyCollateral(market, amount, borrower, "");
        morpho.borrow(market, loan, 0, borrower, borrower);
        vm.stopPrank();
    }
}
