/** What the services that ask NASA POWER have in common: the cell that holds a point, and its newest days. */

import type { Source } from '@farebox/core/words/answer';
import {
  POWER_FIRST_DAY,
  POWER_GRID,
  type PowerDay,
  type PowerParameter,
} from '../../../upstreams/adapters/power.ts';
import type { RunContext } from '../../define.ts';
import { distanceKm, type Place } from './great-circle.ts';
import { assertObserved, dayOf, daysBetween, daysFrom } from './observation-day.ts';

/** The newest published days are searched this far back. */
const WINDOW_DAYS = 14;
/** After this many days a missing value is no longer expected. */
const SETTLED_DAYS = 30;

/** The middle of POWER's cell that holds a point. Both ends of the circle are one cell, named by its eastern longitude. */
function powerCell({ lat, lon }: Place): Place {
  const { latDegrees, lonDegrees } = POWER_GRID;
  return { lat: Math.round(lat / latDegrees) * latDegrees, lon: Math.round(lon / lonDegrees) * lonDegrees };
}

export interface PowerObservation {
  /** All days that were asked, oldest first; those that are not published yet hold null. */
  days: PowerDay[];
  /** The newest day that has a value at all, for one of the parameters at least; null when there is none. */
  newest: PowerDay | null;
  cell: Place;
  distanceKm: number;
  madeFrom: string;
  source: Source;
}

/**
 * Asks for a day, or for the newest days there are, and for so many days before.
 *
 * @param asked.date null: the newest day that is published
 * @param asked.daysBefore how many days more
 * @throws ServiceFailure 400 for a day to come, 422 for one before the record
 */
export async function observePower(
  asked: Place & { parameters: readonly PowerParameter[]; date: string | null; daysBefore: number },
  { upstreams, nowMs }: Pick<RunContext<'power'>, 'upstreams' | 'nowMs'>,
): Promise<PowerObservation> {
  const { lat, lon, parameters, date, daysBefore } = asked;
  if (date !== null) assertObserved(date, nowMs(), { title: 'NASA POWER', firstDay: POWER_FIRST_DAY });
  const today = dayOf(nowMs());
  const last = date ?? today;
  const wanted = daysFrom(last, -(date === null ? WINDOW_DAYS : 0) - daysBefore);
  const { value, source } = await upstreams.power.daily({
    parameters,
    lat,
    lon,
    first: wanted < POWER_FIRST_DAY ? POWER_FIRST_DAY : wanted,
    last,
    settled: daysBetween(last, today) > SETTLED_DAYS,
  });
  const newest = value.days.findLast(({ values }) => values.some((one) => one !== null)) ?? null;
  const cell = powerCell({ lat, lon });
  return {
    days: value.days,
    newest: date === null || newest?.day === date ? newest : null,
    cell,
    distanceKm: distanceKm({ lat, lon }, cell),
    madeFrom: value.madeFrom.join(', ') || 'not named',
    source: { ...source, asOf: newest === null ? null : `${newest.day}T00:00:00.000Z` },
  };
}

/** Whether a day is recent enough that its values may still be published. */
export function mayStillCome(day: string, nowMs: number): boolean {
  return daysBetween(day, dayOf(nowMs)) <= SETTLED_DAYS;
}
