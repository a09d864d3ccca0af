/** Compares what the books say about a chain with the chain itself. */
import type { Rpc } from '../../chain-rpc/json-rpc.ts';
import type { Database } from '../../db/connection.ts';
import type { Finality, OnChainPayment } from '../../paid-call/rail.ts';
import type { EvmChain } from './chain.ts';
import { TOPIC_TRANSFER, topicOf } from './eip3009.ts';

const AT_ONCE = 20;
const LOG_WINDOW = 2_000n;
const MAX_WINDOWS = 2_000;
const MAX_LISTED = 20;

export interface ChainAudit {
  network: string;
  /** The number of settlements in the books. */
  settlements: number;
  /** What they received, by token, in base units. */
  received: { asset: string; units: bigint }[];
  /** Entries of the books that the chain does not confirm. */
  findings: string[];
  /** Transfers to the recipient that paid for no call, at most 20; null when they were not looked for. */
  unmatched: { transaction: string; from: string; units: bigint }[] | null;
}

interface BookedSettlement {
  callId: string;
  transaction: string;
  payment: OnChainPayment;
  blockNumber: bigint | null;
}

/**
 * Asks the chain about every settlement in the books. On an EVM chain it also looks for every transfer to the recipient
 * since the first settlement, and asks the books about each.
 */
export async function auditNetwork(parts: {
  sql: Database;
  network: string;
  payTo: string;
  evm: { chain: EvmChain; rpc: Rpc } | null;
  finality(payment: OnChainPayment, transaction: string): Promise<Finality>;
}): Promise<ChainAudit> {
  const booked = await settlementsOf(parts.sql, parts.network);
  const findings: string[] = [];
  for (let at = 0; at < booked.length; at += AT_ONCE) {
    const some = booked.slice(at, at + AT_ONCE);
    const said = await Promise.all(
      some.map(({ payment, transaction }) => parts.finality(payment, transaction)),
    );
    for (const [index, finality] of said.entries()) {
      const { callId, transaction } = some[index] ?? { callId: '', transaction: '' };
      if (finality === 'gone')
        findings.push(`call ${callId} was paid by ${transaction}, which the chain does not know`);
      if (finality === 'unknown')
        findings.push(`nobody could say whether ${transaction} paid for call ${callId}`);
    }
  }
  const compared = parts.evm === null ? null : await compareTransfers(parts.evm, parts.payTo, booked);
  return {
    network: parts.network,
    settlements: booked.length,
    received: byAsset(booked),
    findings: [...findings, ...(compared?.missing ?? [])],
    unmatched: compared?.unmatched ?? null,
  };
}

function byAsset(booked: readonly BookedSettlement[]): ChainAudit['received'] {
  const sums = new Map<string, bigint>();
  for (const { payment } of booked)
    sums.set(payment.asset, (sums.get(payment.asset) ?? 0n) + payment.amountUnits);
  return [...sums].map(([asset, units]) => ({ asset, units }));
}

/** Compares what each payer sent in each transaction with what the books say of it, to the unit. */
async function compareTransfers(
  { chain, rpc }: { chain: EvmChain; rpc: Rpc },
  payTo: string,
  booked: readonly BookedSettlement[],
): Promise<{ unmatched: NonNullable<ChainAudit['unmatched']>; missing: string[] }> {
  const blocks = booked.flatMap(({ blockNumber }) => (blockNumber === null ? [] : [blockNumber]));
  if (blocks.length === 0) return { unmatched: [], missing: [] };
  const nameOf = (transaction: string, from: string) => `${transaction} ${from}`.toLowerCase();
  /** Amounts that the books have and that no transfer on the chain has accounted for yet. */
  const left = new Map<string, bigint>();
  for (const { transaction, payment } of booked) {
    const name = nameOf(transaction, payment.payer);
    left.set(name, (left.get(name) ?? 0n) + payment.amountUnits);
  }
  const beyond = new Map<string, NonNullable<ChainAudit['unmatched']>[number]>();
  const head = await chain.head();
  let fromBlock = blocks.reduce((least, block) => (block < least ? block : least));
  for (let window = 0; window < MAX_WINDOWS && fromBlock <= head.number; window++) {
    const last = fromBlock + LOG_WINDOW - 1n;
    const logs = (await rpc.call('eth_getLogs', [
      {
        address: chain.network.asset,
        topics: [TOPIC_TRANSFER, null, topicOf(payTo as `0x${string}`)],
        fromBlock: `0x${fromBlock.toString(16)}`,
        toBlock: `0x${(last < head.number ? last : head.number).toString(16)}`,
      },
    ])) as { transactionHash: string; topics: string[]; data: string }[];
    for (const { transactionHash: transaction, topics, data } of logs) {
      const from = `0x${topics[1]?.slice(26) ?? ''}`;
      const name = nameOf(transaction, from);
      const [came, expected] = [BigInt(data), left.get(name) ?? 0n];
      const matched = came < expected ? came : expected;
      left.set(name, expected - matched);
      if (came === matched) continue;
      const units = (beyond.get(name)?.units ?? 0n) + came - matched;
      if (beyond.has(name) || beyond.size < MAX_LISTED) beyond.set(name, { transaction, from, units });
    }
    fromBlock = last + 1n;
  }
  const missing = booked.flatMap(({ callId, transaction, blockNumber, payment }) => {
    const units = left.get(nameOf(transaction, payment.payer)) ?? 0n;
    if (units === 0n || blockNumber === null || blockNumber >= fromBlock) return [];
    return [`call ${callId} is booked with ${units} units more than ${transaction} brought from its payer`];
  });
  return { unmatched: [...beyond.values()], missing };
}

async function settlementsOf(sql: Database, network: string): Promise<BookedSettlement[]> {
  const rows = await sql<
    {
      call_id: string;
      transaction: string;
      block: bigint | null;
      asset: string;
      payer: string;
      pay_to: string;
      amount_units: bigint;
      evidence: Record<string, unknown>;
      dead_after: Date;
    }[]
  >`
    select call_id, transaction, block, asset, payer, pay_to, amount_units, evidence, dead_after from settlements
    where network = ${network} and state = 1 and transaction is not null order by created_at`;
  return rows.map((row) => ({
    callId: row.call_id,
    transaction: row.transaction,
    blockNumber: row.block,
    payment: {
      identity: '',
      network,
      asset: row.asset,
      payer: row.payer,
      payTo: row.pay_to,
      amountUnits: row.amount_units,
      deadAfterMs: row.dead_after.getTime(),
      evidence: row.evidence,
    },
  }));
}
