/**
 * How much of a chain's node may be used for callers who pay nothing. Payments are looked up at the same node, so free
 * reads have a bound of their own, far below what a node takes. Payments, the keepers and the indexer do not count.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { claimantOf, siteOf } from '@farebox/core/http/caller-address';
import { unavailable } from '@farebox/core/http/problem';
import { rateExceeded } from '@farebox/core/http/rate-limit';
import { LRUCache } from 'lru-cache';

const MINUTE_MS = 60_000;
/** Unused turns are saved up for so long. */
const SAVED_MS = 5_000;
/** A read waits so long for its turn; one that would wait longer is refused at once. */
const MAX_WAIT_MS = 2_000;
/** One caller gets at most this part of the budget, and a /48 of IPv6 at most that. */
const CALLER_PARTS = 4;
const SITE_PARTS = 2;
const MAX_NAMES = 10_000;

/** `made`: at once or after a wait; `shared`: another caller's answer; `caller_refused`: the caller had its part. */
export type FreeReadOutcome = 'made' | 'waited' | 'shared' | 'caller_refused' | 'refused';

export interface FreeReads {
  /**
   * Reads the chain for a caller who pays nothing, when it is that read's turn.
   *
   * @param address the caller's, as it is
   * @param sameAs a name of what is read: whoever wants the same while it is being read gets the same answer
   * @throws Problem 429 when the caller has had its part, 503 when all callers together have had theirs
   */
  read<Answer>(address: string, work: () => Promise<Answer>, sameAs?: string): Promise<Answer>;
}

export interface FreeReadsParts {
  perMinute: number;
  count(outcome: FreeReadOutcome): void;
  nowMs(): number;
  wait?(ms: number): Promise<unknown>;
}

export function createFreeReads(parts: FreeReadsParts): FreeReads {
  const { perMinute, count, nowMs, wait = (ms) => sleep(ms) } = parts;
  const everyMs = MINUTE_MS / perMinute;
  const all: Turns = { everyMs, nextMs: 0 };
  const callers = turnsByName(everyMs * CALLER_PARTS);
  const sites = turnsByName(everyMs * SITE_PARTS);
  const reading = new Map<string, Promise<unknown>>();

  /** Takes the caller's turn and everybody's. @returns how long to wait for both, in ms */
  function take(address: string): number {
    const site = siteOf(address);
    const own = [callers(claimantOf(address)), ...(site === null ? [] : [sites(site)])];
    const ownMs = Math.max(...own.map((turns) => waitFor(turns, nowMs())));
    if (ownMs > MAX_WAIT_MS) {
      count('caller_refused');
      throw rateExceeded({
        allowed: false,
        remaining: 0,
        resetSeconds: Math.ceil(ownMs / 1_000),
        limit: Math.floor(perMinute / CALLER_PARTS),
      });
    }
    const waitMs = Math.max(ownMs, waitFor(all, nowMs()));
    if (waitMs > MAX_WAIT_MS) {
      count('refused');
      throw unavailable(
        'FREE_READS_BUSY',
        'Free reads have used what they may of this chain’s node. Paid calls go on.',
        waitMs,
        { success: false },
      );
    }
    for (const turns of [...own, all]) turns.nextMs = Math.max(turns.nextMs, nowMs()) + turns.everyMs;
    return waitMs;
  }

  async function readNow<Answer>(waitMs: number, work: () => Promise<Answer>): Promise<Answer> {
    if (waitMs > 0) await wait(waitMs);
    return work();
  }

  return {
    async read<Answer>(address: string, work: () => Promise<Answer>, sameAs?: string): Promise<Answer> {
      const running = sameAs === undefined ? undefined : reading.get(sameAs);
      if (running !== undefined) {
        count('shared');
        return running as Promise<Answer>;
      }
      const waitMs = take(address);
      count(waitMs > 0 ? 'waited' : 'made');
      const answer = readNow(waitMs, work);
      if (sameAs === undefined) return answer;
      reading.set(sameAs, answer);
      return answer.finally(() => reading.delete(sameAs));
    },
  };
}

/** One turn each `everyMs`; those of the last `SAVED_MS` that nobody took can be taken at once. */
interface Turns {
  everyMs: number;
  /** When the turn after those that were taken would be, were none saved. */
  nextMs: number;
}

function waitFor(turns: Turns, nowMs: number): number {
  const savedMs = Math.max(SAVED_MS - turns.everyMs, 0);
  // No turn is given out further ahead than this. Where one seems to be, the clock was put back.
  if (turns.nextMs > nowMs + savedMs + MAX_WAIT_MS + turns.everyMs) turns.nextMs = nowMs;
  return Math.max(0, turns.nextMs - nowMs - savedMs);
}

function turnsByName(everyMs: number): (name: string) => Turns {
  // By size and not by `max`, which takes the memory of all names at once.
  const known = new LRUCache<string, Turns>({ maxSize: MAX_NAMES, sizeCalculation: () => 1 });
  return (name) => {
    const turns = known.get(name) ?? { everyMs, nextMs: 0 };
    known.set(name, turns);
    return turns;
  };
}
