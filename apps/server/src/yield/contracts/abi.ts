/** What is asked of the vault, of USDC, and of the three protocols: by the API and by the keeper. */
import { parseAbi } from 'viem';

/** The vault as a caller uses it: ERC-4626 with permits, and what our own adds. `contracts/src/FareboxVault.sol` */
export const VAULT_ABI = parseAbi([
  'struct Fees { uint16 entryBps; uint16 performanceBps; }',
  'struct MoveLimits { uint16 maxShareBps; uint16 maxOfLiquidityBps; uint32 cooldownSeconds; }',
  'function asset() view returns (address)',
  'function name() view returns (string)',
  'function symbol() view returns (string)',
  'function decimals() view returns (uint8)',
  'function totalAssets() view returns (uint256)',
  'function totalSupply() view returns (uint256)',
  'function balanceOf(address account) view returns (uint256)',
  'function allowance(address owner, address spender) view returns (uint256)',
  'function approve(address spender, uint256 shares) returns (bool)',
  'function transfer(address to, uint256 shares) returns (bool)',
  'function transferFrom(address from, address to, uint256 shares) returns (bool)',
  'function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)',
  'function nonces(address owner) view returns (uint256)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function convertToAssets(uint256 shares) view returns (uint256)',
  'function convertToShares(uint256 assets) view returns (uint256)',
  'function maxDeposit(address receiver) view returns (uint256)',
  'function maxMint(address receiver) view returns (uint256)',
  'function maxWithdraw(address owner) view returns (uint256)',
  'function maxRedeem(address owner) view returns (uint256)',
  'function previewDeposit(uint256 assets) view returns (uint256)',
  'function previewMint(uint256 shares) view returns (uint256)',
  'function previewWithdraw(uint256 assets) view returns (uint256)',
  'function previewRedeem(uint256 shares) view returns (uint256)',
  'function deposit(uint256 assets, address receiver) returns (uint256 shares)',
  'function mint(uint256 shares, address receiver) returns (uint256 assets)',
  'function withdraw(uint256 assets, address receiver, address owner) returns (uint256 shares)',
  'function redeem(uint256 shares, address receiver, address owner) returns (uint256 assets)',
  'function redeemInKind(uint256 shares, address receiver, address owner, uint8 insistOn) returns (uint256 idle, uint256[3] handedOver)',
  'function active() view returns (uint8)',
  'function fees() view returns (Fees)',
  'function queuedFees() view returns (Fees queued, uint256 readyAt)',
  'function depositsPaused() view returns (bool)',
  'function moveLimits() view returns (MoveLimits)',
  'function nextMoveAt() view returns (uint256)',
  'function markPrice() view returns (uint256)',
  'function holdings() view returns (uint256 idle, uint256[3] inProtocol, uint256 liquidity, bool complete)',
  'function move(uint8 from, uint8 to, uint256 assets, uint256 minReceived)',
  'function owner() view returns (address)',
  'function keeper() view returns (address)',
  'function guardian() view returns (address)',
  'function feeRecipient() view returns (address)',
  'function MAX_ENTRY_FEE_BPS() view returns (uint256)',
  'function MAX_PERFORMANCE_FEE_BPS() view returns (uint256)',
  'function FEE_DELAY_SECONDS() view returns (uint256)',
  'function aavePool() view returns (address)',
  'function aToken() view returns (address)',
  'function comet() view returns (address)',
  'function metaMorpho() view returns (address)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
  'event Deposit(address indexed sender, address indexed owner, uint256 assets, uint256 shares)',
  'event Withdraw(address indexed sender, address indexed receiver, address indexed owner, uint256 assets, uint256 shares)',
  'event RedeemedInKind(address indexed caller, address indexed receiver, address indexed owner, uint256 shares, uint256 idle, uint256[3] handedOver)',
  'event EntryFeePaid(uint256 shares)',
  'event PerformanceFeePaid(uint256 shares, uint256 markPrice)',
  'event Moved(uint8 indexed from, uint8 indexed to, uint256 assets, uint256 received)',
  'error ZeroShares()',
  'error ZeroAddress()',
  'error NotEnoughGas()',
  'error NotEnoughLiquidity(uint256 available)',
  'error ProtocolFailed(uint8 protocol)',
  'error NotHandedOver(uint8 protocol)',
  'error ReentrancyGuardReentrantCall()',
  'error SafeERC20FailedOperation(address token)',
  'error ERC4626ExceededMaxDeposit(address receiver, uint256 assets, uint256 max)',
  'error ERC4626ExceededMaxRedeem(address owner, uint256 shares, uint256 max)',
  'error ERC4626ExceededMaxWithdraw(address owner, uint256 assets, uint256 max)',
  'error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)',
  'error ERC20InvalidReceiver(address receiver)',
]);

/** `contracts/src/PermitDeposit.sol` */
export const PERMIT_DEPOSIT_ABI = parseAbi([
  'function vault() view returns (address)',
  'function depositWithPermit(uint256 assets, address receiver, uint256 minShares, uint256 deadline, uint8 v, bytes32 r, bytes32 s) returns (uint256 shares)',
  'error TooFewShares(uint256 shares, uint256 minShares)',
]);

/** USDC (Circle's FiatToken 2.2). */
export const USDC_ABI = parseAbi([
  'function name() view returns (string)',
  'function version() view returns (string)',
  'function nonces(address owner) view returns (uint256)',
  'function balanceOf(address account) view returns (uint256)',
  'function allowance(address owner, address spender) view returns (uint256)',
  'function approve(address spender, uint256 value) returns (bool)',
  'function masterMinter() view returns (address)',
  'function configureMinter(address minter, uint256 allowed) returns (bool)',
  'function mint(address to, uint256 value) returns (bool)',
]);

/** What is asked of any token. */
export const TOKEN_ABI = parseAbi([
  'function totalSupply() view returns (uint256)',
  'function balanceOf(address account) view returns (uint256)',
]);

/** https://aave.com/docs/aave-v3/smart-contracts/pool; the strategy is the pool's own curve of rates. */
export const AAVE_POOL_ABI = parseAbi([
  'struct ReserveData { uint256 configuration; uint128 liquidityIndex; uint128 currentLiquidityRate; uint128 variableBorrowIndex; uint128 currentVariableBorrowRate; uint128 currentStableBorrowRate; uint40 lastUpdateTimestamp; uint16 id; address aTokenAddress; address stableDebtTokenAddress; address variableDebtTokenAddress; address interestRateStrategyAddress; uint128 accruedToTreasury; uint128 unbacked; uint128 isolationModeTotalDebt; }',
  'struct Asked { uint256 unbacked; uint256 liquidityAdded; uint256 liquidityTaken; uint256 totalDebt; uint256 reserveFactor; address reserve; bool usingVirtualBalance; uint256 virtualUnderlyingBalance; }',
  'function getReserveData(address asset) view returns (ReserveData)',
  'function getReserveNormalizedIncome(address asset) view returns (uint256)',
  'function getVirtualUnderlyingBalance(address asset) view returns (uint128)',
  'function ADDRESSES_PROVIDER() view returns (address)',
  'function getPriceOracle() view returns (address)',
  'function getAssetPrice(address asset) view returns (uint256)',
  'function RESERVE_INTEREST_RATE_STRATEGY() view returns (address)',
  'function getReserveVariableDebtToken(address asset) view returns (address)',
  'function getConfiguration(address asset) view returns (uint256)',
  'function getReserveDeficit(address asset) view returns (uint256)',
  'function calculateInterestRates(Asked asked) view returns (uint256 liquidityRate, uint256 borrowRate)',
]);

/** https://docs.compound.finance/interest-rates/ */
export const COMET_ABI = parseAbi([
  'struct TotalsBasic { uint64 baseSupplyIndex; uint64 baseBorrowIndex; uint64 trackingSupplyIndex; uint64 trackingBorrowIndex; uint104 totalSupplyBase; uint104 totalBorrowBase; uint40 lastAccrualTime; uint8 pauseFlags; }',
  'function totalsBasic() view returns (TotalsBasic)',
  'function getUtilization() view returns (uint256)',
  'function getSupplyRate(uint256 utilization) view returns (uint64)',
  'function totalSupply() view returns (uint256)',
  'function totalBorrow() view returns (uint256)',
  'function isSupplyPaused() view returns (bool)',
  'function isWithdrawPaused() view returns (bool)',
]);

/** https://docs.morpho.org/get-started/resources/contracts/morpho-vaults/ */
export const META_MORPHO_ABI = parseAbi([
  'function MORPHO() view returns (address)',
  'function fee() view returns (uint96)',
  'function totalAssets() view returns (uint256)',
  'function convertToAssets(uint256 shares) view returns (uint256)',
  'function maxDeposit(address receiver) view returns (uint256)',
  'function maxWithdraw(address owner) view returns (uint256)',
  'function supplyQueueLength() view returns (uint256)',
  'function supplyQueue(uint256 index) view returns (bytes32)',
  'function withdrawQueueLength() view returns (uint256)',
  'function withdrawQueue(uint256 index) view returns (bytes32)',
  'function config(bytes32 id) view returns (uint184 cap, bool enabled, uint64 removableAt)',
]);

/** https://docs.morpho.org/get-started/resources/contracts/morpho/ and, of `irm`, its curve of rates. */
export const MORPHO_ABI = parseAbi([
  'struct MarketParams { address loanToken; address collateralToken; address oracle; address irm; uint256 lltv; }',
  'struct Market { uint128 totalSupplyAssets; uint128 totalSupplyShares; uint128 totalBorrowAssets; uint128 totalBorrowShares; uint128 lastUpdate; uint128 fee; }',
  'function idToMarketParams(bytes32 id) view returns (MarketParams)',
  'function market(bytes32 id) view returns (Market)',
  'function position(bytes32 id, address user) view returns (uint256 supplyShares, uint128 borrowShares, uint128 collateral)',
  'function borrowRateView(MarketParams marketParams, Market market) view returns (uint256)',
]);
