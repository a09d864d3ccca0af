/** What the keeper asks of the vault and of the three protocols. */
import { parseAbi } from 'viem';

/** `contracts/src/FareboxVault.sol` */
export const VAULT = parseAbi([
  'struct MoveLimits { uint16 maxShareBps; uint16 maxOfLiquidityBps; uint32 cooldownSeconds; }',
  'function asset() view returns (address)',
  'function aavePool() view returns (address)',
  'function aToken() view returns (address)',
  'function comet() view returns (address)',
  'function metaMorpho() view returns (address)',
  'function keeper() view returns (address)',
  'function active() view returns (uint8)',
  'function moveLimits() view returns (MoveLimits)',
  'function nextMoveAt() view returns (uint256)',
  'function totalAssets() view returns (uint256)',
  'function holdings() view returns (uint256 idle, uint256[3] inProtocol, uint256 liquidity, bool complete)',
  'function move(uint8 from, uint8 to, uint256 assets, uint256 minReceived)',
]);

export const TOKEN = parseAbi([
  'function totalSupply() view returns (uint256)',
  'function balanceOf(address account) view returns (uint256)',
]);

/** https://aave.com/docs/aave-v3/smart-contracts/pool; the strategy is the pool's own curve of rates. */
export const AAVE = parseAbi([
  'struct Asked { uint256 unbacked; uint256 liquidityAdded; uint256 liquidityTaken; uint256 totalDebt; uint256 reserveFactor; address reserve; bool usingVirtualBalance; uint256 virtualUnderlyingBalance; }',
  'function ADDRESSES_PROVIDER() view returns (address)',
  'function getPriceOracle() view returns (address)',
  'function getAssetPrice(address asset) view returns (uint256)',
  'function RESERVE_INTEREST_RATE_STRATEGY() view returns (address)',
  'function getReserveVariableDebtToken(address asset) view returns (address)',
  'function getConfiguration(address asset) view returns (uint256)',
  'function getReserveDeficit(address asset) view returns (uint256)',
  'function getVirtualUnderlyingBalance(address asset) view returns (uint128)',
  'function calculateInterestRates(Asked asked) view returns (uint256 liquidityRate, uint256 borrowRate)',
]);

/** https://docs.compound.finance/interest-rates/ */
export const COMET = parseAbi([
  'function totalSupply() view returns (uint256)',
  'function totalBorrow() view returns (uint256)',
  'function isSupplyPaused() view returns (bool)',
  'function isWithdrawPaused() view returns (bool)',
  'function getSupplyRate(uint256 utilization) view returns (uint64)',
]);

/** https://docs.morpho.org/get-started/resources/contracts/morpho-vaults/ */
export const META_MORPHO = parseAbi([
  'function MORPHO() view returns (address)',
  'function fee() view returns (uint96)',
  'function totalAssets() view returns (uint256)',
  'function maxDeposit(address receiver) view returns (uint256)',
  'function maxWithdraw(address owner) view returns (uint256)',
  'function supplyQueueLength() view returns (uint256)',
  'function supplyQueue(uint256 index) view returns (bytes32)',
  'function withdrawQueueLength() view returns (uint256)',
  'function withdrawQueue(uint256 index) view returns (bytes32)',
  'function config(bytes32 id) view returns (uint184 cap, bool enabled, uint64 removableAt)',
]);

/** https://docs.morpho.org/get-started/resources/contracts/morpho/ and, of `irm`, its curve of rates. */
export const MORPHO = parseAbi([
  'struct MarketParams { address loanToken; address collateralToken; address oracle; address irm; uint256 lltv; }',
  'struct Market { uint128 totalSupplyAssets; uint128 totalSupplyShares; uint128 totalBorrowAssets; uint128 totalBorrowShares; uint128 lastUpdate; uint128 fee; }',
  'function idToMarketParams(bytes32 id) view returns (MarketParams)',
  'function market(bytes32 id) view returns (Market)',
  'function position(bytes32 id, address user) view returns (uint256 supplyShares, uint128 borrowShares, uint128 collateral)',
  'function borrowRateView(MarketParams marketParams, Market market) view returns (uint256)',
]);
