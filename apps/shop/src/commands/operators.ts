/**
 * `npm run operators`: turns tokens on where nobody can sign in any more, writes both logs of operators to a file, and proves that such a
 * file is whole.
 */

import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { databaseOf, readConfig } from '@farebox/core/config';
import { DATABASE } from '@farebox/core/db/declared';
import { type OpenDatabase, openDatabase } from '@farebox/core/db/open';
import { type AuditVerdict, auditLines, verifyAudit } from '@farebox/core/operator/audit-chain';
import { People } from '@farebox/core/operator/sign-in/people';
import { createTrail } from '@farebox/core/operator/trail';
import { runCommand, UsageError } from '@farebox/process/run-command';

const USAGE = `npm run operators -- tokens on --reason "why"
       npm run operators -- export > audit.jsonl
       npm run operators -- verify audit.jsonl [--since earlier.jsonl]`;

await runCommand(USAGE, async () => {
  const { values, positionals } = parseArgs({
    options: { reason: { type: 'string' }, since: { type: 'string' } },
    allowPositionals: true,
  });
  const [what, argument, ...more] = positionals;
  if (more.length > 0) throw new UsageError(`${more[0]}: is one word too many`);
  if (what === 'verify' && argument !== undefined) return verify(argument, values.since ?? null);
  if (what === 'export' && argument === undefined) return withDatabase(exportTo);
  if (what === 'tokens' && argument === 'on') {
    const { reason = '' } = values;
    if (reason.trim().length < 3 || reason.length > 500)
      throw new UsageError('--reason must say why, in 3 to 500 characters: it stands in the trail');
    return withDatabase((database) => turnTokensOn(database, reason));
  }
  throw new UsageError('say tokens on, export or verify');
});

async function withDatabase(act: (database: OpenDatabase) => Promise<number>): Promise<number> {
  const config = readConfig(process.env, [DATABASE], { all: false });
  const database = await openDatabase(databaseOf(config), { exclusive: false });
  try {
    return await act(database);
  } finally {
    await database.close();
  }
}

async function turnTokensOn({ sql, clock: { nowMs } }: OpenDatabase, reason: string): Promise<number> {
  // Tokens may be turned on whoever signs in, so it needs none of the settings about that.
  const people = new People({
    sql,
    trail: createTrail(sql, nowMs),
    issuer: null,
    rules: [],
    bounds: { idleMs: 0, longestMs: 0, retentionDays: 0 },
    hasTokens: () => true,
    nowMs,
  });
  const byCommand = { actor: 'npm run operators', role: null, person: null };
  await people.setTokens({ enabled: true, reason }, byCommand, null);
  process.stdout.write('Tokens are on: those of ADMIN_TOKENS open /admin.\n');
  return 0;
}

async function exportTo({ patient }: OpenDatabase): Promise<number> {
  for await (const line of auditLines(patient))
    if (!process.stdout.write(line)) await once(process.stdout, 'drain');
  return 0;
}

async function verify(path: string, since: string | null): Promise<number> {
  const earlier = since === null ? null : await verdictOf(since, {});
  if (earlier !== null && earlier.finding !== null)
    return told(`${since}: ${earlier.finding}\nThe earlier file is NOT whole.\n`, 1);
  const verdict = await verdictOf(path, earlier?.ends ?? {});
  if (verdict.finding !== null) return told(`${path}: ${verdict.finding}\nThe logs are NOT whole.\n`, 1);
  const { acts, trail } = verdict.rows;
  return told(`acts: ${acts} rows, trail: ${trail} rows\nThe logs are whole.\n`, 0);
}

function verdictOf(path: string, earlier: AuditVerdict['ends']): Promise<AuditVerdict> {
  return verifyAudit(
    createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY }),
    earlier,
  );
}

function told(text: string, code: number): number {
  process.stdout.write(text);
  return code;
}
