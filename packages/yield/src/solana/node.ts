/** The questions of this portal to a node of Solana, and the reading of the answers. https://solana.com/docs/rpc/http */

import { RpcRefusal, RpcUnreachable } from '@farebox/core/chain-rpc/json-rpc';
import { unavailable } from '@farebox/core/http/problem';
import { getBase58Encoder } from '@solana/kit';
import { z } from 'zod';
import { connectNodes } from './nodes.ts';

const base58 = getBase58Encoder();
const RPC_TIMEOUT_MS = 8_000;
const RETRY_AFTER_MS = 5_000;
/** The code with which a node says that a transaction is of a version above those that were asked for. */
const VERSION_NOT_SUPPORTED = -32015;
/** The most signatures that a node lists at once, and the most statuses that it tells. */
export const PAGE = 1_000;
const MAX_STATUSES = 256;
/**
 * Data of instructions is read up to so many characters of base58, since reading takes the square of its length. A transaction has
 * 1,232 bytes, which are at most 1,690 characters. Programs call each other with up to 10 KiB, of which nothing here has more than 80 bytes.
 */
const MAX_DATA = { sent: 1_700, called: 120 };

export type Commitment = 'confirmed' | 'finalized';

export interface Account {
  /** base58: the program that it belongs to. */
  owner: string;
  data: Uint8Array;
  lamports: bigint;
  executable: boolean;
}

export interface Instruction {
  program: string;
  /** The accounts' addresses; with `data` as the transaction has them. Data that is longer than anybody here knows is empty. */
  accounts: readonly string[];
  data: Uint8Array;
}

/** A token account that a transaction named, in units of its mint, before and after. */
export interface TokenBalance {
  mint: string;
  before: bigint;
  after: bigint;
}

/** A transaction that is in a block, with every address resolved. */
export interface Landed {
  signature: string;
  slot: number;
  /** Null: the chain does not say. */
  atMs: number | null;
  /** Why it failed, as the node says it; null: it did not. */
  err: unknown;
  signers: readonly string[];
  instructions: readonly Instruction[];
  /** Instructions that programs called, by the index of the instruction above that it began with. */
  inner: ReadonlyMap<number, readonly Instruction[]>;
  /** Token balances, by the token account's address. */
  tokens: ReadonlyMap<string, TokenBalance>;
  /** The texts of its memos and other lines that programs logged. */
  logs: readonly string[];
}

export interface Status {
  slot: number;
  err: unknown;
  final: boolean;
}

export interface Listed {
  signature: string;
  slot: number;
  err: unknown;
  atMs: number | null;
}

/** The effect of running a transaction at the newest block. */
export interface Simulation {
  slot: number;
  /** The error as the node says it; null: it would succeed. */
  err: unknown;
  logs: readonly string[];
  unitsConsumed: number;
  /** The accounts that were asked for, as they would be afterwards; null: none there. */
  accounts: readonly (Account | null)[];
}

export type Node = ReturnType<typeof openNode>;

const u64 = z.number().int().nonnegative();
/** Above 2^53 lamports (9 million SOL) a JSON number is rounded, by less than anybody here asks about. */
const lamports = z.number().nonnegative().transform(Math.round).transform(BigInt);
const context = z.looseObject({ slot: u64 });
const base64 = z.tuple([z.string(), z.literal('base64')]);
const account = z
  .looseObject({ owner: z.string(), data: base64, lamports, executable: z.boolean() })
  .transform(
    ({ owner, data, lamports, executable }): Account => ({
      owner,
      executable,
      lamports,
      data: new Uint8Array(Buffer.from(data[0], 'base64')),
    }),
  );
const accounts = z.looseObject({ context, value: z.array(account.nullable()) });
const blockhash = z.looseObject({
  context,
  value: z.looseObject({ blockhash: z.string(), lastValidBlockHeight: u64 }),
});
const epochInfo = z.looseObject({ absoluteSlot: u64, blockHeight: u64 });
const simulated = z.looseObject({
  context,
  value: z.looseObject({
    err: z.unknown(),
    logs: z.array(z.string()).nullish(),
    unitsConsumed: u64.nullish(),
    accounts: z.array(account.nullable()).nullish(),
  }),
});
const statuses = z.looseObject({
  context,
  value: z.array(
    z.looseObject({ slot: u64, err: z.unknown(), confirmationStatus: z.string().nullish() }).nullable(),
  ),
});
const listed = z.array(
  z.looseObject({
    signature: z.string(),
    slot: u64,
    err: z.unknown(),
    blockTime: z.number().int().nullish(),
  }),
);
const compiled = z.looseObject({
  programIdIndex: u64,
  accounts: z.array(u64),
  data: z.string(),
});
const tokenBalance = z.looseObject({
  accountIndex: u64,
  mint: z.string(),
  uiTokenAmount: z.looseObject({ amount: z.string().regex(/^\d{1,20}$/) }),
});
const landed = z.looseObject({
  slot: u64,
  blockTime: z.number().int().nullish(),
  /** Null: the node has the transaction, and not what it did. */
  meta: z
    .looseObject({
      err: z.unknown(),
      innerInstructions: z.array(z.looseObject({ index: u64, instructions: z.array(compiled) })).nullish(),
      loadedAddresses: z
        .looseObject({ writable: z.array(z.string()), readonly: z.array(z.string()) })
        .nullish(),
      logMessages: z.array(z.string()).nullish(),
      preTokenBalances: z.array(tokenBalance).nullish(),
      postTokenBalances: z.array(tokenBalance).nullish(),
    })
    .nullable(),
  transaction: z.looseObject({
    signatures: z.array(z.string()).min(1),
    message: z.looseObject({
      header: z.looseObject({ numRequiredSignatures: u64 }),
      accountKeys: z.array(z.string()),
      instructions: z.array(compiled),
    }),
  }),
});

/**
 * Opens the way to a node, or to several of which the first that answers is asked. What it refuses or does not answer is thrown as
 * `RpcRefusal` and `RpcUnreachable`.
 *
 * @param urls of the nodes; others may be in force at any time
 */
export function openNode(urls: () => readonly string[], nowMs: () => number) {
  const rpc = connectNodes(urls, { timeoutMs: RPC_TIMEOUT_MS, nowMs });
  const ask: Ask = async (shape, method, ...params) => read(shape, method, await rpc.call(method, params));
  return { ...nowOf(ask), ...pastOf(ask), close: rpc.close };
}

type Ask = <Output>(shape: z.ZodType<Output>, method: string, ...params: unknown[]) => Promise<Output>;

/** The questions about the present state of the chain. */
function nowOf(ask: Ask) {
  return {
    /** Accounts at one slot, in the order that they are asked for. @param addresses at most 100 */
    async accounts(addresses: readonly string[]): Promise<{ slot: number; accounts: (Account | null)[] }> {
      const { context: at, value } = await ask(accounts, 'getMultipleAccounts', addresses, {
        encoding: 'base64',
        commitment: 'confirmed',
      });
      if (value.length !== addresses.length)
        throw new Error('getMultipleAccounts: others than were asked for');
      return { slot: at.slot, accounts: value };
    },
    genesisHash: () => ask(z.string(), 'getGenesisHash'),
    /** The slot and the block height of the newest block. */
    async height(commitment: Commitment = 'confirmed'): Promise<{ slot: number; blockHeight: number }> {
      const { absoluteSlot, blockHeight } = await ask(epochInfo, 'getEpochInfo', { commitment });
      return { slot: absoluteSlot, blockHeight };
    },
    /** When a slot's block was made, in ms; null: the node does not say, as of a slot without one. */
    async blockTimeMs(slot: number): Promise<number | null> {
      try {
        const seconds = await ask(z.number().nullable(), 'getBlockTime', slot);
        return seconds === null ? null : seconds * 1_000;
      } catch (error) {
        if (error instanceof RpcRefusal) return null;
        throw error;
      }
    },
    async latestBlockhash() {
      const { value } = await ask(blockhash, 'getLatestBlockhash', { commitment: 'confirmed' });
      return value;
    },
    /** How long a slot lasted lately, in ms; null: the node has not measured it. */
    async slotMs(): Promise<number | null> {
      const shape = z.array(z.looseObject({ numSlots: u64, samplePeriodSecs: z.number().positive() }));
      const [newest] = await ask(shape, 'getRecentPerformanceSamples', 1);
      return newest === undefined || newest.numSlots === 0
        ? null
        : (newest.samplePeriodSecs * 1_000) / newest.numSlots;
    },
    /**
     * The prices lately paid for a unit of work by those who wrote to these accounts, in millionths of a lamport: one fee for each slot.
     *
     * @param percentile the part of a slot's transactions that paid less, in hundredths of a percent; null: the least, which all nodes tell.
     *   Others than these refuse the word, or do not heed it
     */
    async priorityFees(addresses: readonly string[], percentile: number | null): Promise<bigint[]> {
      const shape = z.array(z.looseObject({ prioritizationFee: u64 }));
      const more = percentile === null ? [] : [{ percentile }];
      const recent = await ask(shape, 'getRecentPrioritizationFees', addresses, ...more);
      return recent.map(({ prioritizationFee }) => BigInt(prioritizationFee));
    },
    /** Runs an unsigned transaction with a fresh blockhash, and forgets it. @param transaction base64 */
    async simulate(transaction: string, shown: readonly string[]): Promise<Simulation> {
      const { context: at, value } = await ask(simulated, 'simulateTransaction', transaction, {
        ...UNSIGNED,
        accounts: { encoding: 'base64', addresses: shown },
      });
      return {
        slot: at.slot,
        err: value.err ?? null,
        logs: value.logs ?? [],
        unitsConsumed: value.unitsConsumed ?? 0,
        accounts: value.accounts ?? [],
      };
    },
  };
}

/** How a transaction is simulated that nobody has signed. */
const UNSIGNED = {
  encoding: 'base64',
  commitment: 'confirmed',
  sigVerify: false,
  replaceRecentBlockhash: true,
};

function statusOf({
  slot,
  err,
  confirmationStatus,
}: NonNullable<z.output<typeof statuses>['value'][number]>): Status {
  return { slot, err: err ?? null, final: confirmationStatus === 'finalized' };
}

/** The questions about transactions that landed. */
function pastOf(ask: Ask) {
  return {
    /** @returns null where the node knows none, or not what it did; `unreadable`: one of a version that nobody here builds */
    async transaction(signature: string, commitment: Commitment): Promise<Landed | 'unreadable' | null> {
      try {
        return landedIn(
          signature,
          await ask(landed.nullable(), 'getTransaction', signature, shownAs(commitment)),
        );
      } catch (error) {
        if (error instanceof RpcRefusal && error.code === VERSION_NOT_SUPPORTED) return 'unreadable';
        throw error;
      }
    },
    /** Asks what became of transactions, however long ago; null: the node knows none. @param signatures at most 256 */
    async statuses(signatures: readonly string[]): Promise<{ slot: number; statuses: (Status | null)[] }> {
      if (signatures.length > MAX_STATUSES) throw new Error(`at most ${MAX_STATUSES} statuses at once`);
      const { context: at, value } = await ask(statuses, 'getSignatureStatuses', signatures, {
        searchTransactionHistory: true,
      });
      if (value.length !== signatures.length)
        throw new Error('getSignatureStatuses: others than were asked for');
      return {
        slot: at.slot,
        statuses: value.map((each) => each && statusOf(each)),
      };
    },
    /** The oldest block that the node still has; null: it does not say. */
    async firstBlock(): Promise<number | null> {
      try {
        return await ask(u64, 'getFirstAvailableBlock');
      } catch (error) {
        if (error instanceof RpcRefusal) return null;
        throw error;
      }
    },
    /** The newest transactions that named an account, final or not, the newest first. */
    async recentWrites(address: string, most: number): Promise<Pick<Listed, 'signature' | 'slot'>[]> {
      const found = await ask(listed, 'getSignaturesForAddress', address, {
        limit: most,
        commitment: 'confirmed',
      });
      return found.map(({ signature, slot }) => ({ signature, slot }));
    },
    /** A page of an account's final transactions, the newest first, below a signature and above another one. */
    async signaturesOf(
      address: string,
      { before, until }: { before: string | null; until: string | null },
    ): Promise<Listed[]> {
      const found = await ask(listed, 'getSignaturesForAddress', address, {
        limit: PAGE,
        commitment: 'finalized',
        ...(before === null ? {} : { before }),
        ...(until === null ? {} : { until }),
      });
      return found.map(({ signature, slot, err, blockTime }) => ({
        signature,
        slot,
        err: err ?? null,
        atMs: typeof blockTime === 'number' ? blockTime * 1_000 : null,
      }));
    },
  };
}

function read<Output>(shape: z.ZodType<Output>, method: string, told: unknown): Output {
  const parsed = shape.safeParse(told);
  // An answer of another shape is none.
  if (!parsed.success) throw new RpcUnreachable(method, new Error('the answer has another shape'));
  return parsed.data;
}

function shownAs(commitment: Commitment) {
  return { encoding: 'json', commitment, maxSupportedTransactionVersion: 0 };
}

function landedIn(signature: string, shown: z.output<typeof landed> | null): Landed | null {
  if (shown === null || shown.meta === null) return null;
  const { meta, transaction, slot, blockTime } = shown;
  const { message } = transaction;
  if (transaction.signatures[0] !== signature)
    throw new RpcUnreachable('getTransaction', new Error('another transaction than was asked for'));
  const { writable = [], readonly = [] } = meta.loadedAddresses ?? {};
  const keys = [...message.accountKeys, ...writable, ...readonly];
  const key = (index: number): string => {
    const found = keys[index];
    if (found === undefined)
      throw new RpcUnreachable('getTransaction', new Error('it names no such account'));
    return found;
  };
  const instruction =
    (most: number) =>
    ({ programIdIndex, accounts: indexes, data }: z.output<typeof compiled>): Instruction => ({
      program: key(programIdIndex),
      accounts: indexes.map(key),
      data: data.length > most ? new Uint8Array() : new Uint8Array(base58.encode(data)),
    });
  const inner = new Map<number, Instruction[]>();
  for (const { index, instructions } of meta.innerInstructions ?? [])
    inner.set(index, [...(inner.get(index) ?? []), ...instructions.map(instruction(MAX_DATA.called))]);
  return {
    signature,
    slot,
    inner,
    atMs: typeof blockTime === 'number' ? blockTime * 1_000 : null,
    err: meta.err ?? null,
    signers: message.accountKeys.slice(0, message.header.numRequiredSignatures),
    instructions: message.instructions.map(instruction(MAX_DATA.sent)),
    tokens: tokensIn(key, meta.preTokenBalances ?? [], meta.postTokenBalances ?? []),
    logs: meta.logMessages ?? [],
  };
}

type ShownBalance = z.output<typeof tokenBalance>;

/** An account that is opened stands after alone, one that is closed before alone. */
function tokensIn(
  key: (index: number) => string,
  before: readonly ShownBalance[],
  after: readonly ShownBalance[],
): Map<string, TokenBalance> {
  const tokens = new Map<string, TokenBalance>();
  for (const [shown, when] of [
    [before, 'before'],
    [after, 'after'],
  ] as const)
    for (const { accountIndex, mint, uiTokenAmount } of shown) {
      const address = key(accountIndex);
      const known = tokens.get(address) ?? { mint, before: 0n, after: 0n };
      tokens.set(address, { ...known, [when]: BigInt(uiTokenAmount.amount) });
    }
  return tokens;
}

/** Whether it is because of the way to the node, and not of what was asked. */
export function isOutage(error: unknown): boolean {
  return error instanceof RpcUnreachable || error instanceof RpcRefusal;
}

/** The 503 of a chain that cannot be read now. */
export function chainUnavailable(cause: unknown) {
  return unavailable(
    'CHAIN_UNAVAILABLE',
    'Solana cannot be read at the moment.',
    RETRY_AFTER_MS,
    { success: false },
    cause,
  );
}
