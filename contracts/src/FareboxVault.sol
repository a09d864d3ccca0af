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
import {TokenAuction} from "./TokenAuction.sol";
import {IAavePool, IComet, Protocol} from "./interfaces/Protocols.sol";

/// A vault of USDC that earns interest in one of three lending protocols at a time: ERC-4626 (https://eips.ethereum.org/EIPS/eip-4626)
/// with shares that take EIP-2612 permits.
///
/// What holds, whoever has which role:
/// - USDC and positions are in the vault, in the three protocols, or with shareholders. No function sends them anywhere else.
/// - Shareholders can leave at any time; nothing pauses `withdraw`, `redeem`, `redeemPartly` or `exitInKind`.
/// - No exit burns shares for less than the shareholder agreed to: what is left behind is named by whoever leaves it.
/// - Fees are at most `MAX_ENTRY_FEE_BPS` and `MAX_PERFORMANCE_FEE_BPS`, and rise only two days after that was announced. The
///   performance fee is on what is gained, never on what is deposited or what leavers left behind; a gift is a gain.
/// - No deposit, no `supplyIdle` and no move brings a protocol above `maxShareBps` of the vault. Interest and exits may.
///
/// While a protocol that the vault holds a position in cannot be read, that position counts as nothing: deposits are closed,
/// `withdraw` and `redeem` revert, and two exits stay open. `redeemPartly` pays a part of what can be read and forfeits the
/// rest; `exitInKind` hands over the position itself where its protocol lets it.
/// A protocol that loses money lowers the price of all shares alike, in the next block that anybody looks.
contract FareboxVault is ERC4626, ERC20Permit, Ownable2Step, ReentrancyGuardTransient, Positions, TokenAuction {
    using Math for uint256;
    using SafeCast for uint256;
    using SafeERC20 for IERC20;

    struct Fees {
        uint16 entryBps;
        uint16 performanceBps;
    }

    /// What deposits and moves must keep to. Fixed for ever.
    struct MoveLimits {
        /// Of the vault's funds in one protocol, after a deposit, `supplyIdle` or a move to it.
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
    /// What was queued could be applied until then, and can no more.
    error Lapsed(uint256 lapsedAt);
    error TooEarly(uint256 readyAt);
    error LimitOutOfRange();
    error SameProtocol();
    error AboveShare(uint256 assets, uint256 maxAssets);
    error AboveLiquidity(uint256 assets, uint256 maxAssets);
    error ReceivedTooLittle(uint256 received, uint256 minReceived);
    /// A protocol did not do what it was asked.
    error ProtocolFailed(Protocol protocol);
    /// The vault has a position that cannot be read at the moment. `redeemPartly` and `exitInKind` work meanwhile.
    error NotRead(Protocol protocol);
    /// A part could not be handed over, and the shareholder did not say to leave it behind: a `Protocol`, or 3 for idle USDC.
    error NotHandedOver(uint8 part);
    /// The bounds of ERC-5143.
    error TooFewShares(uint256 shares, uint256 minShares);
    error TooManyShares(uint256 shares, uint256 maxShares);
    error TooFewAssets(uint256 assets, uint256 minAssets);
    error TooManyAssets(uint256 assets, uint256 maxAssets);
    error AlreadySeeded();

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
    /// USDC taken out of a protocol, which gets no more until a move names it as its target.
    event Left(Protocol indexed protocol, uint256 assets);
    event ExitedInKind(
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
    /// How long queued fees can be applied, once they can be.
    uint256 public constant FEE_WINDOW_SECONDS = 168 hours;
    /// What `seed` takes: 1 USDC.
    uint256 public constant SEED_ASSETS = 1_000_000;
    /// Has the seed's shares, and no key.
    address public constant SEED_HOLDER = 0x000000000000000000000000000000000000dEaD;
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

    Protocol private _active;
    uint8 private _heldProtocols;
    bool private _depositsPaused;
    uint40 private _movedAt;
    Fees private _fees;
    uint128 private _markPrice;
    /// As `_heldProtocols`: those that were left, and get nothing until a move names one as its target.
    uint8 private _leftProtocols;
    bool private _seeded;
    /// Somebody left something behind while a position could not be read: the first complete reading sets the mark.
    bool private _markDue;

    address public keeper;
    address public guardian;
    address public feeRecipient;

    Fees private _queuedFees;
    /// Zero: nothing is queued.
    uint256 private _queuedReadyAt;

    /// When the keeper or the guardian last took out what now lies idle; zero: what lies idle comes from elsewhere.
    uint40 private _leftAt;
    mapping(address token => Lot) private _auctionedLots;

    constructor(Setup memory setup)
        ERC20(setup.name, setup.symbol)
        ERC20Permit(setup.name)
        ERC4626(setup.usdc)
        Ownable(setup.roles.owner)
        Positions(setup.usdc, setup.aavePool, setup.comet, setup.metaMorpho)
    {
        MoveLimits memory limits = setup.limits;
        // Three that are full must hold everything.
        if (3 * uint256(limits.maxShareBps) < BPS || limits.maxShareBps > BPS) revert LimitOutOfRange();
        if (limits.maxOfLiquidityBps == 0 || limits.maxOfLiquidityBps > BPS) revert LimitOutOfRange();
        if (limits.cooldownSeconds > 30 days) revert LimitOutOfRange();
        _moveLimits = limits;
        _active = setup.active;
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

    /// Fees that were announced, and when they may be applied (seconds since 1970); zero: none, or they have lapsed.
    function queuedFees() external view returns (Fees memory queued, uint256 readyAt) {
        if (block.timestamp <= _queuedReadyAt + FEE_WINDOW_SECONDS) return (_queuedFees, _queuedReadyAt);
    }

    /// Whether the seed is in; until then no deposit is taken.
    function seeded() external view returns (bool) {
        return _seeded;
    }

    /// Protocols that were left, which get nothing until a move names one as its target: bit `p` for `Protocol(p)`.
    function leftProtocols() external view returns (uint8) {
        return _leftProtocols;
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

    /// When anybody may supply what lies idle (seconds since 1970); zero: at any time.
    function nextSupplyAt() public view returns (uint256) {
        return _leftAt == 0 ? 0 : Math.max(_leftAt + _moveLimits.cooldownSeconds, nextMoveAt());
    }

    /// The price of a share that a gain is measured from, in USDC units a share unit times 1e30. At least the highest price that
    /// the performance fee was taken at.
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
        return _closed(_holdings()) ? 0 : type(uint256).max;
    }

    /// @inheritdoc IERC4626
    function maxMint(address receiver) public view override returns (uint256) {
        return maxDeposit(receiver);
    }

    /// @inheritdoc IERC4626
    function maxWithdraw(address owner) public view override returns (uint256) {
        (Holdings memory found, uint256 supply) = _state();
        if (!found.complete) return 0;
        return Math.min(_toAssets(balanceOf(owner), found.total, supply, Math.Rounding.Floor), _liquidity(found));
    }

    /// @inheritdoc IERC4626
    function maxRedeem(address owner) public view override returns (uint256) {
        (Holdings memory found, uint256 supply) = _state();
        if (!found.complete) return 0;
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

    /// @inheritdoc IERC4626
    function previewWithdraw(uint256 assets) public view override returns (uint256) {
        (Holdings memory found, uint256 supply) = _state();
        _mustBeComplete(found);
        return _toShares(assets, found.total, supply, Math.Rounding.Ceil);
    }

    /// @inheritdoc IERC4626
    function previewRedeem(uint256 shares) public view override returns (uint256) {
        (Holdings memory found, uint256 supply) = _state();
        _mustBeComplete(found);
        return _toAssets(shares, found.total, supply, Math.Rounding.Floor);
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
    function deposit(uint256 assets, address receiver) public override nonReentrant returns (uint256) {
        return _depositFor(assets, receiver, 0);
    }

    /// ERC-5143 (https://eips.ethereum.org/EIPS/eip-5143): reverts when it brings fewer shares than `minShares`.
    function deposit(uint256 assets, address receiver, uint256 minShares) external nonReentrant returns (uint256) {
        return _depositFor(assets, receiver, minShares);
    }

    /// @inheritdoc IERC4626
    function mint(uint256 shares, address receiver) public override nonReentrant returns (uint256) {
        return _mintFor(shares, receiver, type(uint256).max);
    }

    /// ERC-5143: reverts when it costs more than `maxAssets`.
    function mint(uint256 shares, address receiver, uint256 maxAssets) external nonReentrant returns (uint256) {
        return _mintFor(shares, receiver, maxAssets);
    }

    /// @inheritdoc IERC4626
    function withdraw(uint256 assets, address receiver, address owner) public override nonReentrant returns (uint256) {
        return _withdrawFor(assets, receiver, owner, type(uint256).max);
    }

    /// ERC-5143: reverts when it costs more shares than `maxShares`.
    function withdraw(uint256 assets, address receiver, address owner, uint256 maxShares)
        external
        nonReentrant
        returns (uint256)
    {
        return _withdrawFor(assets, receiver, owner, maxShares);
    }

    /// @inheritdoc IERC4626
    function redeem(uint256 shares, address receiver, address owner) public override nonReentrant returns (uint256) {
        return _redeemFor(shares, receiver, owner, 0, true);
    }

    /// ERC-5143: reverts when it pays less than `minAssets`.
    function redeem(uint256 shares, address receiver, address owner, uint256 minAssets)
        external
        nonReentrant
        returns (uint256)
    {
        return _redeemFor(shares, receiver, owner, minAssets, true);
    }

    /// Redeems also while a position cannot be read: burns all `shares`, pays their part of what can be read, and forfeits
    /// their part of the rest to the other shareholders, for ever.
    ///
    /// @param minAssets USDC units that it must pay
    /// @return USDC units paid
    function redeemPartly(uint256 shares, address receiver, address owner, uint256 minAssets)
        external
        nonReentrant
        returns (uint256)
    {
        return _redeemFor(shares, receiver, owner, minAssets, false);
    }

    /// Leaves with what the vault has, in its parts: USDC that is idle, aTokens, Comet balance and MetaMorpho shares. Needs no
    /// protocol to pay out. A part that could not be handed over ends it, unless `leaveBehind` names it.
    ///
    /// @param leaveBehind parts that are forfeited to the other shareholders where they cannot be handed over: bit `p` for
    ///   `Protocol(p)`, bit 3 for idle USDC
    /// @return idle USDC units
    /// @return handedOver in each protocol's own token
    function exitInKind(uint256 shares, address receiver, address owner, uint8 leaveBehind)
        external
        nonReentrant
        returns (uint256 idle, uint256[3] memory handedOver)
    {
        _accrue();
        _mustHave(owner, shares);
        uint256 whole = totalSupply() + VIRTUAL_SHARES;
        if (msg.sender != owner) _spendAllowance(owner, msg.sender, shares);
        uint8 held = _heldProtocols;
        uint8 refused;
        for (uint256 p = 0; p < 3; p++) {
            if (held & (1 << p) == 0) continue;
            bool ok;
            (ok, handedOver[p]) = _handOver(Protocol(p), receiver, shares, whole);
            if (!ok) refused |= uint8(1 << p);
        }
        idle = IERC20(asset()).balanceOf(address(this)).mulDiv(shares, whole);
        if (idle > 0 && !_pay(asset(), receiver, idle)) (idle, refused) = (0, refused | 8);
        for (uint8 part = 0; part < 4; part++) {
            if (refused & ~leaveBehind & (1 << part) != 0) revert NotHandedOver(part);
        }
        _burn(owner, shares);
        if (refused != 0) _chargeNothing(_holdings());
        emit ExitedInKind(msg.sender, receiver, owner, shares, idle, handedOver);
    }

    /// Puts the first USDC in, for ever: its shares are `SEED_HOLDER`'s. By anybody, once. With them in, the supply of shares
    /// never returns to nothing, where a gift of some units would multiply the price of a share.
    ///
    /// @return shares for `SEED_ASSETS`, without a fee and but for the unit that a protocol rounds off: where there are none yet,
    ///   a million for a unit, whatever somebody sent before
    function seed() external nonReentrant returns (uint256 shares) {
        if (_seeded) revert AlreadySeeded();
        _seeded = true;
        (Holdings memory found, uint256 supply) = _accrue();
        _mustBeComplete(found);
        shares = supply == 0
            ? (SEED_ASSETS - 1) * VIRTUAL_SHARES
            : _toShares(SEED_ASSETS - 1, found.total, supply, Math.Rounding.Floor);
        _enter(SEED_ASSETS, shares, 0, SEED_HOLDER, found, supply);
        // Nobody had shares: whatever the price is now, up or down, nobody has gained by it.
        if (supply == 0) _markPrice = _price(_holdings().total, shares).toUint128();
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
        _mustBeComplete(found);
        _movedAt = block.timestamp.toUint40();
        _active = to;
        _leftProtocols &= ~_bit(to);
        uint256 received = assets == 0 ? 0 : _move(from, to, assets, minReceived, found);
        emit Moved(from, to, assets, received);
    }

    /// Takes USDC out of a protocol at once, and gives it nothing more until a move names it as its target. It lies idle then,
    /// to be paid out; `supplyIdle` waits as long as between two moves. Other positions need not be readable.
    ///
    /// @param assets USDC units at most; zero: only no more is supplied
    /// @return taken what the protocol could pay of them
    function leave(Protocol protocol, uint256 assets) external nonReentrant returns (uint256 taken) {
        if (msg.sender != keeper && msg.sender != guardian) revert NotKeeper(msg.sender);
        _leftProtocols |= _bit(protocol);
        (, uint256 position) = _worth(protocol);
        taken = Math.min(assets, _available(protocol, position));
        if (taken > 0) {
            uint256 idle = IERC20(asset()).balanceOf(address(this));
            if (!_takeOut(protocol, taken, position)) revert ProtocolFailed(protocol);
            uint256 received = IERC20(asset()).balanceOf(address(this)) - idle;
            if (received < taken) revert ReceivedTooLittle(received, taken);
            _leftAt = block.timestamp.toUint40();
        }
        emit Left(protocol, taken);
    }

    /// Supplies what lies idle as a deposit would be, such as after one that no protocol took. For anybody.
    function supplyIdle() external nonReentrant {
        Holdings memory found = _holdings();
        _mustBeComplete(found);
        if (found.idle == 0) return;
        if (_leftAt != 0) {
            if (block.timestamp < nextSupplyAt()) revert TooEarly(nextSupplyAt());
            _leftAt = 0;
            _movedAt = block.timestamp.toUint40();
        }
        if (_spread(found.idle, found.total, found.inProtocol) == found.idle) revert ProtocolFailed(_active);
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

    /// Applies what was announced, for `FEE_WINDOW_SECONDS` from when it may be.
    function applyFees() external onlyOwner nonReentrant {
        if (_queuedReadyAt == 0) revert NothingQueued();
        if (block.timestamp < _queuedReadyAt) revert TooEarly(_queuedReadyAt);
        uint256 lapsesAt = _queuedReadyAt + FEE_WINDOW_SECONDS;
        if (block.timestamp > lapsesAt) revert Lapsed(lapsesAt);
        Fees memory next = _queuedFees;
        _clearQueue();
        _setFees(next);
    }

    /// Takes back what was announced.
    function clearQueuedFees() external onlyOwnerOrGuardian {
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
    function pauseDeposits() external onlyOwnerOrGuardian {
        _setPaused(true);
    }

    function resumeDeposits() external onlyOwnerOrGuardian {
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

    modifier onlyOwnerOrGuardian() {
        if (msg.sender != guardian && msg.sender != owner()) revert NotGuardian(msg.sender);
        _;
    }

    function _decimalsOffset() internal pure override returns (uint8) {
        return DECIMALS_OFFSET;
    }

    function _held() internal view override returns (uint8) {
        return _heldProtocols;
    }

    function _setHeld(Protocol protocol, bool held) internal override {
        uint8 bit = _bit(protocol);
        _heldProtocols = held ? _heldProtocols | bit : _heldProtocols & ~bit;
    }

    function _bit(Protocol protocol) private pure returns (uint8) {
        return uint8(1 << uint8(protocol));
    }

    function _lots() internal view override returns (mapping(address => Lot) storage) {
        return _auctionedLots;
    }

    function _isPrincipal(address token) internal view override returns (bool) {
        return token == asset() || token == address(this) || token == address(aToken) || token == address(comet)
            || token == address(metaMorpho);
    }

    function _wholeAssets() internal view override returns (uint256) {
        return _holdings().total;
    }

    function _closed(Holdings memory found) private view returns (bool) {
        return _depositsPaused || !_seeded || !found.complete;
    }

    function _mustBeComplete(Holdings memory found) private pure {
        if (!found.complete) revert NotRead(found.unread);
    }

    function _mustHave(address owner, uint256 shares) private view {
        uint256 balance = balanceOf(owner);
        if (shares > balance) revert ERC4626ExceededMaxRedeem(owner, shares, balance);
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
        if (_markDue && found.complete) _markDue = false;
        if (mark == 0) return (found, supply);
        _markPrice = mark.toUint128();
        if (feeShares == 0) return (found, supply);
        supply += feeShares;
        _mint(feeRecipient, feeShares);
        emit PerformanceFeePaid(feeShares, mark);
    }

    /// The performance fee on what a share is worth above the mark, in shares, and the price that becomes the mark; zero:
    /// there is no gain. Nothing is due while a position cannot be read: its return would be no gain. And nothing is due for
    /// what somebody left behind meanwhile.
    function _feeDue(Holdings memory found, uint256 supply) private view returns (uint256 feeShares, uint256 mark) {
        if (!found.complete || supply == 0) return (0, 0);
        uint256 price = _price(found.total, supply);
        if (price <= _markPrice) return (0, 0);
        if (_markDue) return (0, price);
        uint256 shares = supply + VIRTUAL_SHARES;
        uint256 gain = (price - _markPrice).mulDiv(shares, PRICE_SCALE);
        uint256 fee = gain * _fees.performanceBps / BPS;
        feeShares = fee.mulDiv(shares, found.total + 1 - fee);
        mark = _price(found.total, supply + feeShares);
    }

    /// Makes the price of a share now the mark, if it is higher, so that no fee is taken of what somebody has left behind.
    function _chargeNothing(Holdings memory found) private {
        if (!found.complete) {
            _markDue = true;
            return;
        }
        uint256 price = _price(found.total, totalSupply());
        if (price > _markPrice) _markPrice = price.toUint128();
    }

    /// USDC units a share unit, times `PRICE_SCALE`.
    function _price(uint256 total, uint256 supply) private pure returns (uint256) {
        return (total + 1).mulDiv(PRICE_SCALE, supply + VIRTUAL_SHARES);
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

    function _depositFor(uint256 assets, address receiver, uint256 minShares) private returns (uint256 shares) {
        (Holdings memory found, uint256 supply) = _accrue();
        if (_closed(found)) revert ERC4626ExceededMaxDeposit(receiver, assets, 0);
        uint256 fee = _entryFee(assets);
        shares = _toShares(assets - fee, found.total, supply, Math.Rounding.Floor);
        if (shares < minShares) revert TooFewShares(shares, minShares);
        _enter(assets, shares, fee, receiver, found, supply);
    }

    function _mintFor(uint256 shares, address receiver, uint256 maxAssets) private returns (uint256 assets) {
        (Holdings memory found, uint256 supply) = _accrue();
        if (_closed(found)) revert ERC4626ExceededMaxMint(receiver, shares, 0);
        uint256 net = _toAssets(shares, found.total, supply, Math.Rounding.Ceil);
        assets = _withEntryFee(net);
        if (assets > maxAssets) revert TooManyAssets(assets, maxAssets);
        _enter(assets, shares, assets - net, receiver, found, supply);
    }

    function _withdrawFor(uint256 assets, address receiver, address owner, uint256 maxShares)
        private
        returns (uint256 shares)
    {
        (Holdings memory found, uint256 supply) = _accrue();
        _mustBeComplete(found);
        shares = _toShares(assets, found.total, supply, Math.Rounding.Ceil);
        uint256 balance = balanceOf(owner);
        if (shares > balance) {
            uint256 most = _toAssets(balance, found.total, supply, Math.Rounding.Floor);
            revert ERC4626ExceededMaxWithdraw(owner, assets, most);
        }
        if (shares > maxShares) revert TooManyShares(shares, maxShares);
        _leave(assets, shares, receiver, owner, found);
    }

    /// @param whole whether every position must be readable
    function _redeemFor(uint256 shares, address receiver, address owner, uint256 minAssets, bool whole)
        private
        returns (uint256 assets)
    {
        (Holdings memory found, uint256 supply) = _accrue();
        if (whole) _mustBeComplete(found);
        _mustHave(owner, shares);
        assets = _toAssets(shares, found.total, supply, Math.Rounding.Floor);
        if (assets < minAssets) revert TooFewAssets(assets, minAssets);
        _leave(assets, shares, receiver, owner, found);
        if (!found.complete) _chargeNothing(found);
    }

    /// The fee is paid in shares at the price of this deposit: no transfer of it can fail, or be refused.
    function _enter(
        uint256 assets,
        uint256 shares,
        uint256 fee,
        address receiver,
        Holdings memory found,
        uint256 supply
    ) private {
        if (shares == 0 && assets > 0) revert ZeroShares();
        IERC20(asset()).safeTransferFrom(msg.sender, address(this), assets);
        _mint(receiver, shares);
        if (fee > DUST) {
            uint256 feeShares = _toShares(fee - DUST, found.total, supply, Math.Rounding.Floor);
            _mint(feeRecipient, feeShares);
            emit EntryFeePaid(feeShares);
        }
        _spread(assets, found.total + assets, found.inProtocol);
        emit Deposit(msg.sender, receiver, assets, shares);
    }

    /// Supplies to the active protocol, then to the others, each no further than to its share of the whole.
    ///
    /// @return rest what none of them took, which lies idle
    function _spread(uint256 assets, uint256 whole, uint256[3] memory inProtocol) private returns (uint256 rest) {
        uint256 share = whole.mulDiv(_moveLimits.maxShareBps, BPS);
        Protocol first = _active;
        rest = assets;
        for (uint256 n = 0; n < 4 && rest > 0; n++) {
            Protocol protocol = n == 0 ? first : Protocol(n - 1);
            if ((n > 0 && protocol == first) || _leftProtocols & _bit(protocol) != 0) continue;
            uint256 amount = Math.min(rest, share.saturatingSub(inProtocol[uint8(protocol)]));
            if (amount > 0 && _supply(protocol, amount)) rest -= amount;
        }
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

    /// What was earned until now pays the fee that held until now; so none rises while that cannot be told.
    function _setFees(Fees memory next) private {
        (Holdings memory found,) = _accrue();
        if (next.performanceBps > _fees.performanceBps) _mustBeComplete(found);
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
