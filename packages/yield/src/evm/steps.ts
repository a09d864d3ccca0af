/** Transactions that are handed out: each simulated, with the gas that it was seen to succeed with. */
import {
  type AbiParameter,
  type Address,
  type DecodeAbiParametersReturnType,
  decodeAbiParameters,
  encodeFunctionData,
  type Hex,
} from 'viem';
import { USDC_ABI } from '../contracts/abi.ts';
import type { Fixed } from './fixed.ts';
import { chainUnavailable, type Node } from './node.ts';
import { type Log, type Outcome, simulate, type Transaction } from './simulate.ts';
import type { Block } from './snapshot.ts';

/** A transaction to be signed by a wallet. */
export interface Step {
  action: string;
  to: Address;
  data: Hex;
  note: string;
}

export interface Measured extends Step {
  gasUsed: bigint;
  /** The limit to send it with. */
  gasLimit: bigint;
}

export type Trial =
  | { ok: true; steps: readonly Measured[]; returned: readonly Hex[]; logs: readonly Log[] }
  | {
      ok: false;
      failedStep: number;
      failure: Extract<Outcome, { ok: false }>['failure'];
    };

/** The things that an account lacks and a simulation assumes. */
export interface Assumed {
  /** Units of USDC that it lacks. */
  usdc: bigint;
  /** A signature that it would give: the account answers as a contract that approves of it (ERC-1271). */
  signature: boolean;
}

const NOTHING_ASSUMED: Assumed = { usdc: 0n, signature: false };

/** When a transaction is mined that is sent at once, and when one is that its owner thought over. */
const SOON_MS = 2_000;
const LATE_MS = 600_000;
/** A quarter more than was used, and a little: states change until a transaction is mined. */
const MARGIN_NUMERATOR = 5n;
const MARGIN_DENOMINATOR = 4n;
const MARGIN_GAS = 10_000n;
/**
 * The gas that the vault must have left when a protocol fails: it refuses when the failure could be for lack of gas alone
 * (`Positions.sol`). One such protocol, then all three.
 */
const FAILING_CALLS_GAS = [0n, 3_300_000n, 10_000_000n] as const;

/** Answers to everything: the signature is right. Returns 0x1626ba7e, in a word. */
const APPROVES_ALL: Hex = '0x631626ba7e60e01b60005260206000f3';

/**
 * Simulates a wallet's transactions, one on top of the other, and finds the gas for each: the lowest of three limits that
 * all of them were seen to succeed with.
 *
 * @param after the block that they come after; what they answer is that of the block after it
 * @param assumed USDC that is lacking is made, within the simulation alone
 * @throws Problem 503 while the chain cannot be asked
 */
export async function tryOut(
  node: Node,
  fixed: Fixed,
  wallet: Address,
  steps: readonly Step[],
  after: Block,
  assumed: Assumed = NOTHING_ASSUMED,
): Promise<Trial> {
  const made = assumed.usdc === 0n ? [] : mint(fixed, wallet, assumed.usdc);
  const options = { after, ...(assumed.signature ? { code: { address: wallet, code: APPROVES_ALL } } : {}) };
  const run = async (laterMs: number, gasOf: (index: number) => bigint | undefined) => {
    const own = steps.map(({ to, data }, index): Transaction => {
      const gas = gasOf(index);
      return { from: wallet, to, data, ...(gas === undefined ? {} : { gas }) };
    });
    const outcomes = await simulate(node, [...made, ...own], { ...options, laterMs });
    // What keeps USDC from being made for a wallet, such as being barred from it, keeps the wallet from using it.
    const barred = outcomes.slice(0, made.length).find(({ ok }) => !ok);
    return barred === undefined ? outcomes.slice(made.length) : [barred];
  };
  const late = await run(LATE_MS, () => undefined);
  const failed = failureOf(late);
  if (failed !== null) return failed;
  const used = late.map(({ gasUsed }) => gasUsed);
  let last = late;
  for (const reserve of FAILING_CALLS_GAS) {
    const limitOf = (index: number) =>
      ((used[index] ?? 0n) * MARGIN_NUMERATOR) / MARGIN_DENOMINATOR + MARGIN_GAS + reserve;
    const [soon, later] = await Promise.all([run(SOON_MS, limitOf), run(LATE_MS, limitOf)]);
    last = failureOf(soon) === null ? later : soon;
    if (failureOf(last) !== null) continue;
    return {
      ok: true,
      steps: steps.map((step, index) => ({
        ...step,
        gasUsed: later[index]?.gasUsed ?? 0n,
        gasLimit: limitOf(index),
      })),
      returned: soon.map((outcome) => (outcome.ok ? outcome.returned : '0x')),
      logs: soon.flatMap((outcome) => (outcome.ok ? outcome.logs : [])),
    };
  }
  return failureOf(last) ?? { ok: false, failedStep: 0, failure: UNKNOWN };
}

/** Decodes what the last transaction returned. @throws Problem 503 when the node says that it succeeds, and with another answer */
export function returnedBy<const Types extends readonly AbiParameter[]>(
  { returned }: Extract<Trial, { ok: true }>,
  types: Types,
): DecodeAbiParametersReturnType<Types> {
  try {
    return decodeAbiParameters(types, returned.at(-1) ?? '0x');
  } catch (error) {
    throw chainUnavailable(error);
  }
}

const UNKNOWN = { error: null, values: [], message: 'the transaction succeeds with no limit that was tried' };

function failureOf(outcomes: readonly Outcome[]): Extract<Trial, { ok: false }> | null {
  for (const [failedStep, outcome] of outcomes.entries())
    if (!outcome.ok) return { ok: false, failedStep, failure: outcome.failure };
  return null;
}

/** New USDC, by the authority that the token itself names. It is made in the simulation alone. */
function mint({ usdc, usdcMinter }: Fixed, to: Address, amount: bigint): Transaction[] {
  return [
    encodeFunctionData({ abi: USDC_ABI, functionName: 'configureMinter', args: [usdcMinter, amount] }),
    encodeFunctionData({ abi: USDC_ABI, functionName: 'mint', args: [to, amount] }),
  ].map((data) => ({ from: usdcMinter, to: usdc, data }));
}
