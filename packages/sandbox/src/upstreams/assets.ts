/**
 * The coins and tokens of the sandbox's market. Ids, names and token addresses are the real ones, so that the same requests work
 * against the sandbox and against the real sources. Prices, supplies and turnovers are invented round figures.
 */

/** How a price moves. Volatilities are annual, as fractions (0.45 = 45 %). */
export type Motion =
  | { kind: 'floating'; marketBeta: number; sector: Sector; sectorVolatility: number; ownVolatility: number }
  /** Stays at 1 USD, but for noise of a few hundredths of a percent. */
  | { kind: 'stable' }
  /** Follows another coin at a ratio that was `ratio` at the market's reference time and grows by `growthPerYear`. */
  | { kind: 'pegged'; to: string; ratio: number; growthPerYear: number };

export type Sector = 'money' | 'platform' | 'defi' | 'meme' | 'metal';

export interface Coin {
  /** The id that CoinGecko uses. This market uses it as well. */
  id: string;
  symbol: string;
  name: string;
  /** The price in USD at the market's reference time. It is 0 for a pegged coin, whose price follows from its ratio. */
  anchorUsd: number;
  motion: Motion;
  circulating: number;
  maxSupply: number;
  /** The mean turnover a day on all venues together. */
  turnoverUsd: number;
  /** Whether exchanges list the coin against USD. */
  listed: boolean;
}

const CHAIN_NAMES = ['ethereum', 'base', 'polygon', 'arbitrum', 'optimism', 'bsc', 'solana'] as const;
export type ChainName = (typeof CHAIN_NAMES)[number];

export interface Token {
  chain: ChainName;
  /** EIP-55 spelling on EVM chains, base58 on Solana. */
  address: string;
  coin: string;
  symbol: string;
  name: string;
  decimals: number;
  /** The liquidity from which each pool that has the token as base on this chain gets a share. */
  liquidityUsd: number;
}

function floating(
  marketBeta: number,
  sector: Sector,
  sectorVolatility: number,
  ownVolatility: number,
): Motion {
  return { kind: 'floating', marketBeta, sector, sectorVolatility, ownVolatility };
}

function coin(
  id: string,
  symbol: string,
  name: string,
  anchorUsd: number,
  motion: Motion,
  supply: readonly [circulating: number, max: number],
  turnoverUsd: number,
  listed: boolean,
): Coin {
  const [circulating, maxSupply] = supply;
  return { id, symbol, name, anchorUsd, motion, circulating, maxSupply, turnoverUsd, listed };
}

const STABLE: Motion = { kind: 'stable' };

function pegged(to: string, ratio: number, growthPerYear: number): Motion {
  return { kind: 'pegged', to, ratio, growthPerYear };
}

export const COINS: readonly Coin[] = [
  coin('bitcoin', 'BTC', 'Bitcoin', 92_000, floating(1, 'money', 0.05, 0.14), [19.96e6, 21e6], 32e9, true),
  coin(
    'ethereum',
    'ETH',
    'Ethereum',
    3_000,
    floating(1.2, 'platform', 0.2, 0.24),
    [120.8e6, 120.8e6],
    18e9,
    true,
  ),
  coin('solana', 'SOL', 'Solana', 140, floating(1.35, 'platform', 0.3, 0.38), [560e6, 615e6], 4.5e9, true),
  coin(
    'binancecoin',
    'BNB',
    'BNB',
    850,
    floating(0.9, 'platform', 0.15, 0.25),
    [137.7e6, 137.7e6],
    1.6e9,
    true,
  ),
  coin('ripple', 'XRP', 'XRP', 2.1, floating(1, 'money', 0.2, 0.45), [60e9, 100e9], 3.2e9, true),
  coin('cardano', 'ADA', 'Cardano', 0.42, floating(1.2, 'platform', 0.3, 0.4), [36e9, 45e9], 700e6, true),
  coin('dogecoin', 'DOGE', 'Dogecoin', 0.15, floating(1.3, 'meme', 0.35, 0.45), [152e9, 152e9], 1.4e9, true),
  coin('litecoin', 'LTC', 'Litecoin', 85, floating(0.9, 'money', 0.2, 0.35), [76.6e6, 84e6], 420e6, true),
  coin(
    'avalanche-2',
    'AVAX',
    'Avalanche',
    14,
    floating(1.35, 'platform', 0.3, 0.42),
    [428e6, 715e6],
    380e6,
    true,
  ),
  coin(
    'polkadot',
    'DOT',
    'Polkadot',
    2.3,
    floating(1.3, 'platform', 0.3, 0.4),
    [1.64e9, 1.64e9],
    160e6,
    true,
  ),
  coin('chainlink', 'LINK', 'Chainlink', 13, floating(1.2, 'defi', 0.3, 0.38), [697e6, 1e9], 620e6, true),
  coin('uniswap', 'UNI', 'Uniswap', 6, floating(1.2, 'defi', 0.35, 0.45), [630e6, 1e9], 260e6, true),
  coin('aave', 'AAVE', 'Aave', 180, floating(1.2, 'defi', 0.35, 0.42), [15.3e6, 16e6], 310e6, true),
  coin(
    'curve-dao-token',
    'CRV',
    'Curve DAO',
    0.42,
    floating(1.3, 'defi', 0.4, 0.55),
    [1.4e9, 3.03e9],
    95e6,
    true,
  ),
  coin('lido-dao', 'LDO', 'Lido DAO', 0.65, floating(1.3, 'defi', 0.35, 0.5), [895e6, 1e9], 70e6, true),
  coin(
    'compound-governance-token',
    'COMP',
    'Compound',
    30,
    floating(1.1, 'defi', 0.35, 0.45),
    [9.7e6, 10e6],
    28e6,
    true,
  ),
  coin(
    'ethereum-name-service',
    'ENS',
    'Ethereum Name Service',
    10.5,
    floating(1.2, 'defi', 0.3, 0.5),
    [37e6, 100e6],
    40e6,
    true,
  ),
  coin('arbitrum', 'ARB', 'Arbitrum', 0.21, floating(1.3, 'platform', 0.35, 0.5), [5.6e9, 10e9], 130e6, true),
  coin('optimism', 'OP', 'Optimism', 0.32, floating(1.3, 'platform', 0.35, 0.5), [1.9e9, 4.29e9], 90e6, true),
  coin(
    'polygon-ecosystem-token',
    'POL',
    'POL',
    0.135,
    floating(1.2, 'platform', 0.3, 0.45),
    [10.5e9, 10.5e9],
    75e6,
    true,
  ),
  coin('gmx', 'GMX', 'GMX', 8.5, floating(1.1, 'defi', 0.35, 0.55), [10.3e6, 13.2e6], 12e6, true),
  coin(
    'pancakeswap-token',
    'CAKE',
    'PancakeSwap',
    2.3,
    floating(1, 'defi', 0.3, 0.45),
    [340e6, 450e6],
    55e6,
    true,
  ),
  coin(
    'aerodrome-finance',
    'AERO',
    'Aerodrome',
    0.68,
    floating(1.3, 'defi', 0.4, 0.6),
    [900e6, 1.8e9],
    38e6,
    false,
  ),
  coin(
    'pepe',
    'PEPE',
    'Pepe',
    0.0000047,
    floating(1.4, 'meme', 0.55, 0.6),
    [420.69e12, 420.69e12],
    420e6,
    true,
  ),
  coin(
    'shiba-inu',
    'SHIB',
    'Shiba Inu',
    0.0000086,
    floating(1.2, 'meme', 0.4, 0.4),
    [589e12, 589e12],
    130e6,
    true,
  ),
  coin('degen-base', 'DEGEN', 'Degen', 0.0015, floating(1.2, 'meme', 0.6, 0.8), [25e9, 37e9], 6e6, false),
  coin('brett', 'BRETT', 'Brett', 0.018, floating(1.2, 'meme', 0.6, 0.7), [9.9e9, 10e9], 9e6, false),
  coin(
    'jupiter-exchange-solana',
    'JUP',
    'Jupiter',
    0.24,
    floating(1.3, 'defi', 0.4, 0.55),
    [3.2e9, 7e9],
    60e6,
    true,
  ),
  coin('bonk', 'BONK', 'Bonk', 0.0000098, floating(1.3, 'meme', 0.55, 0.6), [82e12, 88e12], 110e6, true),
  coin(
    'jito-governance-token',
    'JTO',
    'Jito',
    0.45,
    floating(1.3, 'defi', 0.4, 0.55),
    [420e6, 1e9],
    18e6,
    true,
  ),
  coin('raydium', 'RAY', 'Raydium', 1.15, floating(1.3, 'defi', 0.4, 0.6), [268e6, 555e6], 30e6, true),
  coin(
    'pax-gold',
    'PAXG',
    'PAX Gold',
    4_050,
    floating(0.04, 'metal', 0.14, 0.02),
    [390e3, 390e3],
    160e6,
    true,
  ),
  coin('usd-coin', 'USDC', 'USD Coin', 1, STABLE, [75e9, 75e9], 9e9, true),
  coin('tether', 'USDT', 'Tether USD', 1, STABLE, [184e9, 184e9], 80e9, true),
  coin('dai', 'DAI', 'Dai', 1, STABLE, [4.6e9, 4.6e9], 110e6, true),
  coin(
    'wrapped-bitcoin',
    'WBTC',
    'Wrapped Bitcoin',
    0,
    pegged('bitcoin', 1, 0),
    [126e3, 126e3],
    220e6,
    false,
  ),
  coin(
    'coinbase-wrapped-btc',
    'cbBTC',
    'Coinbase Wrapped BTC',
    0,
    pegged('bitcoin', 1, 0),
    [74e3, 74e3],
    310e6,
    false,
  ),
  coin(
    'staked-ether',
    'stETH',
    'Lido Staked Ether',
    0,
    pegged('ethereum', 0.9995, 0),
    [8.6e6, 8.6e6],
    40e6,
    false,
  ),
  coin(
    'wrapped-steth',
    'wstETH',
    'Wrapped stETH',
    0,
    pegged('ethereum', 1.225, 0.027),
    [3.4e6, 3.4e6],
    35e6,
    false,
  ),
  coin(
    'coinbase-wrapped-staked-eth',
    'cbETH',
    'Coinbase Wrapped Staked ETH',
    0,
    pegged('ethereum', 1.118, 0.026),
    [122e3, 122e3],
    6e6,
    false,
  ),
  coin(
    'jito-staked-sol',
    'JitoSOL',
    'Jito Staked SOL',
    0,
    pegged('solana', 1.262, 0.062),
    [12e6, 12e6],
    28e6,
    false,
  ),
  coin('msol', 'mSOL', 'Marinade Staked SOL', 0, pegged('solana', 1.351, 0.06), [3.4e6, 3.4e6], 9e6, false),
  coin('tron', 'TRX', 'TRON', 0.28, floating(0.7, 'money', 0.2, 0.3), [94.7e9, 94.7e9], 900e6, true),
  coin(
    'the-open-network',
    'TON',
    'Toncoin',
    1.6,
    floating(1.2, 'platform', 0.3, 0.45),
    [2.5e9, 5.1e9],
    120e6,
    true,
  ),
  coin('stellar', 'XLM', 'Stellar', 0.25, floating(1.1, 'money', 0.2, 0.45), [32e9, 50e9], 180e6, true),
  coin('monero', 'XMR', 'Monero', 380, floating(0.7, 'money', 0.2, 0.4), [18.4e6, 18.4e6], 140e6, true),
  coin('bitcoin-cash', 'BCH', 'Bitcoin Cash', 540, floating(1, 'money', 0.2, 0.4), [20e6, 21e6], 380e6, true),
  coin(
    'ethereum-classic',
    'ETC',
    'Ethereum Classic',
    14,
    floating(1.2, 'platform', 0.3, 0.4),
    [154e6, 210e6],
    90e6,
    true,
  ),
  coin('cosmos', 'ATOM', 'Cosmos', 2.4, floating(1.3, 'platform', 0.3, 0.45), [480e6, 480e6], 75e6, true),
  coin(
    'near',
    'NEAR',
    'NEAR Protocol',
    1.8,
    floating(1.4, 'platform', 0.3, 0.5),
    [1.28e9, 1.28e9],
    210e6,
    true,
  ),
  coin('aptos', 'APT', 'Aptos', 2.1, floating(1.4, 'platform', 0.3, 0.5), [740e6, 1.2e9], 130e6, true),
  coin('sui', 'SUI', 'Sui', 1.7, floating(1.5, 'platform', 0.35, 0.5), [3.7e9, 10e9], 780e6, true),
  coin(
    'internet-computer',
    'ICP',
    'Internet Computer',
    3.8,
    floating(1.3, 'platform', 0.3, 0.5),
    [545e6, 545e6],
    110e6,
    true,
  ),
  coin('filecoin', 'FIL', 'Filecoin', 1.6, floating(1.3, 'platform', 0.3, 0.5), [720e6, 1.96e9], 150e6, true),
  coin(
    'hedera-hashgraph',
    'HBAR',
    'Hedera',
    0.14,
    floating(1.3, 'platform', 0.3, 0.5),
    [42.7e9, 50e9],
    220e6,
    true,
  ),
  coin(
    'injective-protocol',
    'INJ',
    'Injective',
    5.9,
    floating(1.4, 'defi', 0.35, 0.5),
    [100e6, 100e6],
    65e6,
    true,
  ),
  coin('algorand', 'ALGO', 'Algorand', 0.14, floating(1.3, 'platform', 0.3, 0.45), [8.8e9, 10e9], 55e6, true),
  coin('vechain', 'VET', 'VeChain', 0.0135, floating(1.3, 'platform', 0.3, 0.45), [86e9, 86.7e9], 30e6, true),
  coin('sei-network', 'SEI', 'Sei', 0.14, floating(1.4, 'platform', 0.35, 0.55), [6.4e9, 10e9], 70e6, true),
  coin(
    'celestia',
    'TIA',
    'Celestia',
    0.62,
    floating(1.5, 'platform', 0.35, 0.6),
    [860e6, 1.17e9],
    75e6,
    true,
  ),
  coin(
    'hyperliquid',
    'HYPE',
    'Hyperliquid',
    34,
    floating(1.3, 'defi', 0.35, 0.55),
    [270e6, 1e9],
    340e6,
    true,
  ),
  coin(
    'dogwifcoin',
    'WIF',
    'dogwifhat',
    0.38,
    floating(1.5, 'meme', 0.55, 0.65),
    [999e6, 999e6],
    130e6,
    true,
  ),
  coin(
    'the-graph',
    'GRT',
    'The Graph',
    0.045,
    floating(1.3, 'defi', 0.35, 0.5),
    [10.6e9, 10.8e9],
    25e6,
    true,
  ),
  coin('the-sandbox', 'SAND', 'The Sandbox', 0.15, floating(1.3, 'meme', 0.3, 0.5), [2.6e9, 3e9], 30e6, true),
  coin(
    'decentraland',
    'MANA',
    'Decentraland',
    0.16,
    floating(1.3, 'meme', 0.3, 0.5),
    [1.9e9, 2.19e9],
    20e6,
    true,
  ),
  coin('immutable-x', 'IMX', 'Immutable', 0.3, floating(1.4, 'platform', 0.35, 0.5), [2e9, 2e9], 25e6, true),
  coin(
    'render-token',
    'RENDER',
    'Render',
    1.9,
    floating(1.4, 'platform', 0.35, 0.55),
    [518e6, 533e6],
    60e6,
    true,
  ),
  coin(
    'fetch-ai',
    'FET',
    'Artificial Superintelligence Alliance',
    0.25,
    floating(1.4, 'platform', 0.35, 0.6),
    [2.3e9, 2.7e9],
    110e6,
    true,
  ),
  coin(
    'bittensor',
    'TAO',
    'Bittensor',
    290,
    floating(1.3, 'platform', 0.35, 0.55),
    [9.6e6, 21e6],
    140e6,
    true,
  ),
  coin('blockstack', 'STX', 'Stacks', 0.3, floating(1.3, 'platform', 0.35, 0.5), [1.8e9, 1.8e9], 18e6, true),
  coin('kaspa', 'KAS', 'Kaspa', 0.05, floating(1.2, 'money', 0.25, 0.5), [27e9, 28.7e9], 40e6, true),
  coin('maker', 'MKR', 'Maker', 1_500, floating(1.1, 'defi', 0.3, 0.4), [850e3, 1e6], 20e6, true),
];

/** The address under which DefiLlama and wallets look up the native coin of an EVM chain. */
export const NATIVE_ADDRESS = '0x0000000000000000000000000000000000000000';
export const NATIVE_COIN: Readonly<Record<ChainName, string>> = {
  ethereum: 'ethereum',
  base: 'ethereum',
  polygon: 'polygon-ecosystem-token',
  arbitrum: 'ethereum',
  optimism: 'ethereum',
  bsc: 'binancecoin',
  solana: 'solana',
};

/** One token. Its liquidity is in millions of USD. */
type Row = readonly [
  symbol: string,
  coin: string,
  decimals: number,
  name: string,
  liquidityMillions: number,
  address: string,
];

const ROWS: Readonly<Record<ChainName, readonly Row[]>> = {
  ethereum: [
    ['WETH', 'ethereum', 18, 'Wrapped Ether', 420, '0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2'],
    ['USDC', 'usd-coin', 6, 'USD Coin', 310, '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48'],
    ['USDT', 'tether', 6, 'Tether USD', 240, '0xdAC17F958D2ee523a2206206994597C13D831ec7'],
    ['DAI', 'dai', 18, 'Dai Stablecoin', 90, '0x6B175474E89094C44Da98b954EedeAC495271d0F'],
    ['WBTC', 'wrapped-bitcoin', 8, 'Wrapped BTC', 180, '0x2260FAC5E5542a773Aa44fBCfeDf7C193bc2C599'],
    [
      'cbBTC',
      'coinbase-wrapped-btc',
      8,
      'Coinbase Wrapped BTC',
      60,
      '0xcbB7C0000aB88B473b1f5aFd9ef808440eed33Bf',
    ],
    ['LINK', 'chainlink', 18, 'ChainLink Token', 24, '0x514910771AF9Ca656af840dff83E8264EcF986CA'],
    ['UNI', 'uniswap', 18, 'Uniswap', 18, '0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984'],
    ['AAVE', 'aave', 18, 'Aave Token', 16, '0x7Fc66500c84A76Ad7e9c93437bFc5Ac33E2DDaE9'],
    ['CRV', 'curve-dao-token', 18, 'Curve DAO Token', 9, '0xD533a949740bb3306d119CC777fa900bA034cd52'],
    ['LDO', 'lido-dao', 18, 'Lido DAO Token', 7, '0x5A98FcBEA516Cf06857215779Fd812CA3beF1B32'],
    ['COMP', 'compound-governance-token', 18, 'Compound', 3, '0xc00e94Cb662C3520282E6f5717214004A7f26888'],
    [
      'ENS',
      'ethereum-name-service',
      18,
      'Ethereum Name Service',
      3.5,
      '0xC18360217D8F7Ab5e7c516566761Ea12Ce7F9D72',
    ],
    ['PEPE', 'pepe', 18, 'Pepe', 22, '0x6982508145454Ce325dDbE47a25d4ec3d2311933'],
    ['SHIB', 'shiba-inu', 18, 'SHIBA INU', 13, '0x95aD61b0a150d79219dCF64E1E6Cc01f0B64C4cE'],
    ['stETH', 'staked-ether', 18, 'Lido Staked Ether', 70, '0xae7ab96520DE3A18E5e111B5EaAb095312D7fE84'],
    [
      'wstETH',
      'wrapped-steth',
      18,
      'Wrapped liquid staked Ether 2.0',
      55,
      '0x7f39C581F595B53c5cb19bD0b3f8dA6c935E2Ca0',
    ],
    ['PAXG', 'pax-gold', 18, 'Paxos Gold', 11, '0x45804880De22913dAFE09f4980848ECE6EcbAf78'],
  ],
  base: [
    ['WETH', 'ethereum', 18, 'Wrapped Ether', 150, '0x4200000000000000000000000000000000000006'],
    ['USDC', 'usd-coin', 6, 'USD Coin', 190, '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'],
    [
      'cbBTC',
      'coinbase-wrapped-btc',
      8,
      'Coinbase Wrapped BTC',
      85,
      '0xcbB7C0000aB88B473b1f5aFd9ef808440eed33Bf',
    ],
    ['DAI', 'dai', 18, 'Dai Stablecoin', 4, '0x50c5725949A6F0c72E6C4a641F24049A917DB0Cb'],
    ['AERO', 'aerodrome-finance', 18, 'Aerodrome', 48, '0x940181a94A35A4569E4529A3CDfB74e38FD98631'],
    [
      'cbETH',
      'coinbase-wrapped-staked-eth',
      18,
      'Coinbase Wrapped Staked ETH',
      9,
      '0x2Ae3F1Ec7F1F5012CFEab0185bfc7aa3cf0DEc22',
    ],
    [
      'wstETH',
      'wrapped-steth',
      18,
      'Wrapped liquid staked Ether 2.0',
      12,
      '0xc1CBa3fCea344f92D9239c08C0568f6F2F0ee452',
    ],
    ['DEGEN', 'degen-base', 18, 'Degen', 5, '0x4ed4E862860beD51a9570b96d89aF5E1B0Efefed'],
    ['BRETT', 'brett', 18, 'Brett', 6.5, '0x532f27101965dd16442E59d40670FaF5eBB142E4'],
  ],
  polygon: [
    [
      'WPOL',
      'polygon-ecosystem-token',
      18,
      'Wrapped Polygon Ecosystem Token',
      14,
      '0x0d500B1d8E8eF31E21C99d1Db9A6444d3ADf1270',
    ],
    ['USDC', 'usd-coin', 6, 'USD Coin', 22, '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359'],
    ['USDT', 'tether', 6, 'Tether USD', 13, '0xc2132D05D31c914a87C6611C10748AEb04B58e8F'],
    ['WETH', 'ethereum', 18, 'Wrapped Ether', 19, '0x7ceB23fD6bC0adD59E62ac25578270cFf1b9f619'],
    ['WBTC', 'wrapped-bitcoin', 8, 'Wrapped BTC', 8, '0x1BFD67037B42Cf73acF2047067bd4F2C47D9BfD6'],
  ],
  arbitrum: [
    ['WETH', 'ethereum', 18, 'Wrapped Ether', 120, '0x82aF49447D8a07e3bd95BD0d56f35241523fBab1'],
    ['USDC', 'usd-coin', 6, 'USD Coin', 105, '0xaf88d065e77c8cC2239327C5EDb3A432268e5831'],
    ['USDT', 'tether', 6, 'Tether USD', 41, '0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9'],
    ['ARB', 'arbitrum', 18, 'Arbitrum', 15, '0x912CE59144191C1204E64559FE8253a0e49E6548'],
    ['WBTC', 'wrapped-bitcoin', 8, 'Wrapped BTC', 52, '0x2f2a2543B76A4166549F7aaB2e75Bef0aefC5B0f'],
    ['GMX', 'gmx', 18, 'GMX', 6, '0xfc5A1A6EB076a2C7aD06eD22C90d7E710E35ad0a'],
    ['LINK', 'chainlink', 18, 'ChainLink Token', 5, '0xf97f4df75117a78c1A5a0DBb814Af92458539FB4'],
  ],
  optimism: [
    ['WETH', 'ethereum', 18, 'Wrapped Ether', 26, '0x4200000000000000000000000000000000000006'],
    ['USDC', 'usd-coin', 6, 'USD Coin', 31, '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85'],
    ['USDT', 'tether', 6, 'Tether USD', 9, '0x94b008aA00579c1307B0EF2c499aD98a8ce58e58'],
    ['OP', 'optimism', 18, 'Optimism', 8, '0x4200000000000000000000000000000000000042'],
  ],
  bsc: [
    ['WBNB', 'binancecoin', 18, 'Wrapped BNB', 95, '0xbb4CdB9CBd36B01bD1cBaEBF2De08d9173bc095c'],
    ['USDC', 'usd-coin', 18, 'USD Coin', 40, '0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d'],
    ['USDT', 'tether', 18, 'Tether USD', 120, '0x55d398326f99059fF775485246999027B3197955'],
    ['CAKE', 'pancakeswap-token', 18, 'PancakeSwap Token', 21, '0x0E09FaBB73Bd3Ade0a17ECC321fD13a19e81cE82'],
  ],
  solana: [
    ['SOL', 'solana', 9, 'Wrapped SOL', 210, 'So11111111111111111111111111111111111111112'],
    ['USDC', 'usd-coin', 6, 'USD Coin', 180, 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'],
    ['USDT', 'tether', 6, 'USDT', 30, 'Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB'],
    ['JUP', 'jupiter-exchange-solana', 6, 'Jupiter', 14, 'JUPyiwrYJFskUPiHa7hkeR8VUtAeFoSYbKedZNsDvCN'],
    ['BONK', 'bonk', 5, 'Bonk', 9, 'DezXAZ8z7PnrnRJjz3wXBoRgixCa6xjnB7YaB1pPB263'],
    ['JTO', 'jito-governance-token', 9, 'JITO', 6, 'jtojtomepa8beP8AuQc6eXt5FriJwfFMwQx2v2f9mCL'],
    ['RAY', 'raydium', 6, 'Raydium', 17, '4k3Dyjzvzp8eMZWUXbBCjEvwSkkk59S5iCNLY3QrkX6R'],
    ['JitoSOL', 'jito-staked-sol', 9, 'Jito Staked SOL', 33, 'J1toso1uCk3RLmjorhTtrVwY9HJ7X8V9yYac6Y7kGCPn'],
    ['mSOL', 'msol', 9, 'Marinade staked SOL', 12, 'mSoLzYCxHdYgdzU16g5QSh3i5K3z3KZK7ytfqcJm7So'],
  ],
};

export const TOKENS: readonly Token[] = CHAIN_NAMES.flatMap((chain) =>
  ROWS[chain].map(([symbol, coinId, decimals, name, liquidityMillions, address]) => ({
    chain,
    address,
    coin: coinId,
    symbol,
    name,
    decimals,
    liquidityUsd: liquidityMillions * 1e6,
  })),
);

/** The key under which a token is looked up. EVM addresses are compared without regard to case, base58 addresses are not. */
export function tokenKey(chain: ChainName, address: string): string {
  return `${chain}:${chain === 'solana' ? address : address.toLowerCase()}`;
}

const BY_KEY: ReadonlyMap<string, Token> = new Map(
  TOKENS.map((token) => [tokenKey(token.chain, token.address), token]),
);

/** The token at an address, or undefined if this market does not know it. */
export function findToken(chain: ChainName, address: string): Token | undefined {
  return BY_KEY.get(tokenKey(chain, address));
}
