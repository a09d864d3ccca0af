/** https://api.geckoterminal.com/api/v2: JSON:API documents. Amounts are strings, except in candles. */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { type ChainName, findToken, type Token } from './assets.ts';
import { BAR_LENGTHS, barAt, barBoundsMs } from './bars.ts';
import { decimal } from './decimal.ts';
import type { Pool, PoolState } from './pools.ts';
import { countOf, flagOf, listOf, numberOf, type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const NETWORKS: Readonly<Record<string, ChainName>> = {
  eth: 'ethereum',
  base: 'base',
  polygon_pos: 'polygon',
  arbitrum: 'arbitrum',
  optimism: 'optimism',
  bsc: 'bsc',
  solana: 'solana',
};
const PAGE_SIZE = 20;
const MAX_ADDRESSES = 30;
/** The names of bar lengths by unit and `aggregate`. */
const OHLCV: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  minute: { '1': '1m', '5': '5m', '15': '15m' },
  hour: { '1': '1h', '4': '4h', '12': '12h' },
  day: { '1': '1d' },
};

interface NetworkRoute {
  Params: { network: string };
  Querystring: Query;
}

export function geckoterminal(app: FastifyInstance, { market, pools, nowMs }: World): void {
  function networkOf(chain: ChainName): string {
    return Object.keys(NETWORKS).find((network) => NETWORKS[network] === chain) ?? chain;
  }

  function tokenId(token: Token): string {
    return `${networkOf(token.chain)}_${spelled(token.chain, token.address)}`;
  }

  function poolData(pool: Pool, state: PoolState) {
    const network = networkOf(pool.chain);
    const coin = market.coin(pool.base.coin);
    const strings = <Key extends string>(of: Record<Key, number>, places: number) =>
      Object.fromEntries(Object.entries<number>(of).map(([name, value]) => [name, value.toFixed(places)]));
    const trades = Object.fromEntries(
      Object.entries(state.trades).map(([name, { buys, sells }]) => [
        name,
        { buys, sells, buyers: Math.ceil(buys * 0.4), sellers: Math.ceil(sells * 0.4) },
      ]),
    );
    return {
      id: `${network}_${pool.address}`,
      type: 'pool',
      attributes: {
        base_token_price_usd: decimal(state.priceUsd),
        base_token_price_native_currency: decimal(Number(state.priceNative.toPrecision(12))),
        quote_token_price_usd: decimal(state.quotePriceUsd),
        base_token_price_quote_token: decimal(Number(state.priceNative.toPrecision(12))),
        quote_token_price_base_token: decimal(Number((1 / state.priceNative).toPrecision(12))),
        address: pool.address,
        name: `${pool.base.symbol} / ${pool.quote.symbol} ${pool.feePercent}%`,
        pool_created_at: new Date(pool.createdMs).toISOString().replace('.000Z', 'Z'),
        fdv_usd: String(Math.round((coin?.maxSupply ?? 0) * state.priceUsd)),
        market_cap_usd: coin === undefined ? null : decimal(coin.circulating * state.priceUsd),
        price_change_percentage: strings(state.changePercent, 2),
        transactions: trades,
        volume_usd: strings(state.volumeUsd, 4),
        reserve_in_usd: state.liquidityUsd.toFixed(4),
      },
      relationships: {
        base_token: { data: { id: tokenId(pool.base), type: 'token' } },
        quote_token: { data: { id: tokenId(pool.quote), type: 'token' } },
        network: { data: { id: network, type: 'network' } },
        dex: { data: { id: pool.dexName.toLowerCase().replace(/ /g, '_'), type: 'dex' } },
      },
    };
  }

  function tokenData(token: Token) {
    return {
      id: tokenId(token),
      type: 'token',
      attributes: {
        address: spelled(token.chain, token.address),
        name: token.name,
        symbol: token.symbol,
        decimals: token.decimals,
        image_url: null,
        coingecko_coin_id: token.coin,
      },
    };
  }

  /** One page of pools as a JSON:API document, with the tokens and exchanges that `include` asks for. */
  function document(of: readonly { pool: Pool; state: PoolState }[], query: Query) {
    const page = countOf(query, 'page', 1, 1, 10);
    const shown = of.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE);
    const include = listOf(textOf(query, 'include'), 4);
    const tokens = new Set(
      shown.flatMap(({ pool }) => [
        ...(include.includes('base_token') ? [pool.base] : []),
        ...(include.includes('quote_token') ? [pool.quote] : []),
      ]),
    );
    const dexes = include.includes('dex')
      ? new Set(shown.map(({ pool }) => pool.dexName))
      : new Set<string>();
    const included = [
      ...[...tokens].map(tokenData),
      ...[...dexes].map((name) => ({
        id: name.toLowerCase().replace(/ /g, '_'),
        type: 'dex',
        attributes: { name },
      })),
    ];
    return {
      data: shown.map(({ pool, state }) => poolData(pool, state)),
      ...(include.length === 0 ? {} : { included }),
    };
  }

  /** Pools by how much they trade for their size and how far their price moved in 24 hours, highest first. */
  function trending(chain: ChainName | undefined) {
    const atMs = nowMs();
    return pools.all
      .filter((pool) => chain === undefined || pool.chain === chain)
      .map((pool) => ({ pool, state: pools.state(pool, atMs) }))
      .toSorted((a, b) => heat(b.state) - heat(a.state));
  }

  app.get<{ Querystring: Query }>('/networks/trending_pools', ({ query }) =>
    document(trending(undefined), query),
  );

  app.get<NetworkRoute>('/networks/:network/trending_pools', ({ params, query }, reply) => {
    const chain = NETWORKS[params.network];
    return chain === undefined ? absent(reply) : document(trending(chain), query);
  });

  app.get('/networks', () => ({
    data: Object.entries(NETWORKS).map(([id, name]) => ({
      id,
      type: 'network',
      attributes: { name, coingecko_asset_platform_id: null },
    })),
  }));

  app.get<{ Params: { network: string; address: string }; Querystring: Query }>(
    '/networks/:network/tokens/:address/pools',
    ({ params, query }, reply) => {
      const token = tokenOn(params);
      if (token === undefined) return absent(reply);
      const atMs = nowMs();
      return document(
        pools.ofToken(token).map((pool) => ({ pool, state: pools.state(pool, atMs) })),
        query,
      );
    },
  );

  app.get<{ Params: { network: string; address: string } }>(
    '/networks/:network/pools/:address',
    ({ params }, reply) => {
      const chain = NETWORKS[params.network];
      const pool = chain === undefined ? undefined : pools.find(chain, params.address);
      return pool === undefined ? absent(reply) : { data: poolData(pool, pools.state(pool, nowMs())) };
    },
  );

  app.get<{ Params: { network: string; address: string; unit: string }; Querystring: Query }>(
    '/networks/:network/pools/:address/ohlcv/:unit',
    ({ params, query }, reply) => {
      const chain = NETWORKS[params.network];
      const pool = chain === undefined ? undefined : pools.find(chain, params.address);
      const coin = pool === undefined ? undefined : market.coin(pool.base.coin);
      if (pool === undefined || coin === undefined) return absent(reply);
      const length = BAR_LENGTHS.get(OHLCV[params.unit]?.[textOf(query, 'aggregate') ?? '1'] ?? '');
      if (length === undefined) return refuse(reply, 400, 'Invalid timeframe or aggregate');
      const limit = countOf(query, 'limit', 100, 1, 1_000);
      const before = numberOf(query, 'before_timestamp');
      const untilMs = Math.min(nowMs(), before === undefined || before === null ? nowMs() : before * 1000);
      const bars = market.candles(
        coin,
        barBoundsMs(length, barAt(length, untilMs) - limit + 1, limit),
        nowMs(),
      );
      return {
        data: {
          id: `${params.network}_${pool.address}`,
          type: 'ohlcv_request_response',
          attributes: {
            ohlcv_list: bars
              .toReversed()
              .map((bar) => [
                bar.openMs / 1000,
                bar.open,
                bar.high,
                bar.low,
                bar.close,
                bar.volumeUsd * pool.turnoverShare,
              ]),
          },
        },
      };
    },
  );

  app.get<{ Params: { network: string; addresses: string }; Querystring: Query }>(
    '/simple/networks/:network/token_price/:addresses',
    ({ params, query }, reply) => {
      const chain = NETWORKS[params.network];
      if (chain === undefined) return absent(reply);
      const asked = listOf(params.addresses, MAX_ADDRESSES + 1);
      if (asked.length > MAX_ADDRESSES)
        return refuse(reply, 422, `exceeded maximum of ${MAX_ADDRESSES} addresses`);
      const atMs = nowMs();
      const tokens = asked.map((address) => findToken(chain, address)).filter((token) => token !== undefined);
      const each = (read: (token: Token) => string | null) =>
        Object.fromEntries(tokens.map((token) => [spelled(token.chain, token.address), read(token)]));
      const priceOf = (token: Token) => {
        const coin = market.coin(token.coin);
        return coin === undefined ? 0 : market.priceUsd(coin, atMs);
      };
      const states = (token: Token) => pools.ofToken(token).map((pool) => pools.state(pool, atMs));
      const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
      return {
        data: {
          id: `${params.network}_token_price`,
          type: 'simple_token_price',
          attributes: {
            token_prices: each((token) => decimal(priceOf(token))),
            ...(flagOf(query, 'include_market_cap') === true
              ? {
                  market_cap_usd: each((token) =>
                    decimal((market.coin(token.coin)?.circulating ?? 0) * priceOf(token)),
                  ),
                }
              : {}),
            ...(flagOf(query, 'include_24hr_vol') === true
              ? {
                  h24_volume_usd: each((token) =>
                    decimal(sum(states(token).map((state) => state.volumeUsd.h24))),
                  ),
                }
              : {}),
            ...(flagOf(query, 'include_24hr_price_change') === true
              ? {
                  h24_price_change_percentage: each((token) => {
                    const coin = market.coin(token.coin);
                    if (coin === undefined) return null;
                    return decimal((priceOf(token) / market.priceUsd(coin, atMs - 86_400_000) - 1) * 100);
                  }),
                }
              : {}),
            ...(flagOf(query, 'include_total_reserve_in_usd') === true
              ? {
                  total_reserve_in_usd: each((token) =>
                    decimal(sum(states(token).map((state) => state.liquidityUsd))),
                  ),
                }
              : {}),
          },
        },
      };
    },
  );
}

function tokenOn({ network, address }: { network: string; address: string }): Token | undefined {
  const chain = NETWORKS[network];
  return chain === undefined ? undefined : findToken(chain, address);
}

/** An address as GeckoTerminal writes it: EVM addresses in lower case. */
function spelled(chain: ChainName, address: string): string {
  return chain === 'solana' ? address : address.toLowerCase();
}

function heat(state: PoolState): number {
  return (state.volumeUsd.h24 / state.liquidityUsd) * (1 + Math.abs(state.changePercent.h24));
}

function absent(reply: FastifyReply) {
  return refuse(reply, 404, 'Not Found');
}

function refuse(reply: FastifyReply, status: number, title: string) {
  return reply.code(status).send({
    errors: [{ status: String(status), title }],
    meta: { ref_id: 'sandbox' },
  });
}
