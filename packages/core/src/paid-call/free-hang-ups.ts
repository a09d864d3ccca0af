/**
 * Calls that their callers left unpaid by hanging up. A call that nobody could ask for again is not charged when its
 * caller leaves, although its work was begun; a buyer may do that so many times a day. After that, services whose
 * upstream costs money are sold to it only under an `Idempotency-Key`, with which a call runs to its end, is charged and
 * is kept.
 *
 * While such a service runs for a caller who could leave it unpaid, one of the free hang-ups is held for it. So they
 * cannot be exceeded by calls at the same time, here or on other replicas.
 */
import type { Database } from '../db/connection.ts';
import { sqlFunction } from '../db/functions.ts';
import { Problem } from '../http/problem.ts';

/** How many calls a buyer may leave unpaid in a day (UTC). */
export const FREE_HANG_UPS_A_DAY = 20;

const TAKE = sqlFunction('free_hang_up_take');

export interface FreeHangUps {
  /**
   * Holds one of the free hang-ups of the day for a call, until it is given back, used, or `untilMs` has passed.
   *
   * @returns false when the buyer has none left
   */
  hold(call: { id: string; accountId: bigint }, untilMs: number): Promise<boolean>;
  /** Gives back what was held or used for a call that has not been left after all. */
  giveBack(callId: string): Promise<void>;
  /**
   * Notes that the caller of a call has hung up. Beyond the free ones nothing is noted.
   *
   * @returns whether it was one of the free ones
   */
  use(call: { id: string; accountId: bigint }): Promise<boolean>;
  /** Deletes the rows of days that have passed. */
  forget(): Promise<void>;
}

/** @param parts.buyerOf the name under which an account's calls are counted, together with those of other accounts */
export function createFreeHangUps(parts: {
  sql: Database;
  nowMs(): number;
  buyerOf(accountId: bigint): Promise<string>;
}): FreeHangUps {
  const { sql, nowMs, buyerOf } = parts;
  const at = (ms: number) => new Date(ms).toISOString();
  const today = () => at(nowMs()).slice(0, 10);

  async function take(
    { id, accountId }: { id: string; accountId: bigint },
    heldUntil: string | null,
  ): Promise<boolean> {
    const [row] = await sql<{ taken: boolean }[]>`
      select ${sql(TAKE)}(${await buyerOf(accountId)}, ${today()}, ${FREE_HANG_UPS_A_DAY}, ${id}, ${heldUntil},
                          ${at(nowMs())}) as taken`;
    return row?.taken === true;
  }

  return {
    hold: (call, untilMs) => take(call, at(untilMs)),

    async giveBack(callId) {
      await sql`delete from free_hang_ups where call_id = ${callId}`;
    },

    async use(call) {
      const held = await sql`update free_hang_ups set held_until = null where call_id = ${call.id}`;
      return held.count > 0 || (await take(call, null));
    },

    async forget() {
      await sql`delete from free_hang_ups where day < ${today()}`;
    },
  };
}

/** The refusal of a call whose buyer has used its free hang-ups of the day. */
export function idempotencyKeyRequired(): Problem {
  return new Problem(
    428,
    'IDEMPOTENCY_KEY_REQUIRED',
    `The callers of ${FREE_HANG_UPS_A_DAY} calls hung up today (UTC) before they were answered or charged, or are still waiting. Until some have been answered, or the day is over, this service is sold with an Idempotency-Key only.`,
    {
      details: {
        charged: false,
        freeHangUpsADay: FREE_HANG_UPS_A_DAY,
        hint: 'Send an Idempotency-Key of your own with each call (1 to 255 printable characters without spaces; over MCP the header, or _meta["farebox/idempotencyKey"]). Such a call runs to its end, is charged once, and its answer is kept for the same call again.',
      },
    },
  );
}
