/** Transactions for a wallet to sign: put together, tried out as one, and handed out with the truth about how long they last. */

import { Problem } from '@farebox/core/http/problem';
import type { Address, Instruction } from '@solana/kit';
import { timeText } from '../figures.ts';
import { SYSTEM_PROGRAM } from './addresses.ts';
import { setUnitLimit, setUnitPrice } from './instructions.ts';
import type { Account, Node, Simulation } from './node.ts';
import { type Priority, priceFor, pricesNow, type UnitPrice } from './unit-price.ts';
import { unsignedTransaction } from './unsigned-transaction.ts';

/** The time for which one answer about slots or prices serves every caller. */
const SHARED_MS = { slots: 2_000, prices: 20_000 };
const MICRO_LAMPORTS = 1_000_000n;
const SIGNATURE_LAMPORTS = 5_000n;
/** Rent of a token account, and below it the rent of a wallet that goes on existing. */
export const TOKEN_RENT_LAMPORTS = 2_039_280n;
const WALLET_RENT_LAMPORTS = 890_880n;
/** A slot, where the node has not measured it, and what is believed of a measurement. */
const SLOT_MS = { usual: 400, least: 350, most: 600 };

export interface Warning {
  code: string;
  message: string;
}

/** The parts of a transaction: the work, and how many units it may take. */
export interface Work {
  action: string;
  note: string;
  units: number;
  instructions: readonly Instruction[];
}

/** The terms that every transaction of a bundle shares. */
export interface Terms {
  blockhash: string;
  lastValidBlockHeight: number;
  /** An estimate. */
  blockhashExpiresAtMs: number;
  unitPrice: UnitPrice;
}

/**
 * Reads the terms that bundles are made with. Prices and the length of a slot are asked for once for all who want them at a time; the blockhash
 * is always the newest, since a transaction with an old one is good for nothing.
 *
 * @returns throws what the node's client throws
 */
export function sharedTerms(node: Node, nowMs: () => number): (priority: Priority) => Promise<Terms> {
  const slotMsNow = shared(() => slotMsOf(node), SHARED_MS.slots, nowMs);
  const prices = shared(() => pricesNow(node), SHARED_MS.prices, nowMs);
  return async (priority) => {
    const [{ blockhash, lastValidBlockHeight }, { blockHeight }, slotMs, paid] = await Promise.all([
      node.latestBlockhash(),
      node.height(),
      slotMsNow(),
      prices(),
    ]);
    return {
      blockhash,
      lastValidBlockHeight,
      unitPrice: priceFor(paid, priority),
      blockhashExpiresAtMs: nowMs() + Math.max(0, lastValidBlockHeight - blockHeight) * slotMs,
    };
  };
}

/** One answer for all who ask within so long. */
function shared<Value>(ask: () => Promise<Value>, forMs: number, nowMs: () => number): () => Promise<Value> {
  let last: { value: Promise<Value>; atMs: number } | null = null;
  return () => {
    if (last === null || Math.abs(nowMs() - last.atMs) >= forMs) last = { value: ask(), atMs: nowMs() };
    return last.value;
  };
}

/** Nodes may do without this. */
async function slotMsOf(node: Node): Promise<number> {
  const measured = await node.slotMs().catch(() => null);
  return Math.min(Math.max(measured ?? SLOT_MS.usual, SLOT_MS.least), SLOT_MS.most);
}

/** A transaction without signatures, base64: version 0, paid for by the wallet. */
export function unsigned(wallet: Address, work: Pick<Work, 'units' | 'instructions'>, terms: Terms): string {
  return unsignedTransaction(wallet, terms.blockhash, [
    setUnitLimit(work.units),
    setUnitPrice(terms.unitPrice.price),
    ...work.instructions,
  ]).toString('base64');
}

/** Adds up what transactions cost at most, beside rent. */
export function feesOf(works: readonly Work[], { unitPrice }: Terms): bigint {
  return works.reduce((sum, work) => sum + SIGNATURE_LAMPORTS + priorityLamports(work, unitPrice), 0n);
}

function priorityLamports({ units }: Pick<Work, 'units'>, { price }: UnitPrice): bigint {
  return (BigInt(units) * price) / MICRO_LAMPORTS + 1n;
}

/** Shows the price of landing soon, how it came about, and the other choices. */
export function priorityView(works: readonly Work[], { unitPrice }: Terms) {
  const { priority, price, source, levels } = unitPrice;
  return {
    priority,
    micro_lamports_per_unit: String(price),
    at_most_lamports: String(works.reduce((sum, work) => sum + priorityLamports(work, unitPrice), 0n)),
    levels: { low: String(levels.low), medium: String(levels.medium), high: String(levels.high) },
    source,
  };
}

/**
 * Tells what SOL the wallet lacks to pay for its transactions.
 *
 * @param lamports.fees and what it lays out for accounts that are opened
 * @throws Problem 409 when the account can pay for none, however much it holds
 */
export function lacksSol(
  wallet: string,
  account: Account | null,
  { fees, rent }: { fees: bigint; rent: bigint },
): Warning | null {
  if (account !== null && account.owner !== SYSTEM_PROGRAM)
    throw new Problem(
      409,
      'WALLET_CANNOT_PAY',
      `${wallet} belongs to a program, and cannot pay for transactions.`,
      {
        details: { success: false },
      },
    );
  const held = account?.lamports ?? 0n;
  const needed = fees + rent + WALLET_RENT_LAMPORTS;
  if (held >= needed) return null;
  return {
    code: 'INSUFFICIENT_SOL',
    message: `${wallet} holds ${held} lamports. It needs ${needed}: ${fees} for fees at most, ${rent} for accounts that are opened, ${WALLET_RENT_LAMPORTS} that a wallet must keep.`,
  };
}

/** Transactions as they are handed out. */
export function transactionViews(wallet: Address, works: readonly Work[], terms: Terms) {
  return works.map((work, index) => ({
    step: index + 1,
    action: work.action,
    base64: unsigned(wallet, work, terms),
    version: 0,
    signers: [wallet],
    note: work.note,
  }));
}

/** How long what is handed out lasts. */
export function lifetimeView({ blockhash, lastValidBlockHeight, blockhashExpiresAtMs }: Terms) {
  return {
    blockhash,
    last_valid_block_height: lastValidBlockHeight,
    blockhash_expires_at: timeText(blockhashExpiresAtMs),
    blockhash_note:
      'A blockhash lasts 150 blocks, about a minute; when it ends is an estimate. The transactions are not signed yet, so you may put a newer blockhash in before you sign.',
  };
}

/** Meanings of the programs' own codes, for those that a wallet or its owner can do something about. */
const CODES: Readonly<Record<number, { code: string; message: string }>> = {
  1: { code: 'INSUFFICIENT_USDC', message: 'The token account does not hold enough.' },
  17: { code: 'ACCOUNT_FROZEN', message: 'A token account of the wallet is frozen by the issuer.' },
  6008: {
    code: 'INSUFFICIENT_LIQUIDITY',
    message: 'The reserve does not hold this much now: it is lent out.',
  },
  6042: { code: 'RESERVE_CLOSED', message: 'The lending market is in emergency mode.' },
  6064: { code: 'WITHDRAWAL_CAP', message: 'The reserve lets no more out in this interval.' },
  6073: { code: 'RESERVE_CLOSED', message: 'The reserve takes no deposits any more.' },
  6082: { code: 'RESERVE_CLOSED', message: 'The reserve takes no deposits any more.' },
  6090: { code: 'DEPOSIT_LIMIT', message: 'The reserve takes no more deposits: its limit is reached.' },
  6132: { code: 'RESERVE_CLOSED', message: 'The reserve gives no collateral tokens out at the moment.' },
};

/** The 409 of a bundle that would fail. Nothing is handed out that is known to fail. */
export function wouldFail({ err, logs, slot }: Simulation, more: Record<string, unknown> = {}): Problem {
  const known = CODES[customCodeIn(err) ?? -1];
  return new Problem(
    409,
    known?.code ?? 'WOULD_FAIL',
    known?.message ?? 'The transactions would fail, so they are not handed out.',
    {
      details: {
        success: false,
        simulation: {
          slot: String(slot),
          err,
          log: logs.slice(-MAX_LINES).map((line) => line.slice(0, MAX_LINE)),
        },
        ...more,
      },
    },
  );
}
const MAX_LINES = 5;
const MAX_LINE = 300;

function customCodeIn(err: unknown): number | null {
  if (typeof err !== 'object' || err === null || !('InstructionError' in err)) return null;
  const [, why] = Array.isArray(err.InstructionError) ? err.InstructionError : [];
  if (typeof why !== 'object' || why === null || !('Custom' in why)) return null;
  return typeof why.Custom === 'number' ? why.Custom : null;
}
