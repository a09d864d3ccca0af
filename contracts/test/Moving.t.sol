// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC4626} from "@openzeppelin/contracts/interfaces/IERC4626.sol";
import {Vm} from "forge-std/Vm.sol";
import {FareboxVault} from "../src/FareboxVault.sol";
import {Positions} from "../src/Positions.sol";
import {IAavePool, IComet, Protocol} from "../src/interfaces/Protocols.sol";
import {World} from "./world/World.sol";

/// Answers whoever calls it with as much gas as a protocol is promised, and fails without.
contract NeedsItsGas {
    fallback() external {
        assembly {
            // What the way in costs is taken from the three million already.
            if lt(gas(), 2995000) { invalid() }
            mstore(0, 7000000)
            return(0, 32)
        }
    }
}

/// A move whose source or target does not keep its word moves nothing.
contract MovingTest is World {
    function setUp() public override {
        super.setUp();
        deposit(alice, 100_000 * USDC_1);
        vm.startPrank(keeper);
    }

    function moves(uint256 assets, bytes memory refused) private {
        (, uint256[3] memory before,,) = vault.holdings();
        if (refused.length > 4) vm.expectRevert(refused);
        else vm.expectPartialRevert(bytes4(refused));
        vault.move(Protocol.Aave, Protocol.Compound, assets, 0);
        (, uint256[3] memory at,,) = vault.holdings();
        assertEq(at[0], before[0]);
    }

    function test_a_source_that_says_it_can_pay_and_does_not() external {
        vm.mockCallRevert(address(aave), abi.encodeWithSelector(IAavePool.withdraw.selector), "");
        moves(1_000 * USDC_1, abi.encodeWithSelector(FareboxVault.ProtocolFailed.selector, Protocol.Aave));
    }

    function test_a_target_that_takes_it_and_cannot_be_read_then() external {
        vm.mockCallRevert(address(comet), abi.encodeCall(IERC20.balanceOf, (address(vault))), "");
        moves(1_000 * USDC_1, abi.encodeWithSelector(FareboxVault.ProtocolFailed.selector, Protocol.Compound));
    }

    /// Ten units may be lost, and no more.
    function test_a_target_that_keeps_a_part_of_it() external {
        (, uint256[3] memory before,,) = vault.holdings();
        uint256 assets = 1_000 * USDC_1;
        bytes memory balance = abi.encodeCall(IERC20.balanceOf, (address(vault)));
        uint256 world = vm.snapshotState();
        vault.move(Protocol.Aave, Protocol.Compound, assets, 0);
        (, uint256[3] memory at,,) = vault.holdings();
        uint256 lostByAave = before[0] - at[0] - assets;
        vm.revertToState(world);

        vm.mockCall(address(comet), balance, abi.encode(assets + lostByAave - 11));
        moves(assets, abi.encodePacked(FareboxVault.ReceivedTooLittle.selector));
        vm.mockCall(address(comet), balance, abi.encode(assets + lostByAave - 10));
        vault.move(Protocol.Aave, Protocol.Compound, assets, 0);
    }

    /// What went in must be able to come out at once, but for ten units.
    function test_a_target_that_could_not_pay_all_of_it_back() external {
        uint256 assets = 1_000 * USDC_1;
        bytes memory cash = abi.encodeCall(IERC20.balanceOf, (address(comet)));
        vm.mockCall(address(usdc), cash, abi.encode(assets - 11));
        moves(assets, abi.encodeWithSelector(FareboxVault.AboveLiquidity.selector, assets, assets - 11));
        vm.mockCall(address(usdc), cash, abi.encode(assets - 10));
        vault.move(Protocol.Aave, Protocol.Compound, assets, 0);
    }

    /// It paid all that it said it had, and what is left of it is not told: it counts as held, and deposits stay closed.
    function test_a_protocol_that_cannot_be_read_once_it_has_paid_is_held_still() external {
        bytes[] memory answers = new bytes[](2);
        (answers[0], answers[1]) = (abi.encode(aUsdc.balanceOf(address(vault))), bytes(""));
        vm.mockCalls(address(aUsdc), abi.encodeCall(IERC20.balanceOf, (address(vault))), answers);
        vault.leave(Protocol.Aave, type(uint256).max);
        (,,, bool complete) = vault.holdings();
        assertFalse(complete);
        assertEq(vault.maxDeposit(alice), 0);
    }

    /// A protocol takes all the gas that it is given, for an answer that it would have given with more: nothing happens.
    function test_an_act_without_gas_for_a_protocol_is_refused() external {
        vm.stopPrank();
        uint256 shares = vault.balanceOf(alice);
        vm.prank(alice);
        (bool ok,) = address(vault).call{gas: 2_000_000}(abi.encodeCall(IERC4626.redeem, (shares, alice, alice)));
        assertTrue(ok);
        vm.mockCallRevert(address(aUsdc), abi.encodeCall(IERC20.balanceOf, (address(vault))), "");
        vm.expectRevert(abi.encodeWithSignature("NotEnoughGas()"));
        vault.totalAssets{gas: 2_000_000}();
    }

    /// A call hands on no more than 63 of 64 parts of what is left: the rest is no gas that a protocol can count on.
    function test_a_position_is_read_with_all_its_gas_or_the_act_is_refused() external {
        vm.stopPrank();
        vm.etch(address(aUsdc), type(NeedsItsGas).runtimeCode);
        uint256 read;
        uint256 refused;
        for (uint256 gas = 2_900_000; gas < 3_150_000; gas += 2_000) {
            (bool ok, bytes memory said) = address(vault).staticcall{gas: gas}(abi.encodeCall(vault.totalAssets, ()));
            if (ok) {
                read += 1;
                assertEq(abi.decode(said, (uint256)), 7 * USDC_1, "the position counts");
            } else {
                refused += 1;
                assertEq(bytes4(said), bytes4(keccak256("NotEnoughGas()")));
            }
        }
        assertGt(read, 10);
        assertGt(refused, 10);
    }

    /// As the last one, for what is done and not read: else anybody could have a deposit lie idle by sending little gas with it.
    function test_a_deposit_without_gas_for_a_protocol_is_refused() external {
        vm.stopPrank();
        vm.mockCallRevert(address(aave), abi.encodeWithSelector(IAavePool.supply.selector), "");
        vm.startPrank(bob);
        vm.expectRevert(abi.encodeWithSignature("NotEnoughGas()"));
        vault.deposit{gas: 2_000_000}(1_000 * USDC_1, bob);
        // With all the gas that it could have used it is Aave that does not take it: the next one gets it.
        vault.deposit(1_000 * USDC_1, bob);
        (, uint256[3] memory at,,) = vault.holdings();
        assertApproxEqAbs(at[1], 1_000 * USDC_1, 1);
    }

    /// What a protocol may use up is the same however much is sent, so that an exit past three that burn it all fits in a block.
    function test_a_protocol_gets_three_million_of_gas_and_not_one_more() external {
        // Answers with the gas that it has: GAS (which takes two), PUSH0, MSTORE, PUSH1 32, PUSH0, RETURN.
        vm.etch(address(aUsdc), hex"5a5f5260205ff3");
        assertEq(vault.totalAssets(), 3_000_000 - 2);
        assertEq(vault.totalAssets{gas: 100_000_000}(), 3_000_000 - 2);
    }

    /// With less gas than it could use up, each question to one that fails would end the exit.
    function test_a_protocol_without_a_position_is_not_asked() external {
        breakIt(Protocol.Compound);
        assertApproxEqAbs(vault.maxWithdraw{gas: 2_000_000}(alice), 99_500 * USDC_1, 3);
        vault.move(Protocol.Compound, Protocol.Morpho, 0, 0);
        breakIt(Protocol.Morpho);
        vm.stopPrank();
        uint256 shares = vault.balanceOf(alice);
        vm.prank(alice);
        vault.redeem{gas: 2_000_000}(shares, alice, alice);
    }

    /// Once there is enough, the others are left alone, whether they would answer or not.
    function test_no_protocol_is_asked_for_what_is_there_already() external {
        vault.move(Protocol.Aave, Protocol.Compound, 40_000 * USDC_1, 0);
        vm.mockCallRevert(address(aave), abi.encodeWithSelector(IAavePool.getConfiguration.selector), "");
        vm.stopPrank();
        vm.prank(alice);
        vault.withdraw{gas: 2_000_000}(10_000 * USDC_1, alice, alice);
        (, uint256[3] memory at,,) = vault.holdings();
        assertApproxEqAbs(at[1], 30_000 * USDC_1, 2);
    }

    /// What it had is gone then: a second question could only fail, or bring what was not counted.
    function test_an_exit_takes_out_of_each_protocol_once() external {
        vault.move(Protocol.Aave, Protocol.Compound, 40_000 * USDC_1, 0);
        skip(6 hours);
        vault.move(Protocol.Compound, Protocol.Aave, 0, 0);
        vm.stopPrank();
        vm.expectCall(address(aave), abi.encodeWithSelector(IAavePool.withdraw.selector), 1);
        vm.expectCall(address(comet), abi.encodeWithSelector(IComet.withdraw.selector), 1);
        redeemAll(alice);
    }

    /// One that says that it can pay, and then does not: the others pay, and nobody is told that it did.
    function test_a_protocol_that_pays_nothing_is_not_told_to_have_paid() external {
        vault.move(Protocol.Aave, Protocol.Compound, 40_000 * USDC_1, 0);
        vm.stopPrank();
        vm.mockCallRevert(address(comet), abi.encodeWithSelector(IComet.withdraw.selector), "");
        vm.recordLogs();
        vm.prank(alice);
        vault.withdraw(10_000 * USDC_1, alice, alice);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        uint256 told;
        for (uint256 n = 0; n < logs.length; n++) {
            if (logs[n].topics[0] != Positions.TakenOut.selector) continue;
            assertEq(logs[n].topics[1], bytes32(uint256(Protocol.Aave)));
            told += 1;
        }
        assertEq(told, 1);
    }

    event Moved(Protocol indexed from, Protocol indexed to, uint256 assets, uint256 received);

    /// To where there is a position already: what was there does not count as received.
    function test_what_a_move_brought_is_what_it_added() external {
        vault.move(Protocol.Aave, Protocol.Compound, 10_000 * USDC_1, 0);
        skip(6 hours);
        (, uint256[3] memory before,,) = vault.holdings();
        assertGt(before[1], 0);
        uint256 assets = 5_000 * USDC_1;
        vm.expectPartialRevert(FareboxVault.ReceivedTooLittle.selector);
        vault.move(Protocol.Aave, Protocol.Compound, assets, assets + 1);
        vm.recordLogs();
        vault.move(Protocol.Aave, Protocol.Compound, assets, assets - 2);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        Vm.Log memory last = logs[logs.length - 1];
        assertEq(last.topics[0], Moved.selector);
        (, uint256 received) = abi.decode(last.data, (uint256, uint256));
        (, uint256[3] memory at,,) = vault.holdings();
        assertEq(received, at[1] - before[1]);
    }
}
