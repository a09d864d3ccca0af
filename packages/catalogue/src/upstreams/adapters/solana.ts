import type { Source } from '@farebox/core/words/answer';
import { sourceUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import { defineUpstream, type UpstreamHttp } from '../define.ts';

/** Circle's USDC on Solana. */
export const SOLANA_USDC_MINT = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
/** The two programs whose accounts hold tokens. */
export const TOKEN_PROGRAMS = [
  'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
  'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb',
] as const;

/** One token of an owner, over all its accounts. */
export interface SolanaTokenBalance {
  mint: string;
  /** In the token's smallest unit. */
  amount: bigint;
  decimals: number;
}

/** An account as it is stored. */
export interface SolanaAccount {
  lamports: bigint;
  /** The program that it belongs to. */
  owner: string;
  executable: boolean;
  data: Uint8Array;
}

/** A trial run of a transaction, with accounts as it would leave them. */
export interface SolanaTrial {
  /** The node's own word for why it fails; null where it goes through. */
  error: unknown;
  computeUnits: number | null;
  /** Null: the node showed none. */
  accounts: (SolanaAccount | null)[] | null;
}

/** A value that the node read at one slot. */
export interface AtSlot<T> {
  value: T;
  slot: number;
  source: Source;
}

/**
 * Over the slots of about the last minute: the lowest priority fee that a transaction of each slot paid, in
 * micro-lamports per unit.
 */
export interface SolanaPriorityFee {
  slot: number;
  microLamportsPerComputeUnit: number;
}

const REFUSALS: readonly number[] = [-32005, 429];
const rpcError = z.looseObject({ code: z.number(), message: z.string() });

const lamports = z
  .number()
  .nonnegative()
  .refine(Number.isInteger, 'must be whole')
  // JSON numbers above 2^53 lamports (9 million SOL) arrive rounded by at most a billionth of their value.
  .transform(BigInt);
const context = z.looseObject({ slot: z.number().int().nonnegative() });
const balance = answered(z.looseObject({ context, value: lamports }));
const tokenAccounts = answered(
  z.looseObject({
    context,
    value: z.array(
      z.looseObject({
        account: z.looseObject({
          data: z.looseObject({
            parsed: z.looseObject({
              info: z.looseObject({
                mint: z.string(),
                tokenAmount: z.looseObject({
                  amount: z.string().regex(/^\d+$/).transform(BigInt),
                  decimals: z.number().int().min(0).max(255),
                }),
              }),
            }),
          }),
        }),
      }),
    ),
  }),
);
const accountData = z
  .looseObject({
    lamports,
    owner: z.string().max(44),
    data: z.tuple([z.string(), z.literal('base64')]),
    executable: z.boolean(),
  })
  .nullable()
  .transform((raw): SolanaAccount | null => {
    if (raw === null) return null;
    const { lamports: held, owner, executable, data } = raw;
    return { lamports: held, owner, executable, data: Buffer.from(data[0], 'base64') };
  });
const accountsReply = answered(z.looseObject({ context, value: z.array(accountData) }));
const simulationReply = answered(
  z.looseObject({
    context,
    value: z.looseObject({
      err: z.unknown(),
      unitsConsumed: z.number().int().nonnegative().nullish(),
      accounts: z.array(accountData).nullish(),
    }),
  }),
);
const priorityFees = answered(
  z.array(
    z
      .looseObject({ slot: z.number().int(), prioritizationFee: z.number().nonnegative() })
      .transform((fee) => ({ slot: fee.slot, microLamportsPerComputeUnit: fee.prioritizationFee })),
  ),
);

/**
 * Solana's JSON-RPC. The public node allows 100 requests in 10 seconds, 40 of one method.
 * https://solana.com/docs/rpc
 */
export const solana = defineUpstream({
  name: 'solana',
  title: 'Solana',
  baseUrl: 'https://api.mainnet-beta.solana.com',
  licence: 'Public chain data',
  terms: {
    commercialUse: 'allowed',
    note: 'Data on a public chain has no owner. Public nodes limit how often they may be asked.',
    attribution: null,
    url: null,
  },
  key: 'none',
  requestsPerMinute: 240,
  open: (http) => ({
    /** An account's balance in lamports (10^-9 SOL); 0 where there is no account. */
    async balanceOf(address: string): Promise<AtSlot<bigint>> {
      const { value, source } = await ask(
        http,
        'getBalance',
        [address, { commitment: 'confirmed' }],
        balance,
      );
      return at(value.context.slot, value.value, source);
    },
    /**
     * An owner's tokens, those with nothing in them left out; accounts of the same mint are added up.
     *
     * @param mint only this token, such as `SOLANA_USDC_MINT`; all of both token programs when null
     */
    async tokenBalancesOf(owner: string, mint: string | null): Promise<AtSlot<SolanaTokenBalance[]>> {
      const filters =
        mint === null ? TOKEN_PROGRAMS.map((programId) => ({ programId })) : ([{ mint }] as const);
      const replies = await Promise.all(
        filters.map((filter) =>
          ask(
            http,
            'getTokenAccountsByOwner',
            [owner, filter, { encoding: 'jsonParsed', commitment: 'confirmed' }],
            tokenAccounts,
          ),
        ),
      );
      const byMint = new Map<string, SolanaTokenBalance>();
      for (const { value } of replies) {
        for (const { account } of value.value) {
          const { mint: found, tokenAmount } = account.data.parsed.info;
          const amount = (byMint.get(found)?.amount ?? 0n) + tokenAmount.amount;
          if (amount > 0n) byMint.set(found, { mint: found, amount, decimals: tokenAmount.decimals });
        }
      }
      const [first] = replies;
      if (first === undefined) throw new Error('no token program was asked');
      const slot = Math.min(...replies.map(({ value }) => value.context.slot));
      return at(slot, [...byMint.values()], first.source);
    },
    /** Accounts as they are stored, at most 100 in one question; null where there is none. */
    accountsOf: (addresses: readonly string[]) => accountsOf(http, addresses),
    /** Runs a transaction, given in base64, without signatures; shows the accounts of `addresses` as it would leave them. */
    simulate: (wire: string, addresses: readonly string[]) => simulate(http, wire, addresses),
    /** What transactions paid beyond the base fee in recent slots, the oldest first; of any account. */
    async recentPriorityFees(): Promise<{ value: SolanaPriorityFee[]; source: Source }> {
      const { value, source } = await ask(http, 'getRecentPrioritizationFees', [[]], priorityFees);
      const newest = value.at(-1);
      return { value, source: newest === undefined ? shown(source, null) : shown(source, newest.slot) };
    },
  }),
  probe: (api) => api.recentPriorityFees(),
});

async function accountsOf(
  http: UpstreamHttp,
  addresses: readonly string[],
): Promise<AtSlot<(SolanaAccount | null)[]>> {
  const params = [addresses, { encoding: 'base64', commitment: 'confirmed' }];
  const { value, source } = await ask(http, 'getMultipleAccounts', params, accountsReply);
  return at(value.context.slot, value.value, source);
}

/** @throws UpstreamUnavailable with `invalid_reply` where the node refuses to run it */
async function simulate(
  http: UpstreamHttp,
  wire: string,
  addresses: readonly string[],
): Promise<AtSlot<SolanaTrial>> {
  const config = {
    encoding: 'base64',
    commitment: 'confirmed',
    sigVerify: false,
    replaceRecentBlockhash: true,
    accounts: { encoding: 'base64', addresses },
  };
  const { value, source } = await ask(http, 'simulateTransaction', [wire, config], simulationReply);
  const { err, unitsConsumed, accounts } = value.value;
  const trial = { error: err ?? null, computeUnits: unitsConsumed ?? null, accounts: accounts ?? null };
  return at(value.context.slot, trial, source);
}

type Answered<T> = { refusal: number } | { result: T };

/** The schema of a reply with such a result, or of a refusal. Made once for each: making one takes longer than reading by it. */
function answered<T>(result: z.ZodType<T>): z.ZodType<Answered<T>> {
  return z.union([
    z.looseObject({ error: rpcError }).transform(({ error }) => ({ refusal: error.code })),
    z.looseObject({ result }).transform((reply) => ({ result: reply.result })),
  ]);
}

/** @throws UpstreamUnavailable for any reply other than a result, so callers must check the addresses first */
async function ask<T>(
  http: UpstreamHttp,
  method: string,
  params: readonly unknown[],
  schema: z.ZodType<Answered<T>>,
): Promise<{ value: T; source: Source }> {
  const body = { jsonrpc: '2.0', id: 1, method, params };
  const { value, source } = await http.post({ path: '', body, schema, idempotencyKey: null });
  if ('result' in value) return { value: value.result, source };
  if (REFUSALS.includes(value.refusal)) {
    throw sourceUnavailable('solana', 'rate_limited', 'Solana: refuses more requests, or is behind');
  }
  throw sourceUnavailable('solana', 'invalid_reply', `Solana: refused ${method} (${value.refusal})`);
}

function at<T>(slot: number, value: T, source: Source): AtSlot<T> {
  return { value, slot, source: shown(source, slot) };
}

/** Addresses of RPC services often contain a key in their path, so only the host is shown. */
function shown(source: Source, slot: number | null): Source {
  return { ...source, url: `${new URL(source.url).origin}/${slot === null ? '' : `#slot=${slot}`}` };
}
