import type { Ledger } from '../ledger/ledger.ts';
import { transferIdFor } from '../ledger/transfer-id.ts';
import type { CallStore } from '../paid-call/calls.ts';
import type { Chains } from '../paid-call/rail.ts';
import type { DueRefund, Settlement, SettlementStore } from '../paid-call/settlements.ts';

const BATCH = 100;
/** More than any chain is ever asked for one settlement. */
const LEASE_MS = 60_000;
const FIRST_PAUSE_MS = 2_000;
const LAST_PAUSE_MS = 60_000;
/** A settled transaction that no node knows is believed gone only after so many looks. */
const LOOKS_BEFORE_GONE = 5;
const MAX_LOOKS_AT_ONCE = 8;
/** What was paid above a price by less than this stays where it is: sending it back may cost as much. */
const LEAST_SENT_BACK_MICROS = 10_000n;

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
          ...settlement,
          id: settlement.callId,
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
    const call = { ...settlement, id: settlement.callId, capture: true, settled: at };
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
      if (overpaidMicros >= LEAST_SENT_BACK_MICROS && chains.canRefund(settlement.payment.network))
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

  return {
    /** One round. @returns how many settlements and refunds it brought further */
    async run(): Promise<number> {
      let further = 0;
      const tell = (outcome: Finished, about: { callId: string; network: string }) => {
        parts.report(outcome, about);
        if (outcome !== 'waiting') further += 1;
      };
      const due = await settlements.leaseDue(BATCH, LEASE_MS);
      let next = 0;
      await Promise.all(
        Array.from({ length: MAX_LOOKS_AT_ONCE }, async () => {
          for (let settlement = due[next++]; settlement !== undefined; settlement = due[next++]) {
            const { callId, payment } = settlement;
            tell(await finish(settlement), { callId, network: payment.network });
          }
        }),
      );
      // One at a time: each may wait for a block, and none may wait longer than its lease.
      for (let count = 0; count < BATCH; count++) {
        const [refund] = await settlements.leaseDueRefunds(1, LEASE_MS);
        if (refund === undefined) break;
        tell(await pay(refund, refund.rail, refund.revenue), refund);
      }
      return further;
    },
  };
}

export type SettlementFinisher = ReturnType<typeof createSettlementFinisher>;
