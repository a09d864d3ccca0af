import type { Ledger } from '../ledger/ledger.ts';
import { transferIdFor } from '../ledger/transfer-id.ts';
import type { CallStore } from './calls.ts';
import type { Chains } from './rail.ts';
import {
  callOf,
  type DueRefund,
  type Settlement,
  type SettlementLane,
  type SettlementStore,
} from './settlements.ts';

const BATCH = 100;
/** More than any chain is ever asked for one settlement. */
const LEASE_MS = 60_000;
const FIRST_PAUSE_MS = 2_000;
const LAST_PAUSE_MS = 60_000;
/** A settled transaction that no node knows is believed gone only after so many looks. */
const LOOKS_BEFORE_GONE = 5;
/** On each network: one whose node is silent keeps no other waiting. */
const MAX_LOOKS_AT_ONCE = 8;
/** What was paid above a price by less than this stays where it is: sending it back may cost as much. */
const LEAST_SENT_BACK_MICROS = 10_000n;
const MAX_REFUNDS_AT_ONCE = 4;
/** After so long a round takes nothing more: the next one begins with what has become due meanwhile. */
const ROUND_MS = 10_000;

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

/**
 * Finishes what the chain decides and nobody waits for any more: payments whose end was not known when the request
 * ended, answers that were paid for and never delivered, refunds that are owed, and settled transactions until they
 * are deep enough in the chain to stay. Everything it needs stands in the database; any replica may do it.
 */
export function createSettlementFinisher(parts: {
  calls: CallStore;
  settlements: SettlementStore;
  ledger: Ledger;
  chainsOf(rail: string): Chains | undefined;
  refundAfterMs: number;
  nowMs(): number;
  report(outcome: Finished, settlement: { callId: string; network: string }): void;
}) {
  const { calls, settlements, ledger } = parts;
  const pauseMs = (attempts: number) => Math.min(FIRST_PAUSE_MS * 2 ** Math.min(attempts, 10), LAST_PAUSE_MS);

  async function finish(settlement: Settlement): Promise<Finished> {
    const chains = parts.chainsOf(settlement.rail);
    // Its rail is not configured here any more: another replica may know it.
    if (chains === undefined) return wait(settlement);
    if (settlement.captured) return seeItStay(settlement, chains);
    if (settlement.state === 'settled' && settlement.transaction !== null) {
      return giveOrOwe(settlement, {
        transaction: settlement.transaction,
        blockNumber: settlement.blockNumber,
      });
    }
    const looked = await chains.look(settlement.payment);
    // An answer that is ready and a payment that is good: the payer has done their part. What was refused is not tried
    // again without them, and what has no answer yet is not charged without them.
    const verdict =
      looked.status === 'open' && settlement.answered && settlement.state === 'with_chain'
        ? await chains.settle(settlement.payment)
        : looked;
    switch (verdict.status) {
      case 'settled': {
        const at = { transaction: verdict.transaction, blockNumber: verdict.blockNumber };
        if (!settlement.answered) await settlements.markSettled(settlement, at, 0);
        return giveOrOwe(settlement, at);
      }
      case 'dead': {
        const released = await calls.finish({
          ...callOf(settlement),
          capture: false,
          outcome: verdict.refusal.code,
          answer: null,
          settled: null,
        });
        return released.status === 'done' ? 'released' : wait(settlement);
      }
      default:
        // Refused or not known: what was sent before may still arrive.
        return wait(settlement);
    }
  }

  async function wait(settlement: Settlement): Promise<'waiting'> {
    await settlements.later(settlement, pauseMs(settlement.attempts));
    return 'waiting';
  }

  /** The money has come: the answer is released to whoever asks again, or the money is owed. */
  async function giveOrOwe(
    settlement: Settlement,
    at: { transaction: string; blockNumber: bigint | null },
  ): Promise<Finished> {
    const call = { ...callOf(settlement), capture: true, settled: at };
    if (settlement.answered) {
      const { status } = await calls.finish({ ...call, outcome: 'answered', answer: null });
      return status === 'done' ? 'captured' : wait(settlement);
    }
    if (parts.nowMs() < settlement.createdAtMs + parts.refundAfterMs) return wait(settlement);
    const body = {
      error: 'REFUNDED',
      code: 'REFUNDED',
      message: 'This payment could not be delivered in time. It is sent back on the chain that it came from.',
      hint: 'Sign a new payment to try again.',
      callId: settlement.callId,
      charged: false,
    };
    // Owed first: taken and not owed would be money that nobody remembers.
    await settlements.owe(settlement, 'not delivered in time');
    const { status } = await calls.finish({
      ...call,
      outcome: 'REFUNDED',
      answer: {
        status: 410,
        headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'private, no-store' },
        body: JSON.stringify(body),
      },
    });
    return status === 'done' ? 'owed' : wait(settlement);
  }

  /** A transaction that was seen must still be there when it is deep enough. */
  async function seeItStay(settlement: Settlement, chains: Chains): Promise<Finished> {
    if (settlement.transaction === null) return wait(settlement);
    const finality = await chains.finality(settlement.payment, settlement.transaction);
    if (finality === 'final') {
      const overpaidMicros = chains.overpaidUnits?.(settlement.payment) ?? 0n;
      // A key that is dry today owes it all the same.
      if (overpaidMicros >= LEAST_SENT_BACK_MICROS && chains.canEverRefund(settlement.payment.network))
        await settlements.owe(settlement, 'paid above the price', overpaidMicros);
      await settlements.markFinal(settlement);
      return 'final';
    }
    if (finality !== 'gone') return wait(settlement);
    const missed = settlement.missed + 1;
    if (missed < LOOKS_BEFORE_GONE) {
      await settlements.later(settlement, pauseMs(missed), missed);
      return 'waiting';
    }
    // The chain was reorganised. The authorization may still be good, and its answer has left: settle it again.
    const verdict = await chains.settle(settlement.payment);
    if (verdict.status === 'settled') {
      await settlements.markSettled(settlement, verdict, FIRST_PAUSE_MS);
      return 'resettled';
    }
    if (verdict.status !== 'dead') return wait(settlement);
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

  async function pay(refund: DueRefund, rail: string, revenue: Settlement['revenue']): Promise<Finished> {
    const transaction = (await parts.chainsOf(rail)?.refund(refund)) ?? null;
    if (transaction === null) {
      await settlements.refundLater(refund, pauseMs(refund.attempts));
      return 'waiting';
    }
    // Again changes nothing: the transfer follows from the call.
    await ledger.transfer({
      id: transferIdFor(`refund:${refund.callId}`),
      accountId: refund.accountId,
      phase: 'posted',
      side: 'credit',
      house: revenue,
      amountMicros: refund.amountMicros,
      code: 'onchain_refund',
      note: `refund of call ${refund.callId}`,
    });
    await settlements.markRefunded(refund, transaction);
    return 'refunded';
  }

  /** Reports what became of one. @returns 1 if that was anything */
  function tell(outcome: Finished, about: { callId: string; network: string }): number {
    parts.report(outcome, about);
    return outcome === 'waiting' ? 0 : 1;
  }

  /**
   * Works with so many hands until nothing is left, the round is over or the process is to end. What fails keeps its lease
   * and nothing else waiting.
   *
   * @param next takes one; undefined: there is none
   * @param act does it. @returns how many it brought further
   * @throws the first failure, after all others had their turn
   */
  async function withHands<Item>(
    hands: number,
    next: () => Promise<Item | undefined>,
    act: (item: Item) => Promise<number>,
    stopping: AbortSignal | undefined,
  ): Promise<number> {
    const startedAtMs = performance.now();
    const failures: unknown[] = [];
    let further = 0;
    const hand = async () => {
      while (stopping?.aborted !== true && performance.now() - startedAtMs < ROUND_MS) {
        const item = await next();
        if (item === undefined) return;
        further += await act(item).catch((error: unknown) => {
          failures.push(error);
          return 0;
        });
      }
    };
    await Promise.all(Array.from({ length: hands }, hand));
    if (failures.length > 0) throw failures[0];
    return further;
  }

  /** Everything due of one kind, each network by itself. */
  async function everyNetwork(what: SettlementLane['what'], stopping?: AbortSignal): Promise<number> {
    const networks = await settlements.dueNetworks(what);
    const lanes = await Promise.allSettled(
      networks.map((network) => {
        let due: Settlement[] = [];
        let refilling: Promise<void> | null = null;
        const refill = async () => {
          due = await settlements.leaseDue(BATCH, LEASE_MS, { what, network });
          refilling = null;
        };
        const next = async (): Promise<Settlement | undefined> => {
          if (due.length === 0) {
            refilling ??= refill();
            await refilling;
          }
          return due.shift();
        };
        return withHands(
          MAX_LOOKS_AT_ONCE,
          next,
          async (settlement) => tell(await finish(settlement), { callId: settlement.callId, network }),
          stopping,
        );
      }),
    );
    let further = 0;
    for (const lane of lanes) {
      if (lane.status === 'rejected') throw lane.reason;
      further += lane.value;
    }
    return further;
  }

  /** Each may wait for a block, and none may wait longer than its lease: so each is taken when a hand is free. */
  function payRefunds(stopping?: AbortSignal): Promise<number> {
    return withHands(
      MAX_REFUNDS_AT_ONCE,
      async () => (await settlements.leaseDueRefunds(1, LEASE_MS))[0],
      async (refund) => tell(await pay(refund, refund.rail, refund.revenue), refund),
      stopping,
    );
  }

  // Three jobs, so that none waits behind another: refunds least of all.
  return {
    /** Ends what a chain has to decide. @returns how many settlements it brought further */
    finish: (stopping?: AbortSignal) => everyNetwork('undecided', stopping),
    /** Sees that transactions stay. @returns how many are final, or gone */
    watch: (stopping?: AbortSignal) => everyNetwork('watched', stopping),
    payRefunds,
    /** All three, one after the other. @returns how many settlements and refunds it brought further */
    async run(): Promise<number> {
      return (await everyNetwork('undecided')) + (await everyNetwork('watched')) + (await payRefunds());
    },
  };
}

export type SettlementFinisher = ReturnType<typeof createSettlementFinisher>;
