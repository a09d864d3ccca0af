#!/usr/bin/env node
/**
 * `npm run person`: writes everything that the database holds about a person to a file, takes what identifies them out of it, and
 * does the latter again in a database that was restored.
 */
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { CARDS } from '@farebox/core/cards/part';
import { ProviderUnavailable } from '@farebox/core/cards/provider';
import { createCardProvider } from '@farebox/core/cards/stripe/card-provider';
import { databaseOf, readConfig } from '@farebox/core/config';
import { DATABASE } from '@farebox/core/db/declared';
import { openDatabase } from '@farebox/core/db/open';
import { peopleOf } from '@farebox/core/declared';
import { createTrail } from '@farebox/core/operator/trail';
import { PEOPLE } from '@farebox/core/people/declared';
import { type Erased, type ErasureParts, erase, noteExport, reapply } from '@farebox/core/people/erasure';
import { erasureListAt } from '@farebox/core/people/erasure-list';
import { findPerson, isKnown, writeExport } from '@farebox/core/people/person';
import { SECRETS } from '@farebox/core/secrets/part';
import { runCommand, UsageError } from '@farebox/process/run-command';
import { StartError } from '@farebox/process/start-error';
import { DECLARED } from '../app.ts';
import { reapplied } from './told-erasures.ts';

const USAGE = `npm run person -- export EMAIL --by NAME [--out person.json]
       npm run person -- erase EMAIL --by NAME [--despite WORD ...]
       npm run person -- reapply --by NAME`;
const MAX_NAME = 100;
const MAX_EMAIL = 254;
const DAY_MS = 86_400_000;
const EXIT_REFUSED = 1;

interface Opened {
  parts: ErasureParts;
  backupsKeptDays: number | null;
}

await runCommand(USAGE, async () => {
  const text = { type: 'string' } as const;
  const { values, positionals } = parseArgs({
    options: { by: text, out: text, despite: { type: 'string', multiple: true } },
    allowPositionals: true,
  });
  const [what, email, another] = positionals;
  const { by = '', out = 'person.json', despite = [] } = values;
  if (by.trim() === '' || by.length > MAX_NAME || by.includes('@'))
    throw new UsageError(
      '--by must say who asks for it, by a name and not by an address: it stays in the trail',
    );
  const unknown = despite.find((word) => !decisions().includes(word));
  if (unknown !== undefined) throw new UsageError(`--despite must be one of ${decisions().join(', ')}`);
  if (what === 'reapply' && email === undefined)
    return opened(async ({ parts }) => told(reapplied(await reapply(parts, by), parts.list.path)));
  if (
    email === undefined ||
    another !== undefined ||
    email.length > MAX_EMAIL ||
    !/^[^@\s]+@[^@\s]+$/.test(email)
  )
    throw new UsageError('name one e-mail address');
  if (what === 'export') return opened(({ parts }) => exportTo(parts, email, { by, out }));
  if (what === 'erase')
    return opened(async ({ parts, backupsKeptDays }) =>
      toldOf(await erased(parts, email, { by, despite }), parts, backupsKeptDays),
    );
  throw new UsageError('say export, erase or reapply');
});

/** The words of obstacles that an operator may decide about. */
function decisions(): string[] {
  return peopleOf(DECLARED).flatMap(({ obstacles = [] }) => obstacles.flatMap((each) => each.despite ?? []));
}

async function opened(act: (opened: Opened) => Promise<number>): Promise<number> {
  const config = readConfig(process.env, [DATABASE, SECRETS, PEOPLE, CARDS], { all: false });
  const { secretKey, webhookSecrets } = config.cards.secrets.reveal();
  const { erasuresFile, backupsKeptDays } = config.people.settings;
  const database = await openDatabase(databaseOf(config), { exclusive: false });
  const { nowMs } = database.clock;
  const provider =
    secretKey === null
      ? null
      : createCardProvider({
          url: config.cards.settings.url,
          secrets: () => ({ secretKey, webhookSecrets }),
          nowMs,
        });
  try {
    const parts: ErasureParts = {
      sql: database.patient,
      people: peopleOf(DECLARED),
      secrets: config.secrets.secrets.reveal().versions,
      trail: createTrail(database.patient, nowMs),
      list: erasureListAt(erasuresFile ?? join(config.database.settings.dataDir, 'erasures.jsonl')),
      forgetCustomer: provider === null ? null : (customer) => provider.forgetCustomer(customer),
      nowMs,
    };
    return await act({ parts, backupsKeptDays });
  } finally {
    provider?.close();
    await database.close();
  }
}

async function erased(parts: ErasureParts, ...asked: [string, Parameters<typeof erase>[2]]): Promise<Erased> {
  try {
    return await erase(parts, ...asked);
  } catch (error) {
    if (!(error instanceof ProviderUnavailable)) throw error;
    throw new StartError(
      'the card provider does not answer, and has not forgotten its customer yet: give the command again, and it goes on',
    );
  }
}

async function exportTo(parts: ErasureParts, email: string, { by, out }: { by: string; out: string }) {
  const { sql, people, nowMs } = parts;
  const person = await findPerson(sql, people, email, nowMs());
  const tables = people.flatMap((each) => each.tables);
  if (!(await isKnown(sql, tables, person, nowMs())))
    return told('The database knows nobody of this address.\n', EXIT_REFUSED);
  const path = resolve(process.env.INIT_CWD ?? '.', out);
  let descriptor: number;
  try {
    descriptor = openSync(path, 'wx', 0o600);
  } catch {
    throw new StartError(`${path} is there already or cannot be written: name another by --out`);
  }
  try {
    await noteExport(parts, person, by);
    const write = (text: string) => void writeSync(descriptor, text);
    await writeExport(sql, people, person, { nowMs: nowMs(), write });
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(descriptor);
  }
  const shared = person.shared.length === 0 ? '' : `${sharedInWords(person.shared)}\n`;
  return told(`Written to ${path}, which only its owner can read.\n${shared}`);
}

function toldOf(erased: Erased, { list, nowMs }: ErasureParts, backupsKeptDays: number | null): number {
  if (erased.status === 'unknown') return told('The database knows nobody of this address.\n', EXIT_REFUSED);
  if (erased.status === 'refused')
    return told(['Nothing was changed:', ...erased.obstacles, ''].join('\n'), EXIT_REFUSED);
  const { id, resumed, rows, shared, customersLeft } = erased;
  const until =
    backupsKeptDays === null
      ? 'for as long as you keep them (BACKUPS_KEPT_DAYS has this command say until when)'
      : `until ${new Date(nowMs() + backupsKeptDays * DAY_MS).toISOString().slice(0, 10)}`;
  return told(
    [
      resumed ? `The erasure ${id}, which was cut off, has ended.` : `Erased. The erasure is ${id}.`,
      ...[...rows].map(([table, count]) => `  ${table.padEnd(24)}${count}`),
      ...(shared.length === 0 ? [] : [sharedInWords(shared)]),
      ...customersLeft.map(
        (customer) =>
          `Delete the customer ${customer} at the card provider: CARD_PROVIDER_KEY is not set here.`,
      ),
      'The card provider keeps the payments themselves, and the log of this server its lines, for as long as you have them do so.',
      `Copies of the database from before still hold this person, ${until}. After a restore npm run recover erases them again, by ${list.path}: keep that file apart from the database.`,
      '',
    ].join('\n'),
  );
}

function sharedInWords(shared: readonly bigint[]): string {
  return `Accounts ${shared.join(', ')} are known by other addresses too: of them only rows with this address are meant.`;
}

function told(text: string, code = 0): number {
  process.stdout.write(text);
  return code;
}
