/**
 * The parts of the documents that are rendered from code: the table and the picture of the walls, the table of
 * variables, those of sources, of services, of people's data and of what the books prove; the JSON Schema of a shop's configuration; and the types of the client's services. `npm run format` writes them. The test of the documents runs this with
 * `--check`, which writes nothing and exits with 1 when something differs.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DECLARED } from '../apps/shop/src/app.ts';
import { loadServices } from '../packages/catalogue/src/services/registry.ts';
import { termsOfSources } from '../packages/catalogue/src/upstreams/declared.ts';
import { variablesOf } from '../packages/core/src/config.ts';
import { boundsOf, type Variable } from '../packages/core/src/declared.ts';
import { LEDGER_RULES } from '../packages/core/src/ledger/ledger-rules.ts';
import type { Audited } from '../packages/core/src/ledger/rule.ts';
import type { PersonalData, PersonalTable } from '../packages/core/src/words/personal-data.ts';
import { configJsonSchema } from '../packages/proxy/src/config/schema.ts';
import { clientServices } from './client-services.ts';
import { housePicture } from './house-picture.ts';
import { CATALOGUE, CORE, type House, PROXY, SHOP, YIELD } from './walls.ts';

const ROOT = join(import.meta.dirname, '..');

function walls(): string[] {
  const named = (path: string) => (path.startsWith('/') ? path.slice(1) : path);
  const rowsOf = ({ root, rooms }: House) =>
    rooms.map(({ room, knows, because }) => {
      const known =
        knows?.map((path) => `\`${path === '' ? root : named(path)}\``).join(', ') ?? 'everything';
      return `| \`${root.replace(/src\/$/, '')}\` \`${room}\` | ${known === '' ? 'nothing' : known} | ${because} |`;
    });
  const floorsOf = ({ root, floor }: House) =>
    floor === undefined
      ? []
      : `| \`${root.replace(/src\/$/, '')}\` every folder | ${floor.map((path) => `\`${named(path)}\``).join(', ')} | These know none of the folders that stand on them. |`;
  return [
    '| Folder or file | May know, beside itself, npm packages and Node | Because |',
    '|---|---|---|',
    ...[CORE, CATALOGUE, YIELD, PROXY, SHOP].flatMap(floorsOf),
    ...[CORE, CATALOGUE, YIELD, PROXY, SHOP].flatMap(rowsOf),
  ];
}

function variables(): string[] {
  const cell = (value: string | null) => (value === null || value === '' ? '' : `\`${value}\``);
  return [
    '| Variable | Default | Meaning | Secret |',
    '|---|---|---|---|',
    ...variablesOf(DECLARED).map((variable) => {
      const { name, fallback, describe, secret, renewed } = variable;
      const isSecret = secret === true ? (renewed === true ? 'yes, renewed' : 'yes') : '';
      return `| \`${name}\` | ${cell(fallback)} | ${describe}${boundsInWords(variable)} | ${isSecret} |`;
    }),
  ];
}

/** The bounds of a number, where its description does not name them. */
function boundsInWords(variable: Variable): string {
  const bounds = boundsOf(variable);
  // A number without an end of its own ends where whole numbers do.
  if (bounds === null || bounds.maximum === Number.MAX_SAFE_INTEGER) return '';
  const largest = bounds.maximum.toLocaleString('en');
  const isTold = [largest, String(bounds.maximum)].some((words) => variable.describe.includes(words));
  return isTold ? '' : ` (${bounds.minimum.toLocaleString('en')} to ${largest})`;
}

const COMMERCIAL_USE = {
  allowed: 'allowed',
  agreement: 'by agreement only',
  unknown: 'unknown: ask the provider',
  own: 'your own choice of source',
};

function terms(): string[] {
  return [
    '| Source | Name | Licence | Commercial use | Agreement | Credit to show | Documentation read |',
    '|---|---|---|---|---|---|---|',
    ...termsOfSources(() => true).map(
      ({ name, title, licence, commercialUse, note, attribution, url, isAgreedTo, documentation }) => {
        const read = documentation === null ? '' : `[${documentation.readOn}](${documentation.at})`;
        const use = [COMMERCIAL_USE[commercialUse], note].filter((each) => each !== null).join('. ');
        const source = url === null ? title : `[${title}](${url})`;
        return `| ${source} | \`${name}\` | ${licence} | ${use} | ${isAgreedTo === null ? '' : 'needed'} | ${attribution ?? ''} | ${read} |`;
      },
    ),
  ];
}

/** The rules that the proof of the books checks, with the folder of each part that adds some. */
function invariants(): string[] {
  const parts: readonly { name: string; books?: Audited }[] = DECLARED;
  const rules = [
    { name: 'ledger', rule: 'all entries sum to zero' },
    ...LEDGER_RULES.map(({ name }) => ({ name: 'ledger', rule: name })),
    ...parts.flatMap(({ name, books }) => (books?.rules ?? []).map((rule) => ({ name, rule: rule.name }))),
  ];
  return [
    '| Part | What holds |',
    '|---|---|',
    ...rules.map(({ name, rule }) => `| ${name} | ${rule.charAt(0).toUpperCase()}${rule.slice(1)} |`),
  ];
}

/** What each part keeps about people. */
function people(): string[] {
  const parts: readonly { name: string; people?: PersonalData }[] = DECLARED;
  const erased = (erasure: PersonalTable['erasure']) => {
    if ('stays' in erasure) return `stays: ${erasure.stays}`;
    return 'rows' in erasure ? 'deleted' : erasure.words;
  };
  return [
    '| Part | Table | What | Why | How long | After an erasure |',
    '|---|---|---|---|---|---|',
    ...parts.flatMap(({ name, people: kept }) =>
      (kept?.tables ?? []).map((rule) => {
        const cells = [name, `\`${rule.table}\``, rule.what, rule.why, rule.kept, erased(rule.erasure)];
        return `| ${cells.join(' | ')} |`;
      }),
    ),
  ];
}

/** The services by group, the cheapest first. */
async function services(): Promise<string[]> {
  const groups = Map.groupBy(await loadServices(), ({ tag }) => tag);
  const cents = ({ priceUsd }: { priceUsd: string }) => Number(priceUsd);
  return [
    '| Group | Service | USD a call | What it sells |',
    '|---|---|---:|---|',
    ...[...groups]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([tag, sold]) =>
        sold
          .toSorted((a, b) => cents(a) - cents(b) || (a.path < b.path ? -1 : 1))
          .map(
            ({ path, priceUsd, summary }) =>
              `| ${tag} | \`${path}\` | ${priceUsd} | ${summary.replaceAll('|', '\\|')} |`,
          ),
      ),
  ];
}

/** A document in which our table replaces the one with the same head. */
function withTable(path: string, rows: readonly string[]): { path: string; text: string } {
  const text = readFileSync(join(ROOT, path), 'utf8');
  const start = text.indexOf(`\n${rows[0]}\n`) + 1;
  const end = text.indexOf('\n\n', start);
  if (start === 0 || end < 0) throw new Error(`${path} has no table that begins with ${rows[0]}`);
  return { path, text: text.slice(0, start) + rows.join('\n') + text.slice(end) };
}

const rendered = [
  withTable('docs/parts.md', walls()),
  withTable('docs/configuration.md', variables()),
  withTable('docs/day-to-day.md', invariants()),
  withTable('docs/personal-data.md', people()),
  withTable('docs/sources.md', terms()),
  withTable('docs/services.md', await services()),
  { path: 'docs/images/house.svg', text: housePicture(CORE) },
  {
    path: 'packages/proxy/farebox.config.schema.json',
    text: `${JSON.stringify(configJsonSchema(), null, 2)}\n`,
  },
  { path: 'packages/client/src/services.ts', text: await clientServices() },
];
const stale = rendered.filter(({ path, text }) => readFileSync(join(ROOT, path), 'utf8') !== text);
if (process.argv.includes('--check')) {
  for (const { path } of stale) process.stdout.write(`${path} is not what the code says: npm run format\n`);
  process.exitCode = stale.length === 0 ? 0 : 1;
} else {
  for (const { path, text } of stale) writeFileSync(join(ROOT, path), text);
}
