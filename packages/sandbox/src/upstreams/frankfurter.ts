/** https://api.frankfurter.dev/v2/rates: the reference rates of working days, each set at 14:15 UTC. */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { CURRENCIES, type Currency } from './companies.ts';
import { keyOf, Path } from './noise.ts';
import { listOf, type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const DAY_MS = 86_400_000;
const FIXING_MS = (14 * 60 + 15) * 60_000;
/** The volatility of a currency against the dollar in a day. It is 7.5 % in a year of 260 working days. */
const SIGMA_PER_DAY = 0.075 / Math.sqrt(260);
const REFERENCE_DAY = Date.UTC(2026, 10, 1) / DAY_MS;
const FIRST_DAY = Date.UTC(2020, 0, 1) / DAY_MS;
const MOST_DAYS = 2_000;

export function frankfurter(app: FastifyInstance, { seed, nowMs }: World): void {
  const paths = new Map(
    CURRENCIES.map(({ code }) => [code, new Path(keyOf(seed, `fx:${code}`), SIGMA_PER_DAY)]),
  );

  function usdOf({ code, anchorUsd }: Currency, day: number): number {
    const path = paths.get(code);
    if (code === 'USD' || path === undefined) return 1;
    return anchorUsd * Math.exp(path.at(day) - path.at(REFERENCE_DAY));
  }

  function find(code: string | undefined): Currency | undefined {
    return CURRENCIES.find((currency) => currency.code === code?.toUpperCase());
  }

  app.get<{ Querystring: Query }>('/v2/rates', ({ query }, reply) => {
    const base = find(textOf(query, 'base') ?? 'EUR');
    if (base === undefined) return refuse(reply, `invalid currency: ${textOf(query, 'base')}`);
    const asked = listOf(textOf(query, 'quotes'), 50);
    const quotes = asked.length === 0 ? CURRENCIES.filter((one) => one !== base) : asked.map(find);
    const known = quotes.filter((one) => one !== undefined);
    if (known.length < quotes.length) return refuse(reply, 'invalid currency');
    const today = Math.floor((nowMs() - FIXING_MS) / DAY_MS);
    const from = dayOf(textOf(query, 'from')) ?? today;
    const to = Math.min(today, dayOf(textOf(query, 'to')) ?? today);
    if (Number.isNaN(from) || Number.isNaN(to)) return refuse(reply, 'invalid date');
    const rows = [];
    for (let day = Math.max(from, FIRST_DAY, to - MOST_DAYS); day <= to; day++) {
      // No rates on Saturdays and Sundays: 1970-01-01, day 0, was a Thursday.
      if ((day + 3) % 7 >= 5) continue;
      for (const quote of known) {
        rows.push({
          date: new Date(day * DAY_MS).toISOString().slice(0, 10),
          base: base.code,
          quote: quote.code,
          rate: Number((usdOf(base, day) / usdOf(quote, day)).toPrecision(6)),
        });
      }
    }
    return rows;
  });
}

function dayOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(`${text}T00:00:00Z`) / DAY_MS;
}

function refuse(reply: FastifyReply, message: string) {
  return reply.code(422).send({ status: 422, message });
}
