/**
 * `npm run reference`: writes docs/client-reference.md, what the client's faces export, from their types. What makes it is installed below
 * `tools/reference/` on first use. A test fails when the file is not what the types say.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installApart } from '../apps/shop/test/kept-apart.fixture.ts';

const ROOT = join(import.meta.dirname, '..');
const TOOL = join(ROOT, 'tools/reference');
const SOURCE = join(ROOT, 'packages/client/src');
export const REFERENCE = join(ROOT, 'docs/client-reference.md');
/** By the name that is imported. */
const FACES = {
  farebox: 'index',
  'farebox/x402': 'x402',
  'farebox/mpp': 'mpp',
  'farebox/node': 'node',
  'farebox/tools': 'tools',
} as const;
const HEAD = `# What the client exports

The classes, functions and types of \`farebox\`, made from its source by \`npm run reference\`. [Buying calls](buy.md) tells how they are used.
What each service takes, answers and costs has its own page: \`/docs/token-price\` of a server, and the type \`Services\` in an editor.
`;
const STYLE = [
  '--readme none --skipErrorChecking --disableSources --excludeExternals --excludePrivate --outputFileStrategy modules',
  '--hideBreadcrumbs --hidePageHeader --hidePageTitle --hideGroupHeadings --useCodeBlocks --parametersFormat table',
  '--interfacePropertiesFormat table --classPropertiesFormat table --typeDeclarationFormat table --logLevel Error',
].flatMap((words) => words.split(' '));

/**
 * Makes the reference of what the client exports.
 *
 * @returns its Markdown; null where the package registry cannot be reached to install what makes it
 * @throws Error with what that said when it fails
 */
export function clientReference(): string | null {
  const modules = installApart(TOOL, 'what makes the reference');
  if (modules === null) return null;
  const cache = join(ROOT, 'node_modules/.cache');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'reference-'));
  try {
    const files = Object.values(FACES).map((file) => join(SOURCE, `${file}.ts`));
    const compilerOptions = {
      lib: ['es2024', 'dom', 'dom.iterable'],
      incremental: false,
      typeRoots: [join(ROOT, 'node_modules/@types')],
    };
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ extends: join(ROOT, 'tsconfig.json'), compilerOptions, include: [], files }),
    );
    const args = [
      '--tsconfig',
      join(folder, 'tsconfig.json'),
      '--out',
      folder,
      '--basePath',
      SOURCE,
      ...STYLE,
    ];
    const faces = files.flatMap((file) => ['--entryPoints', file]);
    const plugin = ['--plugin', 'typedoc-plugin-markdown', ...faces];
    const done = spawnSync(process.execPath, [join(modules, 'typedoc/bin/typedoc'), ...args, ...plugin], {
      cwd: TOOL,
      encoding: 'utf8',
    });
    if (done.status !== 0) throw new Error(`${done.stdout}${done.stderr}`);
    const parts = Object.entries(FACES).map(([face, file]) =>
      partOf(face, readFileSync(join(folder, `${file}.md`), 'utf8')),
    );
    return `${[HEAD, ...parts]
      .join('\n')
      .replaceAll(/\n{3,}/g, '\n\n')
      .trimEnd()}\n`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** One face: its headings one level lower, no markup of its own, and links that stay in the file. */
function partOf(face: string, markdown: string): string {
  const text = markdown
    .split(/^\*{3}\n/m)
    .filter((section) => !/^\s*## Services\n/.test(section))
    .join('')
    .replaceAll(/<a id="[^"]*"><\/a> ?/g, '')
    .replaceAll(/\]\((?:\w+\.md)?#(?!services\))/g, '](#')
    .replaceAll(/\[(`?[^\]]*`?)\]\((?:\w+\.md)?#services\)/g, '$1')
    .replaceAll(/^(#{2,5}) /gm, '#$1 ');
  return `\n## \`${face}\`\n\n${text}`;
}

if (process.argv[1] === import.meta.filename) {
  const text = clientReference();
  if (text === null)
    throw new Error('the package registry cannot be reached to install what makes the reference');
  writeFileSync(REFERENCE, text);
}
