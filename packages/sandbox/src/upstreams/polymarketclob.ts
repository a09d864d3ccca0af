/** https://clob.polymarket.com: order books by token id. The best price is the last element of bids and of asks. */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { conditionId, tokenIds } from './polymarket.ts';
import type { Level, PredictionMarket } from './predictions.ts';
import { countOf, numberOf, type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const HOUR_MS = 3_600_000;
const MAX_POINTS = 2_000;
const MAX_BOOKS = 100;
const INTERVALS_MS: Readonly<Record<string, number>> = {
  '1h': HOUR_MS,
  '6h': 6 * HOUR_MS,
  '1d': 24 * HOUR_MS,
  '1w': 7 * 24 * HOUR_MS,
  '1m': 30 * 24 * HOUR_MS,
  max: Number.POSITIVE_INFINITY,
  all: Number.POSITIVE_INFINITY,
};

/** A market seen from one of its two tokens. */
interface Side {
  market: PredictionMarket;
  token: string;
  yes: boolean;
}

export function polymarketclob(app: FastifyInstance, world: World): void {
  const { predictions, nowMs } = world;

  function find(token: string | undefined): Side | null {
    if (token === undefined) return null;
    for (const event of predictions.events('polymarket', nowMs())) {
      for (const market of event.markets) {
        const [yes, no] = tokenIds(world, market);
        if (token === yes || token === no) return { market, token, yes: token === yes };
      }
    }
    return null;
  }

  function open(token: string | undefined): Side | null {
    const side = find(token);
    return side !== null && predictions.result(side.market, nowMs()) === null ? side : null;
  }

  /** The order book of a token in cents, the best price first. A bid for no is an ask for yes. */
  function bookOf({ market, yes }: Side): { bids: Level[]; asks: Level[] } {
    const book = predictions.book(market, nowMs());
    if (yes) return book;
    const mirrored = ({ cents, size }: Level) => ({ cents: 100 - cents, size });
    return { bids: book.asks.map(mirrored), asks: book.bids.map(mirrored) };
  }

  function bookReply(side: Side) {
    const { bids, asks } = bookOf(side);
    const rows = (levels: readonly Level[]) =>
      levels.toReversed().map(({ cents, size }) => ({ price: dollars(cents), size: String(size) }));
    return {
      market: conditionId(world, side.market),
      asset_id: side.token,
      timestamp: String(nowMs()),
      hash: predictions.digest(side.market, `${Math.floor(nowMs() / 15_000)}`).slice(0, 40),
      bids: rows(bids),
      asks: rows(asks),
      min_order_size: '5',
      tick_size: '0.01',
      neg_risk: side.market.event.question.exclusive,
    };
  }

  function best(side: Side): { bid: number; ask: number } {
    const { bids, asks } = bookOf(side);
    return { bid: bids[0]?.cents ?? 0, ask: asks[0]?.cents ?? 100 };
  }

  function answer(of: (side: Side) => unknown) {
    return ({ query }: { query: Query }, reply: FastifyReply) => {
      const token = textOf(query, 'token_id');
      if (token === undefined || !/^\d+$/.test(token))
        return reply.code(400).send({ error: 'Invalid token id' });
      const side = open(token);
      return side === null
        ? reply.code(404).send({ error: 'No orderbook exists for the requested token id' })
        : of(side);
    };
  }

  app.get('/ok', () => 'OK');
  app.get('/time', () => Math.floor(nowMs() / 1000));
  app.get<{ Querystring: Query }>('/book', answer(bookReply));
  app.get<{ Querystring: Query }>(
    '/midpoint',
    answer((side) => {
      const { bid, ask } = best(side);
      return { mid: dollars((bid + ask) / 2) };
    }),
  );
  app.get<{ Querystring: Query }>(
    '/spread',
    answer((side) => {
      const { bid, ask } = best(side);
      return { spread: dollars(ask - bid) };
    }),
  );
  app.get<{ Querystring: Query }>('/price', (request, reply) => {
    const side = textOf(request.query, 'side')?.toUpperCase();
    if (side !== 'BUY' && side !== 'SELL') return reply.code(400).send({ error: 'Invalid side' });
    // BUY asks for the buyers' best price (the bid), SELL for the sellers' best price (the ask).
    return answer((of) => ({ price: dollars(side === 'BUY' ? best(of).bid : best(of).ask) }))(request, reply);
  });

  app.post<{ Body: unknown }>('/books', ({ body }, reply) => {
    if (!Array.isArray(body) || body.length > MAX_BOOKS)
      return reply.code(400).send({ error: 'Invalid payload' });
    return body
      .map((item: unknown) =>
        typeof item === 'object' && item !== null && 'token_id' in item ? open(String(item.token_id)) : null,
      )
      .filter((side) => side !== null)
      .map(bookReply);
  });

  app.get<{ Querystring: Query }>('/prices-history', ({ query }, reply) => {
    const token = textOf(query, 'market');
    if (token === undefined) return reply.code(400).send({ error: 'Invalid filters: market is required' });
    const interval = textOf(query, 'interval');
    const startTs = numberOf(query, 'startTs');
    const lengthMs = INTERVALS_MS[interval ?? 'max'];
    if (lengthMs === undefined || (interval === undefined && typeof startTs !== 'number')) {
      return reply.code(400).send({ error: 'Invalid filters: interval, or startTs and endTs, are required' });
    }
    const side = find(token);
    if (side === null) return { history: [] };
    const { startMs, endMs } = side.market.event;
    const untilMs = Math.min(
      nowMs(),
      endMs - 1,
      (numberOf(query, 'endTs') ?? Number.POSITIVE_INFINITY) * 1000,
    );
    const fromMs = Math.max(startMs, typeof startTs === 'number' ? startTs * 1000 : untilMs - lengthMs);
    const stepMs = Math.max(
      countOf(query, 'fidelity', 60, 1, 10_080) * 60_000,
      Math.ceil((untilMs - fromMs) / MAX_POINTS / 60_000) * 60_000,
    );
    const history: { t: number; p: number }[] = [];
    for (let at = Math.ceil(fromMs / stepMs) * stepMs; at <= untilMs; at += stepMs) {
      const mid = predictions.midpoint(side.market, at);
      history.push({ t: Math.floor(at / 1000), p: side.yes ? mid : Math.round((1 - mid) * 1000) / 1000 });
    }
    return { history };
  });
}

/** Cents as dollars without trailing zeros: 40 is "0.4", 40.5 is "0.405". */
function dollars(cents: number): string {
  return String(Math.round(cents * 10) / 1000);
}
