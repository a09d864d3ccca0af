/** https://api.coingecko.com as it answers without a key or with a demo key. Paths here are those below /api/v3. */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { type ChainName, COINS, type Coin, findToken } from './assets.ts';
import { FIRST_MS } from './market.ts';
import { flagOf, listOf, numberOf, type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const PLATFORMS: Readonly<Record<string, ChainName>> = {
  ethereum: 'ethereum',
  base: 'base',
  'polygon-pos': 'polygon',
  'arbitrum-one': 'arbitrum',
  'optimistic-ethereum': 'optimism',
  'binance-smart-chain': 'bsc',
  solana: 'solana',
};
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** How many days back the public API answers. */
const MAX_DAYS = 365;
const MAX_IDS = 250;
const TRENDING = 15;

export function coingecko(app: FastifyInstance, { market, nowMs }: World): void {
  /** A coin's price in USD, BTC or ETH; undefined for any other currency. */
  function priceIn(currency: string, coin: Coin, atMs: number): number | undefined {
    const usd = market.priceUsd(coin, atMs);
    if (currency === 'usd') return usd;
    const id = currency === 'btc' ? 'bitcoin' : currency === 'eth' ? 'ethereum' : undefined;
    const unit = id === undefined ? undefined : market.coin(id);
    return unit === undefined ? undefined : usd / market.priceUsd(unit, atMs);
  }

  function quoted(coin: Coin, query: Query, currencies: readonly string[]) {
    const atMs = nowMs();
    const fields: Record<string, number> = {};
    for (const currency of currencies) {
      const price = priceIn(currency, coin, atMs);
      const before = priceIn(currency, coin, atMs - DAY_MS);
      if (price === undefined || before === undefined) continue;
      const perUsd = price / market.priceUsd(coin, atMs);
      fields[currency] = price;
      if (flagOf(query, 'include_market_cap') === true)
        fields[`${currency}_market_cap`] = price * coin.circulating;
      if (flagOf(query, 'include_24hr_vol') === true) {
        fields[`${currency}_24h_vol`] = market.volumeUsd(coin, atMs - DAY_MS, atMs) * perUsd;
      }
      if (flagOf(query, 'include_24hr_change') === true) {
        fields[`${currency}_24h_change`] = (price / before - 1) * 100;
      }
    }
    if (flagOf(query, 'include_last_updated_at') === true) fields.last_updated_at = Math.floor(atMs / 1000);
    return fields;
  }

  app.get('/ping', () => ({ gecko_says: '(V3) To the Moon!' }));

  app.get<{ Querystring: Query }>('/simple/price', ({ query }, reply) => {
    const currencies = listOf(textOf(query, 'vs_currencies')?.toLowerCase(), 10);
    if (currencies.length === 0) return reply.code(422).send({ error: 'Missing parameter vs_currencies' });
    const ids = listOf(textOf(query, 'ids')?.toLowerCase(), MAX_IDS);
    const symbols = listOf(textOf(query, 'symbols')?.toLowerCase(), MAX_IDS);
    if (ids.length + symbols.length === 0) return reply.code(422).send({ error: 'Missing parameter ids' });
    const found: Record<string, Record<string, number>> = {};
    for (const id of ids) {
      const coin = market.coin(id);
      if (coin !== undefined) found[id] = quoted(coin, query, currencies);
    }
    for (const symbol of symbols) {
      const coin = market.coinBySymbol(symbol);
      if (coin !== undefined) found[symbol] = quoted(coin, query, currencies);
    }
    return found;
  });

  app.get<{ Params: { platform: string }; Querystring: Query }>(
    '/simple/token_price/:platform',
    ({ params, query }, reply) => {
      const chain = PLATFORMS[params.platform];
      if (chain === undefined) return reply.code(404).send({ error: 'asset platform not found' });
      const currencies = listOf(textOf(query, 'vs_currencies')?.toLowerCase(), 10);
      if (currencies.length === 0) return reply.code(422).send({ error: 'Missing parameter vs_currencies' });
      const addresses = listOf(textOf(query, 'contract_addresses'), MAX_IDS);
      if (addresses.length === 0)
        return reply.code(422).send({ error: 'Missing parameter contract_addresses' });
      return Object.fromEntries(
        addresses.flatMap((address) => {
          const token = findToken(chain, address);
          const coin = token === undefined ? undefined : market.coin(token.coin);
          if (token === undefined || coin === undefined) return [];
          const key = chain === 'solana' ? token.address : token.address.toLowerCase();
          return [[key, quoted(coin, query, currencies)]];
        }),
      );
    },
  );

  app.get<{ Params: { id: string }; Querystring: Query }>(
    '/coins/:id/market_chart',
    ({ params, query }, reply) => {
      const coin = market.coin(params.id);
      if (coin === undefined) return reply.code(404).send({ error: 'coin not found' });
      const currency = textOf(query, 'vs_currency')?.toLowerCase();
      if (currency === undefined) return reply.code(422).send({ error: 'Missing parameter vs_currency' });
      const atMs = nowMs();
      if (priceIn(currency, coin, atMs) === undefined)
        return reply.code(400).send({ error: 'invalid vs_currency' });
      const days = textOf(query, 'days') === 'max' ? Number.POSITIVE_INFINITY : numberOf(query, 'days');
      if (days === undefined || days === null)
        return reply.code(422).send({ error: 'Missing parameter days' });
      if (days > MAX_DAYS) return tooFarBack(reply);
      if (days <= 0) return reply.code(400).send({ error: 'invalid days' });
      const daily = textOf(query, 'interval') === 'daily' || days > 90;
      const stepMs = daily ? DAY_MS : days <= 1 ? 5 * MINUTE_MS : HOUR_MS;
      const times: number[] = [];
      const fromMs = Math.max(FIRST_MS, atMs - days * DAY_MS);
      for (let at = Math.ceil(fromMs / stepMs) * stepMs; at < atMs; at += stepMs) times.push(at);
      times.push(Math.floor(atMs / 1000) * 1000);
      const rows = times.map((at) => ({ at, price: priceIn(currency, coin, at) ?? 0 }));
      return {
        prices: rows.map(({ at, price }) => [at, price]),
        market_caps: rows.map(({ at, price }) => [at, price * coin.circulating]),
        // CoinGecko answers a rolling sum over 24 hours. Here each point has the turnover of the UTC day before it, which is
        // the same sum at midnight.
        total_volumes: rows.map(({ at, price }) => [
          at,
          (market.volumeUsd(
            coin,
            Math.floor(at / DAY_MS) * DAY_MS - DAY_MS,
            Math.floor(at / DAY_MS) * DAY_MS,
          ) *
            price) /
            market.priceUsd(coin, at),
        ]),
      };
    },
  );

  app.get<{ Params: { id: string } }>('/coins/:id', ({ params }, reply) => {
    const coin = market.coin(params.id);
    if (coin === undefined) return reply.code(404).send({ error: 'coin not found' });
    const up = Number((50 + 40 * Math.tanh(changePercent(coin, nowMs()) / 5)).toFixed(2));
    return {
      id: coin.id,
      symbol: coin.symbol.toLowerCase(),
      name: coin.name,
      sentiment_votes_up_percentage: up,
      sentiment_votes_down_percentage: Number((100 - up).toFixed(2)),
      last_updated: new Date(nowMs()).toISOString(),
    };
  });

  app.get('/search/trending', () => {
    const atMs = nowMs();
    const btc = market.coin('bitcoin');
    const rank = new Map(
      COINS.toSorted((a, b) => capUsd(b, atMs) - capUsd(a, atMs)).map((coin, index) => [coin.id, index + 1]),
    );
    const coins = COINS.filter(({ motion }) => motion.kind === 'floating')
      .map((coin) => ({ coin, change: changePercent(coin, atMs) }))
      .toSorted((a, b) => Math.abs(b.change) - Math.abs(a.change))
      .slice(0, TRENDING)
      .map(({ coin, change }, score) => {
        const price = market.priceUsd(coin, atMs);
        return {
          item: {
            id: coin.id,
            coin_id: score + 1,
            name: coin.name,
            symbol: coin.symbol,
            market_cap_rank: rank.get(coin.id) ?? null,
            slug: coin.id,
            price_btc: btc === undefined ? null : price / market.priceUsd(btc, atMs),
            score,
            data: {
              price,
              price_change_percentage_24h: { usd: change },
              market_cap: dollars(price * coin.circulating),
              total_volume: dollars(market.volumeUsd(coin, atMs - DAY_MS, atMs)),
            },
          },
        };
      });
    return { coins, nfts: [], categories: [] };
  });

  function capUsd(coin: Coin, atMs: number): number {
    return market.priceUsd(coin, atMs) * coin.circulating;
  }

  function changePercent(coin: Coin, atMs: number): number {
    return (market.priceUsd(coin, atMs) / market.priceUsd(coin, atMs - DAY_MS) - 1) * 100;
  }
}

function dollars(value: number): string {
  return `$${Math.round(value).toLocaleString('en-US')}`;
}

function tooFarBack(reply: FastifyReply) {
  return reply.code(401).send({
    error: {
      status: {
        timestamp: new Date(0).toISOString(),
        error_code: 10012,
        error_message: `Your request exceeds the allowed time range. Public API users are limited to the past ${MAX_DAYS} days.`,
      },
    },
  });
}
