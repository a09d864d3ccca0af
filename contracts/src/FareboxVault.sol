// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {ERC4626} from "@openzeppelin/contracts/token/ERC20/extensions/ERC4626.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Metadata} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Metadata.sol";
import {IERC4626} from "@openzeppelin/contracts/interfaces/IERC4626.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Positions} from "./Positions.sol";
import {IAavePool, IComet, Protocol} from "./interfaces/Protocols.sol";

/// A vault of USDC that earns interest in one of three lending protocols at a time: ERC-4626 (https://eips.ethereum.org/EIPS/eip-4626)
/// with shares that take EIP-2612 permits.
///
/// What holds, whoever has which role:
/// - Funds are in the vault, in the three protocols, or with shareholders. No function sends them anywhere else.
/// - Whoever has shares can leave at any time; nothing pauses `withdraw`, `redeem` or `redeemInKind`.
/// - Fees are at most `MAX_ENTRY_FEE_BPS` and `MAX_PERFORMANCE_FEE_BPS`, and rise only two days after that was announced.
///
/// A protocol that cannot be read counts as nothing until it can be: deposits are closed meanwhile, whoever redeems for USDC
/// leaves their part of it to those who stay, and `redeemInKind` hands that part over for whoever does not want to.
/// A protocol that loses money lowers the price of all shares alike, in the next block that anybody looks.
contract FareboxVault is ERC4626, ERC20Permit, Ownable2Step, ReentrancyGuardTransient, Positions {
    using Math for uint256;
    using SafeCast for uint256;
    using SafeERC20 for IERC20;

    struct Fees {
        uint16 entryBps;
        uint16 performanceBps;
    }

    /// What a move by the keeper must keep to. Fixed for ever.
    struct MoveLimits {
        /// Of the vault's funds in one protocol, after a move to it.
        uint16 maxShareBps;
        /// Of what the source could pay out, in one move.
        uint16 maxOfLiquidityBps;
        /// Between two moves.
        uint32 cooldownSeconds;
    }

    struct Roles {
        address owner;
        address keeper;
        address guardian;
        address feeRecipient;
    }

    struct Setup {
        string name;
        string symbol;
        IERC20 usdc;
        IAavePool aavePool;
        IComet comet;
        IERC4626 metaMorpho;
        /// Where deposits go at first.
        Protocol active;
        Roles roles;
        Fees fees;
        MoveLimits limits;
    }

    error NotKeeper(address caller);
    error NotGuardian(address caller);
    error ZeroAddress();
    /// So little was given that it buys no share.
    error ZeroShares();
    error FeeTooHigh(uint256 bps, uint256 maxBps);
    /// Raising a fee takes `queueFees`.
    error NotLower();
    error NothingQueued();
    error TooEarly(uint256 readyAt);
    error LimitOutOfRange();
    error SameProtocol();
    error AboveShare(uint256 assets, uint256 maxAssets);
    error AboveLiquidity(uint256 assets, uint256 maxAssets);
    error ReceivedTooLittle(uint256 received, uint256 minReceived);
    /// A protocol could not be read, or did not do what it was asked.
    error ProtocolFailed(Protocol protocol);
    /// A part of the position that the caller insisted on could not be handed over.
    error NotHandedOver(Protocol protocol);

    event PerformanceFeePaid(uint256 shares, uint256 markPrice);
    event EntryFeePaid(uint256 shares);
    event FeesQueued(uint256 entryBps, uint256 performanceBps, uint256 readyAt);
    event FeesQueueCleared();
    event FeesSet(uint256 entryBps, uint256 performanceBps);
    event KeeperSet(address keeper);
    event GuardianSet(address guardian);
    event FeeRecipientSet(address feeRecipient);
    event DepositsPaused(bool paused);
    event Moved(Protocol indexed from, Protocol indexed to, uint256 assets, uint256 received);
    event RedeemedInKind(
        address indexed caller,
        address indexed receiver,
        address indexed owner,
        uint256 shares,
        uint256 idle,
        uint256[3] handedOver
    );

    uint256 public constant MAX_ENTRY_FEE_BPS = 100;
    uint256 public constant MAX_PERFORMANCE_FEE_BPS = 2_500;
    uint256 public constant FEE_DELAY_SECONDS = 48 hours;
    uint256 private constant BPS = 10_000;
    /// Shares have six decimals more than USDC: inflating the price of the first share costs a million times what it takes.
    uint8 private constant DECIMALS_OFFSET = 6;
    uint256 private constant VIRTUAL_SHARES = 10 ** DECIMALS_OFFSET;
    /// Prices of a share are USDC units a share unit, times this.
    uint256 private constant PRICE_SCALE = 1e30;
    /// Of the entry fee, what stays with everybody: protocols round a supply down, and each withdrawal up, by a unit.
    uint256 private constant DUST = 2;
    /// What protocols' rounding may cost in a move.
    uint256 private constant MOVE_DUST = 10;

    MoveLimits private _moveLimits;

    // In one slot: read by every deposit and exit.
    Protocol private _active;
    uint8 private _heldProtocols;
    bool private _depositsPaused;
    uint40 private _movedAt;
    Fees private _fees;
    uint128 private _markPrice;

    address public keeper;
    address public guardian;
    address public feeRecipient;

    Fees private _queuedFees;
    /// Zero: nothing is queued.
    uint256 private _queuedReadyAt;

    constructor(Setup memory setup)
        ERC20(setup.name, setup.symbol)
        ERC20Permit(setup.name)
        ERC4626(setup.usdc)
        Ownable(setup.roles.owner)
        Positions(setup.usdc, setup.aavePool, setup.comet, setup.metaMorpho)
    {
        MoveLimits memory limits = setup.limits;
        if (limits.maxShareBps == 0 || limits.maxShareBps > BPS) revert LimitOutOfRange();
        if (limits.maxOfLiquidityBps == 0 || limits.maxOfLiquidityBps > BPS) revert LimitOutOfRange();
        if (limits.cooldownSeconds > 30 days) revert LimitOutOfRange();
        _moveLimits = limits;
        _active = setup.active;
        _markPrice = (PRICE_SCALE / VIRTUAL_SHARES).toUint128();
        _checkCaps(setup.fees);
        _fees = setup.fees;
        emit FeesSet(setup.fees.entryBps, setup.fees.performanceBps);
        _setFeeRecipient(setup.roles.feeRecipient);
        keeper = setup.roles.keeper;
        emit KeeperSet(setup.roles.keeper);
        guardian = setup.roles.guardian;
        emit GuardianSet(setup.roles.guardian);
    }

    // ------------------------------------------------------------------------------------------------ reading

    /// The protocol that deposits go to.
    function active() external view returns (Protocol) {
        return _active;
    }

    function fees() external view returns (Fees memory) {
        return _fees;
    }

    /// Fees that were announced, and when they may be applied (seconds since 1970); zero: none.
    function queuedFees() external view returns (Fees memory queued, uint256 readyAt) {
        return (_queuedFees, _queuedReadyAt);
    }

    function depositsPaused() external view returns (bool) {
        return _depositsPaused;
    }

    function moveLimits() external view returns (MoveLimits memory) {
        return _moveLimits;
    }

    /// When the keeper may move funds next (seconds since 1970).
    function nextMoveAt() public view returns (uint256) {
        return _movedAt == 0 ? 0 : _movedAt + _moveLimits.cooldownSeconds;
    }

    /// The highest price of a share that the performance fee was taken at, in USDC units a share unit times 1e30.
    function markPrice() external view returns (uint256) {
        return _markPrice;
    }

    /// Where the funds are, what could be paid out now, and whether every position could be read; in USDC units.
    function holdings()
        external
        view
        returns (uint256 idle, uint256[3] memory inProtocol, uint256 liquidity, bool complete)
    {
        Holdings memory found = _holdings();
        return (found.idle, found.inProtocol, _liquidity(found), found.complete);
    }

    /// @inheritdoc IERC4626
    function totalAssets() public view override(ERC4626) returns (uint256) {
        return _holdings().total;
    }

    function decimals() public view override(ERC20, ERC4626) returns (uint8) {
        return super.decimals();
    }

    /// @inheritdoc IERC4626
    function maxDeposit(address) public view override returns (uint256) {
        return _depositsPaused || !_holdings().complete ? 0 : type(uint256).max;
    }

    /// @inheritdoc IERC4626
    function maxMint(address receiver) public view override returns (uint256) {
        return maxDeposit(receiver);
    }

    /// @inheritdoc IERC4626
    function maxWithdraw(address owner) public view override returns (uint256) {
        (Holdings memory found, uint256 supply) = _state();
        return Math.min(_toAssets(balanceOf(owner), found.total, supply, Math.Rounding.Floor), _liquidity(found));
    }

    /// @inheritdoc IERC4626
    function maxRedeem(address owner) public view override returns (uint256) {
        (Holdings memory found, uint256 supply) = _state();
        uint256 balance = balanceOf(owner);
        uint256 liquid = _liquidity(found);
        if (_toAssets(balance, found.total, supply, Math.Rounding.Floor) <= liquid) return balance;
        return Math.min(balance, _toShares(liquid, found.total, supply, Math.Rounding.Floor));
    }

    /// @inheritdoc IERC4626
    function previewDeposit(uint256 assets) public view override returns (uint256) {
        (Holdings memory found, uint256 supply) = _state();
        return _toShares(assets - _entryFee(assets), found.total, supply, Math.Rounding.Floor);
    }

    /// @inheritdoc IERC4626
    function previewMint(uint256 shares) public view override returns (uint256) {
        (Holdings memory found, uint256 supply) = _state();
        return _withEntryFee(_toAssets(shares, found.total, supply, Math.Rounding.Ceil));
    }

    function _convertToShares(uint256 assets, Math.Rounding rounding) internal view override returns (uint256) {
        (Holdings memory found, uint256 supply) = _state();
        return _toShares(assets, found.total, supply, rounding);
    }

    function _convertToAssets(uint256 shares, Math.Rounding rounding) internal view override returns (uint256) {
        (Holdings memory found, uint256 supply) = _state();
        return _toAssets(shares, found.total, supply, rounding);
    }

    // ------------------------------------------------------------------------------------- coming and leaving

    /// @inheritdoc IERC4626
    function deposit(uint256 assets, address receiver) public override nonReentrant returns (uint256 shares) {
        (Holdings memory found, uint256 supply) = _accrue();
        if (_depositsPaused || !found.complete) revert ERC4626ExceededMaxDeposit(receiver, assets, 0);
        uint256 fee = _entryFee(assets);
        shares = _toShares(assets - fee, found.total, supply, Math.Rounding.Floor);
        _enter(assets, shares, fee, receiver, found.total, supply);
    }

    /// @inheritdoc IERC4626
    function mint(uint256 shares, address receiver) public override nonReentrant returns (uint256 assets) {
        (Holdings memory found, uint256 supply) = _accrue();
        if (_depositsPaused || !found.complete) revert ERC4626ExceededMaxMint(receiver, shares, 0);
        uint256 net = _toAssets(shares, found.total, supply, Math.Rounding.Ceil);
        assets = _withEntryFee(net);
        _enter(assets, shares, assets - net, receiver, found.total, supply);
    }

    /// @inheritdoc IERC4626
    function withdraw(uint256 assets, address receiver, address owner)
        public
        override
        nonReentrant
        returns (uint256 shares)
    {
        (Holdings memory found, uint256 supply) = _accrue();
        shares = _toShares(assets, found.total, supply, Math.Rounding.Ceil);
        uint256 balance = balanceOf(owner);
        if (shares > balance) {
            uint256 most = _toAssets(balance, found.total, supply, Math.Rounding.Floor);
            revert ERC4626ExceededMaxWithdraw(owner, assets, most);
        }
        _leave(assets, shares, receiver, owner, found);
    }

    /// @inheritdoc IERC4626
    function redeem(uint256 shares, address receiver, address owner)
        public
        override
        nonReentrant
        returns (uint256 assets)
    {
        (Holdings memory found, uint256 supply) = _accrue();
        uint256 balance = balanceOf(owner);
        if (shares > balance) revert ERC4626ExceededMaxRedeem(owner, shares, balance);
        assets = _toAssets(shares, found.total, supply, Math.Rounding.Floor);
        _leave(assets, shares, receiver, owner, found);
    }

    /// Leaves with what the vault has, in its parts: USDC that is idle, aTokens, Comet balance and MetaMorpho shares. Works
    /// when no protocol pays out. What a protocol refuses to hand over stays with those who stay.
    ///
    /// @param insistOn protocols, bit `p` for `Protocol(p)`: when one of them hands nothing over, nothing happens at all
    /// @return idle USDC units
    /// @return handedOver in each protocol's own token
    function redeemInKind(uint256 shares, address receiver, address owner, uint8 insistOn)
        external
        nonReentrant
        returns (uint256 idle, uint256[3] memory handedOver)
    {
        _accrue();
        uint256 balance = balanceOf(owner);
        if (shares > balance) revert ERC4626ExceededMaxRedeem(owner, shares, balance);
        uint256 whole = totalSupply() + VIRTUAL_SHARES;
        if (msg.sender != owner) _spendAllowance(owner, msg.sender, shares);
        IERC20 usdc = IERC20(asset());
        idle = usdc.balanceOf(address(this)).mulDiv(shares, whole);
        uint8 held = _heldProtocols;
        for (uint256 p = 0; p < 3; p++) {
            if (held & (1 << p) == 0) continue;
            handedOver[p] = _handOver(Protocol(p), receiver, shares, whole);
            if (handedOver[p] == 0 && insistOn & (1 << p) != 0) revert NotHandedOver(Protocol(p));
        }
        _burn(owner, shares);
        if (idle > 0) usdc.safeTransfer(receiver, idle);
        emit RedeemedInKind(msg.sender, receiver, owner, shares, idle, handedOver);
    }

    // ---------------------------------------------------------------------------------------------- the keeper

    /// Moves funds from one protocol to another, which deposits go to from then on. None moves when `assets` is zero.
    ///
    /// @param assets USDC units
    /// @param minReceived of them, in the new protocol; rounding aside nothing may be lost in any case
    function move(Protocol from, Protocol to, uint256 assets, uint256 minReceived) external nonReentrant {
        if (msg.sender != keeper) revert NotKeeper(msg.sender);
        if (from == to) revert SameProtocol();
        if (block.timestamp < nextMoveAt()) revert TooEarly(nextMoveAt());
        (Holdings memory found,) = _accrue();
        if (!found.complete) revert ProtocolFailed(from);
        _movedAt = block.timestamp.toUint40();
        _active = to;
        uint256 received = assets == 0 ? 0 : _move(from, to, assets, minReceived, found);
        emit Moved(from, to, assets, received);
    }

    /// Supplies what lies idle to the active protocol, such as after a deposit that it did not take. For anybody.
    function supplyIdle() external nonReentrant {
        if (!_supply(_active, IERC20(asset()).balanceOf(address(this)))) revert ProtocolFailed(_active);
    }

    function _move(Protocol from, Protocol to, uint256 assets, uint256 minReceived, Holdings memory found)
        private
        returns (uint256 received)
    {
        uint256 position = found.inProtocol[uint8(from)];
        uint256 most = _available(from, position).mulDiv(_moveLimits.maxOfLiquidityBps, BPS);
        if (assets > most) revert AboveLiquidity(assets, most);
        if (!_takeOut(from, assets, position)) revert ProtocolFailed(from);
        if (!_supply(to, assets)) revert ProtocolFailed(to);
        Holdings memory after_ = _holdings();
        if (!after_.complete) revert ProtocolFailed(to);
        uint256 moved = after_.inProtocol[uint8(to)];
        // The target was held before, or held nothing that counted.
        received = moved - Math.min(moved, found.inProtocol[uint8(to)]);
        if (received < minReceived) revert ReceivedTooLittle(received, minReceived);
        if (after_.total + MOVE_DUST < found.total) revert ReceivedTooLittle(after_.total, found.total);
        uint256 share = after_.total.mulDiv(_moveLimits.maxShareBps, BPS);
        if (moved > share) revert AboveShare(moved, share);
        // What went in can come out: a keeper cannot lock funds into a protocol that is paused or lent out.
        uint256 back = _available(to, moved);
        if (back + MOVE_DUST < assets) revert AboveLiquidity(assets, back);
    }

    // -------------------------------------------------------------------------------------- owner and guardian

    /// Lowers fees at once.
    ///
    /// @param lower both at most what they are
    function lowerFees(Fees calldata lower) external onlyOwner nonReentrant {
        Fees memory current = _fees;
        if (lower.entryBps > current.entryBps || lower.performanceBps > current.performanceBps) revert NotLower();
        _setFees(lower);
    }

    /// Announces fees. They can be applied after two days, unless the queue is cleared.
    function queueFees(Fees calldata next) external onlyOwner {
        _checkCaps(next);
        _queuedFees = next;
        _queuedReadyAt = block.timestamp + FEE_DELAY_SECONDS;
        emit FeesQueued(next.entryBps, next.performanceBps, _queuedReadyAt);
    }

    function applyFees() external onlyOwner nonReentrant {
        if (_queuedReadyAt == 0) revert NothingQueued();
        if (block.timestamp < _queuedReadyAt) revert TooEarly(_queuedReadyAt);
        Fees memory next = _queuedFees;
        _clearQueue();
        _setFees(next);
    }

    function clearQueuedFees() external onlyOwner {
        if (_queuedReadyAt == 0) revert NothingQueued();
        _clearQueue();
    }

    function setKeeper(address keeper_) external onlyOwner {
        keeper = keeper_;
        emit KeeperSet(keeper_);
    }

    function setGuardian(address guardian_) external onlyOwner {
        guardian = guardian_;
        emit GuardianSet(guardian_);
    }

    function setFeeRecipient(address feeRecipient_) external onlyOwner nonReentrant {
        _accrue();
        _setFeeRecipient(feeRecipient_);
    }

    /// Stops deposits, and nothing else.
    function pauseDeposits() external {
        if (msg.sender != guardian && msg.sender != owner()) revert NotGuardian(msg.sender);
        _setPaused(true);
    }

    function resumeDeposits() external {
        if (msg.sender != guardian && msg.sender != owner()) revert NotGuardian(msg.sender);
        _setPaused(false);
    }

    /// Leaves a vault that works for ever: deposits are open, nobody can close them, and no fee rises any more.
    function renounceOwnership() public override onlyOwner {
        if (_queuedReadyAt != 0) _clearQueue();
        if (_depositsPaused) _setPaused(false);
        guardian = address(0);
        emit GuardianSet(address(0));
        super.renounceOwnership();
    }

    // -------------------------------------------------------------------------------------------------- within

    function _decimalsOffset() internal pure override returns (uint8) {
        return DECIMALS_OFFSET;
    }

    function _held() internal view override returns (uint8) {
        return _heldProtocols;
    }

    function _setHeld(Protocol protocol, bool held) internal override {
        uint8 bit = uint8(1 << uint8(protocol));
        _heldProtocols = held ? _heldProtocols | bit : _heldProtocols & ~bit;
    }

    /// What the vault has, and the supply of shares once the performance fee that is due is minted.
    function _state() private view returns (Holdings memory found, uint256 supply) {
        found = _holdings();
        supply = totalSupply();
        (uint256 feeShares,) = _feeDue(found, supply);
        supply += feeShares;
    }

    /// The same, with the fee minted.
    function _accrue() private returns (Holdings memory found, uint256 supply) {
        found = _holdings();
        supply = totalSupply();
        (uint256 feeShares, uint256 mark) = _feeDue(found, supply);
        if (mark == 0) return (found, supply);
        _markPrice = mark.toUint128();
        if (feeShares == 0) return (found, supply);
        supply += feeShares;
        _mint(feeRecipient, feeShares);
        emit PerformanceFeePaid(feeShares, mark);
    }

    /// The performance fee on what a share is worth above the mark, in shares, and the price that becomes the mark; zero:
    /// there is no gain. Nothing is due while a position cannot be read: its return would be no gain.
    function _feeDue(Holdings memory found, uint256 supply) private view returns (uint256 feeShares, uint256 mark) {
        if (!found.complete || supply == 0) return (0, 0);
        uint256 shares = supply + VIRTUAL_SHARES;
        uint256 assets = found.total + 1;
        uint256 price = assets.mulDiv(PRICE_SCALE, shares);
        if (price <= _markPrice) return (0, 0);
        uint256 gain = (price - _markPrice).mulDiv(shares, PRICE_SCALE);
        uint256 fee = gain * _fees.performanceBps / BPS;
        feeShares = fee.mulDiv(shares, assets - fee);
        mark = assets.mulDiv(PRICE_SCALE, shares + feeShares);
    }

    function _toShares(uint256 assets, uint256 total, uint256 supply, Math.Rounding rounding)
        private
        pure
        returns (uint256)
    {
        return assets.mulDiv(supply + VIRTUAL_SHARES, total + 1, rounding);
    }

    function _toAssets(uint256 shares, uint256 total, uint256 supply, Math.Rounding rounding)
        private
        pure
        returns (uint256)
    {
        return shares.mulDiv(total + 1, supply + VIRTUAL_SHARES, rounding);
    }

    /// Of the gross amount, rounded up.
    function _entryFee(uint256 gross) private view returns (uint256) {
        return gross.mulDiv(_fees.entryBps, BPS, Math.Rounding.Ceil);
    }

    /// The least gross amount of which so much is left after the fee.
    function _withEntryFee(uint256 net) private view returns (uint256) {
        return net.mulDiv(BPS, BPS - _fees.entryBps, Math.Rounding.Ceil);
    }

    /// The fee is paid in shares at the price of this deposit: no transfer of it can fail, or be refused.
    function _enter(uint256 assets, uint256 shares, uint256 fee, address receiver, uint256 total, uint256 supply)
        private
    {
        if (shares == 0 && assets > 0) revert ZeroShares();
        IERC20(asset()).safeTransferFrom(msg.sender, address(this), assets);
        _mint(receiver, shares);
        if (fee > DUST) {
            uint256 feeShares = _toShares(fee - DUST, total, supply, Math.Rounding.Floor);
            _mint(feeRecipient, feeShares);
            emit EntryFeePaid(feeShares);
        }
        _supply(_active, assets);
        emit Deposit(msg.sender, receiver, assets, shares);
    }

    /// The shares are burned when the funds have come: whoever is called before sees no price of a share that is too high.
    function _leave(uint256 assets, uint256 shares, address receiver, address owner, Holdings memory found) private {
        if (msg.sender != owner) _spendAllowance(owner, msg.sender, shares);
        _gather(assets, _active, found);
        _burn(owner, shares);
        IERC20(asset()).safeTransfer(receiver, assets);
        emit Withdraw(msg.sender, receiver, owner, assets, shares);
    }

    function _checkCaps(Fees memory next) private pure {
        if (next.entryBps > MAX_ENTRY_FEE_BPS) revert FeeTooHigh(next.entryBps, MAX_ENTRY_FEE_BPS);
        if (next.performanceBps > MAX_PERFORMANCE_FEE_BPS) {
            revert FeeTooHigh(next.performanceBps, MAX_PERFORMANCE_FEE_BPS);
        }
    }

    /// What was earned until now pays the fee that held until now.
    function _setFees(Fees memory next) private {
        _accrue();
        _fees = next;
        emit FeesSet(next.entryBps, next.performanceBps);
    }

    function _clearQueue() private {
        delete _queuedFees;
        _queuedReadyAt = 0;
        emit FeesQueueCleared();
    }

    function _setFeeRecipient(address feeRecipient_) private {
        if (feeRecipient_ == address(0) || feeRecipient_ == address(this)) revert ZeroAddress();
        feeRecipient = feeRecipient_;
        emit FeeRecipientSet(feeRecipient_);
    }

    function _setPaused(bool paused) private {
        _depositsPaused = paused;
        emit DepositsPaused(paused);
    }
}
