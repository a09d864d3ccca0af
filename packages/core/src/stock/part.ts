/** What is sold, kept at its newest version on every replica: by the file of the shop, and by what operators set. */
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { House, Part } from '../part.ts';
import { createStockDesk, type StockDesk } from './desk.ts';
import { StockKeeper } from './keeper.ts';
import { type StockSource, sourceWithoutFile } from './source.ts';
import { createVersionStore, type Standing } from './version-store.ts';

export type { StockSource };

const FOLLOWED_EVERY_MS = 2_000;
/**
 * The pause between two looks that payments for prices which are not known here ask for. Whoever pays wrongly waits as long, so it is
 * short: a look reads the numbers of the newest versions, and one is under way at a time.
 */
const LOOK_PAUSE_MS = 10;

export interface StockNeeds {
  /** From what this process sells; the services of the house alone unless given. */
  source: StockSource | undefined;
  /** This process's row in `replicas`; null before its first sign of life. */
  replica(): bigint | null;
  /** All parts, once they are open: each may say what it cannot sell. */
  parts(): readonly Part[];
}

/** Opens it. `reload` reads the file anew; `desk` is what an operator sees and sets. */
export function openStock(
  house: House,
  { source: given, replica, parts }: StockNeeds,
): Part & { desk: StockDesk; reload(why: string): Promise<void> } {
  const { shelf, logger, pools, nowMs } = house;
  const source = given ?? sourceWithoutFile(shelf);
  const store = createVersionStore(pools.sql, nowMs);
  const host = hostname();
  const keeper = new StockKeeper({
    shelf,
    source,
    store,
    host,
    logger,
    nowMs,
    refuses(services) {
      for (const part of parts()) {
        const refused = part.refuses?.(services) ?? null;
        if (refused !== null) return refused;
      }
      return null;
    },
  });
  shelf.lookBy(onceAtATime(() => keeper.follow(), LOOK_PAUSE_MS));
  const others = createNoticeBoard(store, () => standingOf(keeper, replica(), host));
  return {
    name: 'stock',
    desk: createStockDesk({ keeper, store, source, shelf }),
    async reload(why) {
      await keeper.reload(why);
      await others.look().catch(() => {});
    },
    async prepare(patience) {
      await patience.take(() => keeper.start());
      await others.look().catch(() => {});
    },
    jobs: [
      {
        name: 'follow-stock',
        intervalMs: FOLLOWED_EVERY_MS,
        async run() {
          await keeper.watch();
          await keeper.follow();
          await others.look();
        },
      },
    ],
    readiness: (isFromWithin) => readinessOf(keeper, others.seen(), isFromWithin),
  };
}

/**
 * Does something for all who ask meanwhile, and not again before a while has passed: each of them gets what began after it asked. A
 * failure is nobody's: what is known stays known.
 */
function onceAtATime(work: () => Promise<void>, pauseMs: number): () => Promise<void> {
  let next: Promise<void> | null = null;
  let last: Promise<unknown> = Promise.resolve();
  return () => {
    next ??= last.then(() => {
      next = null;
      const run = work().catch(() => {});
      last = run.then(() => sleep(pauseMs, undefined, { ref: false }));
      return run;
    });
    return next;
  };
}

function standingOf(keeper: StockKeeper, replica: bigint | null, host: string): Standing | null {
  if (replica === null) return null;
  const { served, refusal } = keeper;
  return { replica, host, ...served, refused: refusal?.version ?? null, reason: refusal?.reason ?? null };
}

/** Tells others what this process serves, and keeps what they told last. */
function createNoticeBoard(
  store: Pick<ReturnType<typeof createVersionStore>, 'note' | 'standings'>,
  own: () => Standing | null,
) {
  let noted = '';
  let seen: readonly Standing[] = [];
  return {
    seen: () => seen,
    async look(): Promise<void> {
      const standing = own();
      const text = standing === null ? '' : Object.values(standing).join('|');
      if (standing !== null && text !== noted) {
        await store.note(standing);
        noted = text;
      }
      seen = await store.standings();
    },
  };
}

/** What `/health/ready` says of it; null while there is no version. Reasons and machines are told from within alone. */
function readinessOf(
  keeper: StockKeeper,
  seen: readonly Standing[],
  isFromWithin: boolean,
): Record<string, unknown> | null {
  const { served, newest, refusal } = keeper;
  if (newest.file === null && newest.rules === null && refusal === null) return null;
  const text = (number: bigint | null) => (number === null ? null : String(number));
  const behind = seen.filter(
    ({ file, rules }) => (file !== null && file !== newest.file) || rules !== newest.rules,
  );
  return {
    sells: {
      file: text(served.file),
      rules: text(served.rules),
      newest: { file: text(newest.file), rules: text(newest.rules) },
      refused:
        refusal === null
          ? null
          : { version: text(refusal.version), ...(isFromWithin ? { reason: refusal.reason } : {}) },
      behind: isFromWithin
        ? behind.map(({ replica, host, reason }) => ({ replica: String(replica), host, reason }))
        : behind.length,
    },
  };
}
