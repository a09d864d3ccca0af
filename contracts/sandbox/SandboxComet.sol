// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";

/// A double of a Compound v3 market for tests and the sandbox: the base asset's side of it, with Comet's arithmetic as its
/// documentation gives it (https://docs.compound.finance/interest-rates/). Never a real one: whoever holds the role of the
/// market may borrow without collateral, pause it and make it lose, so that rates are above zero and drills are possible.
contract SandboxComet {
    using SafeCast for uint256;
    using SafeERC20 for IERC20;

    struct Curve {
        uint64 kink;
        uint64 baseYearly;
        uint64 slopeLowYearly;
        uint64 slopeHighYearly;
    }

    /// As Comet has it (CometStorage). What the double does not keep is zero.
    struct TotalsBasic {
        uint64 baseSupplyIndex;
        uint64 baseBorrowIndex;
        uint64 trackingSupplyIndex;
        uint64 trackingBorrowIndex;
        uint104 totalSupplyBase;
        uint104 totalBorrowBase;
        uint40 lastAccrualTime;
        uint8 pauseFlags;
    }

    error Paused();
    error BadAsset();
    error NotTheMarket();
    error BorrowTooSmall();
    error NotCollateralized();

    string public constant name = "Sandbox Comet: a double, not Compound";
    string public constant symbol = "cUSDCv3-sandbox";
    uint8 public constant decimals = 6;

    uint256 private constant INDEX_SCALE = 1e15;
    uint256 private constant FACTOR_SCALE = 1e18;
    uint256 private constant SECONDS_PER_YEAR = 31_536_000;

    address public immutable baseToken;
    address public immutable market;
    Curve private _supplyCurve;
    Curve private _borrowCurve;

    uint64 private _supplyIndex = uint64(INDEX_SCALE);
    uint64 private _borrowIndex = uint64(INDEX_SCALE);
    uint40 private _accruedAt;
    uint104 private _totalSupplyBase;
    uint104 private _totalBorrowBase;
    /// What an account has supplied, or owes when it is negative, at index one.
    mapping(address account => int104 principal) private _principals;

    bool public isSupplyPaused;
    bool public isWithdrawPaused;
    bool public isTransferPaused;

    modifier onlyMarket() {
        if (msg.sender != market) revert NotTheMarket();
        _;
    }

    constructor(address baseToken_, address market_, Curve memory supplyCurve, Curve memory borrowCurve) {
        baseToken = baseToken_;
        market = market_;
        _supplyCurve = supplyCurve;
        _borrowCurve = borrowCurve;
        _accruedAt = uint40(block.timestamp);
    }

    // ---------------------------------------------------------------------------------------------- reading

    function balanceOf(address account) external view returns (uint256) {
        (uint64 supplyIndex,) = _indicesNow();
        int104 principal = _principals[account];
        return principal > 0 ? _present(supplyIndex, uint104(principal)) : 0;
    }

    function borrowBalanceOf(address account) external view returns (uint256) {
        (, uint64 borrowIndex) = _indicesNow();
        int104 principal = _principals[account];
        return principal < 0 ? _present(borrowIndex, uint104(-principal)) : 0;
    }

    function totalSupply() external view returns (uint256) {
        (uint64 supplyIndex,) = _indicesNow();
        return _present(supplyIndex, _totalSupplyBase);
    }

    function totalBorrow() external view returns (uint256) {
        (, uint64 borrowIndex) = _indicesNow();
        return _present(borrowIndex, _totalBorrowBase);
    }

    function totalsBasic() external view returns (TotalsBasic memory totals) {
        totals.baseSupplyIndex = _supplyIndex;
        totals.baseBorrowIndex = _borrowIndex;
        totals.totalSupplyBase = _totalSupplyBase;
        totals.totalBorrowBase = _totalBorrowBase;
        totals.lastAccrualTime = _accruedAt;
    }

    /// Of the stored indices, as Comet has it: not of this moment's.
    function getUtilization() public view returns (uint256) {
        uint256 supplied = _present(_supplyIndex, _totalSupplyBase);
        return supplied == 0 ? 0 : _present(_borrowIndex, _totalBorrowBase) * FACTOR_SCALE / supplied;
    }

    /// Per second, times 1e18.
    function getSupplyRate(uint256 utilization) public view returns (uint64) {
        return _rate(_supplyCurve, utilization);
    }

    /// Per second, times 1e18.
    function getBorrowRate(uint256 utilization) public view returns (uint64) {
        return _rate(_borrowCurve, utilization);
    }

    // ---------------------------------------------------------------------------------------------- using it

    function supply(address asset, uint256 amount) external {
        _supply(msg.sender, asset, amount);
    }

    function supplyTo(address to, address asset, uint256 amount) external {
        _supply(to, asset, amount);
    }

    function withdraw(address asset, uint256 amount) external {
        _withdraw(msg.sender, asset, amount);
    }

    function withdrawTo(address to, address asset, uint256 amount) external {
        _withdraw(to, asset, amount);
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        if (isTransferPaused) revert Paused();
        accrue();
        if (amount == type(uint256).max) {
            int104 own = _principals[msg.sender];
            amount = own > 0 ? _present(_supplyIndex, uint104(own)) : 0;
        }
        _take(msg.sender, amount);
        _give(to, amount);
        return true;
    }

    function accrueAccount(address) external {
        accrue();
    }

    function accrue() public {
        (_supplyIndex, _borrowIndex) = _indicesNow();
        _accruedAt = uint40(block.timestamp);
    }

    // ------------------------------------------------------------------------------- what only a sandbox has

    /// The market borrows without collateral.
    function sandboxBorrow(uint256 amount) external onlyMarket {
        accrue();
        int104 principal = _principals[msg.sender];
        uint256 owed = principal < 0 ? _present(_borrowIndex, uint104(-principal)) : 0;
        _setPrincipal(msg.sender, -int256(Math.ceilDiv((owed + amount) * INDEX_SCALE, _borrowIndex)));
        IERC20(baseToken).safeTransfer(msg.sender, amount);
    }

    function sandboxPause(bool supply_, bool withdraw_, bool transfer_) external onlyMarket {
        (isSupplyPaused, isWithdrawPaused, isTransferPaused) = (supply_, withdraw_, transfer_);
    }

    /// Every supplier loses this part of what they have, in parts of 1e18: the cash goes to the market.
    function sandboxLose(uint256 part) external onlyMarket {
        accrue();
        uint256 before = _present(_supplyIndex, _totalSupplyBase);
        _supplyIndex = uint256(_supplyIndex - _supplyIndex * part / FACTOR_SCALE).toUint64();
        uint256 lost = before - _present(_supplyIndex, _totalSupplyBase);
        uint256 cash = IERC20(baseToken).balanceOf(address(this));
        IERC20(baseToken).safeTransfer(msg.sender, Math.min(lost, cash));
    }

    /// Lets time pass for interest alone: as if the last accrual had been so much earlier.
    function sandboxWarp(uint40 elapsedSeconds) external onlyMarket {
        _accruedAt -= elapsedSeconds;
    }

    // ------------------------------------------------------------------------------------------------ within

    function _supply(address to, address asset, uint256 amount) private {
        if (isSupplyPaused) revert Paused();
        if (asset != baseToken) revert BadAsset();
        accrue();
        if (amount == type(uint256).max) {
            int104 principal = _principals[to];
            amount = principal < 0 ? _present(_borrowIndex, uint104(-principal)) : 0;
        }
        IERC20(baseToken).safeTransferFrom(msg.sender, address(this), amount);
        _give(to, amount);
    }

    function _withdraw(address to, address asset, uint256 amount) private {
        if (isWithdrawPaused) revert Paused();
        if (asset != baseToken) revert BadAsset();
        accrue();
        if (amount == type(uint256).max) {
            int104 principal = _principals[msg.sender];
            amount = principal > 0 ? _present(_supplyIndex, uint104(principal)) : 0;
        }
        _take(msg.sender, amount);
        IERC20(baseToken).safeTransfer(to, amount);
    }

    function _give(address account, uint256 amount) private {
        int256 balance = _signed(account) + int256(amount);
        _setPrincipal(
            account,
            balance >= 0
                ? int256(uint256(balance) * INDEX_SCALE / _supplyIndex)
                : -int256(Math.ceilDiv(uint256(-balance) * INDEX_SCALE, _borrowIndex))
        );
    }

    /// A withdrawal above the balance would be a loan, and nobody here has collateral.
    function _take(address account, uint256 amount) private {
        int256 balance = _signed(account) - int256(amount);
        if (balance < 0) {
            if (balance == -1) revert BorrowTooSmall();
            revert NotCollateralized();
        }
        _setPrincipal(account, int256(uint256(balance) * INDEX_SCALE / _supplyIndex));
    }

    function _signed(address account) private view returns (int256) {
        int104 principal = _principals[account];
        return principal >= 0
            ? int256(_present(_supplyIndex, uint104(principal)))
            : -int256(_present(_borrowIndex, uint104(-principal)));
    }

    function _setPrincipal(address account, int256 principal) private {
        int104 before = _principals[account];
        int104 next = SafeCast.toInt104(principal);
        if (before > 0) _totalSupplyBase -= uint104(before);
        else _totalBorrowBase -= uint104(-before);
        if (next > 0) _totalSupplyBase += uint104(next);
        else _totalBorrowBase += uint104(-next);
        _principals[account] = next;
    }

    function _indicesNow() private view returns (uint64 supplyIndex, uint64 borrowIndex) {
        (supplyIndex, borrowIndex) = (_supplyIndex, _borrowIndex);
        uint256 elapsed = block.timestamp - _accruedAt;
        if (elapsed == 0) return (supplyIndex, borrowIndex);
        uint256 utilization = getUtilization();
        supplyIndex += (uint256(supplyIndex) * (getSupplyRate(utilization) * elapsed) / FACTOR_SCALE).toUint64();
        borrowIndex += (uint256(borrowIndex) * (getBorrowRate(utilization) * elapsed) / FACTOR_SCALE).toUint64();
    }

    function _rate(Curve storage curve, uint256 utilization) private view returns (uint64) {
        uint256 base = curve.baseYearly / SECONDS_PER_YEAR;
        uint256 low = curve.slopeLowYearly / SECONDS_PER_YEAR;
        uint256 high = curve.slopeHighYearly / SECONDS_PER_YEAR;
        uint256 kink = curve.kink;
        if (utilization <= kink) return (base + low * utilization / FACTOR_SCALE).toUint64();
        return (base + low * kink / FACTOR_SCALE + high * (utilization - kink) / FACTOR_SCALE).toUint64();
    }

    function _present(uint64 index, uint104 principal) private pure returns (uint256) {
        return uint256(principal) * index / INDEX_SCALE;
    }
}
