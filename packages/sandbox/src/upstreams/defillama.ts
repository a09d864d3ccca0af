/** https://coins.llama.fi as its OpenAPI document describes it. Coins that it does not know are absent from the reply. */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { type ChainName, type Coin, findToken, NATIVE_ADDRESS, NATIVE_COIN } from './assets.ts';
import { FIRST_MS } from './market.ts';
import { flagOf, listOf, numberOf, type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const CHAINS: Readonly<Record<string, ChainName>> = {
  ethereum: 'ethereum',
  base: 'base',
  polygon: 'polygon',
  arbitrum: 'arbitrum',
  optimism: 'optimism',
  bsc: 'bsc',
  solana: 'solana',
};
const MAX_COINS = 200;
const MAX_POINTS = 1_000;
const UNIT_SECONDS: Readonly<Record<string, number>> = { m: 60, h: 3_600, d: 86_400, w: 604_800 };

interface Known {
  key: string;
  coin: Coin;
  symbol: string;
  /** Absent for `coingecko:` ids, as in the real reply. */
  decimals?: number;
}

interface CoinsRoute {
  Params: { coins: string };
  Querystring: Query;
}

export function defillama(app: FastifyInstance, { market, nowMs }: World): void {
  function resolve(key: string): Known | null {
    const colon = key.indexOf(':');
    const prefix = key.slice(0, colon).toLowerCase();
    const rest = key.slice(colon + 1);
    if (prefix === 'coingecko') {
      const coin = market.coin(rest.toLowerCase());
      return coin === undefined ? null : { key, coin, symbol: coin.symbol };
    }
    const chain = CHAINS[prefix];
    if (chain === undefined) return null;
    if (rest.toLowerCase() === NATIVE_ADDRESS && chain !== 'solana') {
      const native = market.coin(NATIVE_COIN[chain]);
      return native === undefined ? null : { key, coin: native, symbol: native.symbol, decimals: 18 };
    }
    const token = findToken(chain, rest);
    const coin = token === undefined ? undefined : market.coin(token.coin);
    return token === undefined || coin === undefined
      ? null
      : { key, coin, symbol: token.symbol, decimals: token.decimals };
  }

  function known(coins: string): Known[] {
    return listOf(coins, MAX_COINS)
      .map(resolve)
      .filter((found) => found !== null);
  }

  function pricesAt(coins: string, atMs: number) {
    return {
      coins: Object.fromEntries(
        known(coins).map(({ key, coin, symbol, decimals }) => [
          key,
          {
            ...(decimals === undefined ? {} : { decimals }),
            symbol,
            price: market.priceUsd(coin, atMs),
            timestamp: Math.floor(atMs / 1000),
            confidence: 0.99,
          },
        ]),
      ),
    };
  }

  /**
   * A parameter that holds a time in seconds since 1970, as milliseconds and at most now. Undefined if it is absent; null if it
   * is no number or before the market's first day.
   */
  function timeOf(query: Query, name: string): number | null | undefined {
    const seconds = numberOf(query, name);
    if (seconds === undefined || seconds === null) return seconds;
    const ms = seconds * 1000;
    return ms < FIRST_MS ? null : Math.min(ms, nowMs());
  }

  app.get<CoinsRoute>('/prices/current/:coins', ({ params }) => pricesAt(params.coins, nowMs()));

  app.get<{ Params: { timestamp: string; coins: string } }>(
    '/prices/historical/:timestamp/:coins',
    ({ params }, reply) => {
      const atMs = timeOf(params, 'timestamp');
      if (atMs === undefined || atMs === null) return refuse(reply, 'Invalid timestamp');
      return pricesAt(params.coins, atMs);
    },
  );

  app.get<CoinsRoute>('/percentage/:coins', ({ params, query }, reply) => {
    const periodMs = durationMs(textOf(query, 'period') ?? '24h');
    const fromMs = timeOf(query, 'timestamp');
    if (periodMs === null || fromMs === null) return refuse(reply, 'Invalid period or timestamp');
    const forward = flagOf(query, 'lookForward') === true;
    const at = fromMs ?? nowMs();
    const before = forward ? at : at - periodMs;
    const after = forward ? Math.min(nowMs(), at + periodMs) : at;
    if (before < FIRST_MS) return { coins: {} };
    return {
      coins: Object.fromEntries(
        known(params.coins).map(({ key, coin }) => [
          key,
          (market.priceUsd(coin, after) / market.priceUsd(coin, before) - 1) * 100,
        ]),
      ),
    };
  });

  app.get<CoinsRoute>('/chart/:coins', ({ params, query }, reply) => {
    const periodMs = durationMs(textOf(query, 'period') ?? '24h');
    const span = numberOf(query, 'span') ?? 1;
    const startMs = timeOf(query, 'start');
    const endMs = timeOf(query, 'end');
    if (periodMs === null || startMs === null || endMs === null || !Number.isInteger(span) || span < 1) {
      return refuse(reply, 'Invalid start, end, span or period');
    }
    if (startMs !== undefined && endMs !== undefined) {
      return refuse(reply, 'Use either start or end parameter, not both');
    }
    if (span > MAX_POINTS) return refuse(reply, `span must be at most ${MAX_POINTS}`);
    const firstMs = startMs ?? (endMs ?? nowMs()) - (span - 1) * periodMs;
    const times = Array.from({ length: span }, (_, at) => firstMs + at * periodMs).filter(
      (at) => at >= FIRST_MS && at <= nowMs(),
    );
    return {
      coins: Object.fromEntries(
        known(params.coins).map(({ key, coin, symbol, decimals }) => [
          key,
          {
            symbol,
            confidence: 0.99,
            ...(decimals === undefined ? {} : { decimals }),
            prices: times.map((at) => ({
              timestamp: Math.floor(at / 1000),
              price: market.priceUsd(coin, at),
            })),
          },
        ]),
      ),
    };
  });
}

function refuse(reply: FastifyReply, message: string) {
  return reply.code(400).send({ message });
}

/** The milliseconds of a duration: "4h", "1d", "30m", "2w" or a number of seconds. Null for anything else. */
function durationMs(text: string): number | null {
  const [, amount, unit] = /^(\d{1,6})([mhdw]?)$/i.exec(text) ?? [];
  if (amount === undefined || unit === undefined) return null;
  const seconds = Number(amount) * (UNIT_SECONDS[unit.toLowerCase()] ?? 1);
  return seconds > 0 ? seconds * 1000 : null;
}
