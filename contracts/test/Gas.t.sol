// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Id, MarketParams} from "morpho-blue/interfaces/IMorpho.sol";
import {FareboxVault} from "../src/FareboxVault.sol";
import {PermitDeposit} from "../src/PermitDeposit.sol";
import {Protocol} from "../src/interfaces/Protocols.sol";
import {SandboxPriceFeed} from "../sandbox/SandboxPriceFeed.sol";
import {World} from "./world/World.sol";

/// What each operation costs, and the same with the protocol itself and with MetaMorpho. Each is a transaction of its own;
/// `npm run bench:gas` runs it with `--isolate` and prints the table.
contract GasMeasure is World {
    string private group;

    function measure(Protocol active, string memory name) private {
        group = name;
        vault = makeVault(active);
        PermitDeposit helper = makeHelper(vault);
        vm.startPrank(alice);
        usdc.approve(address(vault), 1_000 * USDC_1);
        snapshot("approve");
        usdc.approve(address(vault), type(uint256).max);
        vm.stopPrank();

        vm.prank(bob);
        usdc.approve(address(vault), type(uint256).max);
        deposit(bob, 1_000 * USDC_1);
        snapshot("first deposit of the vault");
        pass(1 hours);
        deposit(alice, 1_000 * USDC_1);
        snapshot("first deposit of a holder");
        pass(1 hours);
        deposit(alice, 1_000 * USDC_1);
        snapshot("deposit");
        pass(1 hours);
        permitted(helper);
        snapshot("deposit with permit, first of a holder");
        pass(1 hours);
        vm.prank(alice);
        vault.withdraw(500 * USDC_1, alice, alice);
        snapshot("withdraw a part");
        pass(1 hours);
        redeemAll(alice);
        snapshot("redeem all");
        pass(1 hours);
        uint256 shares = vault.balanceOf(bob);
        vm.prank(bob);
        vault.exitInKind(shares / 2, bob, bob, 0);
        snapshot("exit in kind");
        skip(6 hours);
        vm.prank(keeper);
        vault.move(active, Protocol((uint8(active) + 1) % 3), 100 * USDC_1, 0);
        snapshot("move to the next protocol");
        vm.prank(keeper);
        vault.leave(active, 100 * USDC_1);
        snapshot("leave a protocol");
        split(active);
    }

    /// With a share of at most 60 %, as one is deployed: the first protocol is full, and each deposit goes to two.
    function split(Protocol active) private {
        FareboxVault.Setup memory setup = setupOf(active);
        setup.limits.maxShareBps = 6_000;
        vault = build(setup);
        for (uint256 n = 0; n < 2; n++) {
            vm.prank(n == 0 ? alice : bob);
            usdc.approve(address(vault), type(uint256).max);
        }
        deposit(bob, 1_000 * USDC_1);
        pass(1 hours);
        deposit(alice, 1_000 * USDC_1);
        pass(1 hours);
        deposit(alice, 1_000 * USDC_1);
        snapshot("deposit, two fifths of it to the next");
        pass(1 hours);
        redeemAll(bob);
        pass(1 hours);
        redeemAll(alice);
        snapshot("redeem all, from both");
    }

    function permitted(PermitDeposit helper) private {
        (address carol, uint256 key) = makeAddrAndKey("carol");
        usdc.mint(carol, 1_000 * USDC_1);
        uint256 deadline = block.timestamp + 1 hours;
        bytes32 hash = keccak256(
            abi.encode(
                keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"),
                carol,
                address(helper),
                1_000 * USDC_1,
                0,
                deadline
            )
        );
        (uint8 v, bytes32 r, bytes32 s) =
            vm.sign(key, keccak256(abi.encodePacked(hex"1901", usdc.DOMAIN_SEPARATOR(), hash)));
        vm.prank(carol);
        helper.depositWithPermit(1_000 * USDC_1, carol, 0, deadline, v, r, s);
    }

    function snapshot(string memory name) private {
        vm.snapshotGasLastCall(group, name);
    }

    function test_gas_with_aave_active() external {
        measure(Protocol.Aave, "Aave");
    }

    function test_gas_with_compound_active() external {
        measure(Protocol.Compound, "Compound (double)");
    }

    function test_gas_with_morpho_active() external {
        measure(Protocol.Morpho, "Morpho");
    }

    /// A MetaMorpho reads all of its markets at each touch, and asks one after the other when it supplies or pays out.
    function test_gas_by_the_number_of_markets() external {
        throughMarkets("1 market");
        addMarkets(14);
        throughMarkets("15 markets");
        addMarkets(15);
        throughMarkets("30 markets");
    }

    function throughMarkets(string memory name) private {
        group = name;
        vault = makeVault(Protocol.Morpho);
        vm.prank(alice);
        usdc.approve(address(vault), type(uint256).max);
        deposit(alice, 1_000 * USDC_1);
        pass(1 hours);
        deposit(alice, 1_000 * USDC_1);
        snapshot("deposit");
        skip(6 hours);
        vm.prank(keeper);
        vault.move(Protocol.Morpho, Protocol.Aave, 500 * USDC_1, 0);
        snapshot("move out of it");
        skip(6 hours);
        vm.prank(keeper);
        vault.move(Protocol.Aave, Protocol.Morpho, 250 * USDC_1, 0);
        snapshot("move to it");
        skip(6 hours);
        vm.prank(keeper);
        vault.move(Protocol.Morpho, Protocol.Aave, 0, 0);
        vm.prank(keeper);
        vault.leave(Protocol.Aave, type(uint256).max);
        pass(1 hours);
        redeemAll(alice);
        snapshot("redeem all");
    }

    /// Markets that are full and borrowed dry, before the one that takes and pays: the dearest that there is.
    function addMarkets(uint256 count) private {
        MarketParams[] memory added = new MarketParams[](count);
        Id[] memory supplied = new Id[](count);
        for (uint256 n = 0; n < count; n++) {
            added[n] = market;
            added[n].oracle = address(new SandboxPriceFeed(3_000e24));
            morpho.createMarket(added[n]);
            metaMorpho.submitCap(added[n], 1_000 * USDC_1);
            supplied[n] = idOf(added[n]);
        }
        pass(1 days + 1);
        for (uint256 n = 0; n < count; n++) {
            metaMorpho.acceptCap(added[n]);
        }
        metaMorpho.setSupplyQueue(supplied);
        usdc.mint(address(this), count * 1_000 * USDC_1);
        metaMorpho.deposit(count * 1_000 * USDC_1, address(this));
        for (uint256 n = 0; n < count; n++) {
            borrowAll(added[n]);
        }
        payFromTheLast();
    }

    function borrowAll(MarketParams memory from) private {
        weth.mint(borrower, 1 ether);
        vm.startPrank(borrower);
        weth.approve(address(morpho), type(uint256).max);
        morpho.supplyCollateral(from, 1 ether, borrower, "");
        morpho.borrow(from, 1_000 * USDC_1, 0, borrower, borrower);
        vm.stopPrank();
    }

    /// Puts the market with the cash last in both queues.
    function payFromTheLast() private {
        uint256 length = metaMorpho.withdrawQueueLength();
        uint256[] memory indexes = new uint256[](length);
        Id[] memory queue = new Id[](length);
        uint256 place;
        for (uint256 n = 0; n < length; n++) {
            if (Id.unwrap(metaMorpho.withdrawQueue(n)) == Id.unwrap(idOf(market))) indexes[length - 1] = n;
            else indexes[place++] = n;
        }
        for (uint256 n = 0; n < length; n++) {
            queue[n] = metaMorpho.withdrawQueue(indexes[n]);
        }
        metaMorpho.updateWithdrawQueue(indexes);
        metaMorpho.setSupplyQueue(queue);
    }

    function idOf(MarketParams memory of_) private pure returns (Id) {
        return Id.wrap(keccak256(abi.encode(of_)));
    }

    function test_gas_of_the_protocols_themselves() external {
        group = "direct";
        vm.startPrank(alice);
        usdc.approve(address(aave), type(uint256).max);
        usdc.approve(address(comet), type(uint256).max);
        usdc.approve(address(metaMorpho), type(uint256).max);
        for (uint256 n = 0; n < 2; n++) {
            skip(1 hours);
            aave.supply(address(usdc), 1_000 * USDC_1, alice, 0);
            snapshot("Aave supply");
            comet.supply(address(usdc), 1_000 * USDC_1);
            snapshot("Compound supply (double)");
            metaMorpho.deposit(1_000 * USDC_1, alice);
            snapshot("MetaMorpho deposit");
        }
        skip(1 hours);
        aave.withdraw(address(usdc), type(uint256).max, alice);
        snapshot("Aave withdraw all");
        comet.withdraw(address(usdc), type(uint256).max);
        snapshot("Compound withdraw all (double)");
        metaMorpho.redeem(metaMorpho.balanceOf(alice), alice, alice);
        snapshot("MetaMorpho redeem all");
        vm.stopPrank();
    }
}
