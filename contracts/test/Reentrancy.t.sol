// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC4626} from "@openzeppelin/contracts/interfaces/IERC4626.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {FareboxVault} from "../src/FareboxVault.sol";
import {PermitDeposit} from "../src/PermitDeposit.sol";
import {IAavePool, IComet, Protocol} from "../src/interfaces/Protocols.sol";
import {World} from "./world/World.sol";

/// Stands at the address of a token or a protocol, and does what that does, with its storage. Beside every call that
/// carries value it calls somebody else: like an ERC-777 token, before it takes tokens from somebody and after it gave
/// them to somebody; a protocol, both before and after.
contract Hostile {
    address private immutable _code;
    Caller private immutable _caller;
    bool private immutable _isToken;

    constructor(address code, Caller caller, bool isToken) {
        (_code, _caller, _isToken) = (code, caller, isToken);
    }

    fallback() external {
        bool value = carriesValue(msg.sig);
        if (value && !(_isToken && msg.sig == IERC20.transfer.selector)) _caller.comeBack(address(this), msg.sig);
        (bool ok, bytes memory said) = _code.delegatecall(msg.data);
        if (!ok) {
            assembly {
                revert(add(said, 32), mload(said))
            }
        }
        if (value && !(_isToken && msg.sig == IERC20.transferFrom.selector)) _caller.comeBack(address(this), msg.sig);
        assembly {
            return(add(said, 32), mload(said))
        }
    }

    function carriesValue(bytes4 called) private pure returns (bool) {
        return called == IERC20.transfer.selector || called == IERC20.transferFrom.selector
            || called == IAavePool.supply.selector || called == IAavePool.withdraw.selector
            || called == IComet.supply.selector || called == IComet.withdraw.selector
            || called == IERC4626.deposit.selector || called == IERC4626.withdraw.selector;
    }
}

/// Whoever is called in the middle of something. It has every role, shares, USDC and allowances, so that only the vault's own
/// guard is in its way.
contract Caller {
    FareboxVault private vault;
    PermitDeposit private helper;
    bool private armed;
    uint256 private fair;
    /// What went wrong; empty: nothing.
    string public wrong;
    /// How often each was the one that called.
    mapping(address => mapping(bytes4 => uint256)) public times;
    /// Made while the helper was in the middle of another's.
    uint256 public ownDeposits;
    /// The least that it saw a price of a share at, in parts of a million of the fair one.
    uint256 public lowest;

    /// @param helper_ to be called instead of the vault; zero: the vault
    function arm(FareboxVault vault_, PermitDeposit helper_) external {
        (vault, helper, armed, wrong, lowest) = (vault_, helper_, true, "", 1e6);
        fair = vault.convertToAssets(1e18);
    }

    function disarm() external {
        armed = false;
    }

    function comeBack(address from, bytes4 called) external {
        if (!armed) return;
        armed = false;
        times[from][called] += 1;
        if (address(helper) == address(0)) {
            strike();
        } else {
            try helper.depositWithPermit(1e6, address(this), 0, 0, 0, 0, 0) {
                ownDeposits += 1;
            } catch {}
        }
        armed = true;
    }

    function strike() private {
        uint256 price = vault.convertToAssets(1e18);
        if (price > fair + 1_000) wrong = "a price too high was seen";
        if (price * 1e6 / fair < lowest) lowest = price * 1e6 / fair;
        refused(abi.encodeCall(IERC4626.deposit, (1e6, address(this))));
        refused(abi.encodeCall(IERC4626.mint, (1e12, address(this))));
        refused(abi.encodeCall(IERC4626.withdraw, (1e6, address(this), address(this))));
        refused(abi.encodeCall(IERC4626.redeem, (1e12, address(this), address(this))));
        refused(abi.encodeCall(vault.exitInKind, (1e12, address(this), address(this), 0)));
        refused(abi.encodeCall(vault.move, (Protocol.Aave, Protocol.Compound, 0, 0)));
        refused(abi.encodeCall(vault.move, (Protocol.Compound, Protocol.Morpho, 0, 0)));
        refused(abi.encodeCall(vault.supplyIdle, ()));
        refused(abi.encodeCall(vault.leave, (Protocol.Aave, 1e6)));
        refused(abi.encodeCall(vault.redeemPartly, (1e12, address(this), address(this), 0)));
        refused(abi.encodeWithSignature("deposit(uint256,address,uint256)", 1e6, address(this), 0));
        refused(abi.encodeWithSignature("mint(uint256,address,uint256)", 1e12, address(this), 1e12));
        refused(
            abi.encodeWithSignature("withdraw(uint256,address,address,uint256)", 1, address(this), address(this), 1e12)
        );
        refused(abi.encodeWithSignature("redeem(uint256,address,address,uint256)", 1, address(this), address(this), 0));
        refused(abi.encodeCall(vault.seed, ()));
        refused(abi.encodeCall(vault.skim, (address(this))));
        refused(abi.encodeCall(vault.buy, (address(this), 0)));
        refused(abi.encodeCall(vault.setFeeRecipient, (address(this))));
        refused(abi.encodeCall(vault.lowerFees, (FareboxVault.Fees(0, 0))));
        refused(abi.encodeCall(vault.applyFees, ()));
    }

    function refused(bytes memory data) private {
        (bool ok, bytes memory said) = address(vault).call(data);
        if (ok || bytes4(said) != ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector) {
            wrong = "a call in the middle of another was not refused";
        }
    }

    function approve(IERC20 usdc, address spender) external {
        usdc.approve(spender, type(uint256).max);
    }
}

/// USDC and the three protocols cannot be exchanged, and the real ones call nobody back. Should one of them be made to: no
/// function of the vault can be called in the middle of another, and no price of a share is told that is too high.
contract ReentrancyTest is World {
    uint256 private constant DUST = 30;
    Caller private caller;

    /// A vault with a third of its funds in each protocol, which everybody at the other end of a call may call.
    function setUp() public override {
        super.setUp();
        caller = new Caller();
        FareboxVault.Setup memory setup = setupOf(Protocol.Aave);
        address who = address(caller);
        setup.roles = FareboxVault.Roles({owner: who, keeper: who, guardian: who, feeRecipient: treasury});
        setup.limits = FareboxVault.MoveLimits(10_000, 10_000, 0);
        vault = build(setup);
        vm.prank(alice);
        usdc.approve(address(vault), type(uint256).max);
        usdc.mint(who, 10_000 * USDC_1);
        caller.approve(usdc, address(vault));
        deposit(who, 1_000 * USDC_1);
        for (uint256 p = 0; p < 3; p++) {
            activate(Protocol(p));
            deposit(alice, 100_000 * USDC_1);
        }
        // No fee is due: what the acts bring is told to the unit.
        vm.prank(who);
        vault.queueFees(FareboxVault.Fees(50, 1_500));
        skip(48 hours);
        vm.prank(who);
        vault.setFeeRecipient(treasury);
        possess(address(usdc), true);
        possess(address(aave), false);
        possess(address(aUsdc), false);
        possess(address(comet), false);
        possess(address(metaMorpho), false);
    }

    function possess(address target, bool isToken) private {
        address copy = makeAddr(vm.toString(target));
        vm.etch(copy, target.code);
        vm.etch(target, address(new Hostile(copy, caller, isToken)).code);
    }

    /// Deposits go here; nothing moves.
    function activate(Protocol protocol) private {
        Protocol now_ = vault.active();
        if (now_ == protocol) return;
        vm.prank(address(caller));
        vault.move(now_, protocol, 0, 0);
    }

    /// Has an act done as it is, and then with calls in its middle: it must bring the same.
    function withstands(address who, bytes memory act) private {
        uint256 world = vm.snapshotState();
        vm.prank(who);
        (bool ok, bytes memory told) = address(vault).call(act);
        assertTrue(ok);
        (uint256 total, uint256 supply) = (vault.totalAssets(), vault.totalSupply());
        vm.revertToState(world);

        caller.arm(vault, PermitDeposit(address(0)));
        vm.prank(who);
        (bool again, bytes memory said) = address(vault).call(act);
        caller.disarm();
        assertTrue(again, "failed");
        assertEq(caller.wrong(), "");
        assertEq(said, told);
        assertEq(vault.totalAssets(), total);
        assertEq(vault.totalSupply(), supply);
    }

    /// At every moment a price was told that is not too low either. MetaMorpho takes what it is just being given, or is
    /// paying out, for interest, and its own fee off it, until it is done: what it says of itself is a little low meanwhile.
    function fairAllAlong(Protocol involved) private view {
        if (involved != Protocol.Morpho) assertGe(caller.lowest(), 999_999, "a price too low was seen");
    }

    function was(address target, bytes4 called) private view {
        assertGt(caller.times(target, called), 0, "was never called back");
    }

    function test_nothing_comes_between_a_deposit_and_its_shares() external {
        for (uint256 p = 0; p < 3; p++) {
            activate(Protocol(p));
            withstands(alice, abi.encodeCall(IERC4626.deposit, (5_000 * USDC_1, alice)));
            fairAllAlong(Protocol(p));
            withstands(alice, abi.encodeCall(IERC4626.mint, (5_000e12, alice)));
            fairAllAlong(Protocol(p));
        }
        was(address(usdc), IERC20.transferFrom.selector);
        was(address(aave), IAavePool.supply.selector);
        was(address(comet), IComet.supply.selector);
        was(address(metaMorpho), IERC4626.deposit.selector);
    }

    function test_nothing_comes_between_shares_that_are_given_back_and_their_cash() external {
        for (uint256 p = 0; p < 3; p++) {
            activate(Protocol(p));
            // The first is paid by the active protocol, the second by all three.
            withstands(alice, abi.encodeCall(IERC4626.withdraw, (5_000 * USDC_1, alice, alice)));
            fairAllAlong(Protocol(p));
            uint256 world = vm.snapshotState();
            withstands(alice, abi.encodeCall(IERC4626.redeem, (vault.balanceOf(alice), alice, alice)));
            vm.revertToState(world);
        }
        was(address(usdc), IERC20.transfer.selector);
        was(address(aave), IAavePool.withdraw.selector);
        was(address(comet), IComet.withdraw.selector);
        was(address(metaMorpho), IERC4626.withdraw.selector);
    }

    /// While the parts are handed over, what is told is too low and never too high.
    function test_nothing_comes_between_the_parts_of_an_exit_in_kind() external {
        usdc.mint(address(vault), 5_000 * USDC_1);
        vm.prank(address(caller));
        vault.setFeeRecipient(treasury);
        withstands(alice, abi.encodeCall(vault.exitInKind, (vault.balanceOf(alice) / 2, bob, alice, 0)));
        was(address(usdc), IERC20.transfer.selector);
        was(address(aUsdc), IERC20.transfer.selector);
        was(address(comet), IERC20.transfer.selector);
        was(address(metaMorpho), IERC20.transfer.selector);
    }

    function test_nothing_comes_between_the_two_ends_of_a_move() external {
        for (uint256 p = 0; p < 3; p++) {
            Protocol to = Protocol((p + 1) % 3);
            withstands(address(caller), abi.encodeCall(vault.move, (Protocol(p), to, 20_000 * USDC_1, 0)));
            if (p == 0) fairAllAlong(to);
        }
        usdc.mint(address(vault), 5_000 * USDC_1);
        vm.prank(address(caller));
        vault.setFeeRecipient(treasury);
        withstands(bob, abi.encodeCall(vault.supplyIdle, ()));
        was(address(aave), IAavePool.withdraw.selector);
        was(address(comet), IComet.withdraw.selector);
        was(address(metaMorpho), IERC4626.withdraw.selector);
        was(address(aave), IAavePool.supply.selector);
        was(address(comet), IComet.supply.selector);
        was(address(metaMorpho), IERC4626.deposit.selector);
    }

    /// Whoever is called while the helper holds a depositor's USDC deposits their own with it, and gets nothing of the other's.
    function test_nobody_gets_at_what_the_helper_holds() external {
        PermitDeposit helper = makeHelper(vault);
        caller.approve(usdc, address(helper));
        vm.prank(alice);
        usdc.approve(address(helper), 5_000 * USDC_1);
        uint256 told = vault.previewDeposit(5_000 * USDC_1);
        uint256 cash = usdc.balanceOf(address(caller));
        uint256 own = vault.balanceOf(address(caller));
        uint256 each = vault.previewDeposit(1e6);
        caller.arm(vault, helper);
        vm.prank(alice);
        assertApproxEqAbs(helper.depositWithPermit(5_000 * USDC_1, alice, 0, 0, 0, 0, 0), told, DUST * 1e6);
        caller.disarm();
        uint256 times = caller.ownDeposits();
        assertGt(times, 0);
        assertEq(cash - usdc.balanceOf(address(caller)), times * 1e6);
        assertApproxEqAbs(vault.balanceOf(address(caller)) - own, times * each, times * DUST * 1e6);
        assertEq(usdc.balanceOf(address(helper)), 0);
        assertEq(usdc.allowance(address(helper), address(vault)), 0);
    }
}
