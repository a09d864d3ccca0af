// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {IERC4626} from "@openzeppelin/contracts/interfaces/IERC4626.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";

/// Deposits USDC into the vault in one transaction, with an EIP-2612 permit (https://eips.ethereum.org/EIPS/eip-2612)
/// instead of an approval before. It holds nothing between transactions, and leaves no allowance of its own behind.
contract PermitDeposit {
    using SafeERC20 for IERC20;

    /// The price moved against the depositor further than they allowed.
    error TooFewShares(uint256 shares, uint256 minShares);

    IERC4626 public immutable vault;
    IERC20 public immutable usdc;

    constructor(IERC4626 vault_) {
        vault = vault_;
        usdc = IERC20(vault_.asset());
    }

    /// Takes USDC from the caller, by the caller's own permit, and sends the shares to `receiver`.
    ///
    /// A permit that somebody else has sent already, as anybody may who saw it, has done its work: what counts is whether the
    /// allowance is there. Only the caller's funds are ever taken, so nobody gains anything by sending it first.
    ///
    /// @param assets USDC units, exactly what the permit is over
    /// @param minShares what the deposit must bring at least
    /// @return shares sent to `receiver`
    function depositWithPermit(
        uint256 assets,
        address receiver,
        uint256 minShares,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external returns (uint256 shares) {
        try IERC20Permit(address(usdc)).permit(msg.sender, address(this), assets, deadline, v, r, s) {} catch {}
        usdc.safeTransferFrom(msg.sender, address(this), assets);
        usdc.forceApprove(address(vault), assets);
        shares = vault.deposit(assets, receiver);
        if (shares < minShares) revert TooFewShares(shares, minShares);
    }
}
