/** Asks a node each method that the portal needs, and says which answer in the shape that it reads. */
import { COLLATERAL_MINT, LENDING_MARKET, LIQUIDITY_VAULT, USDC_RESERVE } from './addresses.ts';
import { type Terms, unsigned } from './bundle.ts';
import { ownAccountsOf, transferUsdc } from './instructions.ts';
import { decodeMarket, decodeReserve } from './model/reserve.ts';
import { type Node, openNode } from './node.ts';

/** The result of asking a method of the node. */
export interface ProbedMethod {
  method: string;
  /** Null: it answers as the portal needs it. */
  wrong: string | null;
}

const UNITS = 40_000;

/** @param url of one node */
export async function probeNode(url: string, nowMs: () => number): Promise<ProbedMethod[]> {
  const node = openNode(() => [url], nowMs);
  try {
    return await probed(node);
  } finally {
    await node.close();
  }
}

async function probed(node: Node): Promise<ProbedMethod[]> {
  const found: ProbedMethod[] = [];
  /** @returns what it answers; null where that is nothing */
  async function ask<Value>(method: string, call: () => Promise<Value | null>): Promise<Value | null> {
    try {
      const value = await call();
      found.push({ method, wrong: value === null ? 'it says nothing' : null });
      return value;
    } catch (error) {
      found.push({ method, wrong: error instanceof Error ? error.message : String(error) });
      return null;
    }
  }
  await ask('getGenesisHash', node.genesisHash);
  await ask('getMultipleAccounts', async () => {
    const { accounts } = await node.accounts([USDC_RESERVE, LENDING_MARKET, COLLATERAL_MINT]);
    const [reserve, market] = accounts;
    if (!reserve || !market) throw new Error('it knows neither the reserve nor its market');
    return { reserve: decodeReserve(reserve), market: decodeMarket(market) };
  });
  const height = await ask('getEpochInfo', () => node.height('finalized'));
  const blockhash = await ask('getLatestBlockhash', node.latestBlockhash);
  await ask('getRecentPerformanceSamples', node.slotMs);
  await ask('getRecentPrioritizationFees', () => node.priorityFees([USDC_RESERVE, LIQUIDITY_VAULT], null));
  await ask('getFirstAvailableBlock', node.firstBlock);
  const listed = await ask('getSignaturesForAddress', () => node.recentWrites(LIQUIDITY_VAULT, 1));
  const newest = listed?.[0];
  await ask('getBlockTime', async () => node.blockTimeMs(newest?.slot ?? height?.slot ?? 0));
  const signature = newest?.signature;
  if (signature === undefined)
    for (const method of ['getSignatureStatuses', 'getTransaction'])
      found.push({ method, wrong: 'not asked: it lists no transaction' });
  else {
    await ask('getSignatureStatuses', async () => (await node.statuses([signature])).statuses[0] ?? null);
    await ask('getTransaction', () => node.transaction(signature, 'confirmed'));
  }
  await ask('simulateTransaction', async () => node.simulate(await sample(blockhash), [USDC_RESERVE]));
  return found;
}

/** A transaction that would fail for want of funds, as a simulation says it. */
async function sample(blockhash: Awaited<ReturnType<Node['latestBlockhash']>> | null): Promise<string> {
  if (blockhash === null) throw new Error('not asked: it gives no blockhash');
  const { owner, usdc } = ownAccountsOf(LENDING_MARKET);
  const terms: Terms = {
    blockhash: blockhash.blockhash,
    lastValidBlockHeight: blockhash.lastValidBlockHeight,
    blockhashExpiresAtMs: 0,
    unitPrice: { price: 1n, priority: 'asked', source: 'least', levels: { low: 1n, medium: 1n, high: 1n } },
  };
  const instructions = [transferUsdc({ owner, from: usdc, to: usdc, amountRaw: 1n })];
  return unsigned(owner, { units: UNITS, instructions }, terms);
}
