/** What all methods of the node share: their type, what they work on, and how they handle slots. */
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
  /** Lets time pass for loans, and for nothing else. @returns how many slots that time is */
  passInterest(passedMs: number): Promise<number>;
  /** Resolves when all changes up to now are on disk; at once if the chain is not kept. */
  saved(): Promise<void>;
}

export type Method = (node: SandboxNode, params: readonly unknown[]) => unknown;
export type Methods = Readonly<Record<string, Method>>;

export const API_VERSION = '2.3.6';
const MIN_CONTEXT_SLOT_NOT_REACHED = -32016;

/**
 * The slot that a commitment refers to. A landed transaction is confirmed at once, since this node is the whole network.
 * Accounts are always read in their latest state: only slots, blockhashes and transactions depend on the commitment.
 */
export function slotAt(bank: Bank, commitment: Commitment): number {
  return bank.clock.slot() - (commitment === 'finalized' ? FINAL_AFTER_SLOTS : 0);
}

/** @throws RpcError −32016 if the options ask for a slot that is not reached yet */
export function checkMinContextSlot(config: Config, slot: number): void {
  if (integerOf(config, 'minContextSlot', 0, Number.MAX_SAFE_INTEGER) > slot)
    throw new RpcError(MIN_CONTEXT_SLOT_NOT_REACHED, 'Minimum context slot has not been reached', {
      contextSlot: slot,
    });
}

/** A result together with the slot for which it holds. */
export function withContext(slot: number, value: unknown): unknown {
  return { context: { apiVersion: API_VERSION, slot }, value };
}
