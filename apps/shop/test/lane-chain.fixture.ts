/** The chain of a lane of `npm test`: its test files use it one after another, and each finds it as it was built. */
import { type Address, type Hex, zeroAddress } from 'viem';
import { SEED } from '../../../packages/sandbox/src/accounts.fixture.ts';
import { startEvmChain } from '../../../packages/sandbox/src/chain/chain.ts';
import { connect, type Node } from '../../../packages/sandbox/src/chain/node.ts';

/** The chain's address, and the secret that its accounts are made of. */
export interface ChainVariables {
  TEST_CHAIN_URL?: string;
  TEST_CHAIN_SEED?: string;
}

export interface LaneChain {
  /**
   * Makes the chain as it was built, with a newest block of now. A chain that has ended, or that cannot be brought back,
   * gives way to another.
   *
   * @returns the variables by which the next test file finds it (see `startTestChain`); none when no chain can be started,
   *   so that the file starts one itself and says what is wrong
   */
  renew(): Promise<ChainVariables>;
  stop(): Promise<void>;
}

/** What a chain returns to. */
interface Beginning {
  snapshot: Hex;
  /** The base fee of the block that comes next, in wei: a node keeps it over a return to a snapshot. */
  nextBaseFeeWei: bigint;
}

interface Running {
  url: string;
  node: Node;
  beginning: Beginning;
  stop(): Promise<void>;
}

type StartNode = () => Promise<{ url: string; stop(): Promise<void> }>;
const startSandboxChain: StartNode = () => startEvmChain({ seed: SEED, stateDir: null });

/** Opens the place of a lane's chain. The first `renew` starts the node. */
export function openLaneChain(startNode = startSandboxChain): LaneChain {
  let running: Running | null = null;
  return {
    async renew() {
      const earlier = running;
      running = null;
      if (earlier !== null && (await isBroughtBack(earlier))) running = earlier;
      else await earlier?.stop();
      running ??= await start(startNode).catch(() => null);
      return running === null ? {} : { TEST_CHAIN_URL: running.url, TEST_CHAIN_SEED: SEED };
    },
    async stop() {
      await running?.stop();
      running = null;
    },
  };
}

async function start(startNode: StartNode): Promise<Running> {
  const { url, stop } = await startNode();
  const node = connect(url);
  return { url, node, beginning: await keep(node), stop };
}

async function keep(node: Node): Promise<Beginning> {
  const { baseFeePerGas } = await node.getFeeHistory({ blockCount: 1, rewardPercentiles: [] });
  return { snapshot: await node.snapshot(), nextBaseFeeWei: baseFeePerGas.at(-1) ?? 1n };
}

/** Brings a chain back to its beginning. False when it is not to be used any more. */
async function isBroughtBack(running: Running): Promise<boolean> {
  try {
    await bringBack(running);
    return true;
  } catch {
    // It has ended, has forgotten what it is asked for, or takes longer than the client waits.
    return false;
  }
}

/**
 * Returns to the snapshot, and to the settings that no snapshot holds. The process that used the chain must have ended.
 *
 * @throws Error when the node does not do it
 */
async function bringBack(running: Running): Promise<void> {
  const { node, beginning } = running;
  const order = (method: string, ...params: readonly unknown[]) =>
    node.request({ method, params } as never) as Promise<unknown>;
  await order('anvil_dropAllTransactions');
  await order('evm_revert', beginning.snapshot);
  // It ends an interval between blocks too.
  await order('evm_setAutomine', true);
  await order('anvil_removeBlockTimestampInterval');
  await order('anvil_autoImpersonateAccount', false);
  await order('anvil_setCoinbase', zeroAddress satisfies Address);
  await node.setNextBlockBaseFeePerGas({ baseFeePerGas: beginning.nextBaseFeeWei });
  // After a return the node's clock goes on from the snapshot's time.
  await order('evm_setTime', Math.floor(Date.now() / 1_000));
  await node.mine({ blocks: 1 });
  // A node that made hundreds of blocks has forgotten the states before the snapshot, and a return does not bring them back.
  await node.getBalance({ address: zeroAddress, blockNumber: 0n });
  running.beginning = await keep(node);
}
