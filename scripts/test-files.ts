/** Which test files there are, what each of them needs, and in which order they are run. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** Imports that take seconds to start, by path from the root or by the package's name. */
const SLOW_PARTS = [
  'packages/sandbox/src/chain/anvil.ts',
  'apps/shop/test/fire/server-process.fixture.ts',
  'playwright-core',
];
/** Tests in this folder take minutes, whatever they import. */
const SLOW_FOLDER = 'apps/shop/test/fire/';
/** A file that imports this has a database. */
const DATABASE_PART = 'apps/shop/test/database.fixture.ts';
/** A file that imports this can be run for hours. */
const DEEP_PART = 'apps/shop/test/fire/depth.fixture.ts';

/**
 * How many seconds the longest files take on a busy machine of two cores. They are started first, so that no long one
 * is left at the end. Only their order matters; files that are not listed are short.
 */
export const LONGEST_SECONDS: Readonly<Record<string, number>> = {
  'contracts/contracts.test.ts': 180,
  'apps/shop/test/fire/x402-faults.test.ts': 150,
  'apps/shop/test/fire/mpp-faults.test.ts': 110,
  'apps/shop/test/fire/solana-faults.test.ts': 75,
  'apps/shop/test/fire/rails-conformance.test.ts': 70,
  'apps/shop/test/fire/mpp-promises.test.ts': 70,
  'apps/shop/test/fire/x402-property.test.ts': 60,
  'apps/shop/test/fire/model.test.ts': 55,
  'apps/shop/test/fire/x402-kill.test.ts': 50,
  'apps/shop/test/fire/silent-database.test.ts': 45,
  'apps/shop/test/fire/cards-kill.test.ts': 45,
  'apps/shop/test/x402-clients.test.ts': 40,
  'apps/shop/test/fire/takeover.test.ts': 40,
  'apps/shop/test/fire/kill.test.ts': 40,
  'apps/shop/test/fire/cards-model.test.ts': 35,
  'packages/core/src/db/replicas.test.ts': 30,
  'apps/shop/test/purchase.test.ts': 30,
  'apps/shop/test/checkout-page.test.ts': 30,
  'apps/shop/test/auto-recharge.test.ts': 30,
  'apps/shop/test/withdrawn-charges.test.ts': 30,
  'apps/shop/test/mpp-clients.test.ts': 30,
  'apps/shop/test/x402-solana.test.ts': 30,
  'apps/shop/test/fire/database-outage.test.ts': 30,
  'apps/shop/test/admin-page.test.ts': 25,
  'apps/shop/test/browser.test.ts': 25,
  'apps/shop/test/stolen-payments.test.ts': 20,
  'apps/shop/test/services.test.ts': 20,
  'apps/shop/test/topup.test.ts': 20,
  'packages/sandbox/src/start.test.ts': 20,
  'apps/shop/test/mpp-conformance.test.ts': 15,
  'apps/shop/test/card-webhook.test.ts': 15,
  'packages/core/src/discovery/live-payments.test.ts': 15,
};

export interface TestFile {
  /** Path from the root of the repository, with `/`. */
  path: string;
  needsDatabase: boolean;
  /** Whether `--quick` leaves it out. */
  isSlow: boolean;
  /** Whether it is part of `--deep`. */
  isDeep: boolean;
}

/**
 * Finds the test files below a root, the longest first.
 *
 * @param picked parts of paths; a file whose path contains one of them is found. Every file, when there are none
 */
export function findTestFiles(root: string, picked: readonly string[] = []): TestFile[] {
  const known: KnownImports = new Map();
  return globSync(['{apps,packages,bench,scripts}/**/*.test.ts', 'contracts/*.test.ts'], {
    cwd: root,
    exclude: (name) => name === 'node_modules',
  })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => picked.length === 0 || picked.some((part) => path.includes(part)))
    .sort((a, b) => (LONGEST_SECONDS[b] ?? 0) - (LONGEST_SECONDS[a] ?? 0) || (a < b ? -1 : 1))
    .map((path) => {
      const parts = partsOf(root, path, known);
      const has = (part: string) => parts.has(part);
      return {
        path,
        needsDatabase: has(DATABASE_PART),
        isSlow: SLOW_PARTS.some(has) || path.startsWith(SLOW_FOLDER) || path in LONGEST_SECONDS,
        isDeep: has(DEEP_PART),
      };
    });
}

/** What each file that was read imports itself. Most test files share most of what they import. */
type KnownImports = Map<string, readonly string[]>;

const FROM = /^(?:import|export)\s+(?!type\b)(?:[^;']*?\sfrom\s+)?'([^']+)'/gm;
const DYNAMIC = /\bimport\('([^']+)'\)/g;

/** Everything that a file imports, itself included, directly or not: paths of ours, and names of packages. */
export function partsOf(root: string, path: string, known: KnownImports = new Map()): Set<string> {
  const found = new Set([path]);
  // A set goes on over what is added to it meanwhile.
  for (const part of found) {
    const imports = known.get(part) ?? importsOf(root, part);
    known.set(part, imports);
    for (const name of imports) found.add(name);
  }
  return found;
}

function importsOf(root: string, path: string): readonly string[] {
  const absolute = join(root, path);
  if (!path.endsWith('.ts') || !existsSync(absolute)) return [];
  const text = readFileSync(absolute, 'utf8');
  return [FROM, DYNAMIC].flatMap((pattern) =>
    Array.from(text.matchAll(pattern), ([, name = '']) => {
      const ours = /^@farebox\/([\w-]+)\/(.+)$/.exec(name);
      if (ours !== null) return `packages/${ours[1]}/src/${ours[2]}.ts`;
      if (!name.startsWith('.')) return name;
      return relative(root, join(dirname(absolute), name)).replaceAll('\\', '/');
    }),
  );
}
