// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {ERC4626} from "@openzeppelin/contracts/token/ERC20/extensions/ERC4626.sol";
import {FareboxVault} from "../src/FareboxVault.sol";
import {Positions} from "../src/Positions.sol";
import {Protocol} from "../src/interfaces/Protocols.sol";
import {World} from "./world/World.sol";

interface IPausable {
    function pause() external;
    function blacklist(address account) external;
}

/// No exit burns shares for less than the shareholder agreed to, and what leavers leave behind is those who stay's, without a fee.
contract ExitsTest is World {
    uint256 private constant DUST = 12;

    function valueOf(address who) private view returns (uint256) {
        return vault.convertToAssets(vault.balanceOf(who));
    }

    /// What is due of the performance fee, minted. @return shares that it brought the fee recipient
    function accrue() private returns (uint256 shares) {
        shares = vault.balanceOf(treasury);
        vm.prank(owner);
        vault.setFeeRecipient(treasury);
        return vault.balanceOf(treasury) - shares;
    }

    /// Half of it in Aave and half in Compound: Alice's and Bob's in equal parts.
    function halves() private {
        deposit(alice, 50_000 * USDC_1);
        deposit(bob, 50_000 * USDC_1);
        vm.prank(keeper);
        vault.move(Protocol.Aave, Protocol.Compound, 50_000 * USDC_1, 0);
    }

    // ------------------------------------------------------------------------------------------------- bounds

    function test_a_deposit_brings_at_least_so_many_shares_or_nothing_happens() external {
        uint256 told = vault.previewDeposit(1_000 * USDC_1);
        vm.startPrank(alice);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.TooFewShares.selector, told, told + 1));
        vault.deposit(1_000 * USDC_1, bob, told + 1);
        assertEq(vault.deposit(1_000 * USDC_1, bob, told), told);
        assertEq(vault.balanceOf(bob), told);
    }

    function test_a_mint_costs_at_most_so_much_or_nothing_happens() external {
        uint256 told = vault.previewMint(1_000e12);
        vm.startPrank(alice);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.TooManyAssets.selector, told, told - 1));
        vault.mint(1_000e12, bob, told - 1);
        assertEq(vault.mint(1_000e12, bob, told), told);
        assertEq(vault.balanceOf(bob), 1_000e12);
    }

    function test_a_withdrawal_costs_at_most_so_many_shares_or_nothing_happens() external {
        deposit(alice, 1_000 * USDC_1);
        uint256 told = vault.previewWithdraw(500 * USDC_1);
        uint256 cash = usdc.balanceOf(bob);
        vm.startPrank(alice);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.TooManyShares.selector, told, told - 1));
        vault.withdraw(500 * USDC_1, bob, alice, told - 1);
        assertEq(vault.withdraw(500 * USDC_1, bob, alice, told), told);
        assertEq(usdc.balanceOf(bob) - cash, 500 * USDC_1);
    }

    function test_redeeming_pays_at_least_so_much_or_nothing_happens() external {
        uint256 shares = deposit(alice, 1_000 * USDC_1);
        uint256 told = vault.previewRedeem(shares);
        uint256 cash = usdc.balanceOf(bob);
        vm.startPrank(alice);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.TooFewAssets.selector, told, told + 1));
        vault.redeem(shares, bob, alice, told + 1);
        assertEq(vault.redeem(shares, bob, alice, told), told);
        assertEq(usdc.balanceOf(bob) - cash, told);
        assertEq(vault.balanceOf(alice), 0);
    }

    // ---------------------------------------------------------------------- while a position cannot be read

    /// The finding: Alice's 99,500 USDC were redeemed for nothing, and a part of them became a performance fee.
    function test_an_ordinary_exit_never_burns_shares_for_a_position_that_cannot_be_read() external {
        uint256 shares = deposit(alice, 100_000 * USDC_1);
        deposit(bob, 100_000 * USDC_1);
        breakIt(Protocol.Aave);
        assertEq(vault.maxRedeem(alice) + vault.maxWithdraw(alice), 0);
        bytes memory refused = abi.encodeWithSelector(FareboxVault.NotRead.selector, Protocol.Aave);
        vm.startPrank(alice);
        vm.expectRevert(refused);
        vault.redeem(shares, alice, alice);
        vm.expectRevert(refused);
        vault.withdraw(0, alice, alice);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.NotHandedOver.selector, 0));
        vault.exitInKind(shares, alice, alice, 0);
        vm.stopPrank();
        assertEq(vault.balanceOf(alice), shares);
        vm.clearMockedCalls();
        assertApproxEqAbs(redeemAll(alice), 99_500 * USDC_1, DUST);
    }

    function test_redeeming_partly_pays_what_can_be_read_and_forfeits_the_rest_without_a_fee() external {
        halves();
        accrue();
        uint256 shares = vault.balanceOf(alice);
        breakIt(Protocol.Aave);
        uint256 told = vault.convertToAssets(shares);
        assertApproxEqRel(told, 24_875 * USDC_1, 0.01e18);
        uint256 cash = usdc.balanceOf(bob);
        vm.startPrank(alice);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.TooFewAssets.selector, told, told + 1));
        vault.redeemPartly(shares, bob, alice, told + 1);
        assertEq(vault.redeemPartly(shares, bob, alice, told), told);
        vm.stopPrank();
        assertEq(usdc.balanceOf(bob) - cash, told);
        assertEq(vault.balanceOf(alice), 0);

        vm.clearMockedCalls();
        assertEq(accrue(), 0, "a fee on what Alice left");
        assertApproxEqRel(valueOf(bob), 74_600 * USDC_1, 0.01e18);
        assertEq(vault.markPrice(), (vault.totalAssets() + 1) * 1e30 / (vault.totalSupply() + 1e6));
        pass(30 days);
        assertGt(accrue(), 0, "what is earned from here on pays its fee");
    }

    function test_redeeming_partly_is_for_who_has_the_shares_or_was_allowed_to() external {
        halves();
        breakIt(Protocol.Aave);
        uint256 shares = vault.balanceOf(alice);
        vm.startPrank(bob);
        vm.expectRevert(abi.encodeWithSelector(IERC20Errors.ERC20InsufficientAllowance.selector, bob, 0, shares));
        vault.redeemPartly(shares, bob, alice, 0);
        vm.stopPrank();
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(ERC4626.ERC4626ExceededMaxRedeem.selector, alice, shares + 1, shares));
        vault.redeemPartly(shares + 1, alice, alice, 0);
    }

    function test_redeeming_partly_burns_nothing_for_what_could_be_read_and_not_paid() external {
        halves();
        breakIt(Protocol.Aave);
        comet.sandboxPause(false, true, false);
        uint256 shares = vault.balanceOf(alice);
        vm.prank(alice);
        vm.expectPartialRevert(Positions.NotEnoughLiquidity.selector);
        vault.redeemPartly(shares, alice, alice, 0);
        assertEq(vault.balanceOf(alice), shares);
    }

    function test_where_all_is_read_redeeming_partly_is_redeeming() external {
        halves();
        uint256 shares = vault.balanceOf(alice);
        uint256 told = vault.previewRedeem(shares);
        uint256 mark = vault.markPrice();
        vm.prank(alice);
        assertEq(vault.redeemPartly(shares, alice, alice, told), told);
        assertEq(vault.markPrice(), mark);
    }

    /// What it earned while nobody could read it is a gain of those who stayed, as long as nobody left anything.
    function test_where_nobody_leaves_what_comes_back_pays_its_fee_once_it_is_read() external {
        deposit(alice, 100_000 * USDC_1);
        accrue();
        uint256 before = vault.totalAssets();
        breakIt(Protocol.Aave);
        pass(180 days);
        assertEq(accrue(), 0, "a fee on what is not known");
        vm.clearMockedCalls();
        uint256 gain = vault.totalAssets() - before;
        assertGt(gain, 1_000 * USDC_1);
        assertApproxEqAbs(vault.convertToAssets(accrue()), gain * 15 / 100, 2);
    }

    function test_nothing_is_charged_for_gains_while_another_position_cannot_be_read() external {
        halves();
        accrue();
        breakIt(Protocol.Aave);
        // More than all that Aave has, so that a price above the mark can be seen.
        usdc.mint(address(vault), 1_000_000 * USDC_1);
        uint256 mark = vault.markPrice();
        assertEq(accrue(), 0);
        assertEq(vault.markPrice(), mark);
    }

    function test_no_fee_is_taken_of_what_was_left_in_kind_of_a_position_that_cannot_be_read() external {
        halves();
        accrue();
        breakIt(Protocol.Aave);
        uint256 shares = vault.balanceOf(alice);
        vm.prank(alice);
        vault.exitInKind(shares, alice, alice, 1);
        vm.clearMockedCalls();
        // Told alike before it is minted.
        uint256 told = valueOf(bob);
        assertApproxEqRel(told, 74_600 * USDC_1, 0.01e18);
        assertEq(accrue(), 0);
        assertEq(valueOf(bob), told);
    }

    /// The fee that is due is told, or said to be none, before the position can be read again: by the owner, at no price.
    function test_who_has_the_price_told_meanwhile_gets_no_fee_of_what_was_left() external {
        halves();
        accrue();
        breakIt(Protocol.Aave);
        uint256 shares = vault.balanceOf(alice);
        vm.prank(alice);
        vault.redeemPartly(shares, alice, alice, 0);
        assertEq(accrue(), 0);
        vm.clearMockedCalls();
        assertEq(accrue(), 0, "a fee on what Alice left");
        assertApproxEqRel(valueOf(bob), 74_600 * USDC_1, 0.01e18);
    }

    /// It is read, and cannot be handed over: the mark is the price at once.
    function test_no_fee_is_taken_of_what_was_left_in_kind_of_a_position_that_is_paused() external {
        halves();
        accrue();
        aaveConfigurator.setReservePause(address(usdc), true);
        uint256 shares = vault.balanceOf(alice);
        vm.prank(alice);
        vault.exitInKind(shares, alice, alice, 1);
        assertEq(vault.markPrice(), (vault.totalAssets() + 1) * 1e30 / (vault.totalSupply() + 1e6));
        assertEq(accrue(), 0);
        assertApproxEqRel(valueOf(bob), 74_600 * USDC_1, 0.01e18);
    }

    /// What was left does not lower the mark of a vault that has lost: what it makes up is charged as before, above the mark.
    function test_what_is_left_behind_never_lowers_the_mark() external {
        halves();
        accrue();
        uint256 mark = vault.markPrice();
        comet.sandboxLose(0.5e18);
        comet.sandboxPause(false, true, true);
        uint256 some = vault.balanceOf(alice) / 10;
        vm.prank(alice);
        vault.exitInKind(some, alice, alice, 2);
        assertEq(vault.markPrice(), mark);
        breakIt(Protocol.Aave);
        vm.prank(alice);
        vault.exitInKind(some, alice, alice, 3);
        vm.clearMockedCalls();
        accrue();
        assertEq(vault.markPrice(), mark);
        pass(30 days);
        assertEq(accrue(), 0);
    }

    function test_a_gift_is_a_gain_and_pays_its_fee() external {
        deposit(alice, 100_000 * USDC_1);
        accrue();
        usdc.mint(address(vault), 1_000 * USDC_1);
        assertApproxEqAbs(vault.convertToAssets(accrue()), 150 * USDC_1, 2);
    }

    /// The virtual shares gain too, and the fee is on all of it: to the unit, however few the shares are.
    function test_the_fee_is_on_the_whole_gain_where_there_is_only_the_seed() external {
        accrue();
        usdc.mint(address(vault), 1_000 * USDC_1);
        assertApproxEqAbs(vault.convertToAssets(accrue()), 150 * USDC_1, 2);
    }

    /// The mark is the price with the fee's shares in it: the next gain pays its whole fee.
    function test_the_second_gain_pays_as_much_as_the_first() external {
        vm.startPrank(owner);
        vault.queueFees(FareboxVault.Fees(0, 2_500));
        skip(48 hours);
        vault.applyFees();
        vm.stopPrank();
        deposit(alice, 100_000 * USDC_1);
        for (uint256 n = 0; n < 3; n++) {
            accrue();
            uint256 price = (vault.totalAssets() + 1) * 1e30 / (vault.totalSupply() + 1e6);
            assertApproxEqRel(vault.markPrice(), price, 1e9);
            usdc.mint(address(vault), 40_000 * USDC_1);
            assertApproxEqAbs(vault.convertToAssets(accrue()), 10_000 * USDC_1, 2);
        }
    }

    // ------------------------------------------------------------------------------------------------ in kind

    function test_in_kind_each_part_is_that_of_the_shares_among_all_and_the_virtual_ones() external {
        vault = makeVault(Protocol.Morpho);
        vm.prank(alice);
        usdc.approve(address(vault), type(uint256).max);
        uint256 shares = deposit(alice, 10 * USDC_1);
        accrue();
        usdc.mint(address(vault), 5_000_000 * USDC_1);
        accrue();
        uint256 whole = vault.totalSupply() + 1e6;
        uint256 held = metaMorpho.balanceOf(address(vault));
        assertGt(held * shares / whole, 0);
        // Without the virtual shares it would be more.
        assertGt(held * shares / (whole - 1e6), held * shares / whole);
        vm.prank(alice);
        (uint256 idle, uint256[3] memory handed) = vault.exitInKind(shares, alice, alice, 0);
        assertEq(handed[2], held * shares / whole);
        assertEq(idle, 5_000_000 * USDC_1 * shares / whole);
        assertEq(metaMorpho.balanceOf(alice), handed[2]);
    }

    event ExitedInKind(
        address indexed caller,
        address indexed receiver,
        address indexed owner,
        uint256 shares,
        uint256 idle,
        uint256[3] handedOver
    );

    function test_in_kind_it_is_told_what_went_and_that_is_what_arrived() external {
        halves();
        uint256 shares = vault.balanceOf(alice);
        uint256 whole = vault.totalSupply() + 1e6;
        uint256[3] memory handed;
        handed[0] = aUsdc.balanceOf(address(vault)) * shares / whole;
        handed[1] = comet.balanceOf(address(vault)) * shares / whole;
        vm.expectEmit();
        emit ExitedInKind(alice, bob, alice, shares, 0, handed);
        vm.prank(alice);
        vault.exitInKind(shares, bob, alice, 0);
        assertApproxEqAbs(aUsdc.balanceOf(bob), handed[0], 1);
        assertApproxEqAbs(comet.balanceOf(bob), handed[1], 1);
    }

    /// USDC is paused, or the vault is on its list: everything else goes.
    function test_in_kind_idle_usdc_is_a_leg_of_its_own() external {
        halves();
        usdc.mint(address(vault), 1_000 * USDC_1);
        uint256 shares = vault.balanceOf(alice);
        for (uint256 how = 0; how < 2; how++) {
            uint256 world = vm.snapshotState();
            if (how == 0) IPausable(address(usdc)).pause();
            else usdc.blacklist(address(vault));
            vm.startPrank(alice);
            vm.expectRevert(abi.encodeWithSelector(FareboxVault.NotHandedOver.selector, 3));
            vault.exitInKind(shares, alice, alice, 7);
            (uint256 idle, uint256[3] memory handed) = vault.exitInKind(shares, alice, alice, 8);
            vm.stopPrank();
            assertEq(idle, 0);
            assertTrue(handed[0] > 0 && handed[1] > 0);
            assertEq(usdc.balanceOf(address(vault)), 1_000 * USDC_1);
            assertEq(vault.markPrice(), (vault.totalAssets() + 1) * 1e30 / (vault.totalSupply() + 1e6));
            vm.revertToState(world);
        }
    }

    function test_in_kind_where_nothing_is_idle_usdc_need_not_move() external {
        halves();
        uint256 half = vault.balanceOf(alice) / 2;
        IPausable(address(usdc)).pause();
        vm.prank(alice);
        (uint256 idle, uint256[3] memory handed) = vault.exitInKind(half, alice, alice, 0);
        assertEq(idle, 0);
        assertTrue(handed[0] > 0 && handed[1] > 0);
    }

    /// Their shares of the fee are minted first, so that nobody's last share is left behind for want of a second call.
    function test_in_kind_the_fee_recipient_leaves_with_what_is_due() external {
        deposit(alice, 100_000 * USDC_1);
        pass(180 days);
        uint256 world = vm.snapshotState();
        accrue();
        uint256 all = vault.balanceOf(treasury);
        vm.revertToState(world);
        assertLt(vault.balanceOf(treasury), all);
        vm.prank(treasury);
        vault.exitInKind(all, treasury, treasury, 0);
        assertEq(vault.balanceOf(treasury), 0);
    }

    /// A token that answers `false` has not gone; one that answers nothing has.
    function test_in_kind_what_a_token_answers_is_looked_at() external {
        halves();
        uint256 shares = vault.balanceOf(alice);
        bytes memory transfers = abi.encodeWithSelector(IERC20.transfer.selector);
        bytes[3] memory no = [abi.encode(false), abi.encode(2), bytes(hex"01")];
        vm.startPrank(alice);
        for (uint256 n = 0; n < no.length; n++) {
            vm.mockCall(address(comet), transfers, no[n]);
            vm.expectRevert(abi.encodeWithSelector(FareboxVault.NotHandedOver.selector, 1));
            vault.exitInKind(shares, alice, alice, 13);
        }
        vm.mockCall(address(comet), transfers, "");
        (, uint256[3] memory handed) = vault.exitInKind(shares, alice, alice, 0);
        assertGt(handed[1], 0);
    }

    /// A protocol that says that it owes nothing, of what it owed, hands nothing over.
    function test_in_kind_a_position_that_says_that_it_is_gone_must_be_named() external {
        halves();
        uint256 shares = vault.balanceOf(alice);
        vm.mockCall(address(aUsdc), abi.encodeCall(IERC20.balanceOf, (address(vault))), abi.encode(0));
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.NotHandedOver.selector, 0));
        vault.exitInKind(shares, alice, alice, 14);
    }

    /// An exit took all but a unit, which Comet rounded off: there is no position that anybody would have to name.
    function test_in_kind_a_position_whose_last_unit_was_rounded_off_need_not_be_named() external {
        deposit(bob, 100_000 * USDC_1);
        halves();
        pass(30 days);
        uint256 position = comet.balanceOf(address(vault));
        vm.prank(bob);
        vault.withdraw(position - 1, bob, bob);
        assertEq(comet.balanceOf(address(vault)), 0);
        uint256 half = vault.balanceOf(alice) / 2;
        uint256 total = vault.totalAssets();
        uint256 worth = vault.previewRedeem(half);
        vm.prank(alice);
        vault.exitInKind(half, alice, alice, 0);
        assertApproxEqAbs(total - vault.totalAssets(), worth, 2);
    }

    /// As the last one, by an exit in kind: of a hundred units it hands over all but one, which is rounded off.
    function test_in_kind_a_unit_that_is_rounded_off_behind_it_is_no_position() external {
        deposit(alice, 1_000 * USDC_1);
        pass(30 days);
        vm.prank(keeper);
        vault.move(Protocol.Aave, Protocol.Compound, 0, 0);
        usdc.mint(address(vault), 101);
        vault.supplyIdle();
        assertEq(comet.balanceOf(address(vault)), 100);
        uint256 few = vault.balanceOf(alice) / 1_000;
        uint256 some = vault.balanceOf(alice) - few;
        vm.startPrank(alice);
        (, uint256[3] memory handed) = vault.exitInKind(some, alice, alice, 0);
        assertEq(handed[1], 99);
        assertEq(comet.balanceOf(address(vault)), 0);
        vault.exitInKind(few, alice, alice, 0);
    }

    /// Somebody makes the vault hold a unit somewhere: nobody's exit is refused for a part that is less than a unit.
    function test_in_kind_less_than_a_unit_is_no_part() external {
        deposit(alice, 1_000 * USDC_1);
        deposit(bob, 1_000 * USDC_1);
        pass(30 days);
        vm.prank(keeper);
        vault.move(Protocol.Aave, Protocol.Compound, 0, 0);
        uint256 credited;
        for (uint256 n = 0; n < 2; n++) {
            usdc.mint(address(vault), 1 + n);
            vault.supplyIdle();
            credited = comet.balanceOf(address(vault));
            assertEq(credited, n);
            uint256 some = vault.balanceOf(alice) / 3;
            vm.prank(alice);
            (, uint256[3] memory handed) = vault.exitInKind(some, alice, alice, 0);
            assertGt(handed[0], 0);
            assertEq(handed[1], 0);
        }
        // A unit alone is no position, and is not read; two are.
        breakIt(Protocol.Compound);
        (,,, bool complete) = vault.holdings();
        assertFalse(complete);
    }

    /// Such as a unit that somebody put in: were it sent all the same, a pause would make everybody name it.
    function test_in_kind_less_than_a_unit_is_not_sent() external {
        uint256 shares = deposit(alice, 1_000 * USDC_1);
        pass(30 days);
        vm.prank(keeper);
        vault.move(Protocol.Aave, Protocol.Compound, 0, 0);
        usdc.mint(address(vault), 3);
        vault.supplyIdle();
        assertGt(comet.balanceOf(address(vault)), 0);
        comet.sandboxPause(true, true, true);
        vm.prank(alice);
        (, uint256[3] memory handed) = vault.exitInKind(shares / 10, alice, alice, 0);
        assertGt(handed[0], 0);
        assertEq(handed[1], 0);
    }

    // ---------------------------------------------------------------------------------------------- the most

    /// The last unit of cash is all that a share is worth: no share stays behind for what was rounded off.
    function test_where_there_is_just_enough_all_shares_can_be_redeemed() external {
        vault = makeVault(Protocol.Compound);
        vm.prank(alice);
        usdc.approve(address(vault), type(uint256).max);
        uint256 shares = deposit(alice, 1_000 * USDC_1);
        pass(30 days);
        accrue();
        uint256 worth = vault.previewRedeem(shares);
        assertLt(vault.convertToShares(worth), shares);
        comet.sandboxBorrow(usdc.balanceOf(address(comet)) - worth);
        assertEq(vault.maxWithdraw(alice), worth);
        assertEq(vault.maxRedeem(alice), shares);
        assertEq(redeemAll(alice), worth);
    }

    /// Also where the smallest part of a share is worth some units: what is told to be redeemable is redeemed.
    function test_what_can_be_redeemed_is_never_told_too_high() external {
        vault = makeVault(Protocol.Compound);
        vm.prank(alice);
        usdc.approve(address(vault), type(uint256).max);
        deposit(alice, USDC_1);
        usdc.mint(address(vault), 9_000_000 * USDC_1);
        vault.supplyIdle();
        accrue();
        uint256 unit = vault.convertToAssets(1);
        assertGt(unit, 1);
        comet.sandboxBorrow(usdc.balanceOf(address(comet)) - 1_000 * USDC_1);
        for (uint256 n = 0; n < 5; n++) {
            usdc.mint(address(comet), 1);
            uint256 most = vault.maxRedeem(alice);
            assertGt(most, 0);
            uint256 world = vm.snapshotState();
            vm.prank(alice);
            vault.redeem(most, alice, alice);
            vm.revertToState(world);
        }
    }
}
