/** What a method of the node is: the name that it is called by leads to a function over these. */
import type { Bank } from '../bank.ts';
import type { Faucet } from '../faucet.ts';
import type { Faults } from '../faults.ts';
import { RpcError } from '../json-rpc.ts';
import { type Commitment, type Config, integerOf } from '../params.ts';
import { FINAL_AFTER_SLOTS } from '../slots.ts';

export interface SandboxNode {
  bank: Bank;
  faucet: Faucet;
  faults: Faults;
  /** Lets time pass for what is lent, and for nothing else. @returns the slots that it was */
  passInterest(passedMs: number): Promise<number>;
  /** Resolves when everything up to now is in the file that it is kept in. */
  saved(): Promise<void>;
}

export type Method = (node: SandboxNode, params: readonly unknown[]) => unknown;
export type Methods = Readonly<Record<string, Method>>;

export const API_VERSION = '2.3.6';
const MIN_CONTEXT_SLOT_NOT_REACHED = -32016;

/**
 * The slot that a commitment speaks of. What landed is confirmed at once, since this node is the whole network. The
 * state of accounts is always the latest: only slots, blockhashes and transactions are told by commitment.
 */
export function slotAt(bank: Bank, commitment: Commitment): number {
  return bank.clock.slot() - (commitment === 'finalized' ? FINAL_AFTER_SLOTS : 0);
}

/** Refuses a caller who wants a slot that is not reached. */
export function checkMinContextSlot(config: Config, slot: number): void {
  if (integerOf(config, 'minContextSlot', 0, Number.MAX_SAFE_INTEGER) > slot)
    throw new RpcError(MIN_CONTEXT_SLOT_NOT_REACHED, 'Minimum context slot has not been reached', {
      contextSlot: slot,
    });
}

/** The answer with the slot that it is of. */
export function withContext(slot: number, value: unknown): unknown {
  return { context: { apiVersion: API_VERSION, slot }, value };
}
