// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {FareboxVault} from "../src/FareboxVault.sol";
import {Protocol} from "../src/interfaces/Protocols.sol";
import {World} from "./world/World.sol";

/// What ERC-4626 asks of every vault (https://eips.ethereum.org/EIPS/eip-4626), to the unit, after any deposits, yield and
/// donations. Once for each protocol that may be the active one.
abstract contract Erc4626Properties is World {
    function active() internal pure virtual returns (Protocol);

    function setUp() public override {
        super.setUp();
        vault = makeVault(active());
        for (uint256 n = 0; n < 2; n++) {
            vm.prank(n == 0 ? alice : bob);
            usdc.approve(address(vault), type(uint256).max);
        }
    }

    struct Past {
        uint40 alice;
        uint40 bob;
        uint24 secondsPassed;
        uint40 donated;
    }

    /// Somebody deposited, time passed, and somebody sent USDC without asking for shares.
    modifier after_(Past memory past) {
        if (past.alice > 1_000) deposit(alice, bound(past.alice, 1_000, 1_000_000 * USDC_1));
        pass(past.secondsPassed);
        if (past.bob > 1_000) deposit(bob, bound(past.bob, 1_000, 1_000_000 * USDC_1));
        usdc.mint(address(vault), uint256(past.donated) + 1);
        _;
    }

    function some(uint256 amount) private pure returns (uint256) {
        return bound(amount, 1_000, 2_000_000 * USDC_1);
    }

    /// Whether so little is given, beside what somebody has sent to an empty vault, that it buys no share: it is refused then.
    function refused(uint256 amount) private returns (bool) {
        if (vault.previewDeposit(amount) > 0) return false;
        vm.prank(alice);
        vm.expectRevert(FareboxVault.ZeroShares.selector);
        vault.deposit(amount, alice);
        return true;
    }

    function test_conversions_are_the_same_for_everybody_and_never_gain(Past memory past, uint256 amount)
        external
        after_(past)
    {
        amount = some(amount);
        vm.prank(alice);
        uint256 shares = vault.convertToShares(amount);
        vm.prank(bob);
        assertEq(vault.convertToShares(amount), shares);
        assertLe(vault.convertToAssets(shares), amount);
        assertLe(vault.convertToShares(vault.convertToAssets(shares)), shares);
        assertEq(vault.asset(), address(usdc));
    }

    function test_a_deposit_brings_what_its_preview_said(Past memory past, uint256 amount) external after_(past) {
        amount = some(amount);
        if (refused(amount)) return;
        uint256 told = vault.previewDeposit(amount);
        uint256 cash = usdc.balanceOf(alice);
        uint256 had = vault.balanceOf(alice);
        vm.expectEmit();
        emit Deposit(alice, alice, amount, told);
        assertEq(deposit(alice, amount), told);
        assertEq(cash - usdc.balanceOf(alice), amount);
        assertEq(vault.balanceOf(alice) - had, told);
        assertLe(told, vault.previewDeposit(amount + 1) + 1e12);
    }

    function test_a_mint_costs_what_its_preview_said(Past memory past, uint256 amount) external after_(past) {
        uint256 shares = vault.previewDeposit(some(amount)) + 1;
        uint256 told = vault.previewMint(shares);
        uint256 cash = usdc.balanceOf(bob);
        vm.prank(bob);
        assertEq(vault.mint(shares, alice), told);
        assertEq(cash - usdc.balanceOf(bob), told);
        // The entry fee is part of it.
        assertGe(told * 995 + 1e6, vault.convertToAssets(shares) * 1_000);
    }

    function test_a_withdrawal_costs_the_shares_that_its_preview_said(Past memory past, uint256 amount)
        external
        after_(past)
    {
        if (refused(some(amount))) return;
        deposit(alice, some(amount));
        uint256 most = vault.maxWithdraw(alice);
        uint256 assets = bound(amount, 1, most);
        uint256 told = vault.previewWithdraw(assets);
        assertGe(told, vault.convertToShares(assets));
        uint256 cash = usdc.balanceOf(bob);
        uint256 had = vault.balanceOf(alice);
        vm.prank(alice);
        assertEq(vault.withdraw(assets, bob, alice), told);
        assertEq(usdc.balanceOf(bob) - cash, assets);
        assertEq(had - vault.balanceOf(alice), told);
    }

    function test_redeeming_brings_what_its_preview_said(Past memory past, uint256 amount) external after_(past) {
        if (refused(some(amount))) return;
        deposit(alice, some(amount));
        uint256 shares = bound(amount, 1, vault.maxRedeem(alice));
        uint256 told = vault.previewRedeem(shares);
        assertLe(told, vault.convertToAssets(shares));
        uint256 cash = usdc.balanceOf(bob);
        vm.prank(alice);
        assertEq(vault.redeem(shares, bob, alice), told);
        assertEq(usdc.balanceOf(bob) - cash, told);
    }

    function test_the_most_that_is_told_can_be_had(Past memory past, bool byShares) external after_(past) {
        deposit(alice, 5_000 * USDC_1);
        vm.startPrank(alice);
        if (byShares) vault.redeem(vault.maxRedeem(alice), alice, alice);
        else vault.withdraw(vault.maxWithdraw(alice), alice, alice);
        vm.stopPrank();
        // Six decimals of shares are below a unit of USDC.
        assertLt(vault.convertToAssets(vault.balanceOf(alice)), 2);
        assertEq(vault.maxDeposit(alice), type(uint256).max);
        assertEq(vault.maxMint(alice), type(uint256).max);
        assertEq(vault.maxRedeem(address(1)), 0);
        assertEq(vault.maxWithdraw(address(1)), 0);
    }

    function test_there_and_back_never_gains(Past memory past, uint256 amount) external after_(past) {
        amount = some(amount);
        if (refused(amount)) return;
        uint256 world = vm.snapshotState();

        uint256 shares = deposit(alice, amount);
        vm.prank(alice);
        assertLe(vault.redeem(shares, alice, alice), amount - vault.previewDeposit(0));
        vm.revertToState(world);

        shares = deposit(alice, amount);
        uint256 worth = vault.previewRedeem(shares);
        vm.prank(alice);
        assertGe(vault.withdraw(worth, alice, alice) + 1e12, shares);
        assertLt(worth, amount);
        vm.revertToState(world);

        shares = vault.previewDeposit(amount);
        vm.startPrank(bob);
        uint256 paid = vault.mint(shares, bob);
        assertLe(vault.redeem(shares, bob, bob), paid);
        vm.stopPrank();
    }

    /// What a deposit or a mint brings is worth what was paid less the entry fee, from every state: no other fee is on principal.
    function test_what_is_bought_is_worth_what_was_paid_less_the_entry_fee(
        Past memory past,
        uint256 amount,
        uint8 state,
        bool byShares
    ) external after_(past) {
        // Everybody left, but for the seed; or left in kind; or a protocol lost; or nothing of it.
        if (state % 4 == 1) redeemAll(alice);
        if (state % 4 == 2) inKind(alice);
        if (state % 4 == 1 || state % 4 == 2) inKind(bob);
        if (state % 8 == 1 || state % 8 == 2) inKind(treasury);
        if (state % 4 == 3) comet.sandboxLose(0.1e18);
        if (state > 127) usdc.mint(address(vault), uint256(past.donated) + 1);
        amount = some(amount);
        uint256 shares = vault.previewDeposit(amount);
        if (shares == 0) return;
        uint256 paid = amount;
        vm.startPrank(alice);
        if (byShares) paid = vault.mint(shares, alice);
        else assertEq(vault.deposit(amount, alice), shares);
        vm.stopPrank();
        uint256 fee = (paid * 50 + 9_999) / 10_000;
        // Units that protocols round, and what a share unit is worth where a gift has raised its price.
        assertGe(vault.previewRedeem(shares) + 5 + 2 * vault.convertToAssets(1), paid - fee);
    }

    function inKind(address who) private {
        uint256 shares = vault.balanceOf(who);
        vm.prank(who);
        vault.exitInKind(shares, who, who, 15);
    }

    function test_the_entry_fee_is_exact_to_the_unit(Past memory past, uint256 amount) external after_(past) {
        amount = some(amount);
        uint256 fee = (amount * 50 + 9_999) / 10_000;
        assertEq(vault.previewDeposit(amount), vault.convertToShares(amount - fee));
    }

    function test_no_act_lowers_the_price_of_a_share_beyond_dust(Past memory past, uint256 amount, uint8 act)
        external
        after_(past)
    {
        amount = some(amount);
        if (refused(amount)) return;
        deposit(alice, amount);
        uint256 supply = vault.totalSupply();
        // What a million USDC of shares are worth.
        uint256 before = vault.convertToAssets(1e18);
        if (act % 4 == 0) deposit(bob, amount);
        if (act % 4 == 1) redeemAll(alice);
        vm.startPrank(alice);
        if (act % 4 == 2) vault.withdraw(vault.maxWithdraw(alice) / 2, alice, alice);
        if (act % 4 == 3) vault.exitInKind(vault.balanceOf(alice) / 3, alice, alice, 0);
        vm.stopPrank();
        // Two units of the protocol's rounding, on whatever the supply is then.
        uint256 left = vault.totalSupply() < supply ? vault.totalSupply() : supply;
        assertGe(vault.convertToAssets(1e18) + 1 + 4 * 1e18 / (left + 1e6), before);
    }

    event Deposit(address indexed sender, address indexed owner, uint256 assets, uint256 shares);
}

contract Erc4626OnAave is Erc4626Properties {
    function active() internal pure override returns (Protocol) {
        return Protocol.Aave;
    }
}

contract Erc4626OnCompound is Erc4626Properties {
    function active() internal pure override returns (Protocol) {
        return Protocol.Compound;
    }
}

contract Erc4626OnMorpho is Erc4626Properties {
    function active() internal pure override returns (Protocol) {
        return Protocol.Morpho;
    }
}
