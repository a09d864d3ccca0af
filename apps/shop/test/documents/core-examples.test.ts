/** The names that a shop begins with: each has an example in its doc comment, and the example is run. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import pino from 'pino';
import { z } from 'zod';
import { readConfig } from '../../../../packages/core/src/config.ts';
import { DATABASE } from '../../../../packages/core/src/db/declared.ts';
import { openHouse } from '../../../../packages/core/src/house.ts';
import { KEYS, openKeys } from '../../../../packages/core/src/keys/part.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { createCallMetrics } from '../../../../packages/core/src/paid-call/metrics.ts';
import { openSales, PAID_CALL } from '../../../../packages/core/src/paid-call/part.ts';
import { createAnswerSeal } from '../../../../packages/core/src/paid-call/sealed-answer.ts';
import { creditsRail, NO_DEBTS } from '../../../../packages/core/src/rails/credits/rail.ts';
import { SECRETS } from '../../../../packages/core/src/secrets/part.ts';
import { defineService } from '../../../../packages/core/src/service/define.ts';
import { NO_SOURCES } from '../../../../packages/core/src/service/sources.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';

const CORE = join(import.meta.dirname, '../../../../packages/core');
/** Where the packages are found by their names. */
const folder = join(CORE, `node_modules/.examples-${process.pid}`);

/** What an example may use without making it first. */
function shopOn(database: TestDatabase) {
  const environment = { FAREBOX_SECRET: 'a-secret-of-the-examples-and-of-nothing-else' };
  const config = readConfig(environment, [DATABASE, SECRETS, KEYS, PAID_CALL]);
  const service = defineService({
    path: 'one',
    name: 'One',
    tag: 'Numbers',
    priceUsd: '0.01',
    summary: 'The number one.',
    input: z.object({}),
    output: z.object({ one: z.number().describe('One') }),
    example: {},
    run: async () => answer({ one: 1 }, { method: 'By hand.', sources: [] }),
  });
  const services = [service];
  const given = {
    pools: database,
    baseUrl: 'http://127.0.0.1:8402',
    version: '1.0.0',
    services,
    tags: { Numbers: 'Numbers.' },
    logger: pino({ level: 'silent' }),
    nowMs: () => 1_795_000_000_000,
  };
  const house = openHouse(config.house, given);
  const secrets = config.secrets.secrets.reveal().versions;
  const ledger = createLedger(database, given.nowMs);
  const seal = createAnswerSeal(secrets);
  const keyed = openKeys(house, config.keys, { ledger, secrets });
  const { keys } = keyed;
  const credits = creditsRail(house, { keys, debts: NO_DEBTS, walletsPay: () => false, chargesCards: false });
  const sales = openSales(house, config.paidCall.settings, {
    ledger,
    seal,
    metrics: createCallMetrics(),
    sources: NO_SOURCES,
    receiptsAt: '/receipts',
    railsOnChains: [],
    capable: () => [],
    keyUsed: () => {},
  });
  return { config, given, house, secrets, ledger, seal, keyed, credits, sales, services };
}

/** The names of the README, with the files that they are in. */
const NAMES = [
  ...readFileSync(join(CORE, 'README.md'), 'utf8').matchAll(
    /^\| `(\w+)` \| `@farebox\/core\/([\w/-]+)` \|/gm,
  ),
].map(([, name = '', face = '']) => ({ name, face }));

/** The example in the doc comment of a name. */
function exampleOf(name: string, face: string): string {
  const text = readFileSync(join(CORE, 'src', `${face}.ts`), 'utf8');
  const [, comment = ''] =
    new RegExp(`/\\*\\*((?:(?!\\*/)[\\s\\S])*)\\*/\\nexport (?:async )?(?:function|const) ${name}\\b`).exec(
      text,
    ) ?? [];
  const [, example = ''] = /@example\n \* ```ts\n([\s\S]*?) \* ```/.exec(comment) ?? [];
  return example.replaceAll(/^ \* ?/gm, '');
}

/** A module whose default export runs an example and returns, for each of its lines with a result, both. */
function moduleOf(example: string): string {
  const lines = example.trimEnd().split('\n');
  const body = lines.filter((line) => !line.startsWith('import '));
  const checked = body.map((line) =>
    line.replace(
      /^(.*); \/\/ (.*)$/,
      (_, value: string, shown: string) => `seen.push([${value}, ${shown}]);`,
    ),
  );
  return [
    ...lines.filter((line) => line.startsWith('import ')),
    'export default async function ({ config, given, house, secrets, ledger, seal, keyed, credits, sales, services }) {',
    'const seen = [];',
    ...checked,
    'return seen; }',
  ].join('\n');
}

describe('the names that a shop begins with', () => {
  let database: TestDatabase;
  let shop: ReturnType<typeof shopOn>;
  before(async () => {
    database = await openTestDatabase();
    shop = shopOn(database);
    mkdirSync(folder, { recursive: true });
  });
  after(async () => {
    await shop?.sales.close?.();
    await database?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test('are about a dozen', () => assert(NAMES.length >= 12 && NAMES.length <= 18));

  for (const { name, face } of NAMES)
    test(`${name}: its example says what happens`, async () => {
      const { exports }: { exports: Record<string, string> } = JSON.parse(
        readFileSync(join(CORE, 'package.json'), 'utf8'),
      );
      assert.equal(exports[`./${face}`], `./src/${face}.ts`);
      const example = exampleOf(name, face);
      assert(
        example.includes(`import { ${name}`) || example.includes(`, ${name} }`),
        `${name} has no example`,
      );
      const file = join(folder, `${name}.mjs`);
      writeFileSync(file, moduleOf(example));
      const made: { default(given: typeof shop): Promise<[unknown, unknown][]> } = await import(
        pathToFileURL(file).href
      );
      const seen = await made.default(shop);
      assert(seen.length > 0, 'an example shows a result');
      for (const [value, shown] of seen) assert.deepEqual(value, shown);
    });
});
