/** Compares the clocks of this machine, the database and the public address. */
import { type Database, databaseMs } from '@farebox/core/db/connection';
import { type Finding, findingsOf, type Look } from './finding.ts';

/** Beyond this the log warns; payments are signed for minutes. */
const MOST_APART_MS = 2_000;
/** `Date` of HTTP has whole seconds. */
const DATE_IS_OFF_BY_MS = 1_000;

export function lookAtClocks(parts: { sql: Database | null; url: string; nowMs(): number }): Look {
  const { sql, url, nowMs } = parts;
  const says = findingsOf('clock');
  const verdictOn = (whose: string, aheadMs: number, leewayMs: number): Finding => {
    const seconds = Math.round(aheadMs / 1_000);
    return Math.abs(aheadMs) <= MOST_APART_MS + leewayMs
      ? says.fine(`this machine and ${whose} agree about the time`)
      : says.mend(
          `this machine is ${seconds} s ahead of ${whose}`,
          'Set the clocks by a time service (NTP) on every machine.',
        );
  };

  return {
    step: 'clock',
    async look(signal) {
      return Promise.all([
        sql === null ? says.off('there is no database to compare with') : ofDatabase(sql),
        ofPublicAddress(signal),
      ]);
    },
  };

  async function ofDatabase(on: Database): Promise<Finding> {
    const askedMs = nowMs();
    const told = await databaseMs(on);
    const halfWay = (askedMs + nowMs()) / 2;
    return told === null
      ? says.mend('the database does not tell the time', 'Look at the database.')
      : verdictOn('the database', halfWay - told, (nowMs() - askedMs) / 2);
  }

  async function ofPublicAddress(signal: AbortSignal): Promise<Finding> {
    const askedMs = nowMs();
    const { headers } = await fetch(new URL('/health/live', url), { signal, redirect: 'manual' });
    const told = Date.parse(headers.get('date') ?? '');
    return Number.isNaN(told)
      ? says.note('the public address does not tell the time')
      : verdictOn('the public address', askedMs - told, DATE_IS_OFF_BY_MS + nowMs() - askedMs);
  }
}
