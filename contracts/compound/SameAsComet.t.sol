// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {SandboxComet} from "../sandbox/SandboxComet.sol";
import {IMintable, RealComet} from "../test/world/RealComet.sol";
import {IFiatToken, Usdc} from "../test/world/Usdc.sol";
import {Weth} from "../test/world/World.sol";

/// The double against Compound's own Comet: the same acts on both, at the same times, leave the same figures, to the unit. A part
/// of `npm run contracts:deep`, and alone `-- --comet`.
contract SameAsComet is Test {
    uint256 private constant ACTS = 80;
    uint256 private constant PEOPLE = 4;

    IFiatToken private usdc;
    SandboxComet private real;
    SandboxComet private double;
    address[PEOPLE] private people;
    /// Of the run's acts, those that both took.
    uint256 private taken;

    function setUp() public {
        vm.warp(1_800_000_000);
        usdc = Usdc.deploy();
        usdc.mint(address(this), 1e18);
        for (uint256 n = 0; n < PEOPLE; n++) {
            people[n] = makeAddr(vm.toString(n));
            usdc.mint(people[n], 1e15);
        }
    }

    /// On the curves of Compound's USDC market on Base.
    function testFuzz_as_on_Base(uint256 seed) external {
        begin(SandboxComet.Curve(0.85e18, 0, 0.048e18, 1.6e18), SandboxComet.Curve(0.85e18, 0.015e18, 0.053e18, 1.8e18));
        runActs(seed);
    }

    function testFuzz_on_any_curves(uint256 seed) external {
        begin(anyCurve(draw(seed, 1)), anyCurve(draw(seed, 2)));
        runActs(seed);
    }

    /// At every utilisation, above 1 too, which interest alone can bring.
    function testFuzz_rates(uint256 seed, uint256 utilization) external {
        begin(anyCurve(draw(seed, 1)), anyCurve(draw(seed, 2)));
        utilization = bound(utilization, 0, 3e18);
        assertEq(real.getSupplyRate(utilization), double.getSupplyRate(utilization), "supply rate");
        assertEq(real.getBorrowRate(utilization), double.getBorrowRate(utilization), "borrow rate");
    }

    /// Who supplies nothing can lose a unit of principal by rounding. Comet leaves it in its total, the double does not.
    function test_differ_in_the_total_after_a_supply_of_nothing() external {
        begin(SandboxComet.Curve(0.85e18, 0, 0.048e18, 1.6e18), SandboxComet.Curve(0.85e18, 0.015e18, 0.053e18, 1.8e18));
        both(address(this), abi.encodeCall(SandboxComet.sandboxBorrow, (8_000e6)));
        vm.warp(block.timestamp + 1 days);
        both(people[1], abi.encodeCall(SandboxComet.supply, (address(usdc), 1_000)));
        compare();
        uint256 principal = real.totalsBasic().totalSupplyBase;
        both(people[1], abi.encodeCall(SandboxComet.supply, (address(usdc), 0)));
        assertEq(real.totalsBasic().totalSupplyBase, principal);
        assertEq(double.totalsBasic().totalSupplyBase, principal - 1);
        assertEq(real.balanceOf(people[1]), double.balanceOf(people[1]));
    }

    // --------------------------------------------------------------------------------------------------- acts

    function begin(SandboxComet.Curve memory supplied, SandboxComet.Curve memory borrowed) private {
        real = RealComet.make(usdc, IMintable(address(new Weth())), supplied, borrowed);
        double = new SandboxComet(address(usdc), address(this), supplied, borrowed);
        for (uint256 n = 0; n <= PEOPLE; n++) {
            vm.startPrank(n == PEOPLE ? address(this) : people[n]);
            usdc.approve(address(real), type(uint256).max);
            usdc.approve(address(double), type(uint256).max);
            vm.stopPrank();
        }
        both(people[0], abi.encodeCall(SandboxComet.supply, (address(usdc), 10_000e6)));
        compare();
    }

    function runActs(uint256 seed) private {
        for (uint256 n = 0; n < ACTS; n++) {
            act(draw(seed, 100 + n));
            compare();
        }
        assertGt(taken, ACTS / 4, "nearly all acts were refused");
    }

    function act(uint256 r) private {
        uint256 which = r % 16;
        address who = people[(r >> 8) % PEOPLE];
        // To another, for Comet refuses a transfer to oneself.
        address to = people[((r >> 8) + 1 + (r >> 16) % (PEOPLE - 1)) % PEOPLE];
        // Never nothing: that is the one thing in which they differ, below.
        uint256 amount = 1 + (r >> 64) % 10 ** (1 + (r >> 24) % 13);
        uint256 held = real.balanceOf(who);
        if (which < 3) {
            both(who, abi.encodeCall(SandboxComet.supply, (address(usdc), amount)));
        } else if (which == 3) {
            both(who, abi.encodeCall(SandboxComet.supplyTo, (to, address(usdc), amount)));
        } else if (which == 4) {
            both(who, abi.encodeCall(SandboxComet.withdraw, (address(usdc), amount)));
        } else if (which == 5) {
            both(who, abi.encodeCall(SandboxComet.withdraw, (address(usdc), amount % (held + 2))));
        } else if (which == 6) {
            both(who, abi.encodeCall(SandboxComet.withdrawTo, (to, address(usdc), type(uint256).max)));
        } else if (which == 7) {
            both(who, abi.encodeCall(SandboxComet.transfer, (to, 1 + amount % (held + 1))));
        } else if (which == 8) {
            if (held > 0) both(who, abi.encodeCall(SandboxComet.transfer, (to, type(uint256).max)));
        } else if (which == 9) {
            // Pays what the market owes, or a part, or more than that.
            both(who, abi.encodeCall(SandboxComet.transfer, (address(this), 1 + amount % (held + 1))));
        } else if (which < 12) {
            uint256 cash = usdc.balanceOf(address(real));
            // What the market has supplied is not its debt: in the double these are never one account's.
            if (cash == 0 || real.balanceOf(address(this)) > 0) return;
            both(address(this), abi.encodeCall(SandboxComet.sandboxBorrow, (1 + amount % cash)));
        } else if (which == 12) {
            uint256 owed = real.borrowBalanceOf(address(this));
            if (owed == 0) return;
            uint256 repaid = r >> 255 == 1 ? type(uint256).max : 1 + amount % owed;
            both(address(this), abi.encodeCall(SandboxComet.supply, (address(usdc), repaid)));
        } else if (which == 13) {
            both(who, abi.encodeCall(SandboxComet.accrueAccount, (who)));
        } else if (which == 14) {
            bool[3] memory paused = [(r >> 32) % 5 == 0, (r >> 40) % 5 == 0, (r >> 48) % 5 == 0];
            both(address(this), abi.encodeCall(SandboxComet.sandboxPause, (paused[0], paused[1], paused[2])));
        } else {
            vm.warp(block.timestamp + (r >> 64) % 10 ** (1 + (r >> 24) % 7));
        }
    }

    function both(address who, bytes memory call) private {
        vm.prank(who);
        (bool byReal,) = address(real).call(call);
        vm.prank(who);
        (bool byDouble,) = address(double).call(call);
        assertEq(byReal, byDouble, "one of them refused");
        if (byReal) taken++;
    }

    // ------------------------------------------------------------------------------------------------ figures

    function compare() private view {
        for (uint256 n = 0; n <= PEOPLE; n++) {
            address who = n == PEOPLE ? address(this) : people[n];
            assertEq(real.balanceOf(who), double.balanceOf(who), "balance");
            assertEq(real.borrowBalanceOf(who), double.borrowBalanceOf(who), "debt");
        }
        assertEq(real.totalSupply(), double.totalSupply(), "total supply");
        assertEq(real.totalBorrow(), double.totalBorrow(), "total debt");
        uint256 utilization = real.getUtilization();
        assertEq(utilization, double.getUtilization(), "utilisation");
        assertEq(real.getSupplyRate(utilization), double.getSupplyRate(utilization), "supply rate");
        assertEq(real.getBorrowRate(utilization), double.getBorrowRate(utilization), "borrow rate");
        assertEq(usdc.balanceOf(address(real)), usdc.balanceOf(address(double)), "cash");
        SandboxComet.TotalsBasic memory is_ = real.totalsBasic();
        SandboxComet.TotalsBasic memory told = double.totalsBasic();
        assertEq(is_.baseSupplyIndex, told.baseSupplyIndex, "supply index");
        assertEq(is_.baseBorrowIndex, told.baseBorrowIndex, "borrow index");
        assertEq(is_.totalSupplyBase, told.totalSupplyBase, "principal supplied");
        assertEq(is_.totalBorrowBase, told.totalBorrowBase, "principal owed");
        assertEq(is_.lastAccrualTime, told.lastAccrualTime, "last accrual");
    }

    function anyCurve(uint256 r) private pure returns (SandboxComet.Curve memory) {
        uint64 kink = uint64(bound(r & type(uint32).max, 0, 100) * 0.01e18);
        uint64 base = uint64((r >> 32) % 0.1e18);
        return SandboxComet.Curve(kink, base, uint64((r >> 96) % 0.5e18), uint64((r >> 160) % 4e18));
    }

    function draw(uint256 seed, uint256 n) private pure returns (uint256) {
        return uint256(keccak256(abi.encode(seed, n)));
    }
}
