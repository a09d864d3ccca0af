/** Sends USDC back on Solana from a key that holds it, once for each call. */
import {
  AccountRole,
  type Address,
  appendTransactionMessageInstructions,
  address as asAddress,
  type Blockhash,
  compileTransaction,
  createTransactionMessage,
  getBase58Decoder,
  getBase64EncodedWireTransaction,
  type Instruction,
  pipe,
  type SignatureBytes,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
} from '@solana/kit';
import type { Rpc } from '../../chain-rpc/json-rpc.ts';
import type { Refund } from '../../paid-call/rail.ts';
import type { EndingSender, EndingTransaction } from '../../relayer/ending-sender.ts';
import { ASSET_DECIMALS } from './networks.ts';
import { refundMemo } from './refund-memo.ts';
import type { SolanaKey } from './solana-key.ts';
import {
  ATA_PROGRAM,
  COMPUTE_BUDGET_PROGRAM,
  MEMO_PROGRAM,
  SET_UNIT_LIMIT,
  SET_UNIT_PRICE,
  SYSTEM_PROGRAM,
  TOKEN_PROGRAM,
  tokenAccountOf,
} from './solana-programs.ts';

/** Above what a new account, a transfer and a memo use together: 60,000 were measured. */
const UNIT_LIMIT = 120_000;
/** What is paid for a unit, in millionths of a lamport: as others pay now, within these. */
const UNIT_PRICE = { least: 1_000n, most: 200_000n };
/** No longer than a moment: what takes until it is final is asked for again. */
const WAIT_MS = 4_000;
/** What a refund costs at most that opens no account: one signature, and every unit at its highest price. */
export const REFUND_LAMPORTS = 5_000n + (BigInt(UNIT_LIMIT) * UNIT_PRICE.most) / 1_000_000n;
/** Below this nothing is sold that may have to be sent back: 20 refunds, an account to open, and one's own to keep. */
export const LEAST_REFUND_LAMPORTS = 20n * REFUND_LAMPORTS + 2_039_280n + 890_880n;
/**
 * A token account costs its owner nothing and us a deposit, which goes to the owner when it is closed: more than most
 * refunds are worth. So we open one for each payee, ever, and so many a day; for others the refund waits until they have.
 */
const MAX_OPENED_A_DAY = 100;
const DAY_MS = 86_400_000;
const CREATE_IDEMPOTENT = 1;
const TRANSFER_CHECKED = 12;

export interface SolanaRefunds {
  /** @returns the transaction once it is final; null: ask again later */
  refund(refund: Refund): Promise<string | null>;
}

/** @param parts.key holds USDC in its token account, and SOL for fees */
export function solanaRefunds(parts: {
  rpc: Rpc;
  sender: EndingSender;
  key: SolanaKey;
  nowMs(): number;
}): SolanaRefunds {
  const { rpc, sender, key } = parts;
  const ours = asAddress(key.address);

  /** @returns null when it would fail now, or costs more than we pay */
  async function make({ callId, asset, payee, amountUnits }: Refund): Promise<EndingTransaction | null> {
    const [from, to] = (await Promise.all(
      [key.address, payee].map((owner) => tokenAccountOf(owner, asset)),
    )) as [Address, Address];
    const mint = asAddress(asset);
    const owner = asAddress(payee);
    const { value: account } = (await rpc.call('getAccountInfo', [
      to,
      { encoding: 'base64', commitment: 'confirmed' },
    ])) as { value: unknown };
    const opens = account === null;
    if (opens) {
      const opened = await sender.opened(payee, parts.nowMs() - DAY_MS);
      if (opened.theirs > 0 || opened.all >= MAX_OPENED_A_DAY) return null;
    }
    const { value: latest } = (await rpc.call('getLatestBlockhash', [{ commitment: 'confirmed' }])) as {
      value: { blockhash: string; lastValidBlockHeight: number };
    };
    const instructions: Instruction[] = [
      computeBudget(SET_UNIT_LIMIT, 4, BigInt(UNIT_LIMIT)),
      computeBudget(SET_UNIT_PRICE, 8, await unitPrice([from, to])),
      ...(opens ? [openAccount(ours, to, owner, mint)] : []),
      transfer(from, mint, to, ours, amountUnits),
      { programAddress: MEMO_PROGRAM, data: new TextEncoder().encode(refundMemo(callId)) },
    ];
    const compiled = compileTransaction(
      pipe(
        createTransactionMessage({ version: 0 }),
        (each) => setTransactionMessageFeePayer(ours, each),
        (each) =>
          setTransactionMessageLifetimeUsingBlockhash(
            {
              blockhash: latest.blockhash as Blockhash,
              lastValidBlockHeight: BigInt(latest.lastValidBlockHeight),
            },
            each,
          ),
        (each) => appendTransactionMessageInstructions(instructions, each),
      ),
    );
    const signature = await key.sign(Uint8Array.from(compiled.messageBytes));
    const raw = getBase64EncodedWireTransaction({
      ...compiled,
      signatures: { [ours]: signature as SignatureBytes },
    });
    // What would fail costs a fee each time: a wallet that ran dry is found out for nothing.
    const { value: tried } = (await rpc.call('simulateTransaction', [
      raw,
      { encoding: 'base64', commitment: 'confirmed', sigVerify: true },
    ])) as { value: { err: unknown } };
    if (tried.err !== null) return null;
    return {
      hash: getBase58Decoder().decode(signature),
      raw,
      endsAt: BigInt(latest.lastValidBlockHeight),
      paidBy: key.address,
      ...(opens ? { opensFor: payee } : {}),
    };
  }

  /** The median of what was paid lately to write to these accounts. */
  async function unitPrice(accounts: readonly Address[]): Promise<bigint> {
    const recent = (await rpc.call('getRecentPrioritizationFees', [accounts]).catch(() => [])) as {
      prioritizationFee: number;
    }[];
    const paid = recent
      .map(({ prioritizationFee }) => BigInt(prioritizationFee))
      .toSorted((a, b) => Number(a - b));
    const median = paid[Math.floor(paid.length / 2)] ?? 0n;
    if (median < UNIT_PRICE.least) return UNIT_PRICE.least;
    return median > UNIT_PRICE.most ? UNIT_PRICE.most : median;
  }

  return {
    async refund(refund) {
      try {
        const order = {
          id: `refund:${refund.callId}`,
          once: false,
          make: () => make(refund),
          until: 'final',
        } as const;
        const delivered = await sender.deliver(order, WAIT_MS);
        if (delivered?.fate.status !== 'landed') return null;
        return delivered.fate.ok && delivered.fate.final ? delivered.hash : null;
      } catch {
        return null;
      }
    },
  };
}

function computeBudget(instruction: number, bytes: 4 | 8, value: bigint): Instruction {
  const data = Buffer.alloc(1 + bytes);
  data.writeUInt8(instruction, 0);
  if (bytes === 4) data.writeUInt32LE(Number(value), 1);
  else data.writeBigUInt64LE(value, 1);
  return { programAddress: COMPUTE_BUDGET_PROGRAM, data: new Uint8Array(data) };
}

/** Opens an owner's token account unless it is open. */
function openAccount(payer: Address, account: Address, owner: Address, mint: Address): Instruction {
  return {
    programAddress: ATA_PROGRAM,
    accounts: [
      { address: payer, role: AccountRole.WRITABLE_SIGNER },
      { address: account, role: AccountRole.WRITABLE },
      { address: owner, role: AccountRole.READONLY },
      { address: mint, role: AccountRole.READONLY },
      { address: SYSTEM_PROGRAM, role: AccountRole.READONLY },
      { address: TOKEN_PROGRAM, role: AccountRole.READONLY },
    ],
    data: Uint8Array.of(CREATE_IDEMPOTENT),
  };
}

function transfer(from: Address, mint: Address, to: Address, authority: Address, units: bigint): Instruction {
  const data = Buffer.alloc(10);
  data.writeUInt8(TRANSFER_CHECKED, 0);
  data.writeBigUInt64LE(units, 1);
  data.writeUInt8(ASSET_DECIMALS, 9);
  return {
    programAddress: TOKEN_PROGRAM,
    accounts: [
      { address: from, role: AccountRole.WRITABLE },
      { address: mint, role: AccountRole.READONLY },
      { address: to, role: AccountRole.WRITABLE },
      { address: authority, role: AccountRole.READONLY_SIGNER },
    ],
    data: new Uint8Array(data),
  };
}
