/**
 * Kalshi's trade API. Paths here are those below /trade-api/v2. Dollars and counts are strings, and order books hold bids only.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { type Category, QUESTIONS } from './prediction-questions.ts';
import type { Level, PredictionEvent, PredictionMarket } from './predictions.ts';
import { countOf, flagOf, listOf, numberOf, type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const CATEGORIES: Readonly<Record<Category, string>> = {
  crypto: 'Crypto',
  economy: 'Economics',
  climate: 'Climate and Weather',
  science: 'Science and Technology',
  politics: 'Politics',
  sports: 'Sports',
  culture: 'Entertainment',
  world: 'World',
};
const STATUSES = ['unopened', 'open', 'paused', 'closed', 'settled'];
const COMBOS = 3;
const DAY_MS = 86_400_000;

interface Listing {
  Querystring: Query;
}

export function kalshi(app: FastifyInstance, { predictions, nowMs }: World): void {
  const events = () => predictions.events('kalshi', nowMs());

  function record(market: PredictionMarket) {
    const atMs = nowMs();
    const { event } = market;
    const quote = predictions.quote(market, atMs);
    const result = predictions.result(market, atMs);
    const { bids, asks } = predictions.book(market, atMs);
    const open = result === null;
    const settled = result === 'yes' ? 100 : 0;
    const price = (cents: number) => dollars(open ? cents : settled);
    return {
      ticker: marketTicker(market),
      event_ticker: eventTicker(event),
      market_type: 'binary',
      title: market.title,
      subtitle: market.label,
      yes_sub_title: market.label,
      no_sub_title: market.label,
      created_time: time(event.startMs),
      open_time: time(event.startMs),
      close_time: time(event.endMs),
      expected_expiration_time: time(event.endMs + DAY_MS),
      expiration_time: time(event.endMs + 7 * DAY_MS),
      latest_expiration_time: time(event.endMs + 7 * DAY_MS),
      status: open ? 'active' : 'finalized',
      yes_bid_dollars: price(quote.bidCents),
      yes_bid_size_fp: open ? amount(bids[0]?.size ?? 0) : '0.00',
      yes_ask_dollars: price(quote.askCents),
      yes_ask_size_fp: open ? amount(asks[0]?.size ?? 0) : '0.00',
      no_bid_dollars: dollars(100 - (open ? quote.askCents : settled)),
      no_ask_dollars: dollars(100 - (open ? quote.bidCents : settled)),
      last_price_dollars: price(quote.lastCents),
      previous_price_dollars: dollars(predictions.midpoint(market, atMs - DAY_MS) * 100),
      // A contract pays one dollar, so that the number of contracts equals the number of dollars at stake.
      volume_fp: amount(quote.volumeUsd),
      volume_24h_fp: amount(quote.volume24hUsd),
      open_interest_fp: amount(quote.openInterestUsd),
      liquidity_dollars: '0.0000',
      notional_value_dollars: '1.0000',
      result: result ?? '',
      can_close_early: false,
      ...strikeOf(market),
      rules_primary: `${market.title} It settles on the sandbox's own data.`,
      rules_secondary: '',
      price_ranges: [{ start: '0.0000', end: '1.0000', step: '0.0100' }],
    };
  }

  type MarketRecord = ReturnType<typeof record> & { mve_collection_ticker?: string };

  function eventRecord(event: PredictionEvent) {
    return {
      event_ticker: eventTicker(event),
      series_ticker: seriesOf(event),
      title: event.title,
      sub_title: event.occasion.period,
      category: CATEGORIES[event.question.category],
      mutually_exclusive: event.question.exclusive,
      collateral_return_type: event.question.exclusive ? 'MECNET' : '',
      strike_date: time(event.endMs),
      available_on_brokers: false,
      product_metadata: {},
    };
  }

  /** Combinations of two open markets. They lead the list of markets unless the query excludes them or names a series. */
  function combos(): MarketRecord[] {
    const open = events()
      .flatMap(({ markets }) => markets.slice(0, 1))
      .filter((market) => predictions.result(market, nowMs()) === null);
    return open.slice(0, COMBOS).flatMap((one, at) => {
      const other = open[at + 1];
      if (other === undefined) return [];
      const both = predictions.midpoint(one, nowMs()) * predictions.midpoint(other, nowMs()) * 100;
      const bid = Math.max(1, Math.min(97, Math.floor(both) - 1));
      return [
        {
          ...record(one),
          ticker: `KXMVESYN-S${one.event.periodIndex}${at}`,
          event_ticker: 'KXMVESYN',
          mve_collection_ticker: 'KXMVESYN',
          title: `yes ${one.label}, yes ${other.label}`,
          yes_sub_title: `yes ${one.label}, yes ${other.label}`,
          yes_bid_dollars: dollars(bid),
          yes_ask_dollars: dollars(bid + 2),
          no_bid_dollars: dollars(98 - bid),
          no_ask_dollars: dollars(100 - bid),
          last_price_dollars: dollars(bid + 1),
        },
      ];
    });
  }

  function findMarket(ticker: string): PredictionMarket | undefined {
    return events()
      .flatMap(({ markets }) => markets)
      .find((market) => marketTicker(market) === ticker.toUpperCase());
  }

  app.get('/exchange/status', () => ({ exchange_active: true, trading_active: true }));

  app.get<Listing>('/markets', ({ query }, reply) => {
    const wanted = statusOf(query);
    if (wanted === null) return invalid(reply, 'invalid status');
    const tickers = listOf(textOf(query, 'tickers'), 1_000);
    const eventTickers = listOf(textOf(query, 'event_ticker'), 10);
    const series = textOf(query, 'series_ticker');
    const minClose = numberOf(query, 'min_close_ts') ?? 0;
    const maxClose = numberOf(query, 'max_close_ts') ?? Number.POSITIVE_INFINITY;
    const singles = textOf(query, 'mve_filter') === 'exclude';
    const rows: MarketRecord[] = events()
      .filter((event) => series === undefined || seriesOf(event) === series)
      .flatMap(({ markets }) => markets)
      .map(record);
    const all = singles || series !== undefined ? rows : [...combos(), ...rows];
    const found = all.filter((market) => {
      const closes = Date.parse(market.close_time) / 1000;
      return (
        (wanted === undefined || market.status === wanted) &&
        (tickers.length === 0 || tickers.includes(market.ticker)) &&
        (eventTickers.length === 0 || eventTickers.includes(market.event_ticker)) &&
        closes >= minClose &&
        closes <= maxClose
      );
    });
    const page = paged(found, query, 100, 1_000);
    return page === null
      ? invalid(reply, 'invalid limit or cursor')
      : { markets: page.rows, cursor: page.cursor };
  });

  app.get<{ Params: { ticker: string } }>('/markets/:ticker', ({ params }, reply) => {
    const market = findMarket(params.ticker);
    return market === undefined ? absent(reply, 'market') : { market: record(market) };
  });

  app.get<{ Params: { ticker: string }; Querystring: Query }>(
    '/markets/:ticker/orderbook',
    ({ params, query }, reply) => {
      const market = findMarket(params.ticker);
      if (market === undefined) return absent(reply, 'market');
      const depth = countOf(query, 'depth', 0, 0, 100);
      const { bids, asks } =
        predictions.result(market, nowMs()) === null
          ? predictions.book(market, nowMs())
          : { bids: [], asks: [] };
      const rows = (levels: readonly Level[]) =>
        (depth === 0 ? levels : levels.slice(0, depth))
          .toReversed()
          .map(({ cents, size }) => [dollars(cents), amount(size)]);
      return {
        orderbook_fp: {
          yes_dollars: rows(bids),
          // An offer to sell yes at p is a bid for no at 1 - p.
          no_dollars: rows(asks.map(({ cents, size }) => ({ cents: 100 - cents, size }))),
        },
      };
    },
  );

  app.get<Listing>('/events', ({ query }, reply) => {
    const wanted = statusOf(query);
    if (wanted === null) return invalid(reply, 'invalid status');
    const series = textOf(query, 'series_ticker');
    const nested = flagOf(query, 'with_nested_markets') === true;
    const found = events().filter(
      (event) =>
        (series === undefined || seriesOf(event) === series) &&
        (wanted === undefined || (wanted === 'active') === nowMs() < event.endMs),
    );
    const page = paged(found, query, 200, 200);
    if (page === null) return invalid(reply, 'invalid limit or cursor');
    return {
      events: page.rows.map((event) => ({
        ...eventRecord(event),
        ...(nested ? { markets: event.markets.map(record) } : {}),
      })),
      cursor: page.cursor,
    };
  });

  app.get<{ Params: { ticker: string }; Querystring: Query }>(
    '/events/:ticker',
    ({ params, query }, reply) => {
      const event = events().find((one) => eventTicker(one) === params.ticker.toUpperCase());
      if (event === undefined) return absent(reply, 'event');
      const markets = event.markets.map(record);
      return flagOf(query, 'with_nested_markets') === true
        ? { event: { ...eventRecord(event), markets } }
        : { event: eventRecord(event), markets };
    },
  );

  const series = QUESTIONS.flatMap(({ category, period, kalshi: words, id }) =>
    words === undefined
      ? []
      : [
          {
            ticker: words.series,
            frequency: period === 'month' ? 'monthly' : period === 'quarter' ? 'quarterly' : 'annual',
            title: id.replace(/-/g, ' '),
            category: CATEGORIES[category],
            tags: ['Sandbox'],
            settlement_sources: [{ name: 'Sandbox', url: '' }],
            fee_type: 'quadratic',
            fee_multiplier: 1,
          },
        ],
  );

  app.get<Listing>('/series', ({ query }) => {
    const category = textOf(query, 'category');
    return { series: series.filter((one) => category === undefined || one.category === category) };
  });

  app.get<{ Params: { ticker: string } }>('/series/:ticker', ({ params }, reply) => {
    const found = series.find(({ ticker }) => ticker === params.ticker.toUpperCase());
    return found === undefined ? absent(reply, 'series') : { series: found };
  });
}

/** The records' name for the status that the query filters by. Undefined without a filter, null if the filter is no status. */
function statusOf(query: Query): string | null | undefined {
  const asked = textOf(query, 'status');
  if (asked === undefined) return undefined;
  if (!STATUSES.includes(asked)) return null;
  return asked === 'open' ? 'active' : asked === 'settled' ? 'finalized' : asked;
}

function paged<Row>(
  rows: readonly Row[],
  query: Query,
  fallback: number,
  maximum: number,
): { rows: Row[]; cursor: string } | null {
  const limit = numberOf(query, 'limit') ?? fallback;
  if (!Number.isInteger(limit) || limit < 1 || limit > maximum) return null;
  const cursor = textOf(query, 'cursor');
  const offset = cursor === undefined ? 0 : Number(Buffer.from(cursor, 'base64url').toString());
  if (!Number.isInteger(offset) || offset < 0) return null;
  const next = offset + limit;
  return {
    rows: rows.slice(offset, next),
    cursor: next < rows.length ? Buffer.from(String(next)).toString('base64url') : '',
  };
}

function seriesOf(event: PredictionEvent): string {
  return event.question.kalshi?.series ?? '';
}

/** The ticker of an event, such as KXSYNBTCQ-26DEC31: its series and its last day. */
function eventTicker(event: PredictionEvent): string {
  const last = new Date(event.endMs - 1);
  const month = last.toLocaleString('en-US', { month: 'short', timeZone: 'UTC' }).toUpperCase();
  return `${seriesOf(event)}-${String(last.getUTCFullYear()).slice(2)}${month}${last.getUTCDate()}`;
}

function marketTicker(market: PredictionMarket): string {
  const ticker = eventTicker(market.event);
  if (market.event.markets.length === 1) return ticker;
  // T stands for everything above or everything below a bound, B for what lies between two bounds.
  const between = market.low !== null && market.high !== null;
  return `${ticker}-${between ? 'B' : 'T'}${market.low ?? market.high}`;
}

function strikeOf({ event, low, high }: PredictionMarket) {
  if (event.markets.length === 1) return { strike_type: 'custom' };
  if (low !== null && high !== null) return { strike_type: 'between', floor_strike: low, cap_strike: high };
  return low === null
    ? { strike_type: 'less', cap_strike: high }
    : { strike_type: 'greater', floor_strike: low };
}

function dollars(cents: number): string {
  return (cents / 100).toFixed(4);
}

function amount(value: number): string {
  return value.toFixed(2);
}

function time(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z');
}

function absent(reply: FastifyReply, what: string) {
  return reply.code(404).send({ error: { code: 'not_found', message: `${what} not found` } });
}

function invalid(reply: FastifyReply, message: string) {
  return reply.code(400).send({ error: { code: 'invalid_parameters', message } });
}
