// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC4626} from "@openzeppelin/contracts/token/ERC20/extensions/ERC4626.sol";
import {Vm} from "forge-std/Vm.sol";
import {FareboxVault} from "../src/FareboxVault.sol";
import {Protocol} from "../src/interfaces/Protocols.sol";
import {World} from "./world/World.sol";

/// Nobody comes before the seed, and no performance fee is ever on what somebody deposits: not in an empty vault, nor in one that
/// everybody left.
contract SeedTest is World {
    address private constant DEAD = 0x000000000000000000000000000000000000dEaD;

    function begin(uint256 gift) private {
        vault = buildUnseeded(setupOf(Protocol.Aave));
        vm.prank(alice);
        usdc.approve(address(vault), type(uint256).max);
        vm.prank(bob);
        usdc.approve(address(vault), type(uint256).max);
        if (gift > 0) usdc.mint(address(vault), gift);
    }

    function test_no_deposit_is_taken_before_the_seed() external {
        begin(0);
        assertFalse(vault.seeded());
        assertEq(vault.maxDeposit(alice), 0);
        assertEq(vault.maxMint(alice), 0);
        vm.startPrank(alice);
        vm.expectRevert(abi.encodeWithSelector(ERC4626.ERC4626ExceededMaxDeposit.selector, alice, 1e6, 0));
        vault.deposit(1e6, alice);
        vm.expectRevert(abi.encodeWithSelector(ERC4626.ERC4626ExceededMaxDeposit.selector, alice, 1e6, 0));
        vault.deposit(1e6, alice, 0);
        vm.expectRevert(abi.encodeWithSelector(ERC4626.ERC4626ExceededMaxMint.selector, alice, 1e12, 0));
        vault.mint(1e12, alice);
        vm.expectRevert(abi.encodeWithSelector(ERC4626.ERC4626ExceededMaxMint.selector, alice, 1e12, 0));
        vault.mint(1e12, alice, 1e12);
        vm.stopPrank();
    }

    function test_anybody_seeds_it_once_and_nobody_has_the_shares() external {
        begin(0);
        uint256 cash = usdc.balanceOf(alice);
        vm.prank(alice);
        assertEq(vault.seed(), 999_999e6);
        assertEq(cash - usdc.balanceOf(alice), 1e6);
        assertTrue(vault.seeded());
        assertEq(vault.balanceOf(DEAD), 999_999e6);
        assertEq(vault.totalSupply(), 999_999e6);
        // Aave rounds a unit off, which the seed did not pay for.
        assertEq(vault.convertToAssets(1e12), 1e6);
        assertApproxEqAbs(vault.totalAssets(), 1e6, 1);
        (uint256 idle,,,) = vault.holdings();
        assertEq(idle, 0);
        vm.prank(alice);
        vm.expectRevert(FareboxVault.AlreadySeeded.selector);
        vault.seed();
        assertEq(vault.maxDeposit(alice), type(uint256).max);
    }

    /// The finding: a gift of 0.000009 USDC made 13 % of the first depositor's principal a performance fee.
    function test_what_was_given_to_an_empty_vault_costs_nobody_their_principal() external {
        uint256[6] memory gifts = [uint256(0), 1, 9, 1_000, 1e6, 1_000_000e6];
        for (uint256 n = 0; n < gifts.length; n++) {
            uint256 world = vm.snapshotState();
            begin(gifts[n]);
            seed(vault);
            depositIsWorth(10_000 * USDC_1);
            vm.revertToState(world);
        }
    }

    function test_what_is_given_after_the_seed_costs_nobody_their_principal() external {
        uint256[6] memory gifts = [uint256(0), 1, 9, 1_000, 1e6, 1_000_000e6];
        for (uint256 n = 0; n < gifts.length; n++) {
            uint256 world = vm.snapshotState();
            begin(0);
            seed(vault);
            if (gifts[n] > 0) usdc.mint(address(vault), gifts[n]);
            depositIsWorth(10_000 * USDC_1);
            vm.revertToState(world);
        }
    }

    function test_whoever_comes_after_everybody_left_pays_for_nothing_but_the_entry() external {
        deposit(alice, 10_000 * USDC_1);
        pass(30 days);
        redeemAll(alice);
        redeemAll(treasury);
        usdc.mint(address(vault), 1);
        depositIsWorth(10_000 * USDC_1);
    }

    /// As an old vault on a sandbox's chain: it has deposits, and gets this code over its storage.
    function test_a_vault_that_has_deposits_is_seeded_at_its_price() external {
        deposit(alice, 10_000 * USDC_1);
        pass(90 days);
        forgetSeed();
        assertFalse(vault.seeded());
        uint256 worth = vault.convertToAssets(vault.balanceOf(alice));
        uint256 told = vault.convertToShares(1e6 - 1);
        uint256 mark = vault.markPrice();
        assertEq(seed(vault), told);
        assertLt(told, 999_999e6);
        assertApproxEqAbs(vault.convertToAssets(vault.balanceOf(alice)), worth, 2);
        assertGt(vault.markPrice(), mark);
        depositIsWorth(10_000 * USDC_1);
    }

    function test_where_everybody_left_before_the_seed_the_mark_is_the_price_whatever_it_was() external {
        vault = makeVault(Protocol.Compound);
        vm.prank(alice);
        usdc.approve(address(vault), type(uint256).max);
        deposit(alice, 10_000 * USDC_1);
        pass(30 days);
        redeemAll(alice);
        redeemAll(treasury);
        vm.startPrank(DEAD);
        vault.redeem(vault.balanceOf(DEAD), DEAD, DEAD);
        vm.stopPrank();
        assertEq(vault.totalSupply(), 0);
        forgetSeed();
        uint256 mark = vault.markPrice();
        assertGt(mark, 1e24);
        assertEq(seed(vault), 999_999e6);
        assertLt(vault.markPrice(), mark);
        uint256 feeShares = vault.balanceOf(treasury);
        deposit(alice, 10_000 * USDC_1);
        feeShares = vault.balanceOf(treasury);
        pass(30 days);
        vm.prank(owner);
        vault.setFeeRecipient(treasury);
        assertGt(vault.balanceOf(treasury), feeShares, "what is earned from here on pays its fee");
    }

    function test_no_seed_is_taken_at_a_price_that_cannot_be_told() external {
        deposit(alice, 10_000 * USDC_1);
        forgetSeed();
        breakIt(Protocol.Aave);
        usdc.mint(address(this), 1e6);
        usdc.approve(address(vault), 1e6);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.NotRead.selector, Protocol.Aave));
        vault.seed();
    }

    /// A deposit brings at least what it is less its fee, at once and after the fee that is due then was taken.
    function depositIsWorth(uint256 assets) private {
        uint256 shares = deposit(bob, assets);
        uint256 least = assets * 9_950 / 10_000;
        uint256 unit = vault.convertToAssets(1) + 1;
        assertGe(vault.previewRedeem(shares) + 4 + unit, least);
        uint256 feeShares = vault.balanceOf(treasury);
        vm.prank(owner);
        vault.setFeeRecipient(treasury);
        assertLe(vault.convertToAssets(vault.balanceOf(treasury) - feeShares), 2, "a fee on nothing earned");
        assertGe(vault.previewRedeem(shares) + 4 + unit, least);
    }

    /// `_seeded`: in the slot of the mark, after its sixteen bytes and the one of what was left.
    function forgetSeed() private {
        bytes32 place = bytes32(slotOfMark());
        uint256 word = uint256(vm.load(address(vault), place));
        vm.store(address(vault), place, bytes32(word & ~(uint256(0xff) << (8 * 17))));
        assertFalse(vault.seeded());
    }

    function slotOfMark() private returns (uint256) {
        vm.record();
        vault.markPrice();
        (bytes32[] memory reads,) = vm.accesses(address(vault));
        return uint256(reads[0]);
    }
}
