/** Creates Permit2 as on every real chain: the deterministic deployment proxy creates it with a fixed salt. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { concatHex, type Hex } from 'viem';
import { BUILDERS } from './accounts.ts';
import { CREATE2_DEPLOYER } from './addresses.ts';
import { type Node, transact } from './node.ts';

/** The salt of the real deployment. The address follows from the salt and the code: other code would get another address. */
const SALT: Hex = '0x0000000000000000000000000000000000000000d3af2663da51c10215000000';
const FILE = join(import.meta.dirname, 'permit2', 'Permit2.json');

export async function buildPermit2(node: Node): Promise<void> {
  const { creationCode }: { creationCode: Hex } = JSON.parse(readFileSync(FILE, 'utf8'));
  await transact(node, {
    from: BUILDERS.deployer.address,
    to: CREATE2_DEPLOYER,
    data: concatHex([SALT, creationCode]),
  });
}
