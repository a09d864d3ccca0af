/** The chain's time: slots, block heights, block times and blockhashes, all computed from the system clock. */
import { createHash } from 'node:crypto';
import { getBase58Decoder } from '@solana/kit';

const base58 = getBase58Decoder();

export const SLOT_MS = 400;
/** For how many blocks a blockhash can be used. */
export const BLOCKHASH_SLOTS = 150;
/** A block is final when this many blocks have been built upon it. */
export const FINAL_AFTER_SLOTS = 32;
export const SLOTS_PER_EPOCH = 432_000;

/** As on mainnet, block heights are below slots, so code that mixes them up fails here. */
const FIRST_SLOT = 300_000_000;
const FIRST_BLOCK_HEIGHT = 278_000_000;

/** The state that is kept so that the chain continues after a restart. */
export interface ClockState {
  bornAtMs: number;
  /** Slots that were skipped on demand. */
  advancedSlots: number;
  /** The latest slot that was seen, so that the chain does not go back when the system's clock does. */
  latestSlot: number;
}

export interface SlotClock {
  /** The current slot. */
  slot(): number;
  /** Lets this many slots pass at once; block times run ahead of the system's clock by as much. */
  advance(slots: number): void;
  blockHeightOf(slot: number): number;
  /** Seconds since 1970. */
  blockTimeOf(slot: number): number;
  blockhashOf(slot: number): string;
  /** Whether a transaction with this blockhash may still land. */
  isBlockhashValid(blockhash: string): boolean;
  state(): ClockState;
}

/** The state of a chain that begins now. */
export function newClockState(): ClockState {
  return { bornAtMs: Date.now(), advancedSlots: 0, latestSlot: FIRST_SLOT };
}

/** Opens the clock of a chain. @param nowMs the system's clock; if it stands still, so does the chain */
export function openSlotClock(saved: ClockState, nowMs: () => number = Date.now): SlotClock {
  const { bornAtMs } = saved;
  let { advancedSlots, latestSlot } = saved;
  const valid = new Map<string, number>();
  let rememberedTo = 0;

  function slot(): number {
    const passed = Math.floor((nowMs() - bornAtMs) / SLOT_MS);
    latestSlot = Math.max(latestSlot, FIRST_SLOT + passed + advancedSlots);
    return latestSlot;
  }

  const blockhashOf = (of: number): string =>
    base58.decode(createHash('sha256').update(`sandbox block ${bornAtMs} ${of}`).digest());

  /** Keeps the blockhashes that can still be used, and no others. */
  function remember(now: number): void {
    for (let of = Math.max(rememberedTo + 1, now - BLOCKHASH_SLOTS); of <= now; of++)
      valid.set(blockhashOf(of), of);
    rememberedTo = now;
    for (const [blockhash, of] of valid) {
      if (of >= now - BLOCKHASH_SLOTS) break;
      valid.delete(blockhash);
    }
  }

  return {
    slot,
    advance(slots) {
      advancedSlots += slots;
    },
    blockHeightOf: (of) => of - FIRST_SLOT + FIRST_BLOCK_HEIGHT,
    blockTimeOf: (of) => Math.floor((bornAtMs + (of - FIRST_SLOT) * SLOT_MS) / 1_000),
    blockhashOf,
    isBlockhashValid(blockhash) {
      remember(slot());
      return valid.has(blockhash);
    },
    state: () => ({ bornAtMs, advancedSlots, latestSlot: slot() }),
  };
}
