/** The contracts and their tests as they were written: whoever deposits can read first what holds, and what proves it. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { type Published, publish, sendPublished } from '@farebox/core/discovery/published';
import type { FastifyInstance } from 'fastify';

const CONTRACTS = dirname(createRequire(import.meta.url).resolve('@farebox/contracts/package.json'));
const SECONDS = 300;

/** Below `/api/yield/source/`. A request never becomes the name of a file. */
const FILES = [
  // A page that bears the name of the operator's shop names no product.
  ['Vault.sol', 'src/FareboxVault.sol'],
  ...['PermitDeposit.sol', 'Positions.sol', 'TokenAuction.sol', 'interfaces/Protocols.sol'].map(
    (name) => [name, `src/${name}`] as const,
  ),
  ...[
    ...['Authority.t.sol', 'Erc4626.t.sol', 'Exits.t.sol', 'Gas.t.sol', 'Invariants.t.sol', 'Moving.t.sol'],
    ...['PermitDeposit.t.sol', 'Reentrancy.t.sol', 'Seed.t.sol', 'Spreading.t.sol', 'TokenAuction.t.sol'],
    'Vault.t.sol',
  ].map((name) => [`test/${name}`, `test/${name}`] as const),
] as const;

/** Serves them as plain text, each read once. */
export function sourceRoutes(http: FastifyInstance): void {
  const read = new Map<string, Published>();
  for (const [name, file] of FILES)
    http.get(`/api/yield/source/${name}`, async (request, reply) => {
      const known =
        read.get(name) ?? publish('text/plain; charset=utf-8', await readFile(join(CONTRACTS, file), 'utf8'));
      read.set(name, known);
      return sendPublished(request, reply, known, SECONDS);
    });
}
