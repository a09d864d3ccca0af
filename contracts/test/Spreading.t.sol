// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC4626} from "@openzeppelin/contracts/interfaces/IERC4626.sol";
import {FareboxVault} from "../src/FareboxVault.sol";
import {IAavePool, Protocol} from "../src/interfaces/Protocols.sol";
import {World} from "./world/World.sol";

/// Where deposits go: to the active protocol, and past its share to the others, but never to one that was left.
contract SpreadingTest is World {
    uint256 private constant COOLDOWN = 6 hours;

    event Left(Protocol indexed protocol, uint256 assets);

    /// At most two fifths of it in one protocol.
    function setUp() public override {
        super.setUp();
        FareboxVault.Setup memory setup = setupOf(Protocol.Compound);
        setup.limits.maxShareBps = 4_000;
        vault = build(setup);
        for (uint256 n = 0; n < 2; n++) {
            vm.prank(n == 0 ? alice : bob);
            usdc.approve(address(vault), type(uint256).max);
        }
    }

    function at(Protocol protocol) private view returns (uint256) {
        (, uint256[3] memory inProtocol,,) = vault.holdings();
        return inProtocol[uint8(protocol)];
    }

    function idle() private view returns (uint256 found) {
        (found,,,) = vault.holdings();
    }

    function leave(Protocol protocol, uint256 assets) private returns (uint256) {
        vm.prank(keeper);
        return vault.leave(protocol, assets);
    }

    /// The most of a whole in one protocol.
    function share() private view returns (uint256) {
        return vault.totalAssets() * 4 / 10;
    }

    // --------------------------------------------------------------------------------------------------- caps

    function test_a_deposit_fills_the_active_protocol_to_its_share_and_then_the_next() external {
        deposit(alice, 100_000 * USDC_1);
        assertApproxEqAbs(at(Protocol.Compound), share(), 3);
        assertApproxEqAbs(at(Protocol.Aave), share(), 3);
        assertApproxEqAbs(at(Protocol.Morpho), vault.totalAssets() - 2 * share(), 6);
        assertEq(idle(), 0);
    }

    /// The finding: with a limit of 40 % a deposit of 900,000 brought 90 % into one protocol.
    function test_no_deposit_brings_more_than_its_share_into_a_protocol() external {
        deposit(alice, 100_000 * USDC_1);
        vm.prank(keeper);
        vault.move(Protocol.Aave, Protocol.Morpho, 0, 0);
        deposit(bob, 900_000 * USDC_1);
        for (uint256 p = 0; p < 3; p++) {
            assertLe(at(Protocol(p)), share() + 3);
        }
        assertEq(idle(), 0);
    }

    function test_a_mint_keeps_to_the_shares_too() external {
        vm.prank(alice);
        vault.mint(1_000_000e12, alice);
        for (uint256 p = 0; p < 3; p++) {
            assertLe(at(Protocol(p)), share() + 3);
        }
        assertEq(idle(), 0);
    }

    /// To the unit: what fits goes to the first alone.
    function test_what_fits_below_the_share_goes_to_the_active_protocol_alone() external {
        deposit(alice, 100_000 * USDC_1);
        leave(Protocol.Compound, 20_000 * USDC_1);
        skip(COOLDOWN);
        vm.prank(keeper);
        vault.move(Protocol.Aave, Protocol.Compound, 0, 0);
        (uint256 aaves, uint256 morphos) = (at(Protocol.Aave), at(Protocol.Morpho));
        uint256 before = at(Protocol.Compound);
        deposit(bob, 10_000 * USDC_1);
        assertApproxEqAbs(at(Protocol.Compound), before + 10_000 * USDC_1, 1);
        assertEq(at(Protocol.Aave), aaves);
        assertEq(at(Protocol.Morpho), morphos);
    }

    function test_it_lies_idle_only_when_all_are_full() external {
        leave(Protocol.Morpho, 0);
        deposit(alice, 100_000 * USDC_1);
        assertApproxEqAbs(at(Protocol.Compound), share(), 3);
        assertApproxEqAbs(at(Protocol.Aave), share(), 3);
        // But for the seed's part, which came before.
        assertApproxEqAbs(idle(), vault.totalAssets() - 2 * share() - at(Protocol.Morpho), 6);
        assertLt(at(Protocol.Morpho), USDC_1);
        // All that could take it are full: nothing is supplied.
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.ProtocolFailed.selector, Protocol.Compound));
        vault.supplyIdle();
    }

    function test_interest_may_pass_the_share_and_deposits_do_not_follow() external {
        deposit(alice, 100_000 * USDC_1);
        comet.sandboxLose(0.3e18);
        assertGt(at(Protocol.Aave), share());
        uint256 before = at(Protocol.Aave);
        deposit(bob, 1_000 * USDC_1);
        assertEq(at(Protocol.Aave), before);
        assertEq(idle(), 0);
    }

    /// Not even with nothing, which Aave refuses: where little gas was sent, that would refuse the deposit.
    function test_a_protocol_that_is_full_is_not_called() external {
        deposit(alice, 100_000 * USDC_1);
        comet.sandboxLose(0.3e18);
        vm.prank(keeper);
        vault.move(Protocol.Compound, Protocol.Aave, 0, 0);
        assertGt(at(Protocol.Aave), share());
        vm.expectCall(address(aave), abi.encodeWithSelector(IAavePool.supply.selector), 0);
        deposit(bob, 1_000 * USDC_1);
        assertEq(idle(), 0);
    }

    function test_what_lay_idle_is_supplied_within_the_shares() external {
        deposit(alice, 10_000 * USDC_1);
        usdc.mint(address(vault), 90_000 * USDC_1);
        vm.prank(bob);
        vault.supplyIdle();
        for (uint256 p = 0; p < 3; p++) {
            assertLe(at(Protocol(p)), share() + 3);
        }
        assertEq(idle(), 0);
    }

    function test_a_move_keeps_to_the_share() external {
        FareboxVault.Setup memory setup = setupOf(Protocol.Compound);
        setup.limits = FareboxVault.MoveLimits(4_000, 10_000, 0);
        vault = build(setup);
        vm.prank(alice);
        usdc.approve(address(vault), type(uint256).max);
        deposit(alice, 100_000 * USDC_1);
        uint256 room = share() - at(Protocol.Morpho);
        vm.startPrank(keeper);
        vm.expectPartialRevert(FareboxVault.AboveShare.selector);
        vault.move(Protocol.Aave, Protocol.Morpho, room + 10, 0);
        vault.move(Protocol.Aave, Protocol.Morpho, room - 10, 0);
    }

    /// Frozen, paused or broken in between: the next one gets it.
    function test_what_one_does_not_take_the_next_gets() external {
        comet.sandboxPause(true, false, false);
        uint256 before = at(Protocol.Compound);
        deposit(alice, 100_000 * USDC_1);
        assertEq(at(Protocol.Compound), before);
        assertApproxEqAbs(at(Protocol.Aave), share(), 3);
        assertApproxEqAbs(at(Protocol.Morpho), share(), 3);
        assertApproxEqAbs(idle(), vault.totalAssets() - 2 * share() - before, 6);
        comet.sandboxPause(false, false, false);
        vault.supplyIdle();
        assertEq(idle(), 0);
        assertApproxEqAbs(at(Protocol.Compound), vault.totalAssets() - 2 * share(), 9);
    }

    function test_where_a_position_cannot_be_read_nothing_is_supplied() external {
        deposit(alice, 100_000 * USDC_1);
        usdc.mint(address(vault), 1_000 * USDC_1);
        breakIt(Protocol.Aave);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.NotRead.selector, Protocol.Aave));
        vault.supplyIdle();
    }

    // -------------------------------------------------------------------------------------------------- leaving

    function test_keeper_and_guardian_leave_and_nobody_else() external {
        deposit(alice, 100_000 * USDC_1);
        address[4] memory others = [owner, treasury, alice, bob];
        for (uint256 n = 0; n < others.length; n++) {
            vm.prank(others[n]);
            vm.expectRevert(abi.encodeWithSelector(FareboxVault.NotKeeper.selector, others[n]));
            vault.leave(Protocol.Aave, 1);
        }
        vm.prank(guardian);
        vault.leave(Protocol.Aave, 1_000 * USDC_1);
        vm.prank(keeper);
        vault.leave(Protocol.Aave, 1_000 * USDC_1);
        assertEq(idle(), 2_000 * USDC_1);
    }

    /// All of a position, right after a move, and of what it could pay out: neither the pause nor the share of liquidity binds.
    function test_a_protocol_is_left_at_once_and_whole() external {
        deposit(alice, 100_000 * USDC_1);
        vm.prank(keeper);
        vault.move(Protocol.Aave, Protocol.Morpho, 1_000 * USDC_1, 0);
        uint256 nextMoveAt = vault.nextMoveAt();
        uint256 position = at(Protocol.Compound);
        uint256 total = vault.totalAssets();
        vm.expectEmit();
        emit Left(Protocol.Compound, position);
        assertEq(leave(Protocol.Compound, type(uint256).max), position);
        assertEq(at(Protocol.Compound), 0);
        assertEq(idle(), position);
        assertApproxEqAbs(vault.totalAssets(), total, 2);
        assertEq(vault.leftProtocols(), 2);
        assertEq(vault.nextMoveAt(), nextMoveAt, "entering waits no longer than before");
        // It is held no more: that it breaks disturbs nobody.
        breakIt(Protocol.Compound);
        (,,, bool complete) = vault.holdings();
        assertTrue(complete);
    }

    function receipt(Protocol protocol) private view returns (uint256) {
        address[3] memory tokens = [address(aUsdc), address(comet), address(metaMorpho)];
        return IERC20(tokens[uint8(protocol)]).balanceOf(address(vault));
    }

    /// Whether the vault reads it: what it does not hold disturbs nobody when it breaks.
    function isHeld(Protocol protocol) private returns (bool) {
        uint256 world = vm.snapshotState();
        vm.clearMockedCalls();
        breakIt(protocol);
        (,,, bool complete) = vault.holdings();
        vm.clearMockedCalls();
        vm.revertToState(world);
        return !complete;
    }

    /// To the last share of a MetaMorpho, of which a million millions are worth a unit: no dust of it keeps the vault reading it.
    function test_what_is_left_whole_is_held_no_more() external {
        deposit(alice, 100_000 * USDC_1);
        for (uint8 p = 0; p < 3; p++) {
            pass(30 days);
            uint256 total = vault.totalAssets();
            assertTrue(isHeld(Protocol(p)));
            assertGt(leave(Protocol(p), type(uint256).max), 50 * USDC_1);
            assertEq(receipt(Protocol(p)), 0);
            assertFalse(isHeld(Protocol(p)));
            assertApproxEqAbs(vault.totalAssets(), total, 2);
        }
    }

    /// A position is held for as long as its protocol owes a unit of it, or a part of one, and no longer.
    function test_what_is_left_but_for_some_units_is_held_where_they_are_owed() external {
        deposit(alice, 100_000 * USDC_1);
        uint256[3] memory roundedOff;
        for (uint256 year = 0; year < 8; year++) {
            pass(400 days);
            for (uint256 n = 0; n < 9; n++) {
                Protocol protocol = Protocol(n / 3);
                uint256 world = vm.snapshotState();
                leave(protocol, at(protocol) - 1 - n % 3);
                uint256 owed = receipt(protocol);
                assertEq(isHeld(protocol), owed > 0);
                if (owed == 0) roundedOff[n / 3] += 1;
                vm.revertToState(world);
            }
        }
        assertGt(roundedOff[0], 0, "Aave");
        assertGt(roundedOff[1], 0, "Compound");
        assertEq(roundedOff[2], 0, "Morpho");
    }

    /// More than rounding can take is not believed to be gone: it is handed over in kind once its protocol tells of it again.
    function test_a_position_that_says_that_it_is_gone_is_let_go_of_for_ten_units_at_most() external {
        deposit(alice, 100_000 * USDC_1);
        bytes memory balance = abi.encodeCall(IERC20.balanceOf, (address(vault)));
        bytes[] memory answers = new bytes[](2);
        for (uint256 left = 10; left < 12; left++) {
            uint256 world = vm.snapshotState();
            uint256 position = at(Protocol.Aave);
            (answers[0], answers[1]) = (abi.encode(position), abi.encode(0));
            vm.mockCalls(address(aUsdc), balance, answers);
            leave(Protocol.Aave, position - left);
            assertEq(isHeld(Protocol.Aave), left == 11);
            vm.clearMockedCalls();
            vm.revertToState(world);
        }
    }

    function test_what_can_be_had_is_taken_and_no_more() external {
        deposit(alice, 100_000 * USDC_1);
        comet.sandboxBorrow(usdc.balanceOf(address(comet)) - 7_000 * USDC_1);
        assertEq(leave(Protocol.Compound, type(uint256).max), 7_000 * USDC_1);
        assertEq(idle(), 7_000 * USDC_1);
        assertEq(leave(Protocol.Compound, type(uint256).max), 0);
        assertEq(leave(Protocol.Aave, 5), 5);
        assertEq(vault.leftProtocols(), 3);
    }

    function test_what_was_left_gets_nothing_until_a_move_names_it() external {
        deposit(alice, 100_000 * USDC_1);
        leave(Protocol.Compound, type(uint256).max);
        // A deposit flows at once, to the others, and takes nothing of what lies idle along.
        uint256 before = idle();
        deposit(bob, 20_000 * USDC_1);
        assertEq(at(Protocol.Compound), 0);
        assertEq(idle(), before);
        skip(COOLDOWN);
        vault.supplyIdle();
        assertEq(at(Protocol.Compound), 0);
        skip(COOLDOWN);
        // A move that names another changes nothing about it.
        vm.startPrank(keeper);
        vault.move(Protocol.Compound, Protocol.Aave, 0, 0);
        assertEq(vault.leftProtocols(), 2);
        skip(COOLDOWN);
        vault.move(Protocol.Aave, Protocol.Compound, 0, 0);
        vm.stopPrank();
        assertEq(vault.leftProtocols(), 0);
        deposit(bob, 20_000 * USDC_1);
        assertGt(at(Protocol.Compound), 0);
    }

    /// Else anybody, such as those who are stuck in the next protocol, could send there what was just taken out.
    function test_what_was_taken_out_waits_before_anybody_can_supply_it() external {
        deposit(alice, 100_000 * USDC_1);
        skip(10 * COOLDOWN);
        assertEq(vault.nextSupplyAt(), 0);
        leave(Protocol.Compound, 10_000 * USDC_1);
        uint256 at_ = block.timestamp + COOLDOWN;
        assertEq(vault.nextSupplyAt(), at_);
        skip(COOLDOWN - 1);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.TooEarly.selector, at_));
        vault.supplyIdle();
        // Leaving waits for nothing, and the wait begins anew with what it takes out.
        leave(Protocol.Aave, 0);
        assertEq(vault.nextSupplyAt(), at_);
        leave(Protocol.Aave, 1);
        assertEq(vault.nextSupplyAt(), at_ + COOLDOWN - 1);
        skip(COOLDOWN);
        vault.supplyIdle();
        assertEq(vault.nextSupplyAt(), 0);
        // It was an entry as a move is.
        assertEq(vault.nextMoveAt(), block.timestamp + COOLDOWN);
    }

    function test_what_was_taken_out_waits_for_a_move_since_too() external {
        deposit(alice, 100_000 * USDC_1);
        leave(Protocol.Compound, 10_000 * USDC_1);
        skip(COOLDOWN - 1);
        vm.prank(keeper);
        vault.move(Protocol.Aave, Protocol.Morpho, 0, 0);
        uint256 at_ = vault.nextMoveAt();
        assertEq(vault.nextSupplyAt(), at_);
        skip(1);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.TooEarly.selector, at_));
        vault.supplyIdle();
        skip(COOLDOWN - 1);
        vault.supplyIdle();
        // What lies idle since comes from elsewhere, and waits for nothing.
        usdc.mint(address(vault), 1_000 * USDC_1);
        uint256 nextMoveAt = vault.nextMoveAt();
        skip(1);
        vault.supplyIdle();
        assertEq(vault.nextMoveAt(), nextMoveAt, "nobody puts the keeper off by a gift");
    }

    function test_a_protocol_is_left_while_another_cannot_be_read() external {
        deposit(alice, 100_000 * USDC_1);
        breakIt(Protocol.Aave);
        uint256 position = at(Protocol.Compound);
        assertEq(leave(Protocol.Compound, type(uint256).max), position);
        assertEq(leave(Protocol.Aave, type(uint256).max), 0);
        assertEq(vault.leftProtocols(), 3);
    }

    function test_one_that_says_it_can_pay_and_does_not_is_not_left_by_that_call() external {
        deposit(alice, 100_000 * USDC_1);
        vm.mockCallRevert(address(aave), abi.encodeWithSelector(IAavePool.withdraw.selector), "");
        vm.prank(keeper);
        vm.expectRevert(abi.encodeWithSelector(FareboxVault.ProtocolFailed.selector, Protocol.Aave));
        vault.leave(Protocol.Aave, 1_000 * USDC_1);
        assertEq(leave(Protocol.Aave, 0), 0);
        assertEq(vault.leftProtocols(), 1);
        vm.clearMockedCalls();
        vm.mockCall(address(aave), abi.encodeWithSelector(IAavePool.withdraw.selector), abi.encode(uint256(1)));
        // Nor does it count as paid what lay idle before.
        for (uint256 n = 0; n < 2; n++) {
            vm.prank(keeper);
            vm.expectRevert(abi.encodeWithSelector(FareboxVault.ReceivedTooLittle.selector, 0, 1_000 * USDC_1));
            vault.leave(Protocol.Aave, 1_000 * USDC_1);
            usdc.mint(address(vault), 5_000 * USDC_1);
        }
    }

    function test_what_was_taken_out_pays_those_who_leave() external {
        deposit(alice, 100_000 * USDC_1);
        leave(Protocol.Compound, type(uint256).max);
        leave(Protocol.Aave, type(uint256).max);
        leave(Protocol.Morpho, type(uint256).max);
        for (uint256 p = 0; p < 3; p++) {
            pauseAll(Protocol(p));
        }
        assertApproxEqAbs(redeemAll(alice), 99_500 * USDC_1, 20);
        assertEq(vault.leftProtocols(), 7);
        vm.clearMockedCalls();
        deposit(bob, 1_000 * USDC_1);
        assertGe(idle(), 1_000 * USDC_1);
    }
}
