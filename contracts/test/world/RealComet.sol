// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SandboxComet} from "../../sandbox/SandboxComet.sol";
import {Built} from "./Built.sol";

/// What is asked of the real Comet beside what the double has too.
interface ICometMarket {
    function initializeStorage() external;
    function accrueAccount(address account) external;
    function borrowBalanceOf(address account) external view returns (uint256);
    function supplyTo(address to, address asset, uint256 amount) external;
    function withdrawFrom(address from, address to, address asset, uint256 amount) external;
    function pause(bool supply, bool transfer, bool withdraw, bool absorb, bool buy) external;
}

interface IMintable is IERC20 {
    function mint(address to, uint256 amount) external;
}

/// A price as Comet reads it, which never changes.
contract CometPriceFeed {
    uint8 public constant decimals = 8;
    int256 private immutable _price;

    constructor(int256 price) {
        _price = price;
    }

    function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80) {
        return (1, _price, block.timestamp, block.timestamp, 1);
    }
}

/// What only a sandbox has, for the real Comet: it hands calls that it does not know to an extension, with its own storage. This is
/// one that knows the double's drills and hands the rest to Compound's own extension, so that the same tests run on both.
contract CometDrills {
    /// As Comet keeps them: the order is its storage's.
    uint64 private _supplyIndex;
    uint64 private _borrowIndex;
    uint64 private _trackingSupplyIndex;
    uint64 private _trackingBorrowIndex;
    uint104 private _totalSupplyBase;
    uint104 private _totalBorrowBase;
    uint40 private _accruedAt;
    uint8 private _pauseFlags;
    mapping(address asset => uint256) private _totalsCollateral;
    mapping(address owner => mapping(address manager => bool)) private _isAllowed;

    CometDrills private immutable _self = this;
    address private immutable _extension;
    IERC20 private immutable _usdc;
    IMintable private immutable _weth;

    constructor(address extension, IERC20 usdc, IMintable weth) {
        (_extension, _usdc, _weth) = (extension, usdc, weth);
    }

    /// The caller borrows, whatever is paused, on collateral that covers twice what it owes.
    function sandboxBorrow(uint256 amount) external {
        ICometMarket comet = ICometMarket(address(this));
        uint8 flags = _pauseFlags;
        _pauseFlags = 0;
        uint256 owed = comet.borrowBalanceOf(msg.sender);
        _self.secure(comet, msg.sender, (owed + amount) * 2 * 1e12 / 3_000 + 1 ether);
        _isAllowed[msg.sender][address(this)] = true;
        comet.withdrawFrom(msg.sender, msg.sender, address(_usdc), amount);
        _isAllowed[msg.sender][address(this)] = false;
        _pauseFlags = flags;
    }

    /// Supplies collateral of its own for an account.
    function secure(ICometMarket comet, address account, uint256 amount) external {
        _weth.mint(address(this), amount);
        _weth.approve(address(comet), amount);
        comet.supplyTo(account, address(_weth), amount);
    }

    /// By Comet's own pause, whose guardian the drills are.
    function sandboxPause(bool supply, bool withdraw, bool transfer) external {
        _self.guard(ICometMarket(address(this)), supply, withdraw, transfer);
    }

    function guard(ICometMarket comet, bool supply, bool withdraw, bool transfer) external {
        comet.pause(supply, transfer, withdraw, false, false);
    }

    /// As the double's: every supplier loses this part, in parts of 1e18.
    function sandboxLose(uint256 part) external {
        ICometMarket(address(this)).accrueAccount(address(0));
        uint256 before = uint256(_totalSupplyBase) * _supplyIndex / 1e15;
        _supplyIndex -= uint64(uint256(_supplyIndex) * part / 1e18);
        uint256 lost = before - uint256(_totalSupplyBase) * _supplyIndex / 1e15;
        require(_usdc.transfer(msg.sender, Math.min(lost, _usdc.balanceOf(address(this)))));
    }

    fallback() external {
        (bool ok, bytes memory said) = _extension.delegatecall(msg.data);
        if (!ok) {
            assembly ("memory-safe") {
                revert(add(said, 32), mload(said))
            }
        }
        assembly ("memory-safe") {
            return(add(said, 32), mload(said))
        }
    }
}

/// Compound's own Comet, of `contracts/comet/`, which `npm run contracts:deep` compiles. Its parameters are those of Compound's
/// USDC market on Base (deployments/base/usdc/configuration.json), with a collateral of ours and curves that are given.
library RealComet {
    struct Asset {
        address asset;
        address priceFeed;
        uint8 decimals;
        uint64 borrowCollateralFactor;
        uint64 liquidateCollateralFactor;
        uint64 liquidationFactor;
        uint128 supplyCap;
    }

    struct Parameters {
        address governor;
        address pauseGuardian;
        address baseToken;
        address baseTokenPriceFeed;
        address extensionDelegate;
        uint64 supplyKink;
        uint64 supplyPerYearInterestRateSlopeLow;
        uint64 supplyPerYearInterestRateSlopeHigh;
        uint64 supplyPerYearInterestRateBase;
        uint64 borrowKink;
        uint64 borrowPerYearInterestRateSlopeLow;
        uint64 borrowPerYearInterestRateSlopeHigh;
        uint64 borrowPerYearInterestRateBase;
        uint64 storeFrontPriceFactor;
        uint64 trackingIndexScale;
        uint64 baseTrackingSupplySpeed;
        uint64 baseTrackingBorrowSpeed;
        uint104 baseMinForRewards;
        uint104 baseBorrowMin;
        uint104 targetReserves;
        Asset[] assets;
    }

    function make(
        IERC20 usdc,
        IMintable weth,
        SandboxComet.Curve memory supplyCurve,
        SandboxComet.Curve memory borrowCurve
    ) internal returns (SandboxComet) {
        Parameters memory given;
        given.baseToken = address(usdc);
        given.baseTokenPriceFeed = address(new CometPriceFeed(1e8));
        address extension = Built.make("CometExt", abi.encode(bytes32("Compound USDC"), bytes32("cUSDCv3")));
        given.extensionDelegate = address(new CometDrills(extension, usdc, weth));
        given.pauseGuardian = given.extensionDelegate;
        (given.supplyKink, given.supplyPerYearInterestRateBase) = (supplyCurve.kink, supplyCurve.baseYearly);
        given.supplyPerYearInterestRateSlopeLow = supplyCurve.slopeLowYearly;
        given.supplyPerYearInterestRateSlopeHigh = supplyCurve.slopeHighYearly;
        (given.borrowKink, given.borrowPerYearInterestRateBase) = (borrowCurve.kink, borrowCurve.baseYearly);
        given.borrowPerYearInterestRateSlopeLow = borrowCurve.slopeLowYearly;
        given.borrowPerYearInterestRateSlopeHigh = borrowCurve.slopeHighYearly;
        given.storeFrontPriceFactor = 0.6e18;
        given.trackingIndexScale = 1e15;
        (given.baseTrackingSupplySpeed, given.baseTrackingBorrowSpeed) = (231_481_481_481, 92_592_592_592);
        (given.baseMinForRewards, given.baseBorrowMin, given.targetReserves) = (1_000e6, 1, 5_000_000e6);
        given.assets = new Asset[](1);
        address price = address(new CometPriceFeed(3_000e8));
        given.assets[0] = Asset(address(weth), price, 18, 0.8e18, 0.9e18, 0.95e18, 1e15 ether);
        address made = Built.make("Comet", abi.encode(given));
        ICometMarket(made).initializeStorage();
        return SandboxComet(made);
    }
}
