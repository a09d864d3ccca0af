/** https://gamma-api.polymarket.com: events and markets. Outcomes, prices and token ids are strings that hold JSON. */
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Category } from './prediction-questions.ts';
import type { PredictionEvent, PredictionMarket } from './predictions.ts';
import { countOf, flagOf, type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const MAX_EVENTS = 500;
const MAX_SEARCH = 50;
/** An id that always names an open event, so that examples keep working. The other ids change with the period. */
const EVERGREEN_ID = '900001';
const TAGS: Readonly<Record<Category, { id: string; label: string; slug: string }>> = {
  crypto: { id: '21', label: 'Crypto', slug: 'crypto' },
  economy: { id: '100328', label: 'Economy', slug: 'economy' },
  climate: { id: '87', label: 'Climate', slug: 'climate' },
  science: { id: '74', label: 'Science', slug: 'science' },
  politics: { id: '2', label: 'Politics', slug: 'politics' },
  sports: { id: '1', label: 'Sports', slug: 'sports' },
  culture: { id: '596', label: 'Culture', slug: 'pop-culture' },
  world: { id: '101970', label: 'World', slug: 'world' },
};
/** Words that do not narrow a search. */
const FILLERS = new Set([
  'will',
  'the',
  'a',
  'an',
  'of',
  'in',
  'on',
  'be',
  'is',
  'to',
  'for',
  'by',
  'and',
  'or',
]);

interface Listing {
  Querystring: Query;
}

/** The two token ids of a market, for yes and for no. They are long decimal numbers, as on chain. */
export function tokenIds({ predictions }: World, market: PredictionMarket): [yes: string, no: string] {
  const id = (side: string) => BigInt(`0x${predictions.digest(market, side)}`).toString();
  return [id('yes'), id('no')];
}

/** The condition id of a market. */
export function conditionId({ predictions }: World, market: PredictionMarket): string {
  return `0x${predictions.digest(market, 'condition')}`;
}

export function polymarket(app: FastifyInstance, world: World): void {
  const { predictions, nowMs } = world;

  function marketRecord(market: PredictionMarket) {
    const atMs = nowMs();
    const { event } = market;
    const quote = predictions.quote(market, atMs);
    const result = predictions.result(market, atMs);
    const mid = predictions.midpoint(market, atMs);
    const yes = result === null ? mid : result === 'yes' ? 1 : 0;
    const slug =
      event.markets.length === 1 ? slugOf(event) : `${slugOf(event)}-${market.outcome.key.toLowerCase()}`;
    return {
      id: marketId(market),
      question: market.title,
      conditionId: conditionId(world, market),
      slug,
      ...(event.markets.length === 1 ? {} : { groupItemTitle: market.label }),
      description: `${market.title} A sandbox question; it settles on the sandbox's own data.`,
      outcomes: JSON.stringify(['Yes', 'No']),
      outcomePrices: JSON.stringify([text(yes), text(1 - yes)]),
      clobTokenIds: JSON.stringify(tokenIds(world, market)),
      startDate: new Date(event.startMs).toISOString(),
      endDate: new Date(event.endMs).toISOString(),
      active: true,
      closed: result !== null,
      archived: false,
      acceptingOrders: result === null,
      enableOrderBook: true,
      negRisk: event.question.exclusive,
      bestBid: result === null ? quote.bidCents / 100 : yes,
      bestAsk: result === null ? quote.askCents / 100 : yes,
      spread: result === null ? (quote.askCents - quote.bidCents) / 100 : 0,
      lastTradePrice: result === null ? quote.lastCents / 100 : yes,
      volume: String(quote.volumeUsd),
      volumeNum: quote.volumeUsd,
      volumeClob: quote.volumeUsd,
      volume24hr: quote.volume24hUsd,
      liquidity: String(quote.liquidityUsd),
      liquidityNum: quote.liquidityUsd,
      liquidityClob: quote.liquidityUsd,
      orderPriceMinTickSize: 0.01,
      orderMinSize: 5,
    };
  }

  function eventRecord(event: PredictionEvent) {
    const markets = event.markets.map(marketRecord);
    const sum = (figure: (market: (typeof markets)[number]) => number) =>
      Math.round(markets.reduce((total, market) => total + figure(market), 0) * 100) / 100;
    return {
      id: eventId(event),
      ticker: slugOf(event),
      slug: slugOf(event),
      title: event.title,
      description: `${event.title} A sandbox event; it settles on the sandbox's own data.`,
      startDate: new Date(event.startMs).toISOString(),
      creationDate: new Date(event.startMs).toISOString(),
      endDate: new Date(event.endMs).toISOString(),
      active: true,
      closed: markets.every(({ closed }) => closed),
      archived: false,
      restricted: true,
      liquidity: sum((market) => market.liquidityNum),
      liquidityClob: sum((market) => market.liquidityNum),
      volume: sum((market) => market.volumeNum),
      volume24hr: sum((market) => market.volume24hr),
      openInterest: event.markets.reduce(
        (total, market) => total + predictions.quote(market, nowMs()).openInterestUsd,
        0,
      ),
      enableOrderBook: true,
      negRisk: event.question.exclusive,
      markets,
      tags: [TAGS[event.question.category], { id: '999999', label: 'Sandbox', slug: 'sandbox' }],
    };
  }

  type EventRecord = ReturnType<typeof eventRecord>;
  type MarketRecord = ReturnType<typeof marketRecord>;

  function allEvents(): EventRecord[] {
    return predictions.events('polymarket', nowMs()).map(eventRecord);
  }

  function allMarkets(): (MarketRecord & { events: Omit<EventRecord, 'markets'>[] })[] {
    return allEvents().flatMap(({ markets, ...event }) =>
      markets.map((market) => ({ ...market, events: [event] })),
    );
  }

  app.get<Listing>('/events', ({ query }, reply) => {
    const events = allEvents().filter(
      (event) =>
        fits(query, event) &&
        matches(
          query,
          'tag_slug',
          event.tags.map(({ slug }) => slug),
        ) &&
        matches(
          query,
          'tag_id',
          event.tags.map(({ id }) => id),
        ),
    );
    return listed(events, query, EVENT_ORDERS, reply);
  });

  app.get<{ Params: { slug: string } }>(
    '/events/slug/:slug',
    ({ params }, reply) => allEvents().find(({ slug }) => slug === params.slug) ?? absent(reply, 'slug'),
  );

  app.get<{ Params: { id: string } }>('/events/:id', ({ params }, reply) => {
    if (!/^\d+$/.test(params.id)) return invalid(reply, 'id is invalid');
    const events = allEvents();
    const id = params.id === EVERGREEN_ID ? events.find(({ closed }) => !closed)?.id : params.id;
    return events.find((event) => event.id === id) ?? absent(reply, 'id');
  });

  app.get<Listing>('/markets', ({ query }, reply) => {
    const markets = allMarkets().filter(
      (market) =>
        fits(query, market) &&
        matches(query, 'condition_ids', [market.conditionId]) &&
        matches(query, 'clob_token_ids', JSON.parse(market.clobTokenIds)) &&
        matches(
          query,
          'tag_id',
          market.events.flatMap(({ tags }) => tags.map(({ id }) => id)),
        ),
    );
    return listed(markets, query, MARKET_ORDERS, reply);
  });

  app.get<{ Params: { slug: string } }>(
    '/markets/slug/:slug',
    ({ params }, reply) => allMarkets().find(({ slug }) => slug === params.slug) ?? absent(reply, 'slug'),
  );

  app.get<{ Params: { id: string } }>('/markets/:id', ({ params }, reply) => {
    if (!/^\d+$/.test(params.id)) return invalid(reply, 'id is invalid');
    return allMarkets().find(({ id }) => id === params.id) ?? absent(reply, 'id');
  });

  app.get<Listing>('/public-search', ({ query }, reply) => {
    const words = wordsOf(textOf(query, 'q') ?? '');
    if (textOf(query, 'q') === undefined) return invalid(reply, 'q is required');
    const status = textOf(query, 'events_status');
    const perPage = countOf(query, 'limit_per_type', 10, 1, MAX_SEARCH);
    const page = countOf(query, 'page', 1, 1, 1_000);
    const found = allEvents()
      .filter(
        (event) => status === undefined || event.closed === (status === 'resolved' || status === 'closed'),
      )
      .map((event) => {
        const said = wordsOf(
          [
            event.title,
            ...event.markets.map(({ question }) => question),
            ...event.tags.map(({ label }) => label),
          ].join(' '),
        );
        return { event, hits: words.filter((word) => said.some((other) => other.startsWith(word))).length };
      })
      .filter(({ hits }) => hits > 0 && hits * 2 >= words.length)
      .toSorted((a, b) => b.hits - a.hits || b.event.volume - a.event.volume)
      .map(({ event }) => event);
    return {
      events: found.slice((page - 1) * perPage, page * perPage),
      tags: [],
      profiles: [],
      pagination: { hasMore: page * perPage < found.length, totalResults: found.length },
    };
  });
}

type Ordered<Row> = Readonly<Record<string, (row: Row) => number>>;

const EVENT_ORDERS: Ordered<{
  id: string;
  volume: number;
  volume24hr: number;
  liquidity: number;
  startDate: string;
  endDate: string;
}> = {
  id: ({ id }) => Number(id),
  volume: ({ volume }) => volume,
  volume24hr: ({ volume24hr }) => volume24hr,
  liquidity: ({ liquidity }) => liquidity,
  startDate: ({ startDate }) => Date.parse(startDate),
  endDate: ({ endDate }) => Date.parse(endDate),
};
const MARKET_ORDERS: Ordered<{
  id: string;
  volumeNum: number;
  volume24hr: number;
  liquidityNum: number;
  startDate: string;
  endDate: string;
}> = {
  id: ({ id }) => Number(id),
  volume: ({ volumeNum }) => volumeNum,
  volumeNum: ({ volumeNum }) => volumeNum,
  volume24hr: ({ volume24hr }) => volume24hr,
  liquidity: ({ liquidityNum }) => liquidityNum,
  liquidityNum: ({ liquidityNum }) => liquidityNum,
  startDate: ({ startDate }) => Date.parse(startDate),
  endDate: ({ endDate }) => Date.parse(endDate),
};

/** Sorts rows and returns a page of them. It refuses unknown order fields, among them snake_case ones, as Polymarket does. */
function listed<Row>(rows: readonly Row[], query: Query, orders: Ordered<Row>, reply: FastifyReply) {
  const name = textOf(query, 'order');
  const read = name === undefined ? orders.id : orders[name];
  if (read === undefined) return invalid(reply, 'order fields are not valid');
  // With an order field, rows descend unless the query asks for ascending ones. Without one, they ascend by id.
  const descending = name !== undefined && flagOf(query, 'ascending') !== true;
  const offset = countOf(query, 'offset', 0, 0, 10_000);
  const limit = countOf(query, 'limit', 20, 0, MAX_EVENTS);
  return rows
    .toSorted((a, b) => (descending ? read(b) - read(a) : read(a) - read(b)))
    .slice(offset, offset + limit);
}

function fits(
  query: Query,
  row: { id: string; slug: string; active: boolean; closed: boolean; archived: boolean; endDate: string },
): boolean {
  const flags: ['active' | 'closed' | 'archived', boolean][] = [
    ['active', row.active],
    ['closed', row.closed],
    ['archived', row.archived],
  ];
  const endMin = textOf(query, 'end_date_min');
  const endMax = textOf(query, 'end_date_max');
  return (
    flags.every(([name, value]) => flagOf(query, name) === undefined || flagOf(query, name) === value) &&
    matches(query, 'slug', [row.slug]) &&
    matches(query, 'id', [row.id]) &&
    (endMin === undefined || Date.parse(row.endDate) >= Date.parse(endMin)) &&
    (endMax === undefined || Date.parse(row.endDate) <= Date.parse(endMax))
  );
}

/** Whether the parameter is absent, or one of its values is among the given ones. A parameter may be repeated. */
function matches(query: Query, name: string, values: readonly string[]): boolean {
  const raw = query[name];
  const asked = (Array.isArray(raw) ? raw : [raw]).filter((value) => value !== undefined && value !== '');
  return asked.length === 0 || asked.some((value) => value !== undefined && values.includes(value));
}

function wordsOf(said: string): string[] {
  return said
    .toLowerCase()
    .split(/[^a-z0-9.]+/)
    .filter((word) => word !== '' && !FILLERS.has(word))
    .slice(0, 200);
}

function eventId(event: PredictionEvent): string {
  return String(900_000 + event.questionIndex * 1_000 + (event.periodIndex % 1_000));
}

function marketId(market: PredictionMarket): string {
  return `${eventId(market.event)}${market.index}`;
}

function slugOf(event: PredictionEvent): string {
  const words = event.question.polymarket?.slug ?? event.question.id;
  return `${words}-${event.occasion.lastDay.toLowerCase().replace(/[ ,]+/g, '-')}`;
}

function text(price: number): string {
  return String(Math.round(price * 10_000) / 10_000);
}

function absent(reply: FastifyReply, what: string) {
  return reply.code(404).send({ type: 'not found error', error: `${what} not found` });
}

function invalid(reply: FastifyReply, error: string) {
  return reply.code(422).send({ type: 'validation error', error });
}
