/**
 * Records what was spent and which purchases are open: a small file that outlives the process, and that several processes share.
 * A purchase is written down before its payment leaves, so that nothing is paid twice and no limit is passed by a crash.
 */
import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Denial, Purchase } from 'farebox/buying';

/** More than a person has under way at once. */
const MAX_FRESH = 100;
/** Longer than any call runs: what was sent before is hardly waited for any more. */
const FRESH_FOR_MS = 10 * 60_000;
/** With those that were left behind. None makes room for another: the same request would be paid a second time. */
const MAX_OPEN = 10_000;
/** The time for which a server keeps an answer, from when it was asked for last. */
const OPEN_FOR_MS = 24 * 3_600_000;
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
  ) STRICT;
  -- Each time that a payment left and nobody knows yet what came of it.
  CREATE TABLE IF NOT EXISTS sends (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    purchase TEXT NOT NULL,
    sent_ms INTEGER NOT NULL,
    -- Until when it may be on its way; 0 once its answer was lost.
    until_ms INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS sends_of_purchase ON sends (purchase);
  -- Paid for, while others were still sending the same.
  CREATE TABLE IF NOT EXISTS paid (id TEXT PRIMARY KEY, at_ms INTEGER NOT NULL) STRICT;`;

/** One time that a payment left. */
export interface Send {
  id: bigint;
  purchase: string;
}

export interface Spending {
  /** The cost of today's answers, and what open purchases may still cost. */
  todayMicros(): bigint;
  /** The open purchase of this request; null without one. */
  openFor(request: string): Purchase | null;
  /**
   * Writes a purchase down. Nothing may be sent before.
   *
   * @param limitMicros what the day may come to with it; null when a person has agreed
   * @returns the purchase to send: another one when somebody has opened one for the same request meanwhile. `above`
   *   when it would pass the limit, `full` when too many are open
   */
  open(purchase: Purchase, limitMicros: bigint | null): Purchase | 'above' | 'full';
  /**
   * Its payment is about to leave: nobody knows its end from here on.
   *
   * @param forMs how long it may be on its way
   * @returns by which its end is told; null when another who sent it has given it up: it must not leave any more
   */
  sending(id: string, forMs: number): Send | null;
  /** No answer came: what became of it is not known, and stays so whatever another time is answered. */
  lost(send: Send): void;
  /**
   * It was answered, and is paid for.
   *
   * @param again whether the answer had been sold before: whoever got it then has counted it
   */
  settle(purchase: Purchase, again: boolean): void;
  /**
   * The server says that this time it has cost nothing. The purchase is given up only when no other time can have been paid.
   *
   * @returns whether it is given up
   */
  giveUp(send: Send, said: Denial): boolean;
  close(): void;
}

/** @throws when the file can be neither read nor made: nothing may be bought then */
export function openSpending(file: string, nowMs: () => number): Spending {
  const database = openFile(file);
  const read = reader(database, nowMs);
  const { fresh, openFor, row, sum } = read;
  const tidy = tidier(database, read, nowMs);

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
        if (open >= MAX_OPEN || fresh() >= MAX_FRESH) return 'full';
        const { id, request, payment, micros } = purchase;
        database
          .prepare('INSERT INTO purchases VALUES (?, ?, ?, ?, ?, NULL)')
          .run(id, request, payment, micros, nowMs());
        return purchase;
      }),
    ...sendsOf(database, { ...read, atOnce, nowMs }),
    close: () => database.close(),
  };
}

/** The writes about payments that leave. */
function sendsOf(
  database: DatabaseSync,
  {
    add,
    atOnce,
    mayBePaid,
    nowMs,
    row,
    today,
  }: ReturnType<typeof reader> & { atOnce<T>(work: () => T): T; nowMs: () => number },
): Pick<Spending, 'sending' | 'lost' | 'settle' | 'giveUp'> {
  return {
    sending: (id, forMs) =>
      atOnce(() => {
        const open = row(
          'UPDATE purchases SET held_until_ms = NULL WHERE id = ? AND request IS NOT NULL RETURNING id',
          id,
        );
        if (open === undefined && row('SELECT id FROM paid WHERE id = ?', id) === undefined) return null;
        const now = nowMs();
        const sent = row(
          'INSERT INTO sends (purchase, sent_ms, until_ms) VALUES (?, ?, ?) RETURNING id',
          ...[id, now, now + forMs],
        );
        return { id: sent?.id as bigint, purchase: id };
      }),
    lost: ({ id, purchase }) =>
      atOnce(() => {
        // Of those that were lost the last says all.
        database
          .prepare('DELETE FROM sends WHERE purchase = ? AND id < ? AND until_ms <= ?')
          .run(purchase, id, nowMs());
        database.prepare('UPDATE sends SET until_ms = 0 WHERE id = ?').run(id);
      }),
    settle: ({ id, micros }, again) =>
      atOnce(() => {
        // Somebody else who sent the same purchase may have struck it off: as paid, or as failed before it was paid.
        const known = row('DELETE FROM purchases WHERE id = ? RETURNING id', id);
        if (known !== undefined || !again) add(today(), micros);
        // Whoever else sends it may go on: they get the answer that was sold.
        database.prepare('INSERT INTO paid VALUES (?, ?) ON CONFLICT (id) DO NOTHING').run(id, nowMs());
        database.prepare('DELETE FROM sends WHERE purchase = ?').run(id);
      }),
    giveUp: ({ id, purchase }, { outcome, endsAtMs }) =>
      atOnce(() => {
        database.prepare('DELETE FROM sends WHERE id = ?').run(id);
        if (mayBePaid(purchase, outcome)) return false;
        database.prepare('DELETE FROM sends WHERE purchase = ?').run(purchase);
        if (endsAtMs === null) database.prepare('DELETE FROM purchases WHERE id = ?').run(purchase);
        else
          database
            .prepare(
              'UPDATE purchases SET held_until_ms = ?, request = CASE WHEN ? THEN request END WHERE id = ?',
            )
            // One that failed is asked with the same payment again; one that was refused is bought anew.
            .run(endsAtMs, outcome === 'uncharged' ? 1 : 0, purchase);
        return true;
      }),
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

const NOT_ON_ITS_WAY = `NOT EXISTS (SELECT 1 FROM sends WHERE purchase = purchases.id AND until_ms > ?)`;
const LAST_SENT_MS = `max(opened_ms, coalesce((SELECT max(sent_ms) FROM sends WHERE purchase = purchases.id), 0))`;

/** The reads of the file within a transaction. */
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

  return {
    all,
    dayOf,
    today,
    row,
    add,
    /** How many were opened or sent of late. */
    fresh: (): bigint => {
      const known = row(
        `SELECT count(*) AS fresh FROM purchases WHERE ${LAST_SENT_MS} >= ?`,
        nowMs() - FRESH_FOR_MS,
      );
      return known?.fresh as bigint;
    },
    /** Whether another time that its payment left may have been paid for, after one was denied. */
    mayBePaid: (purchase: string, outcome: Denial['outcome']): boolean =>
      row(
        'SELECT id FROM sends WHERE purchase = ? AND until_ms > ? LIMIT 1',
        ...[purchase, outcome === 'uncharged' ? -1 : nowMs()],
      ) !== undefined,
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

/** @returns what strikes off purchases that are over, within a transaction */
function tidier(
  database: DatabaseSync,
  { add, all, dayOf, row, today }: ReturnType<typeof reader>,
  nowMs: () => number,
): () => void {
  /** Strikes off what is sent no more. It counts as spent on its last day: nobody but the server knows whether it was. */
  function strikeOff(which: string, ...values: number[]): void {
    const struck = all(
      `DELETE FROM purchases WHERE ${which} AND ${NOT_ON_ITS_WAY} RETURNING id, micros, opened_ms, held_until_ms`,
      ...[...values, nowMs()],
    );
    for (const { id, micros, opened_ms, held_until_ms } of struck) {
      const sent = row('SELECT max(sent_ms) AS ms FROM sends WHERE purchase = ?', id as string)?.ms;
      add(dayOf(Number((held_until_ms ?? sent ?? opened_ms) as bigint)), micros as bigint);
      database.prepare('DELETE FROM sends WHERE purchase = ?').run(id as string);
    }
  }

  return () => {
    strikeOff('held_until_ms < ?', nowMs());
    strikeOff(`held_until_ms IS NULL AND ${LAST_SENT_MS} < ?`, nowMs() - OPEN_FOR_MS);
    database.prepare('DELETE FROM paid WHERE at_ms < ?').run(nowMs() - FRESH_FOR_MS);
    // Of purchases that are struck off or paid: whoever sent them has gone.
    database.prepare('DELETE FROM sends WHERE sent_ms < ?').run(nowMs() - 2 * OPEN_FOR_MS);
    // Counted in days that have something, and never today's: a clock that is put right must not lose what was spent.
    database
      .prepare(
        'DELETE FROM spent WHERE day <> ? AND day NOT IN (SELECT day FROM spent ORDER BY day DESC LIMIT ?)',
      )
      .run(today(), KEPT_DAYS);
  };
}
