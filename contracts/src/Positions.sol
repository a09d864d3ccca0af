// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC4626} from "@openzeppelin/contracts/interfaces/IERC4626.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {IAavePool, IComet, IMetaMorpho, Protocol} from "./interfaces/Protocols.sol";

/// The vault's positions in three lending protocols, which are fixed for ever: how much they are worth, how much of it can
/// be had now, and how funds go in and come out.
///
/// A protocol may be paused, empty, broken or malicious. So every call of one is made with a bound on its gas, reads nothing
/// but one word of its answer, and may fail without failing the others. Whoever sends so little gas that a call could have
/// failed for that reason alone is refused: nobody can make a position look worthless by sending little.
abstract contract Positions {
    using SafeERC20 for IERC20;

    /// Assets in micro-USD of USDC (6 decimals), by protocol.
    struct Holdings {
        uint256 idle;
        uint256[3] inProtocol;
        uint256 total;
        /// Whether every position that the vault holds could be read.
        bool complete;
        /// The last of those that could not.
        Protocol unread;
    }

    /// The call failed, and might not have with more gas.
    error NotEnoughGas();
    /// The protocols can pay out less than was asked; what they can is told.
    error NotEnoughLiquidity(uint256 available);
    /// A constructor's protocol does not lend USDC.
    error OtherAsset(address protocol);
    /// A constructor's MetaMorpho lends through no Morpho: another vault, which may pay out nothing.
    error NotMetaMorpho(address vault);

    event Supplied(Protocol indexed protocol, uint256 assets);
    event TakenOut(Protocol indexed protocol, uint256 assets);
    /// The protocol did not take it: it stays in the vault, and can be supplied later.
    event NotTaken(Protocol indexed protocol, uint256 assets);

    /// Above what any of the three needs, and low enough for a block to hold an exit past three that burn it all.
    uint256 private constant CALL_GAS = 3_000_000;
    /// Of so few units that stay in a protocol its rounding may make nothing: of one, until its index has doubled.
    uint256 private constant ROUNDED_OFF = 10;
    uint256 private constant AAVE_ACTIVE = 1 << 56;
    uint256 private constant AAVE_PAUSED = 1 << 60;

    IERC20 private immutable _usdc;
    IAavePool public immutable aavePool;
    IERC20 public immutable aToken;
    IComet public immutable comet;
    IERC4626 public immutable metaMorpho;

    constructor(IERC20 usdc, IAavePool aavePool_, IComet comet_, IERC4626 metaMorpho_) {
        _usdc = usdc;
        aavePool = aavePool_;
        comet = comet_;
        metaMorpho = metaMorpho_;
        address aToken_ = aavePool_.getReserveAToken(address(usdc));
        if (aToken_ == address(0)) revert OtherAsset(address(aavePool_));
        if (comet_.baseToken() != address(usdc)) revert OtherAsset(address(comet_));
        if (metaMorpho_.asset() != address(usdc)) revert OtherAsset(address(metaMorpho_));
        try IMetaMorpho(address(metaMorpho_)).MORPHO() returns (address morpho) {
            if (morpho.code.length == 0) revert NotMetaMorpho(address(metaMorpho_));
        } catch {
            revert NotMetaMorpho(address(metaMorpho_));
        }
        aToken = IERC20(aToken_);
        usdc.forceApprove(address(aavePool_), type(uint256).max);
        usdc.forceApprove(address(comet_), type(uint256).max);
        usdc.forceApprove(address(metaMorpho_), type(uint256).max);
    }

    /// Which protocols the vault has a position in: bit `p` for `Protocol(p)`. The others are not read.
    function _held() internal view virtual returns (uint8);

    function _setHeld(Protocol protocol, bool held) internal virtual;

    /// Everything that the vault has. What cannot be read counts as nothing.
    function _holdings() internal view returns (Holdings memory found) {
        found.idle = _usdc.balanceOf(address(this));
        found.total = found.idle;
        found.complete = true;
        uint8 held = _held();
        for (uint256 p = 0; p < 3; p++) {
            if (held & (1 << p) == 0) continue;
            (bool ok, uint256 assets) = _worth(Protocol(p));
            found.inProtocol[p] = assets;
            found.total += assets;
            if (!ok) (found.complete, found.unread) = (false, Protocol(p));
        }
    }

    /// What a position is worth, in USDC; not read: zero.
    function _worth(Protocol protocol) internal view returns (bool ok, uint256 assets) {
        (ok, assets) = _balance(protocol);
        if (ok && protocol == Protocol.Morpho) {
            (ok, assets) = _read(address(metaMorpho), abi.encodeCall(IERC4626.convertToAssets, (assets)));
        }
        // A lie so large that it cannot be added up is as good as no answer.
        if (!ok || assets > type(uint128).max) return (false, 0);
    }

    /// A position in the protocol's own token: aToken and Comet balances are USDC, MetaMorpho's are shares.
    function _balance(Protocol protocol) internal view returns (bool ok, uint256 balance) {
        return _read(_token(protocol), abi.encodeCall(IERC20.balanceOf, (address(this))));
    }

    function _token(Protocol protocol) internal view returns (address) {
        if (protocol == Protocol.Aave) return address(aToken);
        return protocol == Protocol.Compound ? address(comet) : address(metaMorpho);
    }

    /// How much of a position its protocol could pay out now.
    function _available(Protocol protocol, uint256 assets) internal view returns (uint256) {
        if (assets == 0) return 0;
        bool ok;
        uint256 liquid;
        if (protocol == Protocol.Aave) {
            uint256 configuration;
            (ok, configuration) = _read(address(aavePool), abi.encodeCall(IAavePool.getConfiguration, (address(_usdc))));
            if (!ok || configuration & AAVE_ACTIVE == 0 || configuration & AAVE_PAUSED != 0) return 0;
            (ok, liquid) =
                _read(address(aavePool), abi.encodeCall(IAavePool.getVirtualUnderlyingBalance, (address(_usdc))));
        } else if (protocol == Protocol.Compound) {
            uint256 paused;
            (ok, paused) = _read(address(comet), abi.encodeCall(IComet.isWithdrawPaused, ()));
            if (!ok || paused != 0) return 0;
            liquid = _usdc.balanceOf(address(comet));
        } else {
            (ok, liquid) = _read(address(metaMorpho), abi.encodeCall(IERC4626.maxWithdraw, (address(this))));
        }
        return ok ? Math.min(assets, liquid) : 0;
    }

    /// What could be paid out in USDC now, from everywhere.
    function _liquidity(Holdings memory holdings) internal view returns (uint256 liquid) {
        liquid = holdings.idle;
        for (uint256 p = 0; p < 3; p++) {
            liquid += _available(Protocol(p), holdings.inProtocol[p]);
        }
    }

    /// Supplies, or leaves it where it is when the protocol does not take it.
    function _supply(Protocol protocol, uint256 assets) internal returns (bool taken) {
        bytes memory data;
        if (protocol == Protocol.Aave) {
            data = abi.encodeCall(IAavePool.supply, (address(_usdc), assets, address(this), 0));
        } else if (protocol == Protocol.Compound) {
            data = abi.encodeCall(IComet.supply, (address(_usdc), assets));
        } else {
            data = abi.encodeCall(IERC4626.deposit, (assets, address(this)));
        }
        taken = _try(protocol == Protocol.Aave ? address(aavePool) : _token(protocol), data);
        if (!taken) {
            emit NotTaken(protocol, assets);
            return false;
        }
        if (_held() & (1 << uint8(protocol)) == 0) {
            // Of a unit alone a protocol may credit nothing: that is no position.
            (bool ok, uint256 balance) = _balance(protocol);
            if (!ok || balance > 0) _setHeld(protocol, true);
        }
        emit Supplied(protocol, assets);
    }

    /// Takes USDC out of a protocol, and tells whether it paid.
    function _takeOut(Protocol protocol, uint256 assets, uint256 position) internal returns (bool paid) {
        bytes memory data;
        if (protocol == Protocol.Aave) {
            data = abi.encodeCall(IAavePool.withdraw, (address(_usdc), assets, address(this)));
        } else if (protocol == Protocol.Compound) {
            data = abi.encodeCall(IComet.withdraw, (address(_usdc), assets));
        } else if (assets == position) {
            // To the last share: what is worth less than a unit would be a position still.
            (, uint256 shares) = _balance(protocol);
            data = abi.encodeCall(IERC4626.redeem, (shares, address(this), address(this)));
        } else {
            data = abi.encodeCall(IERC4626.withdraw, (assets, address(this), address(this)));
        }
        paid = _try(protocol == Protocol.Aave ? address(aavePool) : _token(protocol), data);
        if (!paid) return false;
        emit TakenOut(protocol, assets);
        _letGo(protocol, position - assets);
    }

    /// Holds a position no more of which so little should be left that its protocol may have rounded it off, and has.
    function _letGo(Protocol protocol, uint256 left) private {
        if (left > ROUNDED_OFF) return;
        (bool ok, uint256 balance) = _balance(protocol);
        if (ok && balance == 0) _setHeld(protocol, false);
    }

    /// Brings together so much USDC in the vault: what is idle, then from `first`, then from the others.
    function _gather(uint256 assets, Protocol first, Holdings memory holdings) internal {
        uint256 cash = holdings.idle;
        for (uint256 n = 0; n < 4 && cash < assets; n++) {
            Protocol protocol = n == 0 ? first : Protocol(n - 1);
            if (n > 0 && protocol == first) continue;
            uint256 position = holdings.inProtocol[uint8(protocol)];
            uint256 amount = Math.min(assets - cash, _available(protocol, position));
            if (amount == 0 || !_takeOut(protocol, amount, position)) continue;
            cash = _usdc.balanceOf(address(this));
        }
        if (cash < assets) revert NotEnoughLiquidity(cash);
    }

    /// Hands over a part of a position itself: aTokens, Comet balance, MetaMorpho shares.
    ///
    /// @return ok whether it did; also when the part is less than the smallest unit, but not when the protocol says that there is nothing
    /// @return handed in the protocol's own token
    function _handOver(Protocol protocol, address to, uint256 part, uint256 whole)
        internal
        returns (bool ok, uint256 handed)
    {
        uint256 balance;
        (ok, balance) = _balance(protocol);
        if (!ok || balance == 0 || balance > type(uint128).max) return (false, 0);
        handed = Math.mulDiv(balance, part, whole);
        if (handed == 0) return (true, 0);
        if (!_pay(_token(protocol), to, handed)) return (false, 0);
        _letGo(protocol, balance - handed);
    }

    /// Transfers a token, and tells whether it went: one that answers `false`, or fails, did not.
    function _pay(address token, address to, uint256 amount) internal returns (bool) {
        bool ok = _try(token, abi.encodeCall(IERC20.transfer, (to, amount)));
        uint256 said = 1;
        assembly ("memory-safe") {
            if returndatasize() {
                mstore(0, 0)
                returndatacopy(0, 0, mul(32, gt(returndatasize(), 31)))
                said := mload(0)
            }
        }
        return ok && said == 1;
    }

    /// Reads one word. An answer that is shorter, or none, is a failure; what is longer is left.
    function _read(address target, bytes memory data) private view returns (bool ok, uint256 word) {
        uint256 given = _gasForACall();
        assembly ("memory-safe") {
            ok := staticcall(CALL_GAS, target, add(data, 32), mload(data), 0, 32)
            ok := and(ok, gt(returndatasize(), 31))
            if ok { word := mload(0) }
        }
        if (!ok && given < CALL_GAS) revert NotEnoughGas();
    }

    /// Calls and looks at nothing but success.
    function _try(address target, bytes memory data) private returns (bool ok) {
        uint256 given = _gasForACall();
        assembly ("memory-safe") {
            ok := call(CALL_GAS, target, 0, add(data, 32), mload(data), 0, 0)
        }
        if (!ok && given < CALL_GAS) revert NotEnoughGas();
    }

    /// A call gets 63 of 64 parts of what is left, at most (EIP-150).
    function _gasForACall() private view returns (uint256) {
        uint256 left = gasleft();
        return left - left / 64;
    }
}
