// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {FareboxVault} from "../src/FareboxVault.sol";
import {Protocol} from "../src/interfaces/Protocols.sol";
import {World} from "./world/World.sol";

/// Anybody does anything in any order, while time passes, markets are lent out, paused and lose. The invariants are run
/// against this contract, which is its own world.
abstract contract Invariants is World {
    address[] private actors;
    /// What was found wrong by an act, in the act: a revert would only be left out.
    string private wrong;
    bool private aavePaused;

    /// What there is before anybody does anything.
    function begin() internal virtual;

    function setUp() public override {
        super.setUp();
        actors.push(alice);
        actors.push(bob);
        FareboxVault.Setup memory setup = setupOf(Protocol.Aave);
        setup.limits.maxShareBps = 6_000;
        vault = buildUnseeded(setup);
        for (uint256 n = 0; n < 2; n++) {
            vm.prank(actors[n]);
            usdc.approve(address(vault), type(uint256).max);
        }
        begin();
        targetContract(address(this));
        bytes4[] memory acts = new bytes4[](19);
        acts[0] = this.deposits.selector;
        acts[1] = this.mints.selector;
        acts[2] = this.withdraws.selector;
        acts[3] = this.redeems.selector;
        acts[4] = this.leavesInKind.selector;
        acts[5] = this.keeperMoves.selector;
        acts[6] = this.timePasses.selector;
        acts[7] = this.donates.selector;
        acts[8] = this.ownerSetsFees.selector;
        acts[9] = this.guardianPauses.selector;
        acts[10] = this.protocolIsDry.selector;
        acts[11] = this.protocolPauses.selector;
        acts[12] = this.compoundLoses.selector;
        acts[13] = this.cashComesBack.selector;
        acts[14] = this.idleIsSupplied.selector;
        acts[15] = this.someoneSeeds.selector;
        acts[16] = this.keeperLeaves.selector;
        acts[17] = this.redeemsPartly.selector;
        acts[18] = this.cannotBeRead.selector;
        targetSelector(FuzzSelector(address(this), acts));
    }

    // --------------------------------------------------------------------------------------------------- acts

    function deposits(uint256 who, uint256 assets) external {
        address actor = actors[who % 2];
        assets = bound(assets, 1_000, 500_000 * USDC_1);
        if (usdc.balanceOf(actor) < assets || vault.maxDeposit(actor) == 0) return;
        uint256 told = vault.previewDeposit(assets);
        if (told == 0) return;
        (uint256 price, uint256 supply) = before();
        uint256[3] memory had = positions();
        vm.prank(actor);
        if (vault.deposit(assets, actor) != told) wrong = "a deposit brought something else than was told";
        unchanged(price, supply);
        withinShares(had);
        isWorth(told, assets);
    }

    function mints(uint256 who, uint256 shares) external {
        address actor = actors[who % 2];
        shares = bound(shares, 1e12, 1e17);
        if (vault.maxMint(actor) == 0) return;
        uint256 told = vault.previewMint(shares);
        if (usdc.balanceOf(actor) < told) return;
        (uint256 price, uint256 supply) = before();
        vm.prank(actor);
        if (vault.mint(shares, actor) != told) wrong = "a mint cost something else than was told";
        unchanged(price, supply);
        isWorth(shares, told);
    }

    function withdraws(uint256 who, uint256 assets) external {
        address actor = actors[who % 2];
        uint256 most = vault.maxWithdraw(actor);
        if (most == 0) return;
        assets = bound(assets, 1, most);
        (uint256 price, uint256 supply) = before();
        uint256 cash = usdc.balanceOf(actor);
        vm.prank(actor);
        vault.withdraw(assets, actor, actor);
        if (usdc.balanceOf(actor) - cash != assets) wrong = "a withdrawal paid something else";
        unchanged(price, supply);
    }

    function redeems(uint256 who, uint256 shares) external {
        address actor = actors[who % 2];
        uint256 most = vault.maxRedeem(actor);
        if (most == 0) return;
        shares = bound(shares, 1, most);
        uint256 told = vault.previewRedeem(shares);
        (uint256 price, uint256 supply) = before();
        vm.prank(actor);
        if (vault.redeem(shares, actor, actor) != told) wrong = "redeeming paid something else than was told";
        unchanged(price, supply);
    }

    function leavesInKind(uint256 who, uint256 shares) external {
        address actor = actors[who % 2];
        uint256 balance = vault.balanceOf(actor);
        if (balance == 0) return;
        shares = bound(shares, 1, balance);
        (uint256 price, uint256 supply) = before();
        vm.prank(actor);
        vault.exitInKind(shares, actor, actor, 15);
        unchanged(price, supply);
    }

    function redeemsPartly(uint256 who, uint256 shares) external {
        address actor = actors[who % 2];
        uint256 balance = vault.balanceOf(actor);
        if (balance == 0) return;
        shares = bound(shares, 1, balance);
        uint256 told = vault.convertToAssets(shares);
        (uint256 price, uint256 supply) = before();
        vm.prank(actor);
        try vault.redeemPartly(shares, actor, actor, told) {
            unchanged(price, supply);
        } catch {}
    }

    /// Nobody does anything else meanwhile but leave: what they leave behind pays no fee, and takes nothing from anybody.
    function cannotBeRead(uint256 which, uint256 who, uint256 part, bool inKind) external {
        address actor = actors[who % 2];
        uint256 shares = vault.balanceOf(actor) / bound(part, 1, 5);
        (, uint256[3] memory at,,) = vault.holdings();
        vm.prank(owner);
        vault.setFeeRecipient(treasury);
        uint256 feeShares = vault.balanceOf(treasury);
        (uint256 price, uint256 supply) = before();
        breakIt(Protocol(which % 3));
        (,,, bool complete) = vault.holdings();
        if (!complete && vault.maxRedeem(actor) + vault.maxWithdraw(actor) != 0) {
            wrong = "an exit that burns was offered";
        }
        vm.prank(actor);
        if (inKind || at[which % 3] == 0) vault.exitInKind(shares, actor, actor, 15);
        else try vault.redeemPartly(shares, actor, actor, 0) {} catch {}
        vm.clearMockedCalls();
        vm.prank(owner);
        vault.setFeeRecipient(treasury);
        if (vault.convertToAssets(vault.balanceOf(treasury) - feeShares) > 2) wrong = "a fee on what was left behind";
        unchanged(price, supply);
    }

    function someoneSeeds() external {
        if (!vault.seeded()) seed(vault);
    }

    function keeperLeaves(uint256 which, uint256 assets, uint256 back) external {
        (uint256 price, uint256 supply) = before();
        vm.prank(keeper);
        vault.leave(Protocol(which % 3), bound(assets, 0, 1_000_000 * USDC_1));
        unchanged(price, supply);
        if (back % 2 == 0) return;
        pass(6 hours);
        vm.prank(keeper);
        try vault.move(Protocol((which % 3 + 1) % 3), Protocol(which % 3), 0, 0) {} catch {}
    }

    function keeperMoves(uint256 from, uint256 to, uint256 assets) external {
        (, uint256[3] memory at,,) = vault.holdings();
        assets = bound(assets, 0, at[from % 3] / 2);
        (uint256 price, uint256 supply) = before();
        vm.prank(keeper);
        try vault.move(Protocol(from % 3), Protocol(to % 3), assets, 0) {
            unchanged(price, supply);
        } catch {}
    }

    function idleIsSupplied() external {
        (uint256 price, uint256 supply) = before();
        try vault.supplyIdle() {
            unchanged(price, supply);
        } catch {}
    }

    function timePasses(uint256 time) external {
        pass(bound(time, 1, 30 days));
    }

    function donates(uint256 amount, bool toAave) external {
        amount = bound(amount, 2, 1_000 * USDC_1);
        // A gift to a protocol that the vault has nothing in does not count until a deposit goes there: it would seem the deposit's.
        if (toAave && (aavePaused || positions()[0] == 0)) return;
        usdc.mint(toAave ? address(this) : address(vault), amount);
        if (toAave) aave.supply(address(usdc), amount, address(vault), 0);
    }

    function ownerSetsFees(uint256 entryBps, uint256 performanceBps) external {
        FareboxVault.Fees memory next =
            FareboxVault.Fees(uint16(bound(entryBps, 0, 100)), uint16(bound(performanceBps, 0, 2_500)));
        vm.startPrank(owner);
        vault.queueFees(next);
        pass(48 hours);
        vault.applyFees();
        vm.stopPrank();
    }

    function guardianPauses(bool stop) external {
        vm.prank(guardian);
        if (stop) vault.pauseDeposits();
        else vault.resumeDeposits();
    }

    function protocolIsDry(uint256 which) external {
        Protocol protocol = Protocol(which % 3);
        if (protocol == Protocol.Aave && (aavePaused || aave.getVirtualUnderlyingBalance(address(usdc)) == 0)) return;
        if (protocol == Protocol.Morpho && usdc.balanceOf(address(morpho)) == 0) return;
        drain(protocol);
    }

    function cashComesBack() external {
        uint256 amount = 3_000_000 * USDC_1;
        usdc.mint(address(this), amount * 3);
        pauseAave(false);
        aave.supply(address(usdc), amount, address(this), 0);
        comet.sandboxPause(false, false, false);
        comet.supplyTo(address(0x5a5a), address(usdc), amount);
        metaMorpho.deposit(amount, address(this));
    }

    function protocolPauses(bool aaveToo, bool supply, bool withdraw, bool transfer) external {
        comet.sandboxPause(supply, withdraw, transfer);
        pauseAave(aaveToo);
    }

    function pauseAave(bool paused) private {
        aaveConfigurator.setReservePause(address(usdc), paused);
        aavePaused = paused;
    }

    function compoundLoses(uint256 part) external {
        comet.sandboxLose(bound(part, 0, 0.05e18));
    }

    // --------------------------------------------------------------------------------------------- invariants

    function invariant_no_act_was_wrong() external view {
        assertEq(wrong, "");
    }

    function invariant_the_positions_are_the_total() external view {
        (uint256 idle, uint256[3] memory at, uint256 liquidity,) = vault.holdings();
        assertEq(idle + at[0] + at[1] + at[2], vault.totalAssets());
        assertLe(liquidity, vault.totalAssets());
    }

    function invariant_shares_are_worth_no_more_than_there_is() external view {
        uint256 worth;
        for (uint256 n = 0; n < actors.length; n++) {
            worth += vault.convertToAssets(vault.balanceOf(actors[n]));
        }
        worth += vault.convertToAssets(vault.balanceOf(treasury));
        assertLe(worth, vault.totalAssets() + 1);
    }

    function invariant_readers_answer_and_the_most_is_had() external view {
        for (uint256 n = 0; n < actors.length; n++) {
            vault.maxDeposit(actors[n]);
            assertLe(vault.maxRedeem(actors[n]), vault.balanceOf(actors[n]));
            assertLe(vault.maxWithdraw(actors[n]), vault.convertToAssets(vault.balanceOf(actors[n])));
        }
        assertLe(vault.fees().entryBps, 100);
        assertLe(vault.fees().performanceBps, 2_500);
    }

    /// However it stands at the end: everybody leaves, with at least what the protocols hand over of their part.
    function afterInvariant() external {
        for (uint256 n = 0; n < actors.length; n++) {
            address actor = actors[n];
            uint256 shares = vault.balanceOf(actor);
            if (shares == 0) continue;
            uint256 cashable = vault.maxRedeem(actor);
            vm.startPrank(actor);
            if (cashable > 0) vault.redeem(cashable, actor, actor);
            if (shares > cashable) vault.exitInKind(shares - cashable, actor, actor, 15);
            vm.stopPrank();
            assertEq(vault.balanceOf(actor), 0);
        }
    }

    /// Shares that were just bought, less the entry fee: units that protocols round, and what a share unit is worth, aside.
    function isWorth(uint256 shares, uint256 paid) private {
        uint256 fee = (paid * vault.fees().entryBps + 9_999) / 10_000;
        if (vault.convertToAssets(shares) + 8 + 2 * vault.convertToAssets(1) < paid - fee) {
            wrong = "a fee on principal";
        }
    }

    function positions() private view returns (uint256[3] memory at) {
        (, at,,) = vault.holdings();
    }

    /// A deposit brought no protocol above its share: one that is above was there before.
    function withinShares(uint256[3] memory had) private {
        uint256[3] memory at = positions();
        uint256 share = vault.totalAssets() * 6 / 10;
        for (uint256 p = 0; p < 3; p++) {
            if (at[p] > share + 6 && at[p] > had[p]) wrong = "a deposit passed the share of a protocol";
        }
    }

    /// The price of a share, of a million USDC's worth at first, and the supply.
    function before() private view returns (uint256 price, uint256 supply) {
        return (vault.convertToAssets(1e18), vault.totalSupply());
    }

    /// But for the units that protocols round, on whatever the supply is.
    function unchanged(uint256 price, uint256 supply) private {
        uint256 left = vault.totalSupply() < supply ? vault.totalSupply() : supply;
        if (vault.convertToAssets(1e18) + 2 + 12 * 1e18 / (left + 1e6) < price) wrong = "an act lowered the price";
    }
}

/// Nobody has put the seed in yet.
contract InvariantsOfAnEmptyVaultTest is Invariants {
    function begin() internal override {}
}

contract InvariantsOfASeededVaultTest is Invariants {
    function begin() internal override {
        seed(vault);
    }
}

/// Everybody has left, and something was given to it since.
contract InvariantsOfAnEmptiedVaultTest is Invariants {
    function begin() internal override {
        seed(vault);
        deposit(alice, 10_000 * USDC_1);
        pass(30 days);
        redeemAll(alice);
        redeemAll(treasury);
        usdc.mint(address(vault), 9);
    }
}

contract InvariantsOfAUsedVaultTest is Invariants {
    function begin() internal override {
        seed(vault);
        deposit(alice, 10_000 * USDC_1);
    }
}
