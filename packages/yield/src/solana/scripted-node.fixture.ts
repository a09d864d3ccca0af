/** A node for tests that says of each transaction what it is told to, over a real socket, and that can fail as nodes do. */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { type Address, generateKeyPairSigner, getAddressEncoder, getBase58Decoder } from '@solana/kit';
import {
  COLLATERAL_MINT,
  GENESIS_HASH,
  LENDING_PROGRAM,
  LIQUIDITY_VAULT,
  TOKEN_PROGRAM,
  USDC_MINT,
  USDC_RESERVE,
} from './addresses.ts';
import {
  depositReserveLiquidity,
  ownAccountsOf,
  redeemReserveCollateral,
  transferUsdc,
} from './instructions.ts';

/** An instruction, as the transaction has it. */
interface Step {
  programAddress: string;
  accounts?: readonly { address: string }[];
  data?: ArrayLike<number>;
}

/** The effects of a scripted transaction. */
export interface Script {
  signers: readonly string[];
  steps: readonly Step[];
  /** Inner steps, by the index of the step that began them. */
  inner?: Readonly<Record<number, readonly Step[]>>;
  /** Balances by token account: its mint, and what it holds before and after. */
  tokens?: Readonly<Record<string, readonly [mint: string, before: bigint, after: bigint]>>;
  err?: unknown;
  slot?: number;
  signature?: string;
  /** Accounts that a lookup table brings: the transaction itself does not name them. */
  fromTable?: readonly string[];
}

/** How this node fails: by silence, or by answers that mean nothing. The sandbox's node fails in other ways. */
type Fault = 'cut' | 'garbage' | null;

export type ScriptedNode = Awaited<ReturnType<typeof startScriptedNode>>;

export const newSignature = () => getBase58Decoder().decode(randomBytes(64));
export const newWallet = async () => (await generateKeyPairSigner()).address;
const FIRST_SLOT = 300_000_000;
/** A block's time follows from its slot, so that the chain's time passes with its slots. */
const blockTimeOf = (slot: number) => 1_700_000_000 + Math.floor((slot - FIRST_SLOT) * 0.4);

export async function startScriptedNode(treasury: Address) {
  const landed = new Map<string, { slot: number; err: unknown; keys: readonly string[]; shown: object }>();
  const state = {
    slot: FIRST_SLOT,
    fault: null as Fault,
    /** The code with which every call is refused; null: none is. */
    refusal: null as number | null,
    genesisHash: GENESIS_HASH as string,
    final: true,
    firstBlock: 0,
    asked: new Map<string, number>(),
  };
  const { usdc: treasuryAccount } = ownAccountsOf(treasury);
  const accounts = new Map<string, object>([
    [LENDING_PROGRAM, account('BPFLoaderUpgradeab1e11111111111111111111111', Buffer.alloc(36), true)],
    [USDC_MINT, account(TOKEN_PROGRAM, mint())],
    [COLLATERAL_MINT, account(TOKEN_PROGRAM, mint())],
    [treasuryAccount, account(TOKEN_PROGRAM, token(USDC_MINT, treasury))],
  ]);
  /** Requests about these wait until the gate opens. */
  let gate: Promise<void> = Promise.resolve();

  const methods: Readonly<Record<string, (...params: never[]) => unknown>> = {
    getGenesisHash: () => state.genesisHash,
    getMultipleAccounts: (addresses: string[]) => at(addresses.map((each) => accounts.get(each) ?? null)),
    getEpochInfo: () => ({ absoluteSlot: state.slot, blockHeight: state.slot - 20_000_000 }),
    getBlockTime: (slot: number) => blockTimeOf(slot),
    getFirstAvailableBlock: () => state.firstBlock,
    getTransaction: (signature: string) => landed.get(signature)?.shown ?? null,
    getSignatureStatuses: (signatures: string[]) =>
      at(
        signatures.map((each) => {
          const one = landed.get(each);
          return one === undefined
            ? null
            : { slot: one.slot, err: one.err, confirmationStatus: state.final ? 'finalized' : 'confirmed' };
        }),
      ),
    getSignaturesForAddress: (
      address: string,
      options: { before?: string; until?: string; limit: number },
    ) => {
      const newest = [...landed].reverse();
      const place = (of: string | undefined) => newest.findIndex(([signature]) => signature === of);
      const to = place(options.until);
      return newest
        .slice(place(options.before) + 1, to === -1 ? undefined : to)
        .filter(([, { keys }]) => keys.includes(address))
        .slice(0, options.limit)
        .map(([signature, { slot, err }]) => ({ signature, slot, err, blockTime: blockTimeOf(slot) }));
    },
  };
  const at = (value: unknown) => ({ context: { slot: state.slot }, value });

  const server = createServer(async (request, response) => {
    const call = JSON.parse(await text(request)) as { id: number; method: string; params: never[] };
    if (state.refusal !== null) {
      const error = { code: state.refusal, message: 'refused' };
      return void response.end(JSON.stringify({ jsonrpc: '2.0', id: call.id, error }));
    }
    state.asked.set(call.method, (state.asked.get(call.method) ?? 0) + 1);
    if (call.method === 'getTransaction') await gate;
    if (state.fault === 'cut') return void request.socket.destroy();
    if (state.fault === 'garbage') return void response.end(JSON.stringify({ id: call.id, result: 7 }));
    const result = methods[call.method]?.(...call.params) ?? null;
    response.end(JSON.stringify({ jsonrpc: '2.0', id: call.id, result }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  /** A transaction is in a block from now on. @returns its signature */
  function land(script: Script): string {
    const signature = script.signature ?? newSignature();
    const slot = script.slot ?? state.slot;
    const all = [...script.steps, ...Object.values(script.inner ?? {}).flat()];
    const named = [
      ...script.signers,
      ...all.flatMap((step) => [step.programAddress, ...(step.accounts ?? []).map(({ address }) => address)]),
      ...Object.keys(script.tokens ?? {}),
    ];
    const hidden = new Set(script.fromTable);
    const open = [...new Set(named)].filter((key) => !hidden.has(key));
    const keys = [...open, ...hidden];
    // The same data many times over is put into text once, which takes the square of its length.
    const texts = new Map<unknown, string>();
    const textOf = (data: ArrayLike<number>): string => {
      const made = texts.get(data) ?? getBase58Decoder().decode(Uint8Array.from(data));
      texts.set(data, made);
      return made;
    };
    const compiled = ({ programAddress, accounts: metas = [], data = [] }: Step) => ({
      programIdIndex: keys.indexOf(programAddress),
      accounts: metas.map(({ address }) => keys.indexOf(address)),
      data: textOf(data),
    });
    const balances = (which: 1 | 2) =>
      Object.entries(script.tokens ?? {}).map(([address, of]) => ({
        accountIndex: keys.indexOf(address),
        mint: of[0],
        uiTokenAmount: { amount: String(of[which]) },
      }));
    landed.set(signature, {
      slot,
      keys,
      err: script.err ?? null,
      shown: {
        slot,
        blockTime: blockTimeOf(slot),
        meta: {
          err: script.err ?? null,
          innerInstructions: Object.entries(script.inner ?? {}).map(([index, steps]) => ({
            index: Number(index),
            instructions: steps.map(compiled),
          })),
          loadedAddresses: { writable: [...hidden], readonly: [] },
          preTokenBalances: balances(1),
          postTokenBalances: balances(2),
          logMessages: [],
        },
        transaction: {
          signatures: [signature],
          message: {
            header: { numRequiredSignatures: script.signers.length },
            accountKeys: open,
            instructions: script.steps.map(compiled),
          },
        },
      },
    });
    state.slot += 1;
    return signature;
  }

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    state,
    land,
    treasury,
    treasuryAccount,
    accounts,
    /** The node has a transaction, and not what it did. */
    hide(signature: string) {
      const one = landed.get(signature);
      if (one !== undefined) landed.set(signature, { ...one, shown: { ...one.shown, meta: null } });
    },
    /** The chain takes a transaction back. */
    forget: (signature: string) => landed.delete(signature),
    /** From now on nobody is told of a transaction before the returned function is called. */
    hold(): () => void {
      let letGo = () => {};
      gate = new Promise((resolve) => {
        letGo = resolve;
      });
      return letGo;
    },
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function account(owner: string, data: Buffer, executable = false) {
  return { owner, executable, lamports: 1_000_000_000, data: [data.toString('base64'), 'base64'] };
}

function mint(): Buffer {
  const data = Buffer.alloc(82);
  data.writeUInt8(6, 44);
  data.writeUInt8(1, 45);
  return data;
}

function token(of: Address, owner: Address): Buffer {
  const data = Buffer.alloc(165);
  data.set(getAddressEncoder().encode(of), 0);
  data.set(getAddressEncoder().encode(owner), 32);
  data.writeUInt8(1, 108);
  return data;
}

/** Bytes of a token instruction: its number, then the amount. */
function tokenData(kind: number, amount: bigint): Uint8Array {
  const data = Buffer.alloc(9);
  data.writeUInt8(kind);
  data.writeBigUInt64LE(amount, 1);
  return new Uint8Array(data);
}

/** A deposit as the lending program carries it out: what it does, what it calls, and the balances. */
export async function depositScript(
  wallet: Address,
  { usdc, collateral, held = 0n }: { usdc: bigint; collateral: bigint; held?: bigint },
): Promise<Script> {
  const own = ownAccountsOf(wallet);
  return {
    signers: [wallet],
    steps: [depositReserveLiquidity(own, usdc)],
    inner: { 0: [mintStep(own.collateral, collateral)] },
    tokens: {
      [own.collateral]: [COLLATERAL_MINT, held, held + collateral],
      [LIQUIDITY_VAULT]: [USDC_MINT, 1_000_000_000n, 1_000_000_000n + usdc],
    },
  };
}

export function mintStep(to: string, amount: bigint): Step {
  return {
    programAddress: TOKEN_PROGRAM,
    accounts: [{ address: COLLATERAL_MINT }, { address: to }, { address: USDC_RESERVE }],
    data: tokenData(7, amount),
  };
}

/** A withdrawal that pays a fee from what comes out. */
export async function withdrawalScript(
  wallet: Address,
  treasuryAccount: string,
  terms: { usdc: bigint; collateral: bigint; held: bigint; fee: bigint },
): Promise<Script> {
  const own = ownAccountsOf(wallet);
  const { usdc, collateral, held, fee } = terms;
  return {
    signers: [wallet],
    steps: [
      redeemReserveCollateral(own, collateral),
      transferUsdc({ owner: wallet, from: own.usdc, to: treasuryAccount as Address, amountRaw: fee }),
    ],
    tokens: {
      [own.collateral]: [COLLATERAL_MINT, held, held - collateral],
      [LIQUIDITY_VAULT]: [USDC_MINT, 9_000_000_000n, 9_000_000_000n - usdc],
      [treasuryAccount]: [USDC_MINT, 0n, fee],
    },
  };
}

/** The fee of a deposit, on its way to the treasury. */
export async function feeScript(wallet: Address, treasuryAccount: string, fee: bigint): Promise<Script> {
  const { usdc } = ownAccountsOf(wallet);
  return {
    signers: [wallet],
    steps: [transferUsdc({ owner: wallet, from: usdc, to: treasuryAccount as Address, amountRaw: fee })],
    tokens: { [usdc]: [USDC_MINT, fee, 0n], [treasuryAccount]: [USDC_MINT, 0n, fee] },
  };
}

/** Says something, as a wallet's own instruction or the treasury's refund. */
export function memoStep(said: string): Step {
  return {
    programAddress: 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr',
    data: new TextEncoder().encode(said),
  };
}
