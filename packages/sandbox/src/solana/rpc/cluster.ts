/** Methods about the chain as a whole: its time, its blockhashes, its node. */
import { commitmentOf, configAt, integerAt, invalid, listAt, textAt, toAddress } from '../params.ts';
import { COMPUTE_BUDGET_PROGRAM, GENESIS_HASH } from '../programs.ts';
import { BLOCKHASH_SLOTS, SLOT_MS, SLOTS_PER_EPOCH } from '../slots.ts';
import { decodeMessage, type WireMessage } from '../wire-transaction.ts';
import {
  API_VERSION,
  checkMinContextSlot,
  type Methods,
  type SandboxNode,
  slotAt,
  withContext,
} from './method.ts';

const LAMPORTS_PER_SIGNATURE = 5_000n;
const MICROLAMPORTS_PER_LAMPORT = 1_000_000n;
const UNITS_PER_INSTRUCTION = 200_000n;
const MAX_UNITS = 1_400_000n;
const SET_UNIT_LIMIT = 2;
const SET_UNIT_PRICE = 3;
const MAX_FEE_ACCOUNTS = 128;
const PERFORMANCE_SAMPLE_SECONDS = 60;
const MAX_PERFORMANCE_SAMPLES = 720;
const MAX_ACCOUNT_BYTES = 10 * 1024 * 1024;

export const CLUSTER_METHODS: Methods = {
  getHealth: () => 'ok',
  getVersion: () => ({ 'feature-set': 0, 'solana-core': API_VERSION }),
  getGenesisHash: () => GENESIS_HASH,
  getSlot: (node, params) => slotOf(node, params, 0),
  getBlockHeight: (node, params) => node.bank.clock.blockHeightOf(slotOf(node, params, 0)),

  getEpochInfo(node, params) {
    const absoluteSlot = slotOf(node, params, 0);
    return {
      absoluteSlot,
      blockHeight: node.bank.clock.blockHeightOf(absoluteSlot),
      epoch: Math.floor(absoluteSlot / SLOTS_PER_EPOCH),
      slotIndex: absoluteSlot % SLOTS_PER_EPOCH,
      slotsInEpoch: SLOTS_PER_EPOCH,
      // The history is bounded, so the number is unknown.
      transactionCount: null,
    };
  },

  /** 0 while nothing was forgotten, as a node says that has the whole chain. */
  getFirstAvailableBlock: ({ bank }) => bank.history.firstSlot() ?? 0,

  getBlockTime({ bank }, params) {
    const slot = integerAt(params, 0, Number.MAX_SAFE_INTEGER);
    if (slot > bank.clock.slot()) throw invalid(`Block not available for slot ${slot}`);
    return bank.clock.blockTimeOf(slot);
  },

  getLatestBlockhash(node, params) {
    const slot = slotOf(node, params, 0);
    const { clock } = node.bank;
    const lastValidBlockHeight = clock.blockHeightOf(slot) + BLOCKHASH_SLOTS;
    return withContext(slot, { blockhash: clock.blockhashOf(slot), lastValidBlockHeight });
  },

  isBlockhashValid(node, params) {
    const slot = slotOf(node, params, 1);
    return withContext(slot, node.bank.clock.isBlockhashValid(toAddress(params[0])));
  },

  getMinimumBalanceForRentExemption: ({ bank }, params) =>
    bank.rentExemptLamports(integerAt(params, 0, MAX_ACCOUNT_BYTES)),

  getFeeForMessage(node, params) {
    const slot = slotOf(node, params, 1);
    const message = decodeMessage(new Uint8Array(Buffer.from(textAt(params, 0), 'base64')));
    const isValid = node.bank.clock.isBlockhashValid(message.lifetimeToken);
    return withContext(slot, isValid ? feeOf(message) : null);
  },

  getRecentPrioritizationFees({ bank }, params) {
    if (params[0] !== undefined) listAt(params, 0, MAX_FEE_ACCOUNTS).forEach(toAddress);
    const latest = bank.clock.slot();
    // Nobody competes for space in a block here.
    return Array.from({ length: BLOCKHASH_SLOTS }, (_, index) => ({
      slot: latest - BLOCKHASH_SLOTS + 1 + index,
      prioritizationFee: 0,
    }));
  },

  getRecentPerformanceSamples({ bank }, params) {
    const limit =
      params[0] === undefined ? MAX_PERFORMANCE_SAMPLES : integerAt(params, 0, MAX_PERFORMANCE_SAMPLES);
    const numSlots = (PERFORMANCE_SAMPLE_SECONDS * 1_000) / SLOT_MS;
    const latest = bank.clock.slot();
    const landedAt = bank.history.latestFirst().map(({ slot }) => slot);
    return Array.from({ length: limit }, (_, index) => {
      const slot = latest - index * numSlots;
      const numTransactions = landedAt.filter((at) => at <= slot && at > slot - numSlots).length;
      return {
        slot,
        numSlots,
        samplePeriodSecs: PERFORMANCE_SAMPLE_SECONDS,
        numTransactions,
        numNonVoteTransactions: numTransactions,
      };
    });
  },
};

function slotOf({ bank }: SandboxNode, params: readonly unknown[], configIndex: number): number {
  const config = configAt(params, configIndex);
  const slot = slotAt(bank, commitmentOf(config));
  checkMinContextSlot(config, slot);
  return slot;
}

/** The fee in lamports: for each signature, and (rounded up) for the compute units if the message sets a price on them. */
function feeOf({ header, staticAccounts, instructions }: WireMessage): bigint {
  let units: bigint | null = null;
  let priceMicroLamports = 0n;
  let others = 0n;
  for (const { programAddressIndex, data } of instructions) {
    if (staticAccounts[programAddressIndex] !== COMPUTE_BUDGET_PROGRAM) {
      others += 1n;
      continue;
    }
    const bytes = Buffer.from(data ?? []);
    if (bytes[0] === SET_UNIT_LIMIT && bytes.length >= 5) units = BigInt(bytes.readUInt32LE(1));
    if (bytes[0] === SET_UNIT_PRICE && bytes.length >= 9) priceMicroLamports = bytes.readBigUInt64LE(1);
  }
  const wanted = units ?? others * UNITS_PER_INSTRUCTION;
  const limit = wanted > MAX_UNITS ? MAX_UNITS : wanted;
  const priority = (limit * priceMicroLamports + MICROLAMPORTS_PER_LAMPORT - 1n) / MICROLAMPORTS_PER_LAMPORT;
  return BigInt(header.numSignerAccounts) * LAMPORTS_PER_SIGNATURE + priority;
}
