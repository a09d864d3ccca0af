// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC4626} from "@openzeppelin/contracts/interfaces/IERC4626.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";

/// Sells tokens that a vault was given, such as a protocol's rewards, for its asset: at a price that falls to nothing within
/// a day. Nobody is asked what a token is worth, and nobody chooses who gets it: whoever first finds the price low enough does.
///
/// A token may be anything, so it is called with `balanceOf` and `transfer` alone, while no other function of the vault can be
/// called, and what the vault has of its own must not be less afterwards. One that lies cheats its buyer, who chose it.
abstract contract TokenAuction is ReentrancyGuardTransient {
    using SafeERC20 for IERC20;

    /// What is sold at once: what comes later is sold later, and not at the low price of what has waited.
    struct Lot {
        uint216 amount;
        uint40 startedAt;
    }

    /// The vault's own: its asset, its shares, or a position.
    error NotForSale(address token);
    /// There is nothing of this token, or it was not offered.
    error NothingForSale(address token);
    /// This token is being sold until then.
    error OnSale(uint256 endsAt);
    error TooExpensive(uint256 price, uint256 maxPrice);
    /// The token took something of the vault's own.
    error PrincipalTouched();

    event Offered(address indexed token, uint256 amount, uint256 endsAt);
    event Sold(address indexed token, address indexed buyer, uint256 amount, uint256 price);

    uint256 public constant AUCTION_SECONDS = 24 hours;
    /// The price of any lot at first: a billion USDC, above what anything could be worth that a vault is given.
    uint256 public constant AUCTION_START_PRICE = 1_000_000_000_000_000;
    /// The price halves fifty times in a day, which brings it below a unit. Within a block of Base it falls by a thousandth, so
    /// a lot is sold near its worth whether that is a cent or a million.
    uint256 private constant HALVING_SECONDS = 1_728;

    function _lots() internal view virtual returns (mapping(address token => Lot) storage);

    /// Whether a token is the vault's own, and never for sale.
    function _isPrincipal(address token) internal view virtual returns (bool);

    /// What the vault has of its own, in its asset.
    function _wholeAssets() internal view virtual returns (uint256);

    /// What is for sale of a token, at which price now, and until when the price falls (seconds since 1970).
    function auction(address token) external view returns (uint256 amount, uint256 price, uint256 endsAt) {
        Lot memory lot = _lots()[token];
        if (lot.amount == 0) return (0, 0, 0);
        return (lot.amount, _priceOf(lot), lot.startedAt + AUCTION_SECONDS);
    }

    /// Offers all that there is of a token. By anybody; again when it was sold, or nobody wanted it for a day.
    function skim(address token) external nonReentrant {
        if (_isPrincipal(token)) revert NotForSale(token);
        Lot storage lot = _lots()[token];
        uint256 endsAt = lot.startedAt + AUCTION_SECONDS;
        if (block.timestamp < endsAt) revert OnSale(endsAt);
        uint256 amount = IERC20(token).balanceOf(address(this));
        if (amount == 0) revert NothingForSale(token);
        if (amount > type(uint216).max) amount = type(uint216).max;
        (lot.amount, lot.startedAt) = (uint216(amount), uint40(block.timestamp));
        emit Offered(token, amount, block.timestamp + AUCTION_SECONDS);
    }

    /// Buys a whole lot for the caller, who pays the vault.
    ///
    /// @param maxPrice USDC units; the price falls, and never rises while the lot is the same
    /// @return amount that the vault sent; less may arrive of a token that takes a fee
    /// @return price USDC units paid
    function buy(address token, uint256 maxPrice) external nonReentrant returns (uint256 amount, uint256 price) {
        Lot memory lot = _lots()[token];
        if (lot.amount == 0) revert NothingForSale(token);
        delete _lots()[token];
        price = _priceOf(lot);
        if (price > maxPrice) revert TooExpensive(price, maxPrice);
        uint256 whole = _wholeAssets();
        IERC20(IERC4626(address(this)).asset()).safeTransferFrom(msg.sender, address(this), price);
        uint256 balance = IERC20(token).balanceOf(address(this));
        amount = balance < lot.amount ? balance : lot.amount;
        IERC20(token).safeTransfer(msg.sender, amount);
        if (_wholeAssets() < whole + price) revert PrincipalTouched();
        emit Sold(token, msg.sender, amount, price);
    }

    function _priceOf(Lot memory lot) private view returns (uint256 price) {
        uint256 passed = block.timestamp - lot.startedAt;
        price = AUCTION_START_PRICE >> (passed / HALVING_SECONDS);
        price -= price * (passed % HALVING_SECONDS) / (2 * HALVING_SECONDS);
    }
}
