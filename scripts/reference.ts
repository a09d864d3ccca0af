/**
 * `npm run reference`: writes the pages of what our packages export, from their types. What makes them is installed below
 * `tools/reference/` on first use. A test fails when a page is not what the types say.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installApart } from '../apps/shop/test/kept-apart.fixture.ts';

const ROOT = join(import.meta.dirname, '..');
const TOOL = join(ROOT, 'tools/reference');

interface Reference {
  /** The page's path from the root of the repository. */
  page: string;
  /** The text above the faces. */
  head: string;
  /** The file of each face from the root, by the name that is imported. */
  faces: Readonly<Record<string, string>>;
  /** Exports that have a page of their own elsewhere. */
  leaveOut: readonly string[];
}

const CORE = [
  'serve',
  'house',
  'config',
  'declared',
  'part',
  'service/define',
  'service/fields',
  'service/sources',
  'words/answer',
  'words/failure',
  'ledger/money',
  'ledger/ledger',
  'keys/part',
  'rails/credits/rail',
  'paid-call/part',
];
const PROXY = ['define', 'load', 'price-of-request', 'import-openapi', 'problem'];
const GATE = ['fastify', 'hono', 'express', 'signature'];
const facesOf = (from: string, folder: string, files: readonly string[]) =>
  Object.fromEntries(files.map((file) => [`${from}/${file}`, `${folder}/${file}.ts`]));

export const REFERENCES: readonly Reference[] = [
  {
    page: 'docs/client-reference.md',
    head: `# What the client exports

The classes, functions and types of \`farebox\`, made from its source by \`npm run reference\`. [Buying calls](buy.md) tells how they are used.
What each service takes, answers and costs has its own page: \`/docs/token-price\` of a server, and the type \`Services\` in an editor.
`,
    faces: {
      farebox: 'packages/client/src/index.ts',
      ...facesOf('farebox', 'packages/client/src', ['x402', 'mpp', 'node', 'tools']),
    },
    leaveOut: ['Services'],
  },
  {
    page: 'docs/core-reference.md',
    head: `# What the fare box exports

What a shop of your own begins with, of \`@farebox/core\`: made from its source by \`npm run reference\`. [Building a shop of your own](building-a-shop.md)
tells how they are used, and [Adding a service](adding-a-service.md) what a service may declare.
`,
    faces: facesOf('@farebox/core', 'packages/core/src', CORE),
    leaveOut: [],
  },
  {
    page: 'docs/proxy-reference.md',
    head: `# What the proxy and the gate export

The faces of \`@farebox/proxy\`, which sells an API by a file, and of \`@farebox/gate\`, which sells routes of a server of yours: made from their
source by \`npm run reference\`. [Selling your own API](your-own-api.md) and [Selling routes of your own server](gate.md) tell how they are used.
`,
    faces: {
      ...facesOf('@farebox/proxy/config', 'packages/proxy/src/config', PROXY),
      ...facesOf('@farebox/gate', 'packages/gate/src', GATE),
    },
    leaveOut: [],
  },
];
const STYLE = [
  '--readme none --skipErrorChecking --disableSources --excludeExternals --excludePrivate --outputFileStrategy modules',
  '--hideBreadcrumbs --hidePageHeader --hidePageTitle --hideGroupHeadings --useCodeBlocks --parametersFormat table',
  '--interfacePropertiesFormat table --classPropertiesFormat table --typeDeclarationFormat table --logLevel Error',
].flatMap((words) => words.split(' '));

/**
 * Makes one page of what packages export.
 *
 * @returns its Markdown; null where the package registry cannot be reached to install what makes it
 * @throws Error with what that said when it fails
 */
export function referenceText({ head, faces, leaveOut }: Reference): string | null {
  const modules = installApart(TOOL, 'what makes the references');
  if (modules === null) return null;
  const cache = join(ROOT, 'node_modules/.cache');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'reference-'));
  try {
    const files = Object.values(faces).map((file) => join(ROOT, file));
    const compilerOptions = {
      lib: ['es2024', 'dom', 'dom.iterable'],
      incremental: false,
      typeRoots: [join(ROOT, 'node_modules/@types')],
    };
    const settings = { extends: join(ROOT, 'tsconfig.json'), compilerOptions, include: [], files };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(settings));
    const args = [
      '--tsconfig',
      join(folder, 'tsconfig.json'),
      '--out',
      join(folder, 'made'),
      '--basePath',
      join(ROOT, 'packages'),
      ...STYLE,
    ];
    const entries = files.flatMap((file) => ['--entryPoints', file]);
    const plugin = ['--plugin', 'typedoc-plugin-markdown', ...entries];
    const done = spawnSync(process.execPath, [join(modules, 'typedoc/bin/typedoc'), ...args, ...plugin], {
      cwd: TOOL,
      encoding: 'utf8',
    });
    if (done.status !== 0) throw new Error(`${done.stdout}${done.stderr}`);
    const parts = Object.entries(faces).map(([face, file]) => {
      const name = file.replace(/^packages\//, '').replace(/(\/index)?\.ts$/, '');
      return partOf(face, readFileSync(join(folder, 'made', `${name}.md`), 'utf8'), leaveOut);
    });
    return withLinksThatLead(
      `${[head, ...parts]
        .join('\n')
        .replaceAll(/\n{3,}/g, '\n\n')
        .trimEnd()}\n`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The same page, in which a link to a heading that it does not have is its words alone. */
export function withLinksThatLead(page: string): string {
  const headings = [...page.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s-]/gu, '')
      .trim()
      .replace(/\s/g, '-'),
  );
  return page.replaceAll(/\[([^\]]*)\]\(#([^)]*)\)/g, (link, words: string, anchor: string) =>
    headings.includes(anchor) ? link : words,
  );
}

/** One face: its headings one level lower, no markup of its own, and links that stay in the file. */
function partOf(face: string, markdown: string, leaveOut: readonly string[]): string {
  const links = /\[(`?[^\]]*`?)\]\((?:[\w./-]+\.md)?#([\w-]+)\)/g;
  const text = markdown
    .split(/^\*{3}\n/m)
    .filter((section) => !leaveOut.some((name) => section.trimStart().startsWith(`## ${name}\n`)))
    .join('')
    .replaceAll(/<a id="[^"]*"><\/a> ?/g, '')
    .replaceAll(links, (_, words: string, anchor: string) =>
      leaveOut.some((name) => name.toLowerCase() === anchor) ? words : `[${words}](#${anchor})`,
    )
    .replaceAll(/^(#{2,5}) /gm, '#$1 ');
  return `\n## \`${face}\`\n\n${text}`;
}

if (process.argv[1] === import.meta.filename)
  for (const reference of REFERENCES) {
    const text = referenceText(reference);
    if (text === null)
      throw new Error('the package registry cannot be reached to install what makes the references');
    writeFileSync(join(ROOT, reference.page), text);
  }
