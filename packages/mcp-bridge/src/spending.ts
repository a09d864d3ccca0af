/**
 * What was spent, and which purchases are open: a small file that outlives the process, and that several processes share.
 * A purchase is written down before its payment leaves, so that nothing is paid twice and no limit is passed by a crash.
 */
import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** More than a person would leave behind, and few enough to be read at once. */
const MAX_OPEN = 100;
/** As long as a server keeps an answer. */
const OPEN_FOR_MS = 24 * 3_600_000;
/** Longer than any call runs: what was opened before is hardly waited for any more. */
const LEFT_BEHIND_MS = 10 * 60_000;
const KEPT_DAYS = 31;
const LOCK_WAIT_MS = 5_000;

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS spent (day TEXT PRIMARY KEY, micros INTEGER NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS purchases (
    id TEXT PRIMARY KEY,
    -- Null once its payment is not sent again.
    request TEXT UNIQUE,
    payment TEXT NOT NULL,
    micros INTEGER NOT NULL CHECK (micros >= 0),
    opened_ms INTEGER NOT NULL,
    -- Until when its payment is good; null while nobody knows what became of it.
    held_until_ms INTEGER
  ) STRICT;`;

export interface Purchase {
  id: string;
  /** What is bought, by whom and with what: the same question again is the same purchase until it is answered. */
  request: string;
  /** What is sent with the call: JSON. */
  payment: string;
  micros: bigint;
}

export interface Spending {
  /** What today's answers cost, and what open purchases may still cost. */
  todayMicros(): bigint;
  /** The open purchase of this request; null without one. */
  openFor(request: string): Purchase | null;
  /**
   * Writes a purchase down. Nothing may be sent before.
   *
   * @param limitMicros what the day may come to with it; null when a person has agreed
   * @returns the purchase to send: another one when somebody has opened one for the same request meanwhile. `above`
   *   when it would pass the limit, `full` when too many are open. One that was left behind makes room, and counts as spent
   */
  open(purchase: Purchase, limitMicros: bigint | null): Purchase | 'above' | 'full';
  /** Its payment is about to leave: nobody knows its end from here on. */
  sending(id: string): void;
  /**
   * It was answered, and is paid for.
   *
   * @param again whether the answer had been sold before: whoever got it then has counted it
   */
  settle(purchase: Purchase, again: boolean): void;
  /** It cost nothing, and its payment can move no money. */
  release(id: string): void;
  /**
   * The server says that it has cost nothing. It counts nevertheless, and as spent once its payment ends: whoever holds a
   * signed payment can take it and say no.
   *
   * @param untilMs when its payment ends
   * @param sentAgain whether the same request sends the same payment until then
   */
  hold(id: string, untilMs: number, sentAgain: boolean): void;
  close(): void;
}

/** @throws when the file can be neither read nor made: nothing may be bought then */
export function openSpending(file: string, nowMs: () => number): Spending {
  const database = openFile(file);
  const { add, giveUpOldest, openFor, row, sum, tidy, today } = reader(database, nowMs);

  function atOnce<T>(work: () => T): T {
    database.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      database.exec('COMMIT');
      return result;
    } catch (error) {
      database.exec('ROLLBACK');
      throw error;
    }
  }

  return {
    todayMicros: () =>
      atOnce(() => {
        tidy();
        return sum();
      }),
    openFor: (request) =>
      atOnce(() => {
        tidy();
        return openFor(request);
      }),
    open: (purchase, limitMicros) =>
      atOnce(() => {
        tidy();
        const known = openFor(purchase.request);
        if (known !== null) return known;
        if (limitMicros !== null && sum() + purchase.micros > limitMicros) return 'above';
        const { open } = row('SELECT count(*) AS open FROM purchases') as { open: bigint };
        if (open >= MAX_OPEN && !giveUpOldest()) return 'full';
        const { id, request, payment, micros } = purchase;
        database
          .prepare('INSERT INTO purchases VALUES (?, ?, ?, ?, ?, NULL)')
          .run(id, request, payment, micros, nowMs());
        return purchase;
      }),
    sending: (id) => {
      database.prepare('UPDATE purchases SET held_until_ms = NULL WHERE id = ?').run(id);
    },
    settle: ({ id, micros }, again) =>
      atOnce(() => {
        // Somebody else who sent the same purchase may have struck it off: as paid, or as failed before it was paid.
        const known = row('DELETE FROM purchases WHERE id = ? RETURNING id', id);
        if (known !== undefined || !again) add(today(), micros);
      }),
    release: (id) => {
      database.prepare('DELETE FROM purchases WHERE id = ?').run(id);
    },
    hold: (id, untilMs, sentAgain) => {
      database
        .prepare(
          'UPDATE purchases SET held_until_ms = ?, request = CASE WHEN ? THEN request END WHERE id = ?',
        )
        .run(untilMs, sentAgain ? 1 : 0, id);
    },
    close: () => database.close(),
  };
}

function openFile(file: string): DatabaseSync {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // Payments stand in it: for its owner alone.
  closeSync(openSync(file, 'a', 0o600));
  chmodSync(file, 0o600);
  const database = new DatabaseSync(file, { timeout: LOCK_WAIT_MS });
  database.exec(SCHEMA);
  return database;
}

/** What is asked of the file within a transaction. */
function reader(database: DatabaseSync, nowMs: () => number) {
  const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  const today = () => dayOf(nowMs());

  function all(sql: string, ...values: (string | number | bigint)[]): Record<string, unknown>[] {
    const statement = database.prepare(sql);
    statement.setReadBigInts(true);
    return statement.all(...values);
  }
  const row = (sql: string, ...values: (string | number | bigint)[]) => all(sql, ...values)[0];

  function add(day: string, micros: bigint): void {
    database
      .prepare(
        'INSERT INTO spent VALUES (?, ?) ON CONFLICT (day) DO UPDATE SET micros = micros + excluded.micros',
      )
      .run(day, micros);
  }

  /** Strikes off what is sent no more. It counts as spent on its day: nobody but the server knows whether it was. */
  function giveUp(which: string, ms: number): boolean {
    const given = all(`DELETE FROM purchases WHERE ${which} RETURNING micros, opened_ms`, ms);
    for (const { micros, opened_ms } of given) add(dayOf(Number(opened_ms)), micros as bigint);
    return given.length > 0;
  }

  return {
    today,
    row,
    add,
    /** Of the purchases that were left behind. @returns false without one */
    giveUpOldest: (): boolean =>
      giveUp(
        'id = (SELECT id FROM purchases WHERE opened_ms < ? ORDER BY opened_ms LIMIT 1)',
        nowMs() - LEFT_BEHIND_MS,
      ),
    tidy(): void {
      giveUp('held_until_ms < ?', nowMs());
      giveUp('held_until_ms IS NULL AND opened_ms < ?', nowMs() - OPEN_FOR_MS);
      // Counted in days that have something, and never today's: a clock that is put right must not lose what was spent.
      database
        .prepare(
          'DELETE FROM spent WHERE day <> ? AND day NOT IN (SELECT day FROM spent ORDER BY day DESC LIMIT ?)',
        )
        .run(today(), KEPT_DAYS);
    },
    sum(): bigint {
      const known = row(
        `SELECT coalesce((SELECT micros FROM spent WHERE day = ?), 0)
              + coalesce((SELECT sum(micros) FROM purchases), 0) AS micros`,
        today(),
      );
      return known?.micros as bigint;
    },
    openFor(request: string): Purchase | null {
      const known = row('SELECT id, request, payment, micros FROM purchases WHERE request = ?', request);
      return known === undefined ? null : (known as unknown as Purchase);
    },
  };
}
