/**
 * Moves the vault's funds to where they earn most. Each round reads everything at one block, and notes each protocol's index. What
 * it paid over hours decides, together with what its curve says that it would pay after a move; and it moves when that is worth its
 * gas. The contract has the last word: it holds the limits.
 *
 * Any number of replicas may run it. One looks at a time; and since a move is named for the time from which the contract
 * allows it, two that looked at once send one transaction, and one that comes late is refused by the contract.
 */

import { type Rpc, RpcRefusal } from '@farebox/core/chain-rpc/json-rpc';
import type { Database } from '@farebox/core/db/connection';
import type { Relayer } from '@farebox/core/relayer/relayer';
import { OutOfGas } from '@farebox/core/relayer/to-send';
import {
  type Address,
  createPublicClient,
  custom,
  encodeFunctionData,
  type Hex,
  type PublicClient,
  type Transport,
} from 'viem';
import { AAVE_POOL_ABI, VAULT_ABI } from '../contracts/abi.ts';
import { BASE } from '../contracts/base-chain.ts';
import { PROTOCOLS, type ProtocolName } from '../contracts/protocols.ts';
import { conductOf } from './conduct.ts';
import { decide, type Known, type Lenders, type Proposal, type Standing, type Verdict } from './decide.ts';
import { type Addresses, type At, type Lender, readAave, readComet, readMetaMorpho } from './lenders.ts';
import { createLooks, type KeeperReport, noteReason, type Outcome } from './report.ts';
import { noteSample, type Reading, SAMPLE_SECONDS } from './samples.ts';

type Chain = PublicClient<Transport, typeof BASE>;

/** The dearest move: out of a MetaMorpho of thirty markets. */
export const MOST_MOVE_GAS = 5_000_000n;
const WETH: Address = '0x4200000000000000000000000000000000000006';
/** A look reads for some seconds and may wait for a transaction. */
const LOOK_MS = 90_000;
const SEND_TIMEOUT_MS = 30_000;
/** Less is not worth its gas: USDC micros that could be taken out of a protocol, and that lie idle. */
const LEAST_LEFT_MICROS = 10_000_000n;
const LEAST_IDLE_MICROS = 100_000_000n;
/** The rounding of two protocols, as the contract allows it. */
const MOVE_DUST = 10n;
/** Aave's oracle speaks in hundred-millionths of a dollar. */
const ORACLE_UNITS_IN_MICRO = 100n;
const WEI_IN_ETHER = 10n ** 18n;

const SENTENCES: Readonly<Record<Outcome, string>> = {
  MOVED: 'Funds were moved to where they earn more.',
  LEFT: 'What could be taken out of a protocol that stays short of cash, or lost value, was taken out.',
  SUPPLIED: 'What lay idle was supplied to protocols that were calm for a day.',
  PENDING: 'A move is on its way and in no block yet.',
  EMPTY: 'The vault has nothing in any protocol.',
  BEST: 'No move would make the vault earn more.',
  TOO_SMALL_A_GAIN: 'The best move would raise the rate by less than what a move is made for.',
  COSTS_MORE: 'The best move would not earn back its gas within 30 days.',
  NO_HISTORY: 'The samples of what protocols paid do not reach a day back yet.',
  UNREST:
    'Every other protocol was short of cash, lost value, or changed its rate by a jump within a day: none is gone to.',
  STUCK: 'Nothing can be taken out, or no other protocol takes anything.',
  COOLING: 'The contract allows the next move later.',
  INCOMPLETE: 'The contract cannot read one of its positions, and moves nothing meanwhile.',
  NOT_KEEPER: 'The contract has another keeper than the key of this server.',
  OUT_OF_GAS: 'The keeper’s key lacks the gas for a move.',
  REFUSED: 'The move would fail by now.',
  REVERTED: 'The move was mined and failed; nothing changed.',
  UNREADABLE: 'The chain could not be read.',
};

const READERS: Readonly<Record<ProtocolName, (at: At, to: Addresses) => Promise<Lender>>> = {
  aave: readAave,
  compound: readComet,
  morpho: readMetaMorpho,
};

export interface KeeperParts {
  sql: Database;
  rpc: Rpc;
  relayer: Pick<Relayer, 'addresses' | 'fees' | 'send'>;
  vault: Address;
  minGainBps: number;
  nowMs(): number;
}

/** The findings of a round, as far as it came. */
type Found = Omit<KeeperReport, 'outcome' | 'why'>;

/**
 * @returns one round, and what came of it; null: another replica looks at this time
 * @throws when the database does not answer
 */
export function createKeeper(parts: KeeperParts): () => Promise<KeeperReport | null> {
  const { sql, rpc, vault, nowMs } = parts;
  const client = createPublicClient({
    chain: BASE,
    batch: { multicall: true },
    cacheTime: 0,
    transport: custom(
      { request: ({ method, params }) => rpc.call(method, Array.isArray(params) ? params : []) },
      { retryCount: 0 },
    ),
  });
  const looks = createLooks(sql, vault, nowMs);
  return async () => {
    const look = await looks.begin(LOOK_MS);
    if (look === null) return null;
    const found: Found = {
      block: null,
      proposal: null,
      transaction: null,
      minGainBps: parts.minGainBps,
      yearlyPercent: { aave: null, compound: null, morpho: null },
      conduct: { aave: null, compound: null, morpho: null },
    };
    const outcome = await round(client, parts, found).catch((): Outcome => 'UNREADABLE');
    const report: KeeperReport = { outcome, why: SENTENCES[outcome], ...found };
    await looks.end(look, report);
    return report;
  };
}

async function round(client: Chain, parts: KeeperParts, found: Found): Promise<Outcome> {
  const { vault, relayer, minGainBps } = parts;
  const { number: blockNumber, timestamp } = await client.getBlock();
  if (blockNumber === null) throw new Error('the newest block has no number');
  found.block = String(blockNumber);
  const ask = { address: vault, abi: VAULT_ABI, blockNumber } as const;
  const [keeper, [idle, held, , complete], limits, nextMoveAt, total, ...more] = await Promise.all([
    client.readContract({ ...ask, functionName: 'keeper' }),
    client.readContract({ ...ask, functionName: 'holdings' }),
    client.readContract({ ...ask, functionName: 'moveLimits' }),
    client.readContract({ ...ask, functionName: 'nextMoveAt' }),
    client.readContract({ ...ask, functionName: 'totalAssets' }),
    client.readContract({ ...ask, functionName: 'leftProtocols' }),
    client.readContract({ ...ask, functionName: 'nextSupplyAt' }),
    client.readContract({ ...ask, functionName: 'active' }),
  ]);
  const [leftBits, nextSupplyAt, active] = more;
  const addresses = await addressesOf(client, vault, blockNumber);
  const lenders = await judged(parts, await readLenders({ client, blockNumber }, addresses), found, {
    blockNumber,
    atS: Number(timestamp),
  });
  if (!relayer.addresses.some((address) => address.toLowerCase() === keeper.toLowerCase()))
    return 'NOT_KEEPER';
  const [aave, compound, morpho] = held;
  const standing: Standing = { inProtocol: { aave, compound, morpho }, total, limits };
  const left = PROTOCOLS.filter((_, index) => (leftBits & (1 << index)) !== 0);
  const slot = timestamp - (timestamp % BigInt(SAMPLE_SECONDS));
  const fled = await leaveTheBad(parts, standing, lenders, { left, slot }, found);
  if (fled !== null) return fled;
  if (!complete) return 'INCOMPLETE';
  if (idle >= LEAST_IDLE_MICROS && timestamp >= nextSupplyAt) {
    const takers = takersOf(idle, standing, { active: PROTOCOLS[active] ?? 'aave', left });
    const supplied = await supplyIdle(parts, takers, lenders, slot, found);
    if (supplied !== null) return supplied;
  }
  if (timestamp < nextMoveAt) return 'COOLING';
  const costOf = await gasPrice(client, relayer, addresses, blockNumber);
  const verdict = await decide(standing, lenders, { minGainBps, costOf });
  const proposal = verdict.proposal === null ? null : told(verdict.proposal);
  found.proposal = proposal;
  if (verdict.do === 'stay') return verdict.why;
  if (proposal !== null)
    await noteReason(
      parts.sql,
      { vault, allowedAt: nextMoveAt, proposal },
      averagesOf(lenders),
      parts.nowMs(),
    );
  return move(parts, verdict, nextMoveAt, found);
}

/**
 * Takes out what a protocol can still pay that turned bad, and has the contract send nothing more there. It waits for no pause between
 * two moves. Only so much at once as is worth its gas, and at most one transaction for each sample.
 *
 * @returns null: there is nothing to leave, or it would fail
 */
async function leaveTheBad(
  parts: KeeperParts,
  { inProtocol }: Standing,
  lenders: Lenders,
  { left, slot }: { left: readonly ProtocolName[]; slot: bigint },
  found: Found,
): Promise<Outcome | null> {
  for (const [index, name] of PROTOCOLS.entries()) {
    const lender = lenders[name];
    if (lender?.conduct.turnedBad !== true || inProtocol[name] === 0n) continue;
    if (lender.liquid < LEAST_LEFT_MICROS && left.includes(name)) continue;
    const data = encodeFunctionData({
      abi: VAULT_ABI,
      functionName: 'leave',
      args: [index, inProtocol[name]],
    });
    const id = `yield-leave:${parts.vault.toLowerCase()}:${name}:${slot}`;
    const outcome = await send(parts, { id, data }, 'LEFT', found);
    if (outcome !== 'REFUSED') return outcome;
  }
  return null;
}

/** The protocols that would get the idle funds: as the contract spreads it, the active one first, each as far as to its share of the whole. */
function takersOf(
  idle: bigint,
  { inProtocol, total, limits }: Standing,
  { active, left }: { active: ProtocolName; left: readonly ProtocolName[] },
): ProtocolName[] {
  const share = (total * BigInt(limits.maxShareBps)) / 10_000n;
  let rest = idle;
  return [...new Set([active, ...PROTOCOLS])].filter((name) => {
    const room = share > inProtocol[name] ? share - inProtocol[name] : 0n;
    if (left.includes(name) || room === 0n || rest === 0n) return false;
    rest -= room < rest ? room : rest;
    return true;
  });
}

/** Supplies what lies idle, if all that would get some were calm. @returns null: it waits, or would fail */
async function supplyIdle(
  parts: KeeperParts,
  takers: readonly ProtocolName[],
  lenders: Lenders,
  slot: bigint,
  found: Found,
): Promise<Outcome | null> {
  const isCalm = (name: ProtocolName) => {
    const conduct = lenders[name]?.conduct;
    return conduct !== undefined && conduct.averageRate !== null && conduct.unrest === null;
  };
  if (takers.length === 0 || !takers.every(isCalm)) return null;
  const data = encodeFunctionData({ abi: VAULT_ABI, functionName: 'supplyIdle' });
  const id = `yield-supply:${parts.vault.toLowerCase()}:${slot}`;
  const outcome = await send(parts, { id, data }, 'SUPPLIED', found);
  return outcome === 'REFUSED' ? null : outcome;
}

type Read = Lender & { spotRate: number };

/** Those that can be read, with what each pays now. */
async function readLenders(at: At, to: Addresses): Promise<Partial<Record<ProtocolName, Read>>> {
  const lenders: Partial<Record<ProtocolName, Read>> = {};
  await Promise.all(
    PROTOCOLS.map(async (name) => {
      try {
        const lender = await READERS[name](at, to);
        lenders[name] = { ...lender, spotRate: await lender.yearlyRate(0n) };
      } catch {
        // A protocol that cannot be read takes no part: it is neither left nor gone to.
      }
    }),
  );
  return lenders;
}

/** Notes what was read, and judges each protocol by what was noted before. */
async function judged(
  { sql, vault }: KeeperParts,
  lenders: Partial<Record<ProtocolName, Read>>,
  found: Found,
  at: { atS: number; blockNumber: bigint },
): Promise<Lenders> {
  const of = <Value>(tell: (lender: Read, name: ProtocolName) => Value) => {
    const each = (name: ProtocolName) => {
      const lender = lenders[name];
      return lender === undefined ? null : tell(lender, name);
    };
    return { aave: each('aave'), compound: each('compound'), morpho: each('morpho') };
  };
  const protocols = of(({ index, utilization }): Reading => ({ index, utilization }));
  const samples = await noteSample(sql, vault, { ...at, protocols });
  const known: Partial<Record<ProtocolName, Known>> = {};
  found.yearlyPercent = of(({ spotRate }) => percent(spotRate));
  found.conduct = of((lender, name) => {
    const conduct = conductOf(name, samples, { ...lender, atS: at.atS });
    known[name] = { ...lender, conduct };
    const { averageRate, unrest } = conduct;
    return {
      averagePercent: averageRate === null ? null : percent(averageRate),
      utilizationPercent: percent(lender.utilization),
      unrest,
    };
  });
  return known;
}

function averagesOf(lenders: Lenders): Record<ProtocolName, number | null> {
  const of = (name: ProtocolName) => {
    const rate = lenders[name]?.conduct.averageRate ?? null;
    return rate === null ? null : percent(rate);
  };
  return { aave: of('aave'), compound: of('compound'), morpho: of('morpho') };
}

async function addressesOf(client: Chain, vault: Address, blockNumber: bigint): Promise<Addresses> {
  const ask = { address: vault, abi: VAULT_ABI, blockNumber } as const;
  const [usdc, aavePool, aToken, comet, metaMorpho] = await Promise.all([
    client.readContract({ ...ask, functionName: 'asset' }),
    client.readContract({ ...ask, functionName: 'aavePool' }),
    client.readContract({ ...ask, functionName: 'aToken' }),
    client.readContract({ ...ask, functionName: 'comet' }),
    client.readContract({ ...ask, functionName: 'metaMorpho' }),
  ]);
  return { vault, usdc, aavePool, aToken, comet, metaMorpho };
}

/** Prices so much gas in micro-USD, at the price of ether that Aave lends by. */
async function gasPrice(
  client: Chain,
  relayer: KeeperParts['relayer'],
  { aavePool }: Addresses,
  blockNumber: bigint,
): Promise<(gas: bigint) => bigint> {
  const ask = { abi: AAVE_POOL_ABI, blockNumber } as const;
  const provider = await client.readContract({
    ...ask,
    address: aavePool,
    functionName: 'ADDRESSES_PROVIDER',
  });
  const oracle = await client.readContract({ ...ask, address: provider, functionName: 'getPriceOracle' });
  const [price, { maxFeePerGas }] = await Promise.all([
    client.readContract({ ...ask, address: oracle, functionName: 'getAssetPrice', args: [WETH] }),
    relayer.fees(),
  ]);
  return (gas) => (gas * maxFeePerGas * price) / WEI_IN_ETHER / ORACLE_UNITS_IN_MICRO;
}

async function move(
  parts: KeeperParts,
  { proposal }: Extract<Verdict, { do: 'move' }>,
  nextMoveAt: bigint,
  found: Found,
): Promise<Outcome> {
  const { from, to, amountMicros } = proposal;
  const data = encodeFunctionData({
    abi: VAULT_ABI,
    functionName: 'move',
    args: [PROTOCOLS.indexOf(from), PROTOCOLS.indexOf(to), amountMicros, amountMicros - MOVE_DUST],
  });
  // The contract allows one move from that time on, and this is it, whoever sends it.
  return send(parts, { id: `yield-move:${parts.vault.toLowerCase()}:${nextMoveAt}`, data }, 'MOVED', found);
}

/** @param id whoever sends under the same one sends nothing more */
async function send(
  { relayer, vault }: KeeperParts,
  { id, data }: { id: string; data: Hex },
  done: Outcome,
  found: Found,
): Promise<Outcome> {
  try {
    const mined = await relayer.send({ id, to: vault, data }, SEND_TIMEOUT_MS);
    if (mined === null) return 'PENDING';
    found.transaction = mined.hash;
    return mined.status === 'success' ? done : 'REVERTED';
  } catch (error) {
    if (error instanceof OutOfGas) return 'OUT_OF_GAS';
    if (error instanceof RpcRefusal) return 'REFUSED';
    throw error;
  }
}

function told(proposal: Proposal): NonNullable<KeeperReport['proposal']> {
  const { from, to, partial, amountMicros, gainMicrosPerYear, costMicros, rateAfter } = proposal;
  return {
    from,
    to,
    partial,
    amountMicros: String(amountMicros),
    gainMicrosPerYear: String(gainMicrosPerYear),
    costMicros: String(costMicros),
    yearlyPercentAfter: percent(rateAfter),
  };
}

/** To four places. */
function percent(rate: number): number {
  return Math.round(rate * 1_000_000) / 10_000;
}
