/** Holds against the code what the documents say of commands, files, variables, metrics and error codes. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, normalize, sep } from 'node:path';
import { after, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { NAME_RECALL, NAMESAKES } from '../../../../packages/catalogue/src/compliance/name-recall.ts';
import { CALL_ERRORS } from '../../../../packages/core/src/discovery/call-errors.ts';
import { readGuides } from '../../../../packages/core/src/discovery/guides.ts';
import { NETWORKS } from '../../../../packages/core/src/rails/x402/networks.ts';
import { errorCodes } from '../../../../scripts/error-codes.ts';
import { SOURCES, serverFiles } from '../../../../scripts/packages.ts';
import { changed, linesOf, shownChanges } from '../shown-change.fixture.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const documents = globSync('{*.md,.github/**/*.md,{docs,apps,packages,bench,contracts}/**/*.md}', {
  cwd: ROOT,
  exclude: (path) => path.includes('node_modules'),
}).map((path) => ({ path: path.replaceAll(sep, '/'), text: readFileSync(join(ROOT, path), 'utf8') }));

function document(path: string): string {
  const found = documents.find((each) => each.path === path);
  assert(found, `there is no ${path}`);
  return found.text;
}

/** Prose alone: what stands in a block of code or in backticks is no sentence of ours. */
function withoutCode(text: string): string {
  return text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, '');
}

/** The name of a heading as a link writes it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s-]/gu, '')
    .trim()
    .replace(/\s/g, '-');
}

describe('every document', () => {
  test('was found at all', () => {
    for (const path of ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docs/operating.md']) document(path);
  });

  test('names only commands that exist', () => {
    const { scripts }: { scripts: Record<string, string> } = JSON.parse(
      readFileSync(join(ROOT, 'package.json'), 'utf8'),
    );
    for (const { path, text } of documents) {
      const named = [...text.matchAll(/\bnpm (?:run (?:-s )?([\w:.-]*\w)|(start|test)\b)/g)];
      for (const [command, run, short] of named) {
        assert(Object.hasOwn(scripts, run ?? short ?? ''), `${path}: there is no "${command}"`);
      }
    }
  });

  test('uses in its commands only variables that it, the README or the tour before it, has set', () => {
    const blocksOf = (text: string) =>
      [...text.matchAll(/^```(?:sh|console)\n([\s\S]*?)^```/gm)].map(([, block = '']) => block);
    const setBy = (text: string) =>
      blocksOf(text).flatMap((block) => [...block.matchAll(/\b([A-Z][A-Z_]+)=/g)].map(([, name]) => name));
    const before = [...setBy(document('README.md')), ...setBy(document('docs/tour.md'))];
    assert(before.includes('KEY'), before.join());
    for (const { path, text } of documents) {
      const known = [...before, ...setBy(text)];
      const used = blocksOf(text).flatMap((block) =>
        [...block.matchAll(/\$\{?([A-Z][A-Z_]+)/g)].map(([, name]) => name),
      );
      assert.deepEqual(
        used.filter((name) => !known.includes(name)),
        [],
        path,
      );
    }
  });

  test('starts programs of TypeScript by npm alone, which finds a Node that can run them, or says which Node it takes', () => {
    for (const { path, text } of documents) {
      if (/Node 22\.\d+ or newer/.test(text)) continue;
      const blocks = [...text.matchAll(/^```(?:sh|console|json)\n([\s\S]*?)^```/gm)].map(
        ([, code]) => code ?? '',
      );
      for (const code of blocks)
        assert.doesNotMatch(code, /\bnode\b[^\n]*\.ts\b|"[^"\n]*\/node",\s*"args": \["[^"]*\.ts"/, path);
    }
  });

  test('needs no command that a machine may lack, and no placeholder that a shell reads as another file', () => {
    for (const { path, text } of documents)
      for (const [, code = ''] of text.matchAll(/^```(?:sh|console)\n([\s\S]*?)^```/gm)) {
        assert.doesNotMatch(code, /\buuidgen\b/, path);
        const commands = code.split('\n').filter((line) => /^(\$ |npm |curl |node |export )/.test(line));
        for (const line of commands)
          assert.doesNotMatch(line.replace(/'[^']*'|"[^"]*"/g, ''), /<[a-z][\w ]*>/, path);
      }
  });

  test('links to files and headings that exist', () => {
    for (const { path, text } of documents) {
      const links = [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link ?? '');
      for (const link of links.filter((each) => !/^[a-z]+:/.test(each))) {
        const [file = '', anchor] = link.split('#');
        const target = file === '' ? path : normalize(join(dirname(path), file));
        assert(existsSync(join(ROOT, target)), `${path}: ${link} leads nowhere`);
        if (anchor === undefined) continue;
        const headings = [...readFileSync(join(ROOT, target), 'utf8').matchAll(/^#+ (.*)$/gm)];
        const anchors = headings.map(([, heading]) => anchorOf(heading ?? ''));
        assert(anchors.includes(anchor), `${path}: ${target} has no heading #${anchor}`);
      }
    }
  });

  test('shows every picture that is kept, and names each in words', () => {
    const shown = documents.flatMap(({ path, text }) =>
      [...text.matchAll(/!\[([^\]]*)\]\((?:docs\/)?images\/([\w.-]+)\)/g)].map(
        ([, words = '', file = '']) => {
          assert(words.length > 10, `${path}: ${file} has no words`);
          return file;
        },
      ),
    );
    assert.deepEqual([...new Set(shown)].sort(), readdirSync(join(ROOT, 'docs/images')).sort());
  });

  test('names only files of ours that exist', () => {
    for (const { path, text } of documents) {
      const named = text.matchAll(/`((?:apps|packages|bench|scripts|docs|contracts|examples)\/[\w./-]+)`/g);
      for (const [, file = ''] of named) assert(existsSync(join(ROOT, file)), `${path}: there is no ${file}`);
    }
  });

  test('leaves the counting of services to the registry', () => {
    const number =
      '(?:\\d+|ten|eleven|twelve|\\w+teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:-\\w+)?|dozens?)';
    const counted = new RegExp(`\\b${number}\\s+(?:of\\s+)?(?:[\\w-]+\\s+){0,2}services?\\b`, 'i');
    const inJson = /services\w*"?\s*:\s*\{?"?(?:total"\s*:\s*)?\d/i;
    for (const { path, text } of documents) {
      assert.equal(counted.exec(text)?.[0], undefined, `${path} counts services`);
      assert.equal(inJson.exec(text)?.[0], undefined, `${path} shows a count of services`);
    }
  });

  test('shows no key in full', () => {
    for (const { path, text } of documents) assert.doesNotMatch(text, /fbx_live_[0-9a-f]{20}/, path);
  });
});

describe('the documents as a whole', () => {
  const guides = () => readGuides(join(ROOT, 'docs')).list;
  /** Pages that are looked up and not read: a table each. */
  const REFERENCES = [
    'client-reference',
    'configuration',
    'core-reference',
    'errors',
    'figures',
    'parts',
    'proxy-reference',
    'threats',
  ];

  test('stand in six parts, each page in one of them', () => {
    assert.deepEqual(
      [...new Set(guides().map(({ part }) => part))],
      ['Buy', 'Earn', 'Sell', 'Operate', 'Trust', 'Change'],
    );
    const listed = [...document('docs/README.md').matchAll(/^- \[[^\]]+\]\(([\w-]+)\.md\): /gm)];
    assert.equal(new Set(listed.map(([, name]) => name)).size, listed.length, 'a page stands there twice');
  });

  test('have the titles that their table of contents gives them', () => {
    const contents = document('docs/README.md');
    assert.deepEqual(
      guides()
        .filter(({ name, title }) => !contents.includes(`- [${title}](${name}.md): `))
        .map(({ name, title }) => `${name}: ${title}`),
      [],
    );
  });

  test('have no page that is too long to be read at once, and a README of 60 lines', () => {
    const long = guides().filter(
      ({ name, markdown }) => !REFERENCES.includes(name) && markdown.split(/\s+/).length > 2_500,
    );
    assert.deepEqual(
      long.map(({ name }) => name),
      [],
    );
    assert(document('README.md').trimEnd().split('\n').length <= 60);
  });

  test('keep the addresses at which they were published', () => {
    const names = new Set(guides().map(({ name }) => name));
    const published =
      'a2a adding-a-service architecture audit building-a-shop buy cards devices errors gate going-live mcp mpp operating paid-call performance pictures security solana-yield sources vault webhooks x402 your-own-api';
    assert.deepEqual(
      published.split(' ').filter((name) => !names.has(name)),
      [],
    );
  });
});

test('the table and the picture of the walls, and the table of variables, are what the code says', () => {
  const check = spawnSync(process.execPath, [join(ROOT, 'scripts/rendered.ts'), '--check'], {
    encoding: 'utf8',
  });
  assert.equal(check.status, 0, check.stdout + check.stderr);
});

describe('docs/metrics.md', () => {
  const operating = () => document('docs/metrics.md');

  test('names every metric of ours, and no other', () => {
    const made = codesIn(sourceOf('**/{metrics,part}.ts'), /'(farebox_\w+)'/g);
    assert(made.length > 20);
    const listed = [...operating().matchAll(/^\| `(farebox_\w+)`/gm)].map(([, name]) => name);
    assert.deepEqual(listed.toSorted(), made.toSorted());
    const named = [...operating().matchAll(/\bfarebox_\w+/g)].map(([name]) => name);
    assert.deepEqual(
      named.filter((name) => !made.includes(name)),
      [],
    );
  });

  test('names every queue, and no other', () => {
    const made = codesIn(sourceOf('**/*.ts'), /\bname: '([\w-]+)',\s+table: '/g);
    assert(made.length > 5);
    const [, section = ''] = /\n## Queues\n(.*)/s.exec(operating()) ?? [];
    const listed = [...section.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, names = '']) =>
      names.split(', ').map((name) => name.replaceAll('`', '')),
    );
    assert.deepEqual(listed.filter((name) => name !== 'queue').toSorted(), made.toSorted());
  });
});

/** The code of some folders of the server, without its tests. */
function sourceOf(pattern: string): string {
  return serverFiles(ROOT, pattern)
    .filter(({ path }) => !/\.(test|fixture)\.ts$/.test(path))
    .map(({ path }) => readFileSync(join(ROOT, path), 'utf8'))
    .join('\n');
}

/** Reads what a document says of outcomes: rows of a table whose second cell is a status and whose third names codes. */
function outcomesIn(path: string): { status: string; codes: string[] }[] {
  return document(path)
    .split('\n')
    .filter((line) => /^\| .* \|$/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map(([, , status = '', code = '']) => ({
      status,
      codes: [...code.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name ?? ''),
    }));
}

function codesIn(source: string, pattern: RegExp): string[] {
  return [...source.matchAll(pattern)].map(([, code]) => code ?? '');
}

const ABOUT_PAYING = ['docs/paid-call.md', 'docs/x402-errors.md', 'docs/mpp.md'];

describe('docs/threats.md', () => {
  test('names for each threat what stops it, and the test that would tell if nothing did', () => {
    const rows = document('docs/threats.md')
      .split('\n')
      .filter((line) => /^\| (?!-|Attacker)/.test(line));
    assert(rows.length >= 20, `${rows.length} threats`);
    for (const row of rows) {
      const [, who = '', tries = '', stops = '', tests = ''] = row.split('|');
      assert(
        [who, tries, stops].every((cell) => cell.trim().length > 4),
        row,
      );
      const named = [...tests.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path);
      assert(named.length > 0, row);
      for (const path of named) assert(path.endsWith('.test.ts') && existsSync(join(ROOT, path)), path);
    }
  });
});

test('what a document lets people write into an agent’s file limits what is spent', () => {
  const limits = ['"FAREBOX_MAX_USD_PER_CALL"', '"FAREBOX_MAX_USD_PER_DAY"'];
  /** The limits of a key, which are told at once to an agent that connects by address alone. */
  const caps = /"caps":\{"perCallUsd":"[\d.]+","perDayUsd":"[\d.]+"\}/;
  const found = documents.flatMap(({ path, text }) =>
    text
      .split('```json\n')
      .slice(1)
      .flatMap((rest) => {
        const [snippet = ''] = rest.split('\n```');
        if (!/"(?:mcpServers|servers)"/.test(snippet)) return [];
        const next = rest.slice(snippet.length).split(/\n#/)[0] ?? '';
        const isLimited = limits.every((limit) => snippet.includes(limit)) || caps.test(next);
        return [{ path, isLimited }];
      }),
  );
  assert.ok(found.length >= 2);
  assert.deepEqual(
    found.filter(({ isLimited }) => !isLimited),
    [],
  );
});

describe('docs/paid-call.md, docs/x402-errors.md and docs/mpp.md', () => {
  const source = sourceOf('{config,paid-call,rails,services,words,http,jobs}/**/*.ts');
  const outcomes = () => ABOUT_PAYING.flatMap(outcomesIn);

  test('list only codes that the code answers with', () => {
    for (const path of ABOUT_PAYING) {
      const listed = outcomesIn(path).flatMap(({ codes }) => codes);
      assert(listed.length > 20, path);
      for (const code of listed)
        assert(
          source.includes(`'${code}'`) || isRefusal(code) || MPP_REFUSALS.has(code),
          `nothing answers ${code}`,
        );
    }
  });

  test('list every code that the published documents name, under its status', () => {
    for (const { status, codes } of CALL_ERRORS) {
      for (const code of codes) {
        const row = outcomes().find((outcome) => outcome.codes.includes(code));
        assert.equal(row?.status, String(status), `${code} should be listed as ${status}`);
      }
    }
  });

  test('list every code by which a credential is refused', () => {
    const refusals = codesIn(sourceOf('{paid-call,rails}/**/*.ts'), /new PaymentRefused\(\s*'([A-Z_]+)'/g);
    assert(refusals.length > 5);
    const listed = outcomes()
      .filter(({ status }) => status === '402')
      .flatMap(({ codes }) => codes);
    assert.deepEqual(
      refusals.filter((code) => !listed.includes(code)),
      [],
    );
  });
});

/** The reasons of `rails/on-chain/refusals.ts` that something gives. */
const X402_REFUSALS = (() => {
  const reasons = codesIn(sourceOf('rails/on-chain/refusals.ts'), /^ {2}([A-Z_]+): \[/gm);
  const users = sourceOf('rails/{x402,evm,on-chain}/!(refusals).ts');
  return reasons.filter((code) => users.includes(`'${code}'`));
})();
function isRefusal(code: string): boolean {
  return X402_REFUSALS.includes(code);
}

describe('docs/x402.md and docs/x402-errors.md', () => {
  const listed = (status: string) =>
    outcomesIn('docs/x402-errors.md')
      .filter((outcome) => outcome.status === status)
      .flatMap(({ codes }) => codes);

  test('lists every reason for which an x402 payment is refused, and what cannot be said of one yet', () => {
    assert(X402_REFUSALS.length > 10);
    const source = sourceOf('rails/{x402,evm,on-chain}/*.ts');
    const refused = [...X402_REFUSALS, ...codesIn(source, /new PaymentRefused\(\s*'([A-Z_]+)'/g)];
    assert.deepEqual(
      refused.filter((code) => !listed('402').includes(code)),
      [],
    );
    const waiting = codesIn(source, /unavailable\(\s*'([A-Z_]+)'/g);
    assert(waiting.length > 3);
    assert.deepEqual(
      [...waiting, 'SETTLEMENT_UNKNOWN', 'OUTCOME_UNKNOWN'].filter((code) => !listed('503').includes(code)),
      [],
    );
  });

  test('never tells the payer of an uncertain end to sign again', () => {
    const uncertain = document('docs/x402-errors.md')
      .split('\n')
      .filter((line) => /`(SETTLEMENT_UNKNOWN|OUTCOME_UNKNOWN|STILL_RUNNING|TOOK_TOO_LONG)`/.test(line));
    assert.equal(uncertain.length, 4);
    for (const line of uncertain) assert.match(line, /the same payment again/);
  });

  test('has the chains as they are configured', () => {
    const rows = NETWORKS.map((network) => {
      const blocks = (count: number) => `${count} blocks`;
      const [final, hash] =
        network.kind === 'solana'
          ? ['finalized', 'finalized']
          : [blocks(network.finalAfterBlocks), blocks(network.transferConfirmations)];
      const legacy = network.legacyName === null ? 'no' : 'yes';
      return `| \`${network.name}\` | \`${network.id}\` | ${legacy} | ${final} | ${hash} |`;
    });
    const text = document('docs/x402.md');
    for (const row of rows) assert(text.includes(row), row);
  });
});

/** Why `rails/mpp/` refuses a credential, by the code that it answers with: the last part of the problem's type. */
const MPP_REFUSALS = (() => {
  const problems = codesIn(sourceOf('rails/mpp/*.ts'), /(?:refuse\(\s*|problem === )'([a-z-]+)'/g);
  return new Map(problems.map((name) => [`MPP_${name.replaceAll('-', '_').toUpperCase()}`, name]));
})();

describe('docs/mpp.md', () => {
  const rows = () =>
    document('docs/mpp.md')
      .split('\n')
      .filter((line) => line.startsWith('| '));

  test('lists every problem with its code, and what cannot be said of a payment yet', () => {
    assert(MPP_REFUSALS.size > 5);
    for (const [code, problem] of MPP_REFUSALS) {
      assert(
        rows().some((row) => row.includes(`| 402 | \`${code}\` | \`${problem}\` | no |`)),
        `${code} should be listed as 402 ${problem}`,
      );
    }
    const source = sourceOf('rails/mpp/*.ts');
    const listed = (status: string) =>
      outcomesIn('docs/mpp.md')
        .filter((outcome) => outcome.status === status)
        .flatMap(({ codes }) => codes);
    const refused = codesIn(source, /\brefused\(\s*'([A-Z_]+)'/g);
    assert(refused.length > 1);
    const waiting = codesIn(source, /unavailable\(\s*'([A-Z_]+)'/g);
    assert(waiting.length > 0);
    assert.deepEqual(
      [
        ...refused.filter((code) => !listed('402').includes(code)),
        ...waiting.filter((code) => !listed('503').includes(code)),
        ...['PROTOCOL_MISMATCH', 'TWO_CREDENTIALS'].filter(
          (code) => !document('docs/mpp.md').includes(`\`${code}\``),
        ),
      ],
      [],
    );
  });

  test('never tells the payer of an uncertain end to answer a new challenge', () => {
    const uncertain = rows().filter((line) =>
      /`(SETTLEMENT_UNKNOWN|OUTCOME_UNKNOWN|STILL_RUNNING|TOOK_TOO_LONG)`/.test(line),
    );
    assert.equal(uncertain.length, 4);
    for (const line of uncertain) assert.match(line, /the same credential again/);
  });
});

describe('docs/adding-a-service.md', () => {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-documentation-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  /** Where a reader would put the files. */
  const home = pathToFileURL(join(ROOT, 'packages/catalogue/src/services/market-intelligence/'));

  /** Writes a block of the document to a file that finds what it imports from wherever it lies. */
  function written(code: string, name: string): string {
    const path = join(folder, name);
    const absolute = code
      .replaceAll(/from '(\.\.\/[^']+)'/g, (_, file: string) => `from '${new URL(file, home)}'`)
      .replaceAll(
        /from '(zod|@farebox\/[^']+)'/g,
        (_, name: string) => `from '${import.meta.resolve(name)}'`,
      );
    writeFileSync(path, absolute);
    return pathToFileURL(path).href;
  }

  const blocks = [...document('docs/adding-a-service.md').matchAll(/^```ts\n([\s\S]*?)^```/gm)];
  const [service = '', itsTest = ''] = blocks.map(([, code]) => code ?? '');
  const serviceUrl = written(service, 'coin-price.ts');

  test('shows a service that fits its own declaration', async () => {
    const { default: shown } = await import(serviceUrl);
    assert.equal(shown.path, 'coin-price');
    assert.equal(shown.input.safeParse(shown.example).success, true);
    assert.equal(shown.input.safeParse({ coinId: 'A B' }).success, false);
  });

  // The document's own test registers itself here and runs with the others.
  test('shows a test of it', async () => {
    assert.match(itsTest, /from '\.\/coin-price\.ts'/);
    await import(written(itsTest, 'coin-price.test.ts'));
  });
});

describe('docs/architecture.md and docs/parts.md', () => {
  test('says what each folder of the server is for, and what it may know', () => {
    const folders = SOURCES.flatMap((source) =>
      readdirSync(join(ROOT, source), { withFileTypes: true }).filter((entry) => entry.isDirectory()),
    );
    const rows = document('docs/parts.md')
      .split('\n')
      .filter((line) => line.startsWith('| '));
    for (const { name } of folders) {
      assert(
        rows.some((row) => row.split('|')[1]?.includes(`\`${name}/`)),
        `${name}/ is not in the table of what may know what`,
      );
    }
  });

  test('shows what a part, an upstream, a capability and a rail touch outside their folder: at most ten lines', () => {
    const changes = shownChanges(document('docs/architecture.md'));
    assert.equal(changes.length, 4);
    for (const change of changes) {
      assert(linesOf(change) > 0 && linesOf(change) <= 10, `${linesOf(change)} lines:\n${change}`);
      assert(changed(change).size > 0);
    }
  });

  test('is right that the environment is read by those who start a process alone', () => {
    const readers = serverFiles(ROOT, '**/*.ts')
      .map(({ path }) => path)
      .filter((path) => {
        const code = readFileSync(join(ROOT, path), 'utf8')
          .replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
          .replace(/`[^`]*`/g, '``');
        return code.includes('process.env');
      });
    assert.deepEqual(
      readers.filter((path) => !/(^apps\/shop\/src\/(main|commands\/[\w-]+)|\.test)\.ts$/.test(path)),
      [],
    );
    assert(readers.includes('apps/shop/src/main.ts'));
  });
});

/** What else tells of card payments. */
const CARDS = [
  'docs/purchases.md',
  'docs/recharge.md',
  'docs/refunds.md',
  'docs/taking-cards.md',
  'docs/keys.md',
];

describe('docs/cards.md and the pages that go on with it', () => {
  const cards = () => document('docs/cards.md') + CARDS.map(document).join('\n');

  test('lists codes that are answered, and every code of card money', () => {
    const rows = cards()
      .split('\n')
      .filter((line) => /^\| .* \|$/.test(line))
      .map((line) => line.split('|').map((cell) => cell.trim()));
    const listed = rows.flatMap(([, , status = '', code = '']) =>
      /^\d{3}$/.test(status) ? [...code.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name) : [],
    );
    assert(listed.length > 20);
    const source = sourceOf('{cards,keys,account,http}/**/*.ts');
    for (const code of listed) assert(source.includes(`'${code}'`), `${code} is answered nowhere`);
    const answers = sourceOf('{cards/{ways/*,closed,recharge/recharge-settings},keys/key-to-credit}.ts');
    const codes = [...answers.matchAll(/'([A-Z]{3,}_[A-Z_]{3,})'/g)].map(([, code]) => code);
    // Said to the card provider alone.
    const missing = new Set(
      codes.filter((code) => code !== 'NOT_SIGNED' && !cards().includes(`\`${code}\``)),
    );
    assert.deepEqual([...missing], []);
  });

  test('lists the events that the server looks at', () => {
    const [, block = ''] = /const EVENT_TYPES = \[([\s\S]*?)\];/.exec(sourceOf('cards/provider.ts')) ?? [];
    const types = [...block.matchAll(/'([\w.]+)'/g)].map(([, type]) => type ?? '').toSorted();
    const [, text = ''] = /\*\*These events\*\*[\s\S]*?```text\n([\s\S]*?)```/.exec(cards()) ?? [];
    assert(types.length > 10);
    assert.deepEqual(text.trim().split(/\s+/).toSorted(), types);
  });
});

describe('how names are compared with lists', () => {
  test('is told with the recall and the namesakes that are measured', () => {
    const text = document('docs/lists.md').replace(/\s+/g, ' ');
    const { known, heldOut } = NAME_RECALL;
    for (const { pairs, found } of [known, heldOut]) {
      assert(text.includes(`${found} of ${pairs}`), `${found} of ${pairs}`);
    }
    for (const [of, { review, strong }] of Object.entries(NAMESAKES)) {
      assert(text.includes(`| ${of} | ${review} % | ${strong} % |`), of);
    }
  });
});

describe('errors.md', () => {
  const declared = () => readGuides(join(ROOT, 'docs')).errors;

  test('declares each code that the server answers with, and none that it does not', () => {
    const codes = errorCodes(ROOT);
    assert.deepEqual(
      codes.filter((code) => !declared().has(code)),
      [],
      'Say in docs/errors.md what happened, and what to do.',
    );
    const source = sourceOf('**/*.ts');
    const made = (code: string) => source.includes(`'${code}'`) || MPP_REFUSALS.has(code);
    assert.deepEqual(
      [...declared().keys()].filter((code) => !codes.includes(code) && !made(code)),
      [],
    );
  });

  test('names each status that a code is made with', () => {
    const made =
      /(?:new Problem\(\s*(\d{3}),\s*|(noAnswer)\(\s*|(unavailable)\(\s*|(new PaymentRefused)\(\s*)'([A-Z_\d]+)'/g;
    const pairs = [...sourceOf('**/*.ts').matchAll(made)].map(
      ([, status, noAnswer, away, _refused, code = '']) =>
        [code, status ?? (noAnswer ? '422' : away ? '503' : '402')] as const,
    );
    assert(pairs.length > 200);
    const wrong = pairs.filter(([code, status]) => declared().get(code)?.status.includes(status) === false);
    assert.deepEqual(wrong, []);
  });
});
