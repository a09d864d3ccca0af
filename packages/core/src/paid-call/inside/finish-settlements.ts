/**
 * Finishes what the chain decides and nobody waits for any more: payments whose end was not known when the request
 * ended, answers that were paid for and never delivered, refunds that are owed, and settled transactions until they
 * are deep enough in the chain to stay. Everything it needs stands in the database; any replica may do it.
 */
import type { Ledger } from '../../ledger/ledger.ts';
import { transferIdFor } from '../../ledger/transfer-id.ts';
import type { Chains, ChainVerdict } from '../rail.ts';
import {
  callOf,
  type DueRefund,
  type Settlement,
  type SettlementLane,
  type SettlementStore,
} from '../settlements.ts';
import type { CallStore } from './calls.ts';
import { withWorkers } from './workers.ts';

const BATCH = 100;
/** Longer than a chain is ever asked for one settlement. */
const LEASE_MS = 60_000;
const FIRST_PAUSE_MS = 2_000;
const LAST_PAUSE_MS = 60_000;
/** A settled transaction that no node knows is believed gone only after so many looks. */
const LOOKS_BEFORE_GONE = 5;
/** On each network: one whose node is silent keeps no other waiting. */
const MAX_LOOKS_AT_ONCE = 8;
/** A smaller sum above the price stays where it is: sending it back may cost as much. */
const LEAST_SENT_BACK_MICROS = 10_000n;
const MAX_REFUNDS_AT_ONCE = 4;

/** What became of one settlement in one round; also a metric's label. */
export type Finished =
  | 'captured'
  | 'released'
  | 'owed'
  | 'refunded'
  | 'final'
  | 'resettled'
  | 'lost'
  | 'waiting';

export interface SettlementFinisherParts {
  calls: CallStore;
  settlements: SettlementStore;
  ledger: Ledger;
  chainsOf(rail: string): Chains | undefined;
  /** After this a paid call that could not be delivered is refunded. */
  refundAfterMs: number;
  nowMs(): number;
  report(outcome: Finished, settlement: { callId: string; network: string }): void;
}

/** Where a chain moved the money. */
interface SettledAt {
  transaction: string;
  blockNumber: bigint | null;
}

/** Its three jobs run side by side, so that none waits behind another: refunds least of all. */
export class SettlementFinisher {
  readonly #parts: SettlementFinisherParts;

  constructor(parts: SettlementFinisherParts) {
    this.#parts = parts;
  }

  /** Ends what a chain has to decide. @returns how many settlements it brought further */
  finish(stopping?: AbortSignal): Promise<number> {
    return this.#everyNetwork('undecided', stopping);
  }

  /** Sees that transactions stay. @returns how many are final, or gone */
  watch(stopping?: AbortSignal): Promise<number> {
    return this.#everyNetwork('watched', stopping);
  }

  /** Sends refunds. Each may wait for a block and none longer than its lease, so each is leased when a worker is free. */
  payRefunds(stopping?: AbortSignal): Promise<number> {
    const { settlements } = this.#parts;
    const work = {
      next: async () => (await settlements.leaseDueRefunds(1, LEASE_MS))[0],
      act: async (refund: DueRefund) => this.#tell(await this.#pay(refund), refund),
    };
    return withWorkers(MAX_REFUNDS_AT_ONCE, work, stopping);
  }

  /** All three, one after the other. @returns how many settlements and refunds it brought further */
  async run(): Promise<number> {
    return (await this.finish()) + (await this.watch()) + (await this.payRefunds());
  }

  /** Works on everything due of one kind, each network by itself. */
  async #everyNetwork(what: SettlementLane['what'], stopping?: AbortSignal): Promise<number> {
    const networks = await this.#parts.settlements.dueNetworks(what);
    const lanes = await Promise.allSettled(
      networks.map((network) => {
        const act = async (settlement: Settlement) =>
          this.#tell(await this.#bringFurther(settlement), { ...settlement, network });
        return withWorkers(MAX_LOOKS_AT_ONCE, { next: this.#takerOf({ what, network }), act }, stopping);
      }),
    );
    let further = 0;
    for (const lane of lanes) {
      if (lane.status === 'rejected') throw lane.reason;
      further += lane.value;
    }
    return further;
  }

  /** Takes the settlements of a lane one by one, and leases a batch of them at a time. */
  #takerOf(lane: SettlementLane): () => Promise<Settlement | undefined> {
    let due: Settlement[] = [];
    let refilling: Promise<void> | null = null;
    const refill = async () => {
      due = await this.#parts.settlements.leaseDue(BATCH, LEASE_MS, lane);
      refilling = null;
    };
    return async () => {
      if (due.length === 0) {
        refilling ??= refill();
        await refilling;
      }
      return due.shift();
    };
  }

  /** Reports what became of one. @returns 1 if that was anything */
  #tell(outcome: Finished, { callId, network }: { callId: string; network: string }): number {
    this.#parts.report(outcome, { callId, network });
    return outcome === 'waiting' ? 0 : 1;
  }

  async #bringFurther(settlement: Settlement): Promise<Finished> {
    const chains = this.#parts.chainsOf(settlement.rail);
    // Its rail is not configured here any more: another replica may know it.
    if (chains === undefined) return this.#wait(settlement);
    if (settlement.captured) return this.#seeItStay(settlement, chains);
    const { state, transaction, blockNumber } = settlement;
    if (state === 'settled' && transaction !== null)
      return this.#giveOrOwe(settlement, { transaction, blockNumber });
    return this.#decide(settlement, await verdictOn(settlement, chains));
  }

  async #wait(settlement: Settlement): Promise<'waiting'> {
    await this.#parts.settlements.later(settlement, pauseMs(settlement.attempts));
    return 'waiting';
  }

  /** Does what follows from what the chain says of the payment. */
  async #decide(settlement: Settlement, verdict: ChainVerdict): Promise<Finished> {
    const { calls, settlements } = this.#parts;
    switch (verdict.status) {
      case 'settled': {
        const at = { transaction: verdict.transaction, blockNumber: verdict.blockNumber };
        if (!settlement.answered) await settlements.markSettled(settlement, at, 0);
        return this.#giveOrOwe(settlement, at);
      }
      case 'dead': {
        const ended = { capture: false, outcome: verdict.refusal.code, answer: null, settled: null };
        const released = await calls.finish({ ...callOf(settlement), ...ended });
        return released.status === 'done' ? 'released' : this.#wait(settlement);
      }
      default:
        // Refused or not known: what was sent before may still arrive.
        return this.#wait(settlement);
    }
  }

  /** The money has come: the answer is released to whoever asks again, or the money is owed once its time is over. */
  async #giveOrOwe(settlement: Settlement, at: SettledAt): Promise<Finished> {
    const { calls, settlements, nowMs, refundAfterMs } = this.#parts;
    const call = { ...callOf(settlement), capture: true, settled: at };
    if (settlement.answered) {
      const { status } = await calls.finish({ ...call, outcome: 'answered', answer: null });
      return status === 'done' ? 'captured' : this.#wait(settlement);
    }
    if (nowMs() < settlement.createdAtMs + refundAfterMs) return this.#wait(settlement);
    // Owed first: money that was taken and is not owed would be forgotten.
    await settlements.owe(settlement, 'not delivered in time');
    const answer = refundedAnswer(settlement.callId);
    const { status } = await calls.finish({ ...call, outcome: 'REFUNDED', answer });
    return status === 'done' ? 'owed' : this.#wait(settlement);
  }

  /** A transaction that was seen must still be there when it is deep enough. */
  async #seeItStay(settlement: Settlement, chains: Chains): Promise<Finished> {
    if (settlement.transaction === null) return this.#wait(settlement);
    const finality = await chains.finality(settlement.payment, settlement.transaction);
    if (finality === 'final') return this.#endFinal(settlement, chains);
    if (finality !== 'gone') return this.#wait(settlement);
    const missed = settlement.missed + 1;
    if (missed >= LOOKS_BEFORE_GONE) return this.#settleAgain(settlement, chains);
    await this.#parts.settlements.later(settlement, pauseMs(missed), missed);
    return 'waiting';
  }

  /** What was paid above the price is owed, even while the key that would send it back has no gas. */
  async #endFinal(settlement: Settlement, chains: Chains): Promise<'final'> {
    const { settlements } = this.#parts;
    const overpaidMicros = chains.overpaidUnits?.(settlement.payment) ?? 0n;
    if (overpaidMicros >= LEAST_SENT_BACK_MICROS && chains.canEverRefund(settlement.payment.network))
      await settlements.owe(settlement, 'paid above the price', overpaidMicros);
    await settlements.markFinal(settlement);
    return 'final';
  }

  /** The chain was reorganised. The answer has left, so the payment is settled again, or booked as lost. */
  async #settleAgain(settlement: Settlement, chains: Chains): Promise<Finished> {
    const { settlements, ledger } = this.#parts;
    const verdict = await chains.settle(settlement.payment);
    if (verdict.status === 'settled') {
      await settlements.markSettled(settlement, verdict, FIRST_PAUSE_MS);
      return 'resettled';
    }
    if (verdict.status !== 'dead') return this.#wait(settlement);
    await ledger.transfer({
      id: transferIdFor(`lost:${settlement.callId}`),
      accountId: settlement.accountId,
      phase: 'posted',
      side: 'credit',
      house: 'settlement_losses',
      amountMicros: settlement.priceMicros,
      code: 'settlement_lost',
      note: `lost settlement of call ${settlement.callId}`,
    });
    await settlements.markGone(settlement, 'lost');
    return 'lost';
  }

  async #pay(refund: DueRefund): Promise<Finished> {
    const { chainsOf, settlements } = this.#parts;
    const transaction = (await chainsOf(refund.rail)?.refund(refund)) ?? null;
    if (transaction === null) {
      await settlements.refundLater(refund, pauseMs(refund.attempts));
      return 'waiting';
    }
    await this.bookRefund(refund, transaction);
    return 'refunded';
  }

  /** Books a refund that a transaction has sent. A second time changes nothing. */
  async bookRefund(refund: DueRefund, transaction: string): Promise<void> {
    const { settlements, ledger } = this.#parts;
    // The transfer's id follows from the call, so that a second time changes nothing.
    await ledger.transfer({
      id: transferIdFor(`refund:${refund.callId}`),
      accountId: refund.accountId,
      phase: 'posted',
      side: 'credit',
      house: refund.revenue,
      amountMicros: refund.amountMicros,
      code: 'onchain_refund',
      note: `refund of call ${refund.callId}`,
    });
    await settlements.markRefunded(refund, transaction);
  }
}

/**
 * What the chain says of a payment. It is asked to settle one whose answer is ready: its payer has done their part. What was
 * refused is not tried again without the payer, and what has no answer yet is not charged without the payer.
 */
async function verdictOn(settlement: Settlement, chains: Chains): Promise<ChainVerdict> {
  const looked = await chains.look(settlement.payment);
  const mayBeSettled = looked.status === 'open' && settlement.answered && settlement.state === 'with_chain';
  return mayBeSettled ? chains.settle(settlement.payment) : looked;
}

function pauseMs(attempts: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** Math.min(attempts, 10), LAST_PAUSE_MS);
}

/** What whoever presents the payment again is answered. */
function refundedAnswer(callId: string) {
  const body = {
    error: 'REFUNDED',
    code: 'REFUNDED',
    message: 'This payment could not be delivered in time. It is sent back on the chain that it came from.',
    hint: 'Sign a new payment to try again.',
    callId,
    charged: false,
  };
  return {
    status: 410,
    headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'private, no-store' },
    body: JSON.stringify(body),
  };
}
