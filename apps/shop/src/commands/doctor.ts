/**
 * `npm run doctor`: looks at everything that docs/going-live.md lists, as it is configured here, and says what to mend, in
 * order. Changes nothing and prints no secret. Exits with 1 when something is to be mended.
 */
import { Resolver } from 'node:dns/promises';
import { parseArgs } from 'node:util';
import { ConfigError, databaseOf, readConfig } from '@farebox/core/config';
import { connectDatabase } from '@farebox/core/db/connection';
import { runningEmbeddedPostgres } from '@farebox/process/embedded-postgres';
import { runCommand, UsageError } from '@farebox/process/run-command';
import { DECLARED } from '../app.ts';
import { asText, examine } from '../doctor/examination.ts';
import { type Finding, findingsOf } from '../doctor/finding.ts';
import type { Names } from '../doctor/public-address.ts';

const CONNECTIONS_END_WITHIN_S = 1;
const NO_SUCH_NAME = ['ENOTFOUND', 'ENODATA'];

await runCommand('npm run doctor [-- --json] [-- --dkim selector]', async () => {
  const { json, dkim = null } = parseArgs({
    options: { json: { type: 'boolean', default: false }, dkim: { type: 'string' } },
  }).values;
  if (dkim !== null && !/^[a-z0-9._-]{1,63}$/i.test(dkim))
    throw new UsageError('--dkim must be a selector, such as mail2026');
  const findings = await found(dkim);
  process.stdout.write(json ? `${JSON.stringify({ findings })}\n` : asText(findings));
  return findings.some(({ verdict }) => verdict === 'mend') ? 1 : 0;
});

async function found(dkimSelector: string | null): Promise<Finding[]> {
  const config = configOf();
  if (Array.isArray(config)) return config;
  const database = databaseOf(config);
  const url = database.databaseUrl ?? (await runningEmbeddedPostgres(database.dataDir));
  const sql = url === null ? null : connectDatabase(url, 1);
  try {
    // One that cannot be reached is found later.
    await sql?.unsafe('set session characteristics as transaction read only').catch(() => {});
    const findings = await examine({
      config,
      database,
      sql,
      dkimSelector,
      names: namesOf(new Resolver({ timeout: 3_000, tries: 2 })),
      nowMs: Date.now,
    });
    return [findingsOf('configuration').fine('every variable can be used'), ...findings];
  } finally {
    await sql?.end({ timeout: CONNECTIONS_END_WITHIN_S });
  }
}

/** @returns the configuration, or what is wrong with it, which hides everything else */
function configOf() {
  try {
    return readConfig(process.env, DECLARED);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map((problem) =>
      findingsOf('configuration').mend(problem, 'docs/configuration.md lists every variable.'),
    );
  }
}

function namesOf(resolver: Resolver): Names {
  const orNone = (error: NodeJS.ErrnoException) => {
    if (error.code !== undefined && NO_SUCH_NAME.includes(error.code)) return [];
    throw error;
  };
  return {
    async addressesOf(host) {
      if (/^[\d.]+$|^\[/.test(host)) return [host];
      const found = await Promise.all([
        resolver.resolve4(host).catch(orNone),
        resolver.resolve6(host).catch(orNone),
      ]);
      return found.flat();
    },
    textsOf: async (name) => (await resolver.resolveTxt(name).catch(orNone)).map((parts) => parts.join('')),
  };
}
