/** Days of observations: which can be requested, and how the others are refused. */
import { noAnswer, ServiceFailure } from '@farebox/core/words/failure';

const DAY_MS = 86_400_000;

/** A moment's day in UTC, YYYY-MM-DD. */
export function dayOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10);
}

/** The day so many days later, or earlier if negative. */
export function daysFrom(day: string, days: number): string {
  return dayOf(Date.parse(`${day}T00:00:00Z`) + days * DAY_MS);
}

/** How many days lie between two; positive if `later` is the later one. */
export function daysBetween(earlier: string, later: string): number {
  return Math.round((Date.parse(`${later}T00:00:00Z`) - Date.parse(`${earlier}T00:00:00Z`)) / DAY_MS);
}

/**
 * Checks that a day is not in the future and that the record reaches back to it.
 *
 * @param record the name of the record, and its first day
 * @throws ServiceFailure 400 for a day in the future, 422 `BEFORE_RECORD` for one before the first
 */
export function assertObserved(
  day: string,
  nowMs: number,
  record: { title: string; firstDay: string },
  field = 'date',
): void {
  const today = dayOf(nowMs);
  if (day > today) throw invalid(field, `${field} ${day} lies in the future; today is ${today} in UTC.`);
  if (day < record.firstDay) {
    throw noAnswer(
      'BEFORE_RECORD',
      `${record.title} begins on ${record.firstDay}; ${day} is before it.`,
      field,
    );
  }
}

/** A request that makes no sense as it stands (400, not charged). */
export function invalid(field: string, message: string): ServiceFailure {
  return new ServiceFailure({ status: 400, code: 'INVALID_REQUEST', message, field });
}
