/**
 * `npm run recover`: after the database was restored, finds what was sold in the time that it has forgotten. Changes nothing
 * unless `--apply` is given; with it, everything is put right and the shop opens.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { loadServices } from '@farebox/catalogue/services/registry';
import { ABOUT_TAGS } from '@farebox/catalogue/services/tags';
import { databaseOf, readConfig } from '@farebox/core/config';
import { openDatabase } from '@farebox/core/db/open';
import { peopleOf } from '@farebox/core/declared';
import { CREDIT_TIERS } from '@farebox/core/keys/credit-tiers';
import { microsToUsd, usdToMicros } from '@farebox/core/ledger/money';
import { redaction } from '@farebox/core/operations/redaction';
import { createTrail } from '@farebox/core/operator/trail';
import { type ErasureParts, type Reapplied, reapply } from '@farebox/core/people/erasure';
import { erasureListAt } from '@farebox/core/people/erasure-list';
import {
  type ForgottenSale,
  planRecovery,
  type RecoverParts,
  type RecoveryPlan,
  recover,
  TooEarly,
  Unread,
} from '@farebox/core/recovery/recover';
import { runCommand, UsageError } from '@farebox/process/run-command';
import { StartError } from '@farebox/process/start-error';
import pino from 'pino';
import { createApp, DECLARED } from '../app.ts';
import { reapplied } from './told-erasures.ts';

const { version }: { version: string } = createRequire(import.meta.url)('../../package.json');
const USAGE = 'npm run recover [-- --apply --by NAME [--compared] [--json]]';
const MAX_NAME = 100;

await runCommand(USAGE, async () => {
  const flag = { type: 'boolean', default: false } as const;
  const { values } = parseArgs({
    options: { apply: flag, compared: flag, json: flag, by: { type: 'string' } },
  });
  const { apply, by = '', compared, json } = values;
  if (apply && (by.trim() === '' || by.length > MAX_NAME))
    throw new UsageError('--by must say who opens the shop: it is kept with what was done');
  const config = readConfig(process.env, DECLARED);
  const database = await openDatabase(databaseOf(config), { exclusive: false });
  const { nowMs } = database.clock;
  const logger = pino({ level: 'warn', ...redaction }, pino.destination({ dest: 2, sync: true }));
  const services = await loadServices();
  const app = createApp({
    config,
    baseUrl: config.house.publicUrl ?? `http://${config.house.host}:${config.house.port}`,
    version,
    tags: ABOUT_TAGS,
    pools: database,
    services,
    logger,
    nowMs,
  });
  const { cards } = app;
  try {
    const parts: RecoverParts = {
      sql: database.sql,
      sales: app.sales,
      async paidSince(sinceMs) {
        const read = [app.x402.paidSince(sinceMs), app.byMpp.mpp?.paidSince(sinceMs) ?? []];
        return (await Promise.all(read)).flat();
      },
      cards,
      sellsWhatLasts: lastingPrices(services, app.parts),
      nowMs,
    };
    const erasures: ErasureParts = {
      sql: database.patient,
      people: peopleOf(DECLARED),
      secrets: config.secrets.secrets.reveal().versions,
      trail: createTrail(database.patient, nowMs),
      list: erasureListAt(
        config.people.settings.erasuresFile ?? join(config.database.settings.dataDir, 'erasures.jsonl'),
      ),
      forgetCustomer: cards === null ? null : (customer) => cards.provider.forgetCustomer(customer),
      nowMs,
    };
    let again: Reapplied | null = null;
    // After the orders: a forgotten one is written anew with the address that the card provider still has.
    const beforeOpening = async () => {
      again = await reapply(erasures, by);
    };
    const plan = apply
      ? await applied(parts, by, { unreadCompared: compared, beforeOpening })
      : await planRecovery(parts);
    process.stdout.write(json ? asJson(plan, again) : asText(plan, apply));
    if (again !== null && !json) process.stdout.write(reapplied(again, erasures.list.path));
    return 0;
  } finally {
    await app.close();
    await database.close();
  }
});

/** Tells at which prices credit, keys or other things that last are sold. */
function lastingPrices(
  services: readonly { path: string; effect: string; priceUsd: string }[],
  parts: readonly { creditServices?: readonly string[] }[],
): (micros: bigint) => boolean {
  const credit = parts.flatMap(({ creditServices = [] }) => creditServices);
  const lasting = services.filter(
    ({ path, effect }) => effect === 'write' || credit.some((begin) => path.startsWith(begin)),
  );
  const prices = new Set([
    ...lasting.map(({ priceUsd }) => usdToMicros(priceUsd)),
    ...CREDIT_TIERS.map(({ amountUsd }) => usdToMicros(String(amountUsd))),
  ]);
  return (micros) => prices.has(micros);
}

async function applied(
  parts: RecoverParts,
  by: string,
  options: Parameters<typeof recover>[2],
): Promise<RecoveryPlan | null> {
  try {
    return await recover(parts, by, options);
  } catch (error) {
    if (error instanceof TooEarly)
      throw new StartError(
        `${error.message}: run this again then. Nothing was changed, and the shop stays shut`,
      );
    if (!(error instanceof Unread)) throw error;
    throw new StartError(
      `${error.message}: compare what came to its recipient with the books, and say so by --compared. Nothing was changed, and the shop stays shut`,
    );
  }
}

function asJson(plan: RecoveryPlan | null, erasures: Reapplied | null): string {
  const shown =
    plan === null
      ? { shut: false }
      : {
          shut: true,
          reason: plan.recovery.reason,
          knownUntil: new Date(plan.recovery.knownUntilMs).toISOString(),
          sales: plan.sales,
          sentBack: plan.sentBack,
          unread: plan.unread,
          erasures,
        };
  return `${JSON.stringify(shown, (_, value) => (typeof value === 'bigint' ? microsToUsd(value) : value), 2)}\n`;
}

function asText(plan: RecoveryPlan | null, isApplied: boolean): string {
  if (plan === null) return 'The database is as new as the world: nothing has to be recovered.\n';
  const { recovery, sales, sentBack, unread } = plan;
  const lines = [
    `The database knows nothing after ${new Date(recovery.knownUntilMs).toISOString()}.`,
    ...sales.map(lineOf),
    ...sentBack.map(({ callId, transaction }) => `refund    of call ${callId} was sent by ${transaction}`),
    ...unread.map(
      (network) =>
        `unread    ${network}: its node has forgotten a part of that time, so compare what came to its recipient by hand`,
    ),
    sales.length + sentBack.length === 0 ? 'Nothing was sold since, as far as can be read.' : '',
    isApplied
      ? 'All of it is put right, and the shop is open. Now run npm run books.'
      : 'Nothing was changed. npm run recover -- --apply --by NAME puts it right and opens the shop.',
  ];
  return `${lines.filter((line) => line !== '').join('\n')}\n`;
}

function lineOf({ source, amountMicros, becomes, because, payment }: ForgottenSale): string {
  return `${becomes.padEnd(10)}${microsToUsd(amountMicros)} USD  ${source} ${payment}: ${because}`;
}
