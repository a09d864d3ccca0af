/**
 * The sandbox's Tempo: a node of its own with Tempo's chain id, on which USDC.e is where Tempo has it. Built on the
 * first start, kept over restarts.
 */
import { StartError } from '../../../process/src/start-error.ts';
import { accountsOf } from '../chain/accounts.ts';
import { startAnvil } from '../chain/anvil.ts';
import type { NodeKeeper } from '../chain/node-keeper.ts';
import { BLOCK_HASHES, TEMPO_CHAIN_ID, USDC_E } from './addresses.ts';
import { connect, hasCode, type TempoNode } from './node.ts';
import { buildUsdcE, stockRefunds } from './usdc-e.ts';

export interface TempoChain {
  /** JSON-RPC over HTTP, and over websocket at the same address. */
  url: string;
  /** Settles when the node ends although nobody stopped it, with what is known of the reason. */
  died: Promise<string>;
  /** Saves the state and ends. */
  stop(): Promise<void>;
}

/**
 * Starts the chain.
 *
 * @param options.stateDir where it is kept; null keeps nothing
 * @param options.seed the installation's, as `accountsOf` takes it
 * @param options.port any free one when left out
 * @param options.keeper which process keeps the node; one of its own when left out
 * @throws StartError when the node cannot be started or its state does not fit this version of the sandbox
 */
export async function startTempo(options: {
  stateDir: string | null;
  seed: string;
  port?: number;
  keeper?: NodeKeeper;
}): Promise<TempoChain> {
  const { stateDir, port = 0, keeper } = options;
  const anvil = await startAnvil({ stateDir, port, chainId: TEMPO_CHAIN_ID, network: 'tempo' }, keeper);
  try {
    const node = connect(anvil.url);
    await build(node);
    await stockRefunds(node, accountsOf(options.seed).refunds.address);
  } catch (cause) {
    await anvil.stop();
    throw new StartError(
      `the sandbox Tempo chain could not be built: ${cause instanceof Error ? cause.message : cause}`,
      { cause },
    );
  }
  anvil.keep();
  return { url: anvil.url, died: anvil.died, stop: anvil.stop };
}

/** Builds what is not there yet. */
async function build(node: TempoNode): Promise<void> {
  // Until there is a current block the node accepts no payment, because it measures validity from the newest block.
  await node.mine({ blocks: 1 });
  if (await hasCode(node, USDC_E)) return;
  // Nothing here uses it, and with it each of the many empty blocks costs a little more to make than the one before.
  await node.setCode({ address: BLOCK_HASHES, bytecode: '0x' });
  await buildUsdcE(node);
}
