/** Simulates what transactions would do, one on top of the other, before anybody signs them (`eth_simulateV1`). */

import { RpcRefusal } from '@farebox/core/chain-rpc/json-rpc';
import { unavailable } from '@farebox/core/http/problem';
import { type Address, decodeErrorResult, type Hex, isHex, numberToHex, parseAbi } from 'viem';
import { z } from 'zod';
import { PERMIT_DEPOSIT_ABI, VAULT_ABI } from '../contracts/abi.ts';
import { chainUnavailable, isOutage, type Node } from './node.ts';
import type { Block } from './snapshot.ts';

export interface Transaction {
  from: Address;
  to: Address;
  data: Hex;
  gas?: bigint;
}

export type Outcome =
  | { ok: true; gasUsed: bigint; returned: Hex; logs: readonly Log[] }
  | { ok: false; failure: Failure; gasUsed: bigint };

/** An event that a contract would emit. */
export interface Log {
  address: string;
  topics: readonly string[];
  data: string;
}

/** Why a transaction would fail. */
export interface Failure {
  /** The contract's own name for it, such as `NotEnoughLiquidity`; null: it gave none that is known. */
  error: string | null;
  /** Its values, in the order of the contract's. */
  values: readonly string[];
  message: string;
}

const hex = z.string().refine((value): value is Hex => isHex(value));
const quantity = z.string().regex(/^0x[0-9a-f]{1,64}$/i);
const callResult = z.looseObject({
  status: quantity,
  gasUsed: quantity,
  returnData: hex.optional(),
  logs: z
    .array(z.looseObject({ address: z.string(), topics: z.array(z.string()), data: z.string() }))
    .optional(),
  error: z.looseObject({ message: z.string().optional(), data: z.unknown().optional() }).nullish(),
});
const reply = z
  .array(z.looseObject({ calls: z.array(callResult) }))
  .length(1)
  .transform(([block]) => block ?? { calls: [] });

/** With Solidity's own, by which a `require` tells its reason. */
const ERRORS = [
  ...[...VAULT_ABI, ...PERMIT_DEPOSIT_ABI].filter(({ type }) => type === 'error'),
  ...parseAbi(['error Error(string reason)']),
];
/** Codes with which nodes say that they have no such method. */
const NO_METHOD: readonly number[] = [-32601, -32600, -32004];
const MAX_MESSAGE = 300;

/**
 * Carries transactions out in one block after another one, each on top of those before, and forgets them.
 *
 * @param options.after the block that they come after
 * @param options.laterMs how long after it. What a protocol adds up over time costs nothing in the second in which somebody
 *   else had it done, and a node that is not told otherwise simulates that second
 * @param options.code what stands in for the code of an account
 * @throws Problem 503 while the chain is silent, or when its node cannot simulate
 */
export async function simulate(
  { rpc }: Node,
  transactions: readonly Transaction[],
  { after, laterMs, code }: { after: Block; laterMs: number; code?: { address: Address; code: Hex } },
): Promise<Outcome[]> {
  const block = {
    blockOverrides: { time: numberToHex(Math.floor((after.timestampMs + laterMs) / 1_000)) },
    ...(code === undefined ? {} : { stateOverrides: { [code.address]: { code: code.code } } }),
    calls: transactions.map(({ from, to, data, gas }) => ({
      from,
      to,
      data,
      ...(gas === undefined ? {} : { gas: numberToHex(gas) }),
    })),
  };
  let told: unknown;
  try {
    told = await rpc.call('eth_simulateV1', [
      { blockStateCalls: [block], validation: false },
      numberToHex(after.number),
    ]);
  } catch (error) {
    if (isOutage(error)) throw chainUnavailable(error);
    if (error instanceof RpcRefusal && NO_METHOD.includes(error.code))
      throw unavailable(
        'CANNOT_SIMULATE',
        'The node of this server cannot simulate transactions (eth_simulateV1), so none is handed out.',
        ...[60_000, {}, error],
      );
    throw chainUnavailable(error);
  }
  const parsed = reply.safeParse(told);
  if (!parsed.success || parsed.data.calls.length !== transactions.length)
    throw chainUnavailable(new Error('the node’s simulation has another shape'));
  return parsed.data.calls.map(({ status, gasUsed, returnData = '0x', logs = [], error }) =>
    BigInt(status) === 1n
      ? { ok: true, gasUsed: BigInt(gasUsed), returned: returnData, logs }
      : { ok: false, gasUsed: BigInt(gasUsed), failure: failureIn(returnData, error) },
  );
}

function failureIn(
  returned: Hex,
  error: { message?: string | undefined; data?: unknown } | null | undefined,
): Failure {
  const data = [returned, error?.data].find(
    (each): each is Hex => typeof each === 'string' && isHex(each) && each.length >= 10,
  );
  if (data !== undefined) {
    try {
      const { errorName, args = [] } = decodeErrorResult({ abi: ERRORS, data });
      const values = args.map(String);
      const plain = errorName === 'Error';
      const message = plain ? (values[0] ?? '') : `${errorName}(${values.join(', ')})`;
      return { error: plain ? null : errorName, values, message: message.slice(0, MAX_MESSAGE) };
    } catch {
      // An error of a contract that is not known here.
    }
  }
  return { error: null, values: [], message: 'the transaction would be reverted, without a known reason' };
}
