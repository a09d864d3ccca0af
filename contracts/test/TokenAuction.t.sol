// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC4626} from "@openzeppelin/contracts/interfaces/IERC4626.sol";
import {FareboxVault} from "../src/FareboxVault.sol";
import {TokenAuction} from "../src/TokenAuction.sol";
import {Protocol} from "../src/interfaces/Protocols.sol";
import {World} from "./world/World.sol";

/// A reward, with whatever a token may do that is not one.
contract Reward is ERC20("Reward", "RWD") {
    /// Called while a transfer is under way, in place of nothing.
    address public target;
    bytes public data;
    bool public called;
    /// Kept of each transfer, in parts of ten thousand.
    uint256 public keeps;
    /// Says that everybody has so much; zero: tells the truth.
    uint256 public lie;
    /// Answers nothing, as tokens did before the standard; and moves nothing while it lies.
    bool public silent;

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function onTransfer(address target_, bytes calldata data_) external {
        (target, data) = (target_, data_);
    }

    function keep(uint256 bps) external {
        keeps = bps;
    }

    function say(uint256 balance) external {
        lie = balance;
    }

    function beSilent() external {
        silent = true;
    }

    function balanceOf(address account) public view override returns (uint256) {
        return lie == 0 ? super.balanceOf(account) : lie;
    }

    function transfer(address to, uint256 amount) public override returns (bool) {
        if (target != address(0)) (called,) = target.call(data);
        if (lie != 0) return true;
        _transfer(msg.sender, to, amount);
        if (keeps > 0) _burn(to, amount * keeps / 10_000);
        if (silent) {
            assembly {
                return(0, 0)
            }
        }
        return true;
    }
}

/// A second address of USDC, which moves what the first one has.
contract Alias {
    IERC20 private immutable _usdc;
    address private immutable _vault;

    constructor(IERC20 usdc, address vault) {
        (_usdc, _vault) = (usdc, vault);
    }

    function balanceOf(address account) external view returns (uint256) {
        return _usdc.balanceOf(account);
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        return _usdc.transferFrom(_vault, to, amount);
    }
}

/// What lands in the vault and is not its own is sold for USDC to whoever first finds the price low enough.
contract TokenAuctionTest is World {
    uint256 private constant MOST = 1e15;
    Reward private reward;

    event Offered(address indexed token, uint256 amount, uint256 endsAt);
    event Sold(address indexed token, address indexed buyer, uint256 amount, uint256 price);

    function setUp() public override {
        super.setUp();
        deposit(alice, 100_000 * USDC_1);
        vm.prank(owner);
        vault.setFeeRecipient(treasury);
        reward = new Reward();
        reward.mint(address(vault), 500e18);
    }

    function buys(address who, uint256 maxPrice) private returns (uint256 amount, uint256 price) {
        vm.prank(who);
        return vault.buy(address(reward), maxPrice);
    }

    function test_a_reward_is_sold_at_a_falling_price_and_everybody_has_of_it() external {
        vm.expectEmit();
        emit Offered(address(reward), 500e18, block.timestamp + 24 hours);
        vault.skim(address(reward));
        (uint256 amount, uint256 price, uint256 endsAt) = vault.auction(address(reward));
        assertEq(amount, 500e18);
        assertEq(price, MOST);
        assertEq(endsAt, block.timestamp + 24 hours);
        // 1,000 USDC: 10^15 units were halved twenty times and a bit.
        while (price > 1_000 * USDC_1) {
            skip(60);
            (, price,) = vault.auction(address(reward));
        }
        assertGt(price, 950 * USDC_1);
        uint256 worth = vault.convertToAssets(vault.balanceOf(alice));
        uint256 total = vault.totalAssets();
        uint256 cash = usdc.balanceOf(bob);
        vm.startPrank(bob);
        vm.expectRevert(abi.encodeWithSelector(TokenAuction.TooExpensive.selector, price, price - 1));
        vault.buy(address(reward), price - 1);
        vm.expectEmit();
        emit Sold(address(reward), bob, 500e18, price);
        (uint256 got, uint256 paid) = vault.buy(address(reward), price);
        vm.stopPrank();
        assertEq(got, 500e18);
        assertEq(paid, price);
        assertEq(reward.balanceOf(bob), 500e18);
        assertEq(cash - usdc.balanceOf(bob), price);
        assertEq(vault.totalAssets() - total, price);
        // A gain, of which the performance fee is taken.
        assertGt(vault.convertToAssets(vault.balanceOf(alice)), worth + price * 80 / 100);
        (amount, price, endsAt) = vault.auction(address(reward));
        assertEq(amount + price + endsAt, 0);
        vm.prank(bob);
        vm.expectRevert(abi.encodeWithSelector(TokenAuction.NothingForSale.selector, address(reward)));
        vault.buy(address(reward), MOST);
    }

    function test_the_price_only_falls_halves_in_each_fiftieth_of_a_day_and_ends_at_nothing() external {
        vault.skim(address(reward));
        uint256 last = MOST;
        for (uint256 n = 1; n <= 500; n++) {
            skip(172);
            (, uint256 price,) = vault.auction(address(reward));
            assertLe(price, last);
            // A tenth of a halving at most, of which the first is the largest part.
            assertGe(price + price / 15 + 2, last * 9 / 10);
            last = price;
        }
        rewind(500 * 172);
        for (uint256 n = 1; n <= 50; n++) {
            skip(1_728);
            (, uint256 price,) = vault.auction(address(reward));
            assertEq(price, MOST >> n);
        }
        assertEq(MOST >> 50, 0);
        (uint256 got, uint256 paid) = buys(bob, 0);
        assertEq(got, 500e18);
        assertEq(paid, 0);
    }

    function test_in_the_middle_of_a_halving_the_price_is_in_the_middle() external {
        vault.skim(address(reward));
        skip(864);
        (, uint256 price,) = vault.auction(address(reward));
        assertEq(price, MOST * 3 / 4);
    }

    function test_neither_usdc_nor_a_position_nor_shares_are_ever_for_sale() external {
        address[5] memory own = [address(usdc), address(aUsdc), address(comet), address(metaMorpho), address(vault)];
        for (uint256 n = 0; n < own.length; n++) {
            vm.expectRevert(abi.encodeWithSelector(TokenAuction.NotForSale.selector, own[n]));
            vault.skim(own[n]);
        }
    }

    function test_what_is_not_there_is_not_offered_and_what_is_not_offered_not_sold() external {
        Reward none = new Reward();
        vm.expectRevert(abi.encodeWithSelector(TokenAuction.NothingForSale.selector, address(none)));
        vault.skim(address(none));
        vm.prank(bob);
        vm.expectRevert(abi.encodeWithSelector(TokenAuction.NothingForSale.selector, address(reward)));
        vault.buy(address(reward), MOST);
        vm.expectRevert();
        vault.skim(makeAddr("no contract"));
    }

    /// What comes later is not sold at the price that what waited has fallen to.
    function test_a_lot_is_what_was_there_when_it_was_offered() external {
        vault.skim(address(reward));
        reward.mint(address(vault), 70e18);
        vm.expectRevert(abi.encodeWithSelector(TokenAuction.OnSale.selector, block.timestamp + 24 hours));
        vault.skim(address(reward));
        skip(24 hours - 1);
        vm.expectRevert(abi.encodeWithSelector(TokenAuction.OnSale.selector, block.timestamp + 1));
        vault.skim(address(reward));
        skip(2 days);
        (uint256 got,) = buys(bob, 0);
        assertEq(got, 500e18);
        assertEq(reward.balanceOf(address(vault)), 70e18);
        vault.skim(address(reward));
        (uint256 amount, uint256 price,) = vault.auction(address(reward));
        assertEq(amount, 70e18);
        assertEq(price, MOST);
    }

    function test_what_nobody_wanted_for_a_day_is_offered_anew_with_what_came_since() external {
        vault.skim(address(reward));
        reward.mint(address(vault), 70e18);
        skip(24 hours);
        vault.skim(address(reward));
        (uint256 amount, uint256 price,) = vault.auction(address(reward));
        assertEq(amount, 570e18);
        assertEq(price, MOST);
    }

    function test_a_token_that_takes_a_fee_or_answers_nothing_costs_the_vault_nothing() external {
        reward.keep(1_000);
        reward.beSilent();
        vault.skim(address(reward));
        skip(15 hours);
        uint256 total = vault.totalAssets();
        (uint256 got, uint256 price) = buys(bob, MOST);
        assertEq(got, 500e18);
        assertEq(reward.balanceOf(bob), 450e18);
        assertGe(vault.totalAssets(), total + price);
    }

    /// Its buyer chose it; the vault has the price and has lost nothing.
    function test_a_token_that_lies_cheats_nobody_but_its_buyer() external {
        reward.say(type(uint256).max);
        vault.skim(address(reward));
        (uint256 amount,,) = vault.auction(address(reward));
        assertEq(amount, type(uint216).max);
        skip(24 hours);
        uint256 total = vault.totalAssets();
        buys(bob, 0);
        assertGe(vault.totalAssets(), total);
        reward.say(0);
        assertEq(reward.balanceOf(bob), 0);
    }

    /// More than a lot can hold is the most that it can, and not what is left of the number when it is cut.
    function test_a_lot_is_never_less_than_is_told_for_being_too_large() external {
        reward.say(2 ** 216 + 5);
        vm.expectEmit();
        emit Offered(address(reward), type(uint216).max, block.timestamp + 24 hours);
        vault.skim(address(reward));
        (uint256 amount,,) = vault.auction(address(reward));
        assertEq(amount, type(uint216).max);
    }

    /// There is less of it now than was offered: what there is is sold.
    function test_a_balance_that_shrank_is_sold_as_it_is() external {
        vault.skim(address(reward));
        vm.prank(address(vault));
        reward.transfer(bob, 100e18);
        skip(24 hours);
        (uint256 got,) = buys(alice, 0);
        assertEq(got, 400e18);
    }

    function test_a_token_that_calls_back_is_refused_and_the_sale_stands() external {
        bytes[6] memory acts = [
            abi.encodeCall(vault.skim, (address(reward))),
            abi.encodeCall(vault.buy, (address(reward), MOST)),
            abi.encodeWithSignature("deposit(uint256,address)", 1e6, bob),
            abi.encodeWithSignature("redeem(uint256,address,address)", 1e6, bob, bob),
            abi.encodeCall(vault.exitInKind, (1e6, bob, bob, 15)),
            abi.encodeCall(vault.supplyIdle, ())
        ];
        for (uint256 n = 0; n < acts.length; n++) {
            uint256 world = vm.snapshotState();
            reward.onTransfer(address(vault), acts[n]);
            vault.skim(address(reward));
            skip(15 hours);
            (uint256 got,) = buys(bob, MOST);
            assertFalse(reward.called());
            assertEq(got, 500e18);
            vm.revertToState(world);
        }
        // A call that the vault lets through shows that the token did call.
        reward.onTransfer(address(vault), abi.encodeCall(vault.totalAssets, ()));
        vault.skim(address(reward));
        skip(24 hours);
        buys(bob, 0);
        assertTrue(reward.called());
    }

    /// Should a token have a second address, and should that one be let: no sale takes anything of the vault's own.
    function test_a_second_address_of_the_vaults_own_sells_nothing_of_it() external {
        usdc.mint(address(vault), 1_000 * USDC_1);
        Alias twin = new Alias(usdc, address(vault));
        vault.skim(address(twin));
        vm.prank(address(vault));
        usdc.approve(address(twin), type(uint256).max);
        // Nor for a price above what it takes, nor for nothing.
        for (uint256 n = 0; n < 2; n++) {
            skip(n == 0 ? 9 hours : 15 hours);
            (, uint256 price,) = vault.auction(address(twin));
            assertEq(price > 2_000 * USDC_1, n == 0);
            vm.prank(bob);
            vm.expectRevert(TokenAuction.PrincipalTouched.selector);
            vault.buy(address(twin), MOST);
        }
        assertEq(usdc.balanceOf(address(vault)), 1_000 * USDC_1);
    }

    function test_whoever_cannot_pay_gets_nothing() external {
        vault.skim(address(reward));
        skip(15 hours);
        address poor = makeAddr("poor");
        vm.prank(poor);
        vm.expectRevert();
        vault.buy(address(reward), MOST);
        assertEq(reward.balanceOf(poor), 0);
    }
}
