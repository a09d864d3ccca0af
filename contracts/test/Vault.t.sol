// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC4626} from "@openzeppelin/contracts/token/ERC20/extensions/ERC4626.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {IERC4626} from "@openzeppelin/contracts/interfaces/IERC4626.sol";
import {Vm} from "forge-std/Vm.sol";
import {FareboxVault} from "../src/FareboxVault.sol";
import {Positions} from "../src/Positions.sol";
import {IAavePool, IComet, Protocol} from "../src/interfaces/Protocols.sol";
import {World} from "./world/World.sol";

/// Uses up whatever it is given.
contract GasBurner {
    fallback() external {
        assembly {
            invalid()
        }
    }
}

/// What the vault charges, who may do what, and what happens when a protocol does not behave.
contract VaultTest is World {
    uint256 private constant DUST = 12;

    event EntryFeePaid(uint256 shares);
    event FeesQueueCleared();
    event FeesSet(uint256 entryBps, uint256 performanceBps);
    event PerformanceFeePaid(uint256 shares, uint256 markPrice);

    function valueOf(address who) private view returns (uint256) {
        return vault.convertToAssets(vault.balanceOf(who));
    }

    function move(Protocol from, Protocol to, uint256 assets) private {
        vm.prank(keeper);
        vault.move(from, to, assets, 0);
        skip(6 hours);
    }

    /// A third of 300,000 USDC of Alice's in each protocol.
    function spread() private {
        deposit(alice, 100_000 * USDC_1);
        skip(6 hours);
        move(Protocol.Aave, Protocol.Compound, 0);
        deposit(alice, 100_000 * USDC_1);
        move(Protocol.Compound, Protocol.Morpho, 0);
        deposit(alice, 100_000 * USDC_1);
    }

    // --------------------------------------------------------------------------------------------------- fees

    function test_the_entry_fee_is_half_a_percent_and_goes_to_the_fee_recipient_as_shares() external {
        uint256 shares = deposit(alice, 1_000 * USDC_1);
        assertEq(shares, vault.balanceOf(alice));
        assertApproxEqAbs(valueOf(alice), 995 * USDC_1, 3);
        assertLe(valueOf(alice), 995 * USDC_1);
        assertApproxEqAbs(valueOf(treasury), 5 * USDC_1, DUST);
        assertLe(valueOf(treasury), 5 * USDC_1);
    }

    function test_the_entry_fee_is_rounded_up_to_the_unit() external {
        deposit(bob, 1_000 * USDC_1);
        // 0.5 % of 1,001 is 5.005.
        assertEq(vault.previewDeposit(1_001), vault.convertToShares(1_001 - 6));
        assertEq(vault.previewDeposit(200), vault.convertToShares(199));
    }

    /// At a price that is no round number, so that a share more would show.
    function test_the_entry_fees_shares_are_rounded_down() external {
        deposit(bob, 1_000 * USDC_1);
        pass(30 days);
        vm.prank(owner);
        vault.setFeeRecipient(treasury);
        uint256 before = vault.balanceOf(treasury);
        // Two units of the fee stay with everybody.
        uint256 fee = 5 * USDC_1 - 2;
        uint256 shares = vault.totalSupply() + 1e6;
        uint256 assets = vault.totalAssets() + 1;
        assertGt(mulmod(fee, shares, assets), 0);
        deposit(alice, 1_000 * USDC_1);
        assertEq(vault.balanceOf(treasury) - before, fee * shares / assets);
    }

    function test_the_least_gross_amount_buys_shares_by_number() external {
        deposit(bob, 1_000 * USDC_1);
        for (uint256 shares = 1e12; shares < 1e12 + 5; shares++) {
            uint256 assets = vault.previewMint(shares);
            assertGe(vault.previewDeposit(assets), shares);
            assertLt(vault.previewDeposit(assets - 1), shares);
        }
    }

    /// Two units of it stay with everybody, so a fee of two units brings no shares, and none are told.
    function test_an_entry_fee_that_brings_no_shares_is_not_told() external {
        deposit(bob, 1_000 * USDC_1);
        assertEq(told(EntryFeePaid.selector, alice, abi.encodeCall(IERC4626.deposit, (400, alice))), 0);
        assertEq(told(EntryFeePaid.selector, alice, abi.encodeCall(IERC4626.deposit, (401, alice))), 1);
    }

    /// How many events of a kind an act brings.
    function told(bytes32 kind, address by, bytes memory act) private returns (uint256 count) {
        vm.recordLogs();
        vm.prank(by);
        (bool ok,) = address(vault).call(act);
        assertTrue(ok);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 n = 0; n < logs.length; n++) {
            if (logs[n].topics[0] == kind) count += 1;
        }
    }

    function test_a_deposit_too_small_for_a_share_is_refused() external {
        vm.prank(alice);
        vm.expectRevert(FareboxVault.ZeroShares.selector);
        vault.deposit(1, alice);
    }

    function test_a_deposit_of_nothing_does_nothing() external {
        deposit(bob, 1_000 * USDC_1);
        uint256 assets = vault.totalAssets();
        uint256 supply = vault.totalSupply();
        assertEq(deposit(alice, 0), 0);
        vm.prank(alice);
        assertEq(vault.mint(0, alice), 0);
        assertEq(vault.balanceOf(alice), 0);
        assertEq(vault.totalAssets(), assets);
        assertEq(vault.totalSupply(), supply);
    }

    function test_fifteen_percent_of_the_yield_is_the_performance_fee_and_previews_have_it_before_it_is_minted()
        external
    {
        deposit(alice, 100_000 * USDC_1);
        uint256 feeShares = vault.balanceOf(treasury);
        uint256 before = vault.totalAssets();
        pass(180 days);
        uint256 yield = vault.totalAssets() - before;
        assertGt(yield, 1_000 * USDC_1);
        uint256 told = vault.previewRedeem(vault.balanceOf(alice));
        vm.prank(owner);
        vault.setFeeRecipient(treasury);
        assertApproxEqAbs(vault.previewRedeem(vault.balanceOf(alice)), told, 1);
        uint256 earned = vault.convertToAssets(vault.balanceOf(treasury) - feeShares);
        assertApproxEqAbs(earned, yield * 15 / 100, 2);
        assertEq(redeemAll(alice), told);
    }

    /// As many shares as the fee buys once they are there, rounded down by less than one: no unit of it is those who stay's.
    function test_the_performance_fees_shares_are_worth_the_fee_and_not_one_more() external {
        vm.prank(owner);
        vault.setFeeRecipient(treasury);
        usdc.mint(address(vault), 1_000 * USDC_1);
        uint256 shares = vault.totalSupply() + 1e6;
        uint256 assets = vault.totalAssets() + 1;
        uint256 gain = (assets * 1e30 / shares - vault.markPrice()) * shares / 1e30;
        uint256 fee = gain * 1_500 / 10_000;
        uint256 before = vault.balanceOf(treasury);
        vm.prank(owner);
        vault.setFeeRecipient(treasury);
        uint256 feeShares = vault.balanceOf(treasury) - before;
        assertLe(feeShares * assets, fee * (shares + feeShares));
        assertGt((feeShares + 1) * assets, fee * (shares + feeShares + 1));
    }

    function test_where_there_is_no_performance_fee_none_is_told_and_the_mark_follows_all_the_same() external {
        vm.prank(owner);
        vault.lowerFees(FareboxVault.Fees(50, 0));
        deposit(alice, 100_000 * USDC_1);
        uint256 mark = vault.markPrice();
        pass(30 days);
        bytes memory act = abi.encodeCall(vault.setFeeRecipient, (treasury));
        assertEq(told(PerformanceFeePaid.selector, owner, act), 0);
        assertGt(vault.markPrice(), mark);
    }

    function test_what_was_earned_until_a_new_recipient_comes_is_the_old_ones() external {
        deposit(alice, 100_000 * USDC_1);
        uint256 before = vault.balanceOf(treasury);
        pass(180 days);
        vm.prank(owner);
        vault.setFeeRecipient(bob);
        assertGt(vault.balanceOf(treasury), before);
        assertEq(vault.balanceOf(bob), 0);
    }

    function test_the_performance_fee_is_taken_once_for_the_same_gain() external {
        deposit(alice, 100_000 * USDC_1);
        pass(30 days);
        vm.startPrank(owner);
        vault.setFeeRecipient(treasury);
        uint256 feeShares = vault.balanceOf(treasury);
        vault.setFeeRecipient(treasury);
        vm.stopPrank();
        assertEq(vault.balanceOf(treasury), feeShares);
    }

    function test_a_recovery_after_a_loss_is_not_charged_again() external {
        vault = makeVault(Protocol.Compound);
        vm.prank(alice);
        usdc.approve(address(vault), type(uint256).max);
        deposit(alice, 100_000 * USDC_1);
        pass(30 days);
        vm.prank(owner);
        vault.setFeeRecipient(treasury);
        uint256 feeShares = vault.balanceOf(treasury);
        uint256 mark = vault.markPrice();
        comet.sandboxLose(0.01e18);
        pass(30 days);
        vm.prank(owner);
        vault.setFeeRecipient(treasury);
        assertEq(vault.balanceOf(treasury), feeShares, "below the mark");
        assertEq(vault.markPrice(), mark);
        pass(180 days);
        vm.prank(owner);
        vault.setFeeRecipient(treasury);
        assertGt(vault.balanceOf(treasury), feeShares, "above the mark");
        assertGt(vault.markPrice(), mark);
    }

    function test_leaving_is_free() external {
        uint256 shares = deposit(alice, 1_000 * USDC_1);
        uint256 worth = vault.convertToAssets(shares);
        assertEq(redeemAll(alice), worth);
        assertEq(vault.balanceOf(alice), 0);
    }

    function test_fees_fall_at_once() external {
        vm.prank(owner);
        vault.lowerFees(FareboxVault.Fees(0, 0));
        deposit(alice, 1_000 * USDC_1);
        assertEq(vault.balanceOf(treasury), 0);
        assertApproxEqAbs(valueOf(alice), 1_000 * USDC_1, 1);
        pass(365 days);
        assertApproxEqAbs(valueOf(alice) + valueOf(vault.SEED_HOLDER()), vault.totalAssets(), 3);
    }

    function test_one_fee_falls_while_the_other_stays() external {
        vm.startPrank(owner);
        vault.lowerFees(FareboxVault.Fees(40, 1_500));
        assertEq(vault.fees().entryBps, 40);
        assertEq(vault.fees().performanceBps, 1_500);
        vault.lowerFees(FareboxVault.Fees(40, 1_400));
        assertEq(vault.fees().entryBps, 40);
        assertEq(vault.fees().performanceBps, 1_400);
        vm.stopPrank();
    }

    function test_lowering_raises_nothing() external {
        vm.startPrank(owner);
        vm.expectRevert(FareboxVault.NotLower.selector);
        vault.lowerFees(FareboxVault.Fees(51, 0));
        vm.expectRevert(FareboxVault.NotLower.selector);
        vault.lowerFees(FareboxVault.Fees(0, 1_501));
    }

    function test_fees_rise_two_days_after_that_was_told_and_what_was_earned_before_pays_the_old() external {
        deposit(alice, 100_000 * USDC_1);
        uint256 feeShares = vault.balanceOf(treasury);
        uint256 before = vault.totalAssets();
        vm.startPrank(owner);
        vault.queueFees(FareboxVault.Fees(100, 2_500));
        (FareboxVault.Fees memory queued, uint256 readyAt) = vault.queuedFees();
        assertEq(queued.performanceBps, 2_500);
        assertEq(readyAt, block.timestamp + 48 hours);
        skip(48 hours - 1);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.TooEarly.selector, readyAt));
        vault.applyFees();
        assertEq(vault.fees().entryBps, 50);
        skip(1);
        vault.applyFees();
        vm.stopPrank();
        assertEq(vault.fees().entryBps, 100);
        assertEq(vault.fees().performanceBps, 2_500);
        uint256 earned = vault.convertToAssets(vault.balanceOf(treasury) - feeShares);
        assertApproxEqAbs(earned, (vault.totalAssets() - before) * 15 / 100, 2);
    }

    /// Also to a protocol that looks while what was earned is told: what takes effect is queued no more.
    function test_what_is_applied_leaves_the_queue_before_it_takes_effect() external {
        vm.startPrank(owner);
        vault.queueFees(FareboxVault.Fees(60, 1_600));
        skip(48 hours);
        vm.expectEmit();
        emit FeesQueueCleared();
        vm.expectEmit();
        emit FeesSet(60, 1_600);
        vault.applyFees();
    }

    function test_what_is_queued_is_applied_once_or_cleared() external {
        vm.startPrank(owner);
        vm.expectRevert(FareboxVault.NothingQueued.selector);
        vault.applyFees();
        vm.expectRevert(FareboxVault.NothingQueued.selector);
        vault.clearQueuedFees();
        vault.queueFees(FareboxVault.Fees(60, 1_600));
        vault.clearQueuedFees();
        (FareboxVault.Fees memory queued, uint256 readyAt) = vault.queuedFees();
        assertEq(queued.entryBps + queued.performanceBps + readyAt, 0);
        skip(3 days);
        vm.expectRevert(FareboxVault.NothingQueued.selector);
        vault.applyFees();
        vault.queueFees(FareboxVault.Fees(60, 1_600));
        skip(2 days);
        vault.applyFees();
        vm.expectRevert(FareboxVault.NothingQueued.selector);
        vault.applyFees();
    }

    function test_what_is_queued_lapses_a_week_after_it_could_be_applied() external {
        vm.startPrank(owner);
        vault.queueFees(FareboxVault.Fees(60, 1_600));
        (, uint256 readyAt) = vault.queuedFees();
        vm.warp(readyAt + 7 days);
        uint256 world = vm.snapshotState();
        vault.applyFees();
        assertEq(vault.fees().entryBps, 60);
        vm.revertToState(world);
        (, uint256 still) = vault.queuedFees();
        assertEq(still, readyAt);
        vm.warp(readyAt + 7 days + 1);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.Lapsed.selector, readyAt + 7 days));
        vault.applyFees();
        (FareboxVault.Fees memory queued, uint256 gone) = vault.queuedFees();
        assertEq(queued.entryBps + queued.performanceBps + gone, 0);
        assertEq(vault.fees().entryBps, 50);
        vault.queueFees(FareboxVault.Fees(70, 1_700));
        skip(2 days);
        vault.applyFees();
        assertEq(vault.fees().entryBps, 70);
        assertEq(vault.FEE_WINDOW_SECONDS(), 7 days);
    }

    function test_the_guardian_takes_back_what_is_queued() external {
        vm.prank(owner);
        vault.queueFees(FareboxVault.Fees(60, 1_600));
        address[3] memory others = [keeper, treasury, alice];
        for (uint256 n = 0; n < others.length; n++) {
            vm.prank(others[n]);
            vm.expectRevert(abi.encodeWithSelector(FareboxVault.NotGuardian.selector, others[n]));
            vault.clearQueuedFees();
        }
        vm.prank(guardian);
        vault.clearQueuedFees();
        skip(2 days);
        vm.prank(owner);
        vm.expectRevert(FareboxVault.NothingQueued.selector);
        vault.applyFees();
    }

    /// What was earned before would pay the higher fee, since nobody can tell how much it is.
    function test_no_fee_on_the_yield_rises_while_a_position_cannot_be_read() external {
        deposit(alice, 100_000 * USDC_1);
        pass(90 days);
        vm.startPrank(owner);
        vault.queueFees(FareboxVault.Fees(100, 2_500));
        skip(2 days);
        breakIt(Protocol.Aave);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.NotRead.selector, Protocol.Aave));
        vault.applyFees();
        vault.lowerFees(FareboxVault.Fees(10, 1_500));
        assertEq(vault.fees().entryBps, 10);
        vm.clearMockedCalls();
        vault.applyFees();
        assertEq(vault.fees().performanceBps, 2_500);
    }

    function test_fees_have_caps() external {
        vm.startPrank(owner);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.FeeTooHigh.selector, 101, 100));
        vault.queueFees(FareboxVault.Fees(101, 0));
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.FeeTooHigh.selector, 2_501, 2_500));
        vault.queueFees(FareboxVault.Fees(0, 2_501));
        vm.stopPrank();
        FareboxVault.Setup memory setup = setupOf(Protocol.Aave);
        setup.fees = FareboxVault.Fees(101, 0);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.FeeTooHigh.selector, 101, 100));
        this.buildFor(setup);
    }

    // -------------------------------------------------------------------------------------------------- roles

    function test_only_the_owner_sets_fees_and_roles() external {
        address[4] memory others = [keeper, guardian, treasury, alice];
        for (uint256 n = 0; n < others.length; n++) {
            vm.startPrank(others[n]);
            bytes memory refused = abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, others[n]);
            vm.expectRevert(refused);
            vault.lowerFees(FareboxVault.Fees(0, 0));
            vm.expectRevert(refused);
            vault.queueFees(FareboxVault.Fees(0, 0));
            vm.expectRevert(refused);
            vault.applyFees();
            vm.expectRevert(refused);
            vault.setKeeper(alice);
            vm.expectRevert(refused);
            vault.setGuardian(alice);
            vm.expectRevert(refused);
            vault.setFeeRecipient(alice);
            vm.expectRevert(refused);
            vault.transferOwnership(alice);
            vm.expectRevert(refused);
            vault.renounceOwnership();
            vm.stopPrank();
        }
    }

    function test_roles_can_be_given_to_others() external {
        vm.startPrank(owner);
        vault.setKeeper(bob);
        vault.setGuardian(alice);
        vault.setFeeRecipient(bob);
        vm.expectRevert(FareboxVault.ZeroAddress.selector);
        vault.setFeeRecipient(address(0));
        vm.expectRevert(FareboxVault.ZeroAddress.selector);
        vault.setFeeRecipient(address(vault));
        vm.stopPrank();
        assertEq(vault.keeper(), bob);
        assertEq(vault.guardian(), alice);
        deposit(alice, 1_000 * USDC_1);
        assertApproxEqAbs(valueOf(bob), 5 * USDC_1, DUST);
        assertEq(vault.balanceOf(treasury), 0);
    }

    function test_ownership_passes_in_two_steps() external {
        vm.prank(owner);
        vault.transferOwnership(alice);
        assertEq(vault.owner(), owner);
        vm.prank(alice);
        vault.acceptOwnership();
        assertEq(vault.owner(), alice);
    }

    function test_a_guardian_stops_deposits_and_nothing_else() external {
        deposit(alice, 1_000 * USDC_1);
        vm.prank(bob);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.NotGuardian.selector, bob));
        vault.pauseDeposits();
        vm.prank(guardian);
        vault.pauseDeposits();
        assertTrue(vault.depositsPaused());
        assertEq(vault.maxDeposit(bob), 0);
        assertEq(vault.maxMint(bob), 0);
        vm.startPrank(bob);
        vm.expectRevert(abi.encodeWithSelector(ERC4626.ERC4626ExceededMaxDeposit.selector, bob, 1e6, 0));
        vault.deposit(1e6, bob);
        vm.expectRevert(abi.encodeWithSelector(ERC4626.ERC4626ExceededMaxMint.selector, bob, 1e12, 0));
        vault.mint(1e12, bob);
        vm.stopPrank();
        assertApproxEqAbs(redeemAll(alice), 995 * USDC_1, 3);
        vm.prank(bob);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.NotGuardian.selector, bob));
        vault.resumeDeposits();
        vm.prank(owner);
        vault.resumeDeposits();
        assertEq(vault.maxDeposit(bob), type(uint256).max);
        deposit(bob, 1_000 * USDC_1);
        vm.prank(owner);
        vault.pauseDeposits();
        vm.prank(guardian);
        vault.resumeDeposits();
        assertFalse(vault.depositsPaused());
    }

    function test_a_vault_without_owner_works_for_ever() external {
        deposit(alice, 1_000 * USDC_1);
        vm.prank(guardian);
        vault.pauseDeposits();
        vm.startPrank(owner);
        vault.queueFees(FareboxVault.Fees(100, 2_500));
        vault.renounceOwnership();
        vm.stopPrank();
        assertEq(vault.owner(), address(0));
        assertEq(vault.guardian(), address(0));
        (, uint256 readyAt) = vault.queuedFees();
        assertEq(readyAt, 0);
        deposit(bob, 1_000 * USDC_1);
        vm.prank(keeper);
        vault.move(Protocol.Aave, Protocol.Morpho, 100 * USDC_1, 0);
        pass(365 days);
        assertGt(redeemAll(alice), 1_000 * USDC_1);
        vm.prank(guardian);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.NotGuardian.selector, guardian));
        vault.pauseDeposits();
    }

    // ------------------------------------------------------------------------------------------------- moving

    function test_the_keeper_moves_funds_and_deposits_follow() external {
        deposit(alice, 100_000 * USDC_1);
        uint256 before = vault.totalAssets();
        vm.prank(keeper);
        vault.move(Protocol.Aave, Protocol.Compound, 40_000 * USDC_1, 40_000 * USDC_1 - 1);
        (, uint256[3] memory at,,) = vault.holdings();
        assertApproxEqAbs(at[0], 60_001 * USDC_1, 3);
        assertApproxEqAbs(at[1], 40_000 * USDC_1, 1);
        assertApproxEqAbs(vault.totalAssets(), before, 2);
        assertEq(uint8(vault.active()), uint8(Protocol.Compound));
        deposit(bob, 1_000 * USDC_1);
        (, at,,) = vault.holdings();
        assertApproxEqAbs(at[1], 41_000 * USDC_1, 2);
    }

    function test_a_move_of_everything_leaves_nothing_to_be_read() external {
        vault = build(unlimited());
        vm.prank(alice);
        usdc.approve(address(vault), type(uint256).max);
        deposit(alice, 100_000 * USDC_1);
        uint256 all = aUsdc.balanceOf(address(vault));
        vm.prank(keeper);
        vault.move(Protocol.Aave, Protocol.Morpho, all, all - 1);
        assertEq(aUsdc.balanceOf(address(vault)), 0);
        // What is not held is not read: that Aave is broken then disturbs nobody.
        breakIt(Protocol.Aave);
        (,,, bool complete) = vault.holdings();
        assertTrue(complete);
        assertApproxEqAbs(redeemAll(alice), 99_500 * USDC_1, 4);
    }

    /// In a call of its own, which may be expected to fail.
    function buildFor(FareboxVault.Setup memory setup) external {
        buildUnseeded(setup);
    }

    function unlimited() private view returns (FareboxVault.Setup memory setup) {
        setup = setupOf(Protocol.Aave);
        setup.limits = FareboxVault.MoveLimits(10_000, 10_000, 0);
    }

    function test_moves_are_the_keepers() external {
        address[4] memory others = [owner, guardian, treasury, alice];
        for (uint256 n = 0; n < others.length; n++) {
            vm.prank(others[n]);
            vm.expectRevert(abi.encodeWithSelector(FareboxVault.NotKeeper.selector, others[n]));
            vault.move(Protocol.Aave, Protocol.Compound, 0, 0);
        }
    }

    function test_a_move_keeps_to_its_limits() external {
        deposit(alice, 4_000_000 * USDC_1);
        vm.startPrank(keeper);
        vm.expectRevert(FareboxVault.SameProtocol.selector);
        vault.move(Protocol.Aave, Protocol.Aave, 1, 0);
        // Half of what Aave could pay out of the vault's position.
        uint256 most = aUsdc.balanceOf(address(vault)) / 2;
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.AboveLiquidity.selector, most + 1, most));
        vault.move(Protocol.Aave, Protocol.Compound, most + 1, 0);
        vm.expectPartialRevert(FareboxVault.ReceivedTooLittle.selector);
        vault.move(Protocol.Aave, Protocol.Compound, most, most + 1);
        vault.move(Protocol.Aave, Protocol.Compound, most, most - 1);
        uint256 nextAt = vault.nextMoveAt();
        assertEq(nextAt, block.timestamp + 6 hours);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.TooEarly.selector, nextAt));
        vault.move(Protocol.Compound, Protocol.Morpho, 1e6, 0);
        skip(6 hours);
        vault.move(Protocol.Compound, Protocol.Morpho, 1e6, 0);
    }

    function test_limits_are_checked_when_the_vault_is_made() external {
        FareboxVault.MoveLimits[5] memory wrong = [
            FareboxVault.MoveLimits(3_333, 1, 0),
            FareboxVault.MoveLimits(10_001, 1, 0),
            FareboxVault.MoveLimits(10_000, 0, 0),
            FareboxVault.MoveLimits(10_000, 10_001, 0),
            FareboxVault.MoveLimits(10_000, 1, 30 days + 1)
        ];
        FareboxVault.Setup memory setup = setupOf(Protocol.Aave);
        for (uint256 n = 0; n < wrong.length; n++) {
            setup.limits = wrong[n];
            vm.expectRevert(FareboxVault.LimitOutOfRange.selector);
            this.buildFor(setup);
        }
        setup.limits = FareboxVault.MoveLimits(3_334, 1, 30 days);
        this.buildFor(setup);
        setup.limits = FareboxVault.MoveLimits(10_000, 10_000, 0);
        this.buildFor(setup);
    }

    function test_a_protocol_that_lends_something_else_is_refused() external {
        FareboxVault.Setup memory setup = setupOf(Protocol.Aave);
        vm.mockCall(address(comet), abi.encodeCall(IComet.baseToken, ()), abi.encode(address(weth)));
        vm.expectRevert(abi.encodeWithSelector(Positions.OtherAsset.selector, address(comet)));
        this.buildFor(setup);
        vm.clearMockedCalls();
        vm.mockCall(address(metaMorpho), abi.encodeWithSignature("asset()"), abi.encode(address(weth)));
        vm.expectRevert(abi.encodeWithSelector(Positions.OtherAsset.selector, address(metaMorpho)));
        this.buildFor(setup);
        vm.clearMockedCalls();
        vm.mockCall(address(aave), abi.encodeCall(IAavePool.getReserveAToken, (address(usdc))), abi.encode(address(0)));
        vm.expectRevert(abi.encodeWithSelector(Positions.OtherAsset.selector, address(aave)));
        this.buildFor(setup);
    }

    /// Such as this vault itself, or one of Morpho's second version, whose limits are always nothing.
    function test_a_vault_that_is_no_metamorpho_is_refused() external {
        FareboxVault.Setup memory setup = setupOf(Protocol.Aave);
        bytes memory refused = abi.encodeWithSelector(Positions.NotMetaMorpho.selector, address(vault));
        setup.metaMorpho = vault;
        vm.expectRevert(refused);
        this.buildFor(setup);
        vm.mockCall(address(vault), abi.encodeWithSignature("MORPHO()"), abi.encode(makeAddr("nothing there")));
        vm.expectRevert(refused);
        this.buildFor(setup);
    }

    /// A keeper who is an attacker cannot shut funds in.
    function test_nothing_is_moved_to_where_it_could_not_come_back_from() external {
        deposit(alice, 100_000 * USDC_1);
        comet.sandboxPause(false, true, false);
        vm.prank(keeper);
        vm.expectPartialRevert(FareboxVault.AboveLiquidity.selector);
        vault.move(Protocol.Aave, Protocol.Compound, 10_000 * USDC_1, 0);
    }

    function test_a_move_that_a_protocol_refuses_moves_nothing() external {
        deposit(alice, 100_000 * USDC_1);
        comet.sandboxPause(true, false, false);
        vm.startPrank(keeper);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.ProtocolFailed.selector, Protocol.Compound));
        vault.move(Protocol.Aave, Protocol.Compound, 10_000 * USDC_1, 0);
        breakIt(Protocol.Aave);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.NotRead.selector, Protocol.Aave));
        vault.move(Protocol.Aave, Protocol.Compound, 0, 0);
    }

    function test_what_the_active_protocol_does_not_take_lies_idle_until_it_does() external {
        aaveConfigurator.setReserveFreeze(address(usdc), true);
        comet.sandboxPause(true, false, false);
        vm.mockCallRevert(address(metaMorpho), abi.encodeWithSelector(IERC4626.deposit.selector), "");
        deposit(alice, 1_000 * USDC_1);
        (uint256 idle,,,) = vault.holdings();
        assertEq(idle, 1_000 * USDC_1);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.ProtocolFailed.selector, Protocol.Aave));
        vault.supplyIdle();
        aaveConfigurator.setReserveFreeze(address(usdc), false);
        vm.prank(bob);
        vault.supplyIdle();
        (idle,,,) = vault.holdings();
        assertEq(idle, 0);
        assertApproxEqAbs(redeemAll(alice), 995 * USDC_1, 4);
    }

    function test_where_nothing_lies_idle_there_is_nothing_to_supply() external {
        deposit(alice, 1_000 * USDC_1);
        (, uint256[3] memory before,,) = vault.holdings();
        vm.prank(bob);
        vault.supplyIdle();
        (uint256 idle, uint256[3] memory at,,) = vault.holdings();
        assertEq(idle, 0);
        assertEq(at[0], before[0]);
    }

    // ------------------------------------------------------------------------------------------------ leaving

    function test_cash_comes_from_idle_then_the_active_protocol_then_the_rest() external {
        spread();
        usdc.mint(address(vault), 10_000 * USDC_1);
        (, uint256[3] memory before,,) = vault.holdings();
        vm.startPrank(alice);
        vault.withdraw(10_000 * USDC_1, alice, alice);
        (uint256 idle, uint256[3] memory at,,) = vault.holdings();
        assertEq(idle, 0);
        assertEq(at[2], before[2]);
        vault.withdraw(50_000 * USDC_1, alice, alice);
        (, at,,) = vault.holdings();
        assertApproxEqAbs(at[2], before[2] - 50_000 * USDC_1, 2);
        assertEq(at[0], before[0]);
        vault.withdraw(100_000 * USDC_1, alice, alice);
        (, at,,) = vault.holdings();
        assertEq(at[2], 0);
        assertLt(at[0], before[0]);
        assertEq(at[1], before[1]);
        vm.stopPrank();
        redeemAll(alice);
        assertEq(vault.balanceOf(alice), 0);
    }

    function test_no_more_is_taken_out_than_is_paid() external {
        spread();
        usdc.mint(address(vault), 10_000 * USDC_1);
        vm.prank(alice);
        vault.withdraw(15_000 * USDC_1, alice, alice);
        (uint256 idle,,,) = vault.holdings();
        assertEq(idle, 0);
    }

    function test_where_one_protocol_is_dry_or_paused_the_others_pay() external {
        for (uint256 p = 0; p < 3; p++) {
            for (uint256 paused = 0; paused < 2; paused++) {
                uint256 world = vm.snapshotState();
                spread();
                // A MetaMorpho has no pause: see below for what answers nothing.
                if (paused == 1 && p != 2) pauseAll(Protocol(p));
                else drain(Protocol(p));
                uint256 most = vault.maxWithdraw(alice);
                uint256 shares = vault.maxRedeem(alice);
                assertLe(most, 200_100 * USDC_1);
                assertGe(most, 190_000 * USDC_1);
                vm.prank(alice);
                uint256 got = vault.redeem(shares, alice, alice);
                assertApproxEqAbs(got, most, 2);
                assertGt(vault.balanceOf(alice), 0);
                vm.clearMockedCalls();
                vm.revertToState(world);
            }
        }
    }

    function test_where_all_are_dry_what_there_is_can_be_had() external {
        spread();
        for (uint256 p = 0; p < 3; p++) {
            drain(Protocol(p));
        }
        uint256 shares = vault.balanceOf(alice);
        vm.prank(alice);
        vm.expectPartialRevert(Positions.NotEnoughLiquidity.selector);
        vault.redeem(shares, alice, alice);
        assertEq(vault.maxRedeem(alice), 0);
        usdc.mint(address(vault), 1_000 * USDC_1);
        uint256 some = vault.maxRedeem(alice);
        vm.prank(alice);
        assertApproxEqAbs(vault.redeem(some, alice, alice), 1_000 * USDC_1, 1);
    }

    function test_in_kind_everybody_leaves_when_nothing_pays_out() external {
        spread();
        deposit(bob, 50_000 * USDC_1);
        for (uint256 p = 0; p < 3; p++) {
            drain(Protocol(p));
        }
        uint256 worth = valueOf(bob);
        uint256 shares = vault.balanceOf(bob);
        vm.prank(bob);
        vault.exitInKind(shares, bob, bob, 0);
        uint256 got =
            aUsdc.balanceOf(bob) + comet.balanceOf(bob) + metaMorpho.convertToAssets(metaMorpho.balanceOf(bob));
        assertApproxEqAbs(got, worth, DUST);
        assertEq(vault.balanceOf(bob), 0);
        shares = vault.balanceOf(alice);
        vm.prank(alice);
        vault.exitInKind(shares, alice, alice, 0);
        assertEq(vault.balanceOf(alice), 0);
        // What is left is the fees', the seed's and the virtual shares'.
        assertApproxEqAbs(vault.totalAssets(), valueOf(treasury) + valueOf(vault.SEED_HOLDER()), DUST);
    }

    function test_in_kind_what_is_not_held_need_not_be_named() external {
        uint256 shares = deposit(alice, 1_000 * USDC_1);
        vm.prank(alice);
        (, uint256[3] memory handed) = vault.exitInKind(shares, alice, alice, 0);
        assertApproxEqAbs(handed[0], 995 * USDC_1, DUST);
        assertEq(handed[1] + handed[2], 0);
    }

    function test_in_kind_a_part_that_is_refused_ends_it_unless_its_owner_leaves_it_behind() external {
        spread();
        comet.sandboxPause(false, true, true);
        uint256 shares = vault.balanceOf(alice);
        uint256 held = comet.balanceOf(address(vault));
        uint256 fees = valueOf(treasury);
        vm.startPrank(alice);
        for (uint8 leaveBehind = 0; leaveBehind < 16; leaveBehind++) {
            if (leaveBehind & 2 != 0) continue;
            vm.expectRevert(abi.encodeWithSelector(FareboxVault.NotHandedOver.selector, 1));
            vault.exitInKind(shares, alice, alice, leaveBehind);
        }
        (, uint256[3] memory handed) = vault.exitInKind(shares, alice, alice, 2);
        assertEq(handed[1], 0);
        assertGt(handed[0], 0);
        assertGt(handed[2], 0);
        assertEq(comet.balanceOf(address(vault)), held);
        vm.stopPrank();
        // It is those who stay who have it, the fee recipient and the seed, and no performance fee is taken of it.
        uint256 feeShares = vault.balanceOf(treasury);
        vm.prank(owner);
        vault.setFeeRecipient(treasury);
        assertEq(vault.balanceOf(treasury), feeShares);
        assertGt(valueOf(treasury), fees);
    }

    function test_in_kind_hands_over_what_is_idle_too_and_needs_the_owners_allowance() external {
        deposit(alice, 1_000 * USDC_1);
        usdc.mint(address(vault), 500 * USDC_1);
        uint256 shares = vault.balanceOf(alice);
        uint256 part = 500 * USDC_1 * vault.previewRedeem(shares) / vault.totalAssets();
        vm.prank(bob);
        vm.expectRevert();
        vault.exitInKind(shares, bob, alice, 0);
        vm.prank(alice);
        vault.approve(bob, shares);
        uint256 before = usdc.balanceOf(bob);
        vm.prank(bob);
        (uint256 idle,) = vault.exitInKind(shares, bob, alice, 0);
        assertEq(usdc.balanceOf(bob) - before, idle);
        assertApproxEqAbs(idle, part, 2);
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(ERC4626.ERC4626ExceededMaxRedeem.selector, alice, 1, 0));
        vault.exitInKind(1, alice, alice, 0);
    }

    function test_more_than_one_has_is_refused() external {
        uint256 shares = deposit(alice, 1_000 * USDC_1);
        vm.startPrank(alice);
        vm.expectRevert(abi.encodeWithSelector(ERC4626.ERC4626ExceededMaxRedeem.selector, alice, shares + 1, shares));
        vault.redeem(shares + 1, alice, alice);
        uint256 most = vault.maxWithdraw(alice);
        vm.expectRevert(abi.encodeWithSelector(ERC4626.ERC4626ExceededMaxWithdraw.selector, alice, most + 2, most));
        vault.withdraw(most + 2, alice, alice);
        vault.withdraw(most, alice, alice);
    }

    /// By its name, also where what is asked for would be worth more than a word can hold.
    function test_more_than_there_could_be_is_refused_alike() external {
        uint256 shares = deposit(alice, USDC_1);
        // A share unit is worth more than a unit of USDC from here on.
        usdc.mint(address(vault), 9_000_000 * USDC_1);
        uint256 most = type(uint256).max;
        vm.startPrank(alice);
        bytes memory refused = abi.encodeWithSelector(ERC4626.ERC4626ExceededMaxRedeem.selector, alice, most, shares);
        vm.expectRevert(refused);
        vault.redeem(most, alice, alice);
        vm.expectRevert(refused);
        vault.redeemPartly(most, alice, alice, 0);
    }

    function test_others_need_an_allowance() external {
        uint256 shares = deposit(alice, 1_000 * USDC_1);
        vm.startPrank(bob);
        vm.expectRevert();
        vault.redeem(shares, bob, alice);
        vm.expectRevert();
        vault.withdraw(1e6, bob, alice);
        vm.stopPrank();
        vm.prank(alice);
        vault.approve(bob, shares / 2);
        vm.startPrank(bob);
        vault.redeem(shares / 2, bob, alice);
        vm.expectRevert();
        vault.redeem(1, bob, alice);
    }

    // --------------------------------------------------------------------------------- protocols that misbehave

    function test_a_loss_is_everybodys_alike() external {
        vault = makeVault(Protocol.Compound);
        for (uint256 n = 0; n < 2; n++) {
            address who = n == 0 ? alice : bob;
            vm.prank(who);
            usdc.approve(address(vault), type(uint256).max);
            deposit(who, 10_000 * USDC_1);
        }
        comet.sandboxLose(0.1e18);
        assertApproxEqAbs(valueOf(alice), 8_955 * USDC_1, 4);
        assertApproxEqAbs(redeemAll(alice), 8_955 * USDC_1, 4);
        assertApproxEqAbs(redeemAll(bob), 8_955 * USDC_1, 4);
    }

    function test_one_that_cannot_be_read_closes_deposits_and_freezes_nobody() external {
        for (uint256 p = 0; p < 3; p++) {
            uint256 world = vm.snapshotState();
            spread();
            uint256 feeShares = vault.balanceOf(treasury);
            breakIt(Protocol(p));
            pass(30 days);
            (,,, bool complete) = vault.holdings();
            assertFalse(complete);
            assertEq(vault.maxDeposit(bob), 0);
            vm.prank(bob);
            vm.expectRevert();
            vault.deposit(1_000 * USDC_1, bob);
            uint256 worth = valueOf(alice);
            assertApproxEqRel(worth, 200_000 * USDC_1, 0.02e18);
            uint256 half = vault.balanceOf(alice) / 2;
            ordinaryExitsAreRefused(Protocol(p), half);
            vm.prank(alice);
            assertApproxEqAbs(vault.redeemPartly(half, alice, alice, worth / 2 - 2), worth / 2, 2);
            assertEq(vault.balanceOf(treasury), feeShares, "no fee on what is not known");
            vm.prank(alice);
            vm.expectRevert(abi.encodeWithSelector(FareboxVault.NotHandedOver.selector, p));
            vault.exitInKind(half, alice, alice, uint8(15 ^ (1 << p)));
            vm.prank(alice);
            (, uint256[3] memory handed) = vault.exitInKind(half, alice, alice, uint8(1 << p));
            assertEq(handed[p], 0);
            vm.clearMockedCalls();
            assertEq(vault.maxDeposit(bob), type(uint256).max);
            vm.revertToState(world);
        }
    }

    /// Nobody burns shares for less than they are worth because a part of it cannot be told.
    function ordinaryExitsAreRefused(Protocol unread, uint256 shares) private {
        bytes memory refused = abi.encodeWithSelector(FareboxVault.NotRead.selector, unread);
        assertEq(vault.maxWithdraw(alice), 0);
        assertEq(vault.maxRedeem(alice), 0);
        vm.startPrank(alice);
        vm.expectRevert(refused);
        vault.redeem(shares, alice, alice);
        vm.expectRevert(refused);
        vault.redeem(shares, alice, alice, 0);
        vm.expectRevert(refused);
        vault.withdraw(1e6, alice, alice);
        vm.expectRevert(refused);
        vault.withdraw(1e6, alice, alice, type(uint256).max);
        vm.expectRevert(refused);
        vault.withdraw(type(uint256).max, alice, alice);
        vm.expectRevert(refused);
        vault.previewWithdraw(1e6);
        vm.expectRevert(refused);
        vault.previewRedeem(shares);
        vm.stopPrank();
        assertGt(vault.convertToShares(1e6), 0);
        assertGt(vault.totalAssets(), 0);
    }

    function test_one_that_burns_all_gas_stops_no_exit() external {
        spread();
        bytes memory burner = type(GasBurner).runtimeCode;
        vm.etch(address(metaMorpho), burner);
        uint256 half = vault.balanceOf(alice) / 2;
        vm.startPrank(alice);
        assertGt(vault.redeemPartly{gas: 28_000_000}(half, alice, alice, 0), 90_000 * USDC_1);
        vault.exitInKind{gas: 28_000_000}(half, alice, alice, 4);
        vm.stopPrank();
    }

    /// Aave pays nothing out of a reserve that it has put out of use, whatever cash it says that it has.
    function test_of_a_reserve_that_is_not_active_nothing_is_promised() external {
        deposit(alice, 1_000 * USDC_1);
        assertGt(vault.maxWithdraw(alice), 0);
        bytes memory asked = abi.encodeCall(IAavePool.getConfiguration, (address(usdc)));
        vm.mockCall(address(aave), asked, abi.encode(uint256(0)));
        assertEq(vault.maxWithdraw(alice), 0);
        assertEq(vault.maxRedeem(alice), 0);
    }

    /// MetaMorpho tells what no shares are worth, and not how many there are: that is no position of nothing.
    function test_a_position_of_which_only_the_price_can_be_read_is_not_read() external {
        spread();
        vm.mockCallRevert(address(metaMorpho), abi.encodeCall(IERC20.balanceOf, (address(vault))), "");
        assertEq(metaMorpho.convertToAssets(0), 0);
        (,,, bool complete) = vault.holdings();
        assertFalse(complete);
        ordinaryExitsAreRefused(Protocol.Morpho, vault.balanceOf(alice));
    }

    function test_one_that_lies_beyond_all_measure_is_not_believed() external {
        spread();
        vm.mockCall(address(comet), abi.encodeCall(IERC20.balanceOf, (address(vault))), abi.encode(type(uint256).max));
        (,,, bool complete) = vault.holdings();
        assertFalse(complete);
        uint256 shares = vault.balanceOf(alice);
        vm.prank(alice);
        vault.exitInKind(shares, alice, alice, 2);
    }

    /// With little gas a read could fail that would not with more: nobody can make a position look worthless.
    function test_no_amount_of_gas_buys_shares_below_their_price() external {
        spread();
        uint256 fair = vault.previewDeposit(1_000 * USDC_1);
        uint256 worked;
        for (uint256 gas = 60_000; gas < 1_000_000; gas += 15_000) {
            uint256 world = vm.snapshotState();
            vm.prank(bob);
            (bool ok, bytes memory said) =
                address(vault).call{gas: gas}(abi.encodeCall(IERC4626.deposit, (1_000 * USDC_1, bob)));
            if (ok) {
                worked += 1;
                assertEq(abi.decode(said, (uint256)), fair);
                (uint256 idle,,,) = vault.holdings();
                assertEq(idle, 0, "and it was supplied");
            }
            vm.revertToState(world);
        }
        assertGt(worked, 5);
    }

    function test_no_amount_of_gas_takes_a_part_from_whoever_leaves_in_kind() external {
        spread();
        uint256 shares = vault.balanceOf(alice);
        uint256 worked;
        for (uint256 gas = 60_000; gas < 1_500_000; gas += 20_000) {
            uint256 world = vm.snapshotState();
            vm.prank(alice);
            (bool ok, bytes memory said) =
                address(vault).call{gas: gas}(abi.encodeCall(vault.exitInKind, (shares, alice, alice, 0)));
            if (ok) {
                worked += 1;
                (, uint256[3] memory handed) = abi.decode(said, (uint256, uint256[3]));
                assertTrue(handed[0] > 0 && handed[1] > 0 && handed[2] > 0);
            }
            vm.revertToState(world);
        }
        assertGt(worked, 5);
    }

    /// The first depositor inflates the price of a share, so that the next one's deposit rounds to nothing.
    function test_inflating_the_first_share_costs_the_attacker() external {
        vm.startPrank(bob);
        vault.deposit(10, bob);
        usdc.transfer(address(vault), 10_000 * USDC_1);
        vm.stopPrank();
        deposit(alice, 1_000 * USDC_1);
        uint256 aliceGets = redeemAll(alice);
        assertApproxEqAbs(aliceGets, 995 * USDC_1, 1_500);
        // A tenth of it is the virtual shares', which are nobody's, and the performance fee is taken of it.
        assertLt(redeemAll(bob), 8_000 * USDC_1);
    }

    function test_shares_take_permits() external {
        (address carol, uint256 key) = makeAddrAndKey("carol");
        uint256 deadline = block.timestamp + 1 hours;
        bytes32 digest = keccak256(
            abi.encodePacked(
                hex"1901",
                vault.DOMAIN_SEPARATOR(),
                keccak256(
                    abi.encode(
                        keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"),
                        carol,
                        bob,
                        5e12,
                        0,
                        deadline
                    )
                )
            )
        );
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        vault.permit(carol, bob, 5e12, deadline, v, r, s);
        assertEq(vault.allowance(carol, bob), 5e12);
        assertEq(vault.decimals(), 12);
    }
}
