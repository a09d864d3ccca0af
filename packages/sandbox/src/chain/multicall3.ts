/** Multicall3, whose code viem carries for its own use. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Hex } from 'viem';
import { MULTICALL3 } from './addresses.ts';
import type { Node } from './node.ts';
import { placeAt } from './placement.ts';

export async function buildMulticall3(node: Node): Promise<void> {
  const require = createRequire(import.meta.url);
  // Not among the names that viem exports, so it is asked for by its file.
  const { multicall3Bytecode }: { multicall3Bytecode: Hex } = require(
    join(dirname(require.resolve('viem')), 'constants', 'contracts.js'),
  );
  await placeAt(node, MULTICALL3, multicall3Bytecode);
}
