// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC4626} from "@openzeppelin/contracts/interfaces/IERC4626.sol";

/// What the vault asks of Aave v3 (https://aave.com/docs/aave-v3/smart-contracts/pool; v3.1 and later).
interface IAavePool {
    function supply(address asset, uint256 amount, address onBehalfOf, uint16 referralCode) external;
    function withdraw(address asset, uint256 amount, address to) external returns (uint256);
    function getReserveAToken(address asset) external view returns (address);
    /// A bit map: 56 active, 57 frozen, 60 paused.
    function getConfiguration(address asset) external view returns (uint256);
    /// What can be taken out; tokens that were merely sent to the pool are not counted.
    function getVirtualUnderlyingBalance(address asset) external view returns (uint128);
}

/// What the vault asks of a Compound v3 market (https://docs.compound.finance/collateral-and-borrowing/).
interface IComet {
    function baseToken() external view returns (address);
    function supply(address asset, uint256 amount) external;
    function withdraw(address asset, uint256 amount) external;
    function balanceOf(address account) external view returns (uint256);
    function isWithdrawPaused() external view returns (bool);
    function transfer(address to, uint256 amount) external returns (bool);
}

/// What tells a MetaMorpho from other vaults (https://docs.morpho.org/get-started/resources/contracts/morpho-vaults/).
interface IMetaMorpho {
    /// Where it lends.
    function MORPHO() external view returns (address);
}

/// Where the vault's funds may be.
enum Protocol {
    Aave,
    Compound,
    Morpho
}
