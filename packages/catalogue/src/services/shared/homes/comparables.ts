/** Which sales a home is compared with, and what each says of it. */
import type { StateIndex } from '../../../upstreams/adapters/fhfa.ts';
import type { FoundSales, HomeType, Sale } from '../../../upstreams/adapters/sales.ts';
import { distanceKm, type Place } from '../earth/great-circle.ts';

const DAY_MS = 86_400_000;

/** A sale is compared when it keeps all of these. */
export const SALE_RULES = {
  /** Of the home's place; about a mile. */
  radiusMeters: 1_600,
  withinDays: 730,
  /** How many times as large one may be as the other. */
  sizeRatio: 1.5,
  /** What passes within a family, or by a court, is often written down with a price in name alone. */
  leastPriceUsd: 10_000,
  /** How many times the median of all that fit one may say. Beyond it stand several homes under one deed, and slips. */
  priceRatio: 3,
  /** Fewer say too little, and none of them is used. */
  least: 3,
  most: 10,
} as const;

export interface ComparedHome extends Place {
  /** Null: any kind of home. */
  type: HomeType | null;
  /** Null: not known. */
  squareFeet: number | null;
}

/** A sale that is compared. */
export interface Comparable {
  soldOn: string;
  priceUsd: number;
  distanceMeters: number;
  propertyType: HomeType;
  squareFeet: number | null;
  /** The state's index in its newest quarter over that in the quarter of the sale. */
  indexFactor: number;
  /** What the sale says of the home: its price by the index, and by the two areas where both are known. */
  valueUsd: number;
}

export interface Compared {
  /** The most alike first; empty, or at least as many as the rules want. */
  comparables: Comparable[];
  /** How many kept the rules. */
  fitting: number;
  /** How many were looked at. */
  looked: number;
  /** How many did not, by what each broke first. */
  leftOut: ReadonlyMap<string, number>;
}

/** The kind of home that a caller's words mean. Null: none of those that sales are known of. */
export function homeTypeOf(words: string): HomeType | 'any' | null {
  const said = words.toLowerCase().replaceAll(/[\s_-]+/g, ' ');
  if (/\b(mobile|manufactured|duplex|triplex|fourplex|(house)?boat)\b/.test(said)) return null;
  if (/\b(town ?(house|home)s?|row ?(house|home)s?|semi detached)\b/.test(said)) return 'townhouse';
  if (/\b(condos?|condominiums?|apartments?|flats?|co ?ops?)\b/.test(said)) return 'condo';
  if (/\b(houses?|single family|sfr|detached|bungalow|cottage|villa)\b/.test(said)) return 'house';
  return /\b(homes?|residential|residence)\b/.test(said) ? 'any' : null;
}

/** The span of days that sales are asked for. */
export function saleSpan(nowMs: number): { from: string; to: string } {
  return { from: dayOf(nowMs - SALE_RULES.withinDays * DAY_MS), to: dayOf(nowMs) };
}

/**
 * Chooses by the rules, and moves each price to the newest quarter of the index.
 *
 * @param quarters of the home's state, oldest first
 */
export function compareSales(
  { sales, malformed }: FoundSales,
  home: ComparedHome,
  { quarters, nowMs }: { quarters: readonly StateIndex[]; nowMs: number },
): Compared {
  const leftOut = new Map<string, number>();
  const leave = (reason: string, count = 1) => {
    if (count > 0) leftOut.set(reason, (leftOut.get(reason) ?? 0) + count);
  };
  leave('no sale by its form', malformed);
  const candidates: { sale: Sale; comparable: Comparable; unlike: number }[] = [];
  const { once, doubled } = lastSaleOfEach(sales);
  leave('sold again since, or listed twice', doubled);
  for (const sale of once) {
    const distanceMeters = Math.round(distanceKm(home, sale) * 1_000);
    const broken = brokenRule(sale, distanceMeters, home, nowMs);
    const indexFactor = factorSince(sale.soldOn, quarters);
    if (broken !== null) leave(broken);
    else if (sale.type === 'other') leave('of another kind');
    else if (indexFactor === null) leave('in a quarter without an index');
    else {
      const sizes =
        home.squareFeet === null || sale.squareFeet === null ? 1 : home.squareFeet / sale.squareFeet;
      const ageDays = (nowMs - Date.parse(sale.soldOn)) / DAY_MS;
      candidates.push({
        sale,
        comparable: {
          soldOn: sale.soldOn,
          priceUsd: sale.priceUsd,
          distanceMeters,
          propertyType: sale.type,
          squareFeet: sale.squareFeet,
          indexFactor,
          valueUsd: sale.priceUsd * indexFactor * sizes,
        },
        unlike:
          distanceMeters / SALE_RULES.radiusMeters +
          ageDays / SALE_RULES.withinDays +
          Math.abs(Math.log(sizes)) / Math.log(SALE_RULES.sizeRatio),
      });
    }
  }
  const median = quantile(
    candidates.map(({ comparable }) => comparable.valueUsd),
    0.5,
  );
  const fitting = candidates.filter(({ comparable: { valueUsd } }) => {
    const isNear = valueUsd <= median * SALE_RULES.priceRatio && valueUsd >= median / SALE_RULES.priceRatio;
    if (!isNear) leave('far from the others in price');
    return isNear;
  });
  fitting.sort((a, b) => a.unlike - b.unlike || (a.sale.id < b.sale.id ? -1 : 1));
  return {
    comparables:
      fitting.length < SALE_RULES.least
        ? []
        : fitting.slice(0, SALE_RULES.most).map(({ comparable }) => comparable),
    fitting: fitting.length,
    looked: sales.length + malformed,
    leftOut,
  };
}

/** Of each home its last sale; none where two of that day do not say the same price. */
function lastSaleOfEach(sales: readonly Sale[]): { once: Sale[]; doubled: number } {
  const last = new Map<string, Sale | null>();
  const dayLast = new Map<string, string>();
  for (const sale of sales) {
    const day = dayLast.get(sale.id);
    if (day === undefined || sale.soldOn > day) {
      dayLast.set(sale.id, sale.soldOn);
      last.set(sale.id, sale);
    } else if (sale.soldOn === day && last.get(sale.id)?.priceUsd !== sale.priceUsd) {
      last.set(sale.id, null);
    }
  }
  const once = [...last.values()].filter((sale) => sale !== null);
  return { once, doubled: sales.length - once.length };
}

/** The first rule that a sale breaks; null: none. */
function brokenRule(sale: Sale, distanceMeters: number, home: ComparedHome, nowMs: number): string | null {
  const { from, to } = saleSpan(nowMs);
  if (sale.soldOn > to) return 'dated in the future';
  if (sale.soldOn < from) return `older than ${SALE_RULES.withinDays} days`;
  if (distanceMeters > SALE_RULES.radiusMeters) return `farther than ${SALE_RULES.radiusMeters} m`;
  if (sale.priceUsd < SALE_RULES.leastPriceUsd) return `below ${SALE_RULES.leastPriceUsd} USD`;
  if (home.type !== null && sale.type !== home.type) return 'of another kind';
  if (home.squareFeet === null) return null;
  if (sale.squareFeet === null) return 'of an unknown size';
  const ratio = home.squareFeet / sale.squareFeet;
  return Math.max(ratio, 1 / ratio) > SALE_RULES.sizeRatio ? 'of another size' : null;
}

/** The newest quarter over the one of a day; 1 for a day after it. Null where the index lacks that quarter. */
function factorSince(day: string, quarters: readonly StateIndex[]): number | null {
  const latest = quarters.at(-1);
  if (latest === undefined) return null;
  const year = Number(day.slice(0, 4));
  const quarter = Math.ceil(Number(day.slice(5, 7)) / 3);
  if (year > latest.year || (year === latest.year && quarter > latest.quarter)) return 1;
  const then = quarters.find((each) => each.year === year && each.quarter === quarter);
  return then === undefined ? null : latest.index / then.index;
}

/**
 * Where sorted values stand at a share of the way, straight between two neighbours.
 *
 * @param share 0 to 1; 0.5 is the median
 */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const below = sorted[Math.floor(at)] ?? Number.NaN;
  const above = sorted[Math.ceil(at)] ?? Number.NaN;
  return below + (above - below) * (at - Math.floor(at));
}

function dayOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10);
}
