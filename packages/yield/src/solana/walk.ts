/**
 * Reads the transactions of the treasury's token account, whoever sent them: so a deposit is found by its fee, whether its wallet
 * confirmed it or not. It goes from the newest down to where it began last, a page at a time, and may stop after any of them.
 */

import { arrayLiteral } from '@farebox/core/db/array-literal';
import type { Database } from '@farebox/core/db/connection';
import { type Held, LeasedQueue, type QueueShape } from '@farebox/core/db/leased-queue';
import type { FastifyBaseLogger } from 'fastify';
import { type Listed, type Node, PAGE } from './node.ts';
import type { Portal } from './portal.ts';

/** Pages of a round: what is left is read in the next one. */
const MAX_PAGES = 10;
/** One that is listed and cannot be fetched is asked for again so often, the first time after a minute: for about three days. */
const MAX_TRIES = 20;
const AGAIN_MS = { first: 60_000, most: 6 * 3_600_000 };

/** Where a walk stands. */
interface Cursor {
  read_to: string | null;
  head: string | null;
  below: string | null;
  step: bigint;
}

export interface Unread {
  signature: string;
  slot: bigint;
  /** How often it was asked for and not shown, or came before what it is about. */
  tries: number;
}

const QUEUE: QueueShape = {
  name: 'solana-payments',
  table: 'solana_yield_unread',
  key: ['signature'],
  columns: ['tries', 'slot'],
  // A node that is silent takes none of the tries.
  attempts: null,
  leaseMs: 120_000,
  backOffMs: (tries) => Math.min(AGAIN_MS.first * 2 ** (tries - 1), AGAIN_MS.most),
  mostAttempts: null,
  settled: 'deleted',
  givenUpAt: null,
  thenBy: 'slot',
  since: 'listed_at',
};

export type Walk = ReturnType<typeof createWalk>;

export function createWalk(parts: {
  sql: Database;
  node: Node;
  portal: Portal;
  logger: Pick<FastifyBaseLogger, 'warn'>;
  nowMs(): number;
}) {
  const { sql, node, portal, logger, nowMs } = parts;

  async function cursorOf(account: string): Promise<Cursor> {
    await sql`INSERT INTO solana_yield_walks (account, step) VALUES (${account}, 0) ON CONFLICT DO NOTHING`;
    const [cursor] = await sql<Cursor[]>`
      SELECT read_to, head, below, step FROM solana_yield_walks WHERE account = ${account}`;
    return cursor ?? { read_to: null, head: null, below: null, step: 0n };
  }

  /** Keeps what a page listed, and where it ended, in one commit. @returns false: somebody else was there first */
  async function keep(account: string, at: Cursor, page: readonly Listed[], next: Omit<Cursor, 'step'>) {
    return sql.begin(async (transaction) => {
      const { count } = await transaction`
        UPDATE solana_yield_walks SET read_to = ${next.read_to}, head = ${next.head}, below = ${next.below}, step = step + 1
        WHERE account = ${account} AND step = ${at.step}`;
      if (count === 0) return false;
      const now = new Date(nowMs());
      await transaction`
        INSERT INTO solana_yield_unread (signature, slot, listed_at, next_at)
        SELECT u.signature, u.slot, ${now}::timestamptz, ${now}::timestamptz FROM unnest(
          ${arrayLiteral(page.map(({ signature }) => signature))}::text::text[],
          ${arrayLiteral(page.map(({ slot }) => slot))}::text::bigint[]) AS u (signature, slot)
        ON CONFLICT DO NOTHING`;
      return true;
    });
  }

  /** One page. @returns whether there is more to read now */
  async function step(): Promise<boolean> {
    const account = portal.treasuryAccount;
    const at = await cursorOf(account);
    // Below what it does not know a node lists nothing, as if the walk were over.
    if (at.below !== null && (await node.statuses([at.below])).statuses[0] === null) {
      logger.warn(
        { signature: at.below },
        'the node does not know how far the treasury was read: another one is waited for',
      );
      return false;
    }
    const listed = await node.signaturesOf(account, { before: at.below, until: at.read_to });
    const ours = listed.filter(({ slot }) => slot >= portal.sinceSlot);
    const head = at.head ?? listed[0]?.signature ?? null;
    if (head === null) return false;
    const isOver = listed.length < PAGE || ours.length < listed.length;
    const below = listed.at(-1)?.signature ?? at.below;
    const next = isOver ? { read_to: head, head: null, below: null } : { read_to: at.read_to, head, below };
    // What failed moved nothing.
    const done = ours.filter(({ err }) => err === null);
    return (await keep(account, at, done, next)) && !isOver;
  }

  return {
    /** Lists what is new. @throws what the node's client throws, and the database's */
    async list(stopping?: AbortSignal): Promise<void> {
      for (let pages = 0; pages < MAX_PAGES && stopping?.aborted !== true; pages += 1)
        if (!(await step())) return;
    },
    ...listedOf(sql, nowMs),
  };
}

/** The list of found transactions, until each has been looked at. */
function listedOf(sql: Database, nowMs: () => number) {
  const queue = new LeasedQueue<Unread>(sql, QUEUE, nowMs);
  return {
    queue,

    /** Takes listed ones to look at, the oldest first: a refund is read after the fee that it sends back. */
    async takeUnread(most: number): Promise<Held<Unread>[]> {
      const taken = await queue.claim(most);
      return taken.sort((one, other) => Number(one.slot) - Number(other.slot));
    },

    async isRead(unread: Held<Unread>): Promise<void> {
      await queue.settle(unread, { isFact: true });
    },

    /** It is listed, and cannot be read now. @returns false: given up, having been asked for often enough */
    async again(unread: Held<Unread>): Promise<boolean> {
      const tries = unread.tries + 1;
      if (tries >= MAX_TRIES) return !(await queue.settle(unread));
      await queue.backOff(unread, { set: { tries }, afterMs: QUEUE.backOffMs(tries) });
      return true;
    },
  };
}
