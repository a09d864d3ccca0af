import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { RESTORED_MARK } from '@farebox/process/restored-mark';
import type { DATABASE } from '../db/declared.ts';
import type { Configured } from '../declared.ts';
import type { House, Part } from '../part.ts';
import { inWords, type OpenRecovery, openRecoveryIn, seeWhereItRuns, shutIn } from './lineage.ts';

const LOOK_EVERY_MS = 1_000;

/**
 * Shuts the shop while the database is older than the world around it, until an operator has run `npm run recover`.
 *
 * @param database how it is configured: `npm run restore` leaves its mark in the folder of an embedded one
 * @param ownReplica this process's row in `replicas`
 *
 * @example
 * ```ts
 * import { openRecovery } from '@farebox/core/recovery/part';
 *
 * openRecovery(house, config.database, () => null).shut?.(); // null
 * ```
 */
export function openRecovery(
  { pools, logger, nowMs }: House,
  { settings, secrets }: Configured<typeof DATABASE.variables>,
  ownReplica: () => bigint | null,
): Part {
  const { sql } = pools;
  const folder = secrets.reveal().databaseUrl === null ? settings.dataDir : null;
  let shut: OpenRecovery | null = null;
  let isRewound = false;
  const mark = folder === null ? null : join(folder, RESTORED_MARK);

  async function look(lives: boolean): Promise<void> {
    const hasMark = mark !== null && existsSync(mark);
    const at = { ownReplica: ownReplica(), nowMs: nowMs() };
    if (isRewound) {
      await sql.begin((transaction) => shutIn(transaction, 'rewound', at));
      isRewound = false;
    }
    await seeWhereItRuns(sql, { hasMark, lives, ...at });
    if (hasMark) rmSync(mark, { force: true });
    const now = await openRecoveryIn(sql);
    if (now !== null && shut === null) logger.error({ recovery: String(now.id) }, inWords(now));
    if (now === null && shut !== null) logger.warn('selling is open again');
    shut = now;
  }

  const why = () =>
    shut === null && isRewound
      ? inWords({ reason: 'rewound', knownUntilMs: nowMs() })
      : shut === null
        ? null
        : inWords(shut);
  return {
    name: 'recovery',
    rewound() {
      isRewound = true;
    },
    prepare: (patience) => patience.take(() => look(false)),
    shut: why,
    notReady: async () => why(),
    jobs: [{ name: 'watch-recovery', intervalMs: LOOK_EVERY_MS, whileShut: true, run: () => look(true) }],
  };
}
