import { type Address, defineChain } from 'viem';

/** A token that callers may name by its ticker. Everything else about it is read from the chain. */
export interface ListedToken {
  symbol: string;
  address: Address;
}

/** Uniswap v3 on a chain. https://docs.uniswap.org/contracts/v3/reference/deployments/ */
export interface UniswapV3 {
  factory: Address;
  /** QuoterV2. */
  quoter: Address;
}

/** What is constant about an EVM chain: no prices, no decimals, nothing that a contract can state itself. */
export interface EvmChainFacts {
  title: string;
  /** EIP-155 id. */
  chainId: number;
  nativeSymbol: string;
  /** CoinGecko's id of the native coin, which DefiLlama uses too. */
  nativeCoinId: string;
  /** A public RPC endpoint that asks for no key. */
  publicRpcUrl: string;
  /** Circle's own USDC. On bsc, where there is none, it is the bridged one, which has 18 decimals. */
  usdc: Address;
  wrappedNative: ListedToken;
  uniswapV3: UniswapV3;
  /** https://docs.uniswap.org/contracts/v2/reference/smart-contracts/v2-deployments */
  uniswapV2Factory: Address;
  /** Well-known tokens, wrapped native coin and USDC among them. */
  tokens: readonly ListedToken[];
  /** True for rollups whose transactions also pay for their data on Ethereum, by the OP stack's price oracle. */
  opStack: boolean;
}

/** The same address on every chain. https://www.multicall3.com/deployments */
const MULTICALL3: Address = '0xcA11bde05977b3631167028862bE2a173976CA11';

const UNISWAP_V3: UniswapV3 = {
  factory: '0x1F98431c8aD98523631AE4a59f267346ea31F984',
  quoter: '0x61fFE014bA17989E743c5F6cB21bF9697530B21e',
};

function tokens(...rows: readonly (readonly [symbol: string, address: Address])[]): readonly ListedToken[] {
  return rows.map(([symbol, address]) => ({ symbol, address }));
}

const EVM_CHAINS = {
  ethereum: {
    title: 'Ethereum',
    chainId: 1,
    nativeSymbol: 'ETH',
    nativeCoinId: 'ethereum',
    publicRpcUrl: 'https://ethereum-rpc.publicnode.com',
    usdc: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
    wrappedNative: { symbol: 'WETH', address: '0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2' },
    uniswapV3: UNISWAP_V3,
    uniswapV2Factory: '0x5C69bEe701ef814a2B6a3EDD4B1652CB9cc5aA6f',
    tokens: tokens(
      ['WETH', '0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2'],
      ['USDC', '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48'],
      ['USDT', '0xdAC17F958D2ee523a2206206994597C13D831ec7'],
      ['DAI', '0x6B175474E89094C44Da98b954EedeAC495271d0F'],
      ['WBTC', '0x2260FAC5E5542a773Aa44fBCfeDf7C193bc2C599'],
      ['wstETH', '0x7f39C581F595B53c5cb19bD0b3f8dA6c935E2Ca0'],
      ['LINK', '0x514910771AF9Ca656af840dff83E8264EcF986CA'],
      ['UNI', '0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984'],
      ['AAVE', '0x7Fc66500c84A76Ad7e9c93437bFc5Ac33E2DDaE9'],
    ),
    opStack: false,
  },
  base: {
    title: 'Base',
    chainId: 8453,
    nativeSymbol: 'ETH',
    nativeCoinId: 'ethereum',
    publicRpcUrl: 'https://mainnet.base.org',
    usdc: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    wrappedNative: { symbol: 'WETH', address: '0x4200000000000000000000000000000000000006' },
    uniswapV3: {
      factory: '0x33128a8fC17869897dcE68Ed026d694621f6FDfD',
      quoter: '0x3d4e44Eb1374240CE5F1B871ab261CD16335B76a',
    },
    uniswapV2Factory: '0x8909Dc15e40173Ff4699343b6eB8132c65e18eC6',
    tokens: tokens(
      ['WETH', '0x4200000000000000000000000000000000000006'],
      ['USDC', '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'],
      ['USDbC', '0xd9aAEc86B65D86f6A7B5B1b0c42FFA531710b6CA'],
      ['DAI', '0x50c5725949A6F0c72E6C4a641F24049A917DB0Cb'],
      ['cbBTC', '0xcbB7C0000aB88B473b1f5aFd9ef808440eed33Bf'],
      ['cbETH', '0x2Ae3F1Ec7F1F5012CFEab0185bfc7aa3cf0DEc22'],
      ['wstETH', '0xc1CBa3fCea344f92D9239c08C0568f6F2F0ee452'],
      ['AERO', '0x940181a94A35A4569E4529A3CDfB74e38FD98631'],
    ),
    opStack: true,
  },
  polygon: {
    title: 'Polygon PoS',
    chainId: 137,
    nativeSymbol: 'POL',
    nativeCoinId: 'polygon-ecosystem-token',
    publicRpcUrl: 'https://polygon-bor-rpc.publicnode.com',
    usdc: '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359',
    wrappedNative: { symbol: 'WPOL', address: '0x0d500B1d8E8eF31E21C99d1Db9A6444d3ADf1270' },
    uniswapV3: UNISWAP_V3,
    uniswapV2Factory: '0x9e5A52f57b3038F1B8EeE45F28b3C1967e22799C',
    tokens: tokens(
      ['WPOL', '0x0d500B1d8E8eF31E21C99d1Db9A6444d3ADf1270'],
      ['USDC', '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359'],
      ['USDC.e', '0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174'],
      ['USDT', '0xc2132D05D31c914a87C6611C10748AEb04B58e8F'],
      ['DAI', '0x8f3Cf7ad23Cd3CaDbD9735AFf958023239c6A063'],
      ['WETH', '0x7ceB23fD6bC0adD59E62ac25578270cFf1b9f619'],
      ['WBTC', '0x1BFD67037B42Cf73acF2047067bd4F2C47D9BfD6'],
      ['LINK', '0x53E0bca35eC356BD5ddDFebbD1Fc0fD03FaBad39'],
    ),
    opStack: false,
  },
  arbitrum: {
    title: 'Arbitrum One',
    chainId: 42_161,
    nativeSymbol: 'ETH',
    nativeCoinId: 'ethereum',
    publicRpcUrl: 'https://arb1.arbitrum.io/rpc',
    usdc: '0xaf88d065e77c8cC2239327C5EDb3A432268e5831',
    wrappedNative: { symbol: 'WETH', address: '0x82aF49447D8a07e3bd95BD0d56f35241523fBab1' },
    uniswapV3: UNISWAP_V3,
    uniswapV2Factory: '0xf1D7CC64Fb4452F05c498126312eBE29f30Fbcf9',
    tokens: tokens(
      ['WETH', '0x82aF49447D8a07e3bd95BD0d56f35241523fBab1'],
      ['USDC', '0xaf88d065e77c8cC2239327C5EDb3A432268e5831'],
      ['USDC.e', '0xFF970A61A04b1cA14834A43f5dE4533eBDDB5CC8'],
      ['USDT', '0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9'],
      ['DAI', '0xDA10009cBd5D07dd0CeCc66161FC93D7c9000da1'],
      ['WBTC', '0x2f2a2543B76A4166549F7aaB2e75Bef0aefC5B0f'],
      ['ARB', '0x912CE59144191C1204E64559FE8253a0e49E6548'],
      ['LINK', '0xf97f4df75117a78c1A5a0DBb814Af92458539FB4'],
      ['GMX', '0xfc5A1A6EB076a2C7aD06eD22C90d7E710E35ad0a'],
    ),
    opStack: false,
  },
  optimism: {
    title: 'OP Mainnet',
    chainId: 10,
    nativeSymbol: 'ETH',
    nativeCoinId: 'ethereum',
    publicRpcUrl: 'https://mainnet.optimism.io',
    usdc: '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85',
    wrappedNative: { symbol: 'WETH', address: '0x4200000000000000000000000000000000000006' },
    uniswapV3: UNISWAP_V3,
    uniswapV2Factory: '0x0c3c1c532F1e39EdF36BE9Fe0bE1410313E074Bf',
    tokens: tokens(
      ['WETH', '0x4200000000000000000000000000000000000006'],
      ['USDC', '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85'],
      ['USDC.e', '0x7F5c764cBc14f9669B88837ca1490cCa17c31607'],
      ['USDT', '0x94b008aA00579c1307B0EF2c499aD98a8ce58e58'],
      ['DAI', '0xDA10009cBd5D07dd0CeCc66161FC93D7c9000da1'],
      ['WBTC', '0x68f180fcCe6836688e9084f035309E29Bf0A2095'],
      ['OP', '0x4200000000000000000000000000000000000042'],
      ['wstETH', '0x1F32b1c2345538c0c6f582fCB022739c4A194Ebb'],
    ),
    opStack: true,
  },
  bsc: {
    title: 'BNB Smart Chain',
    chainId: 56,
    nativeSymbol: 'BNB',
    nativeCoinId: 'binancecoin',
    publicRpcUrl: 'https://bsc-dataseed.bnbchain.org',
    usdc: '0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d',
    wrappedNative: { symbol: 'WBNB', address: '0xbb4CdB9CBd36B01bD1cBaEBF2De08d9173bc095c' },
    uniswapV3: {
      factory: '0xdB1d10011AD0Ff90774D0C6Bb92e5C5c8b4461F7',
      quoter: '0x78D78E420Da98ad378D7799bE8f4AF69033EB077',
    },
    uniswapV2Factory: '0x8909Dc15e40173Ff4699343b6eB8132c65e18eC6',
    tokens: tokens(
      ['WBNB', '0xbb4CdB9CBd36B01bD1cBaEBF2De08d9173bc095c'],
      ['USDC', '0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d'],
      ['USDT', '0x55d398326f99059fF775485246999027B3197955'],
      ['DAI', '0x1AF3F329e8BE154074D8769D1FFa4eE058B1DBc3'],
      ['ETH', '0x2170Ed0880ac9A755fd29B2688956BD959F933F8'],
      ['BTCB', '0x7130d2A12B9BCbFAe4f2634d864A1Ee1Ce3Ead9c'],
      ['CAKE', '0x0E09FaBB73Bd3Ade0a17ECC321fD13a19e81cE82'],
    ),
    opStack: false,
  },
} as const satisfies Record<string, EvmChainFacts>;

export type EvmChainName = keyof typeof EVM_CHAINS;
export const EVM_CHAIN_NAMES = Object.keys(EVM_CHAINS) as EvmChainName[];

/** What is fixed about a chain, as one type for all chains. */
export function evmChainFacts(name: EvmChainName): EvmChainFacts {
  return EVM_CHAINS[name];
}

/** A chain as viem wants it described. */
export function viemChain(name: EvmChainName) {
  const { chainId, title, nativeSymbol } = evmChainFacts(name);
  return defineChain({
    id: chainId,
    name: title,
    nativeCurrency: { name: nativeSymbol, symbol: nativeSymbol, decimals: 18 },
    // Requests go through this server's own transport, which has the address.
    rpcUrls: { default: { http: [] } },
    contracts: { multicall3: { address: MULTICALL3 } },
  });
}
