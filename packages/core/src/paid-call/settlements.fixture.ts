/** For tests: calls whose money is with a chain, and a chain that says what it is told to. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { openTestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import { createLedger } from '../ledger/ledger.ts';
import { newTransferId } from '../ledger/transfer-id.ts';
import { type CallStore, createCallStore } from './inside/calls.ts';
import { type Finished, SettlementFinisher } from './inside/finish-settlements.ts';
import { createSettlementStore } from './inside/settlement-store.ts';
import {
  type Chains,
  type ChainVerdict,
  type Finality,
  type OnChainPayment,
  PaymentRefused,
} from './rail.ts';

export const ACCOUNT = HOUSE_ACCOUNTS.chain_clearing;
export const PRICE = 50_000n;
export const LIFE_MS = 120_000;
export const REFUND_AFTER_MS = 900_000;
export const AT = { transaction: '0xaa', blockNumber: 7n };
export const settled: ChainVerdict = { status: 'settled', ...AT };
export const unknown: ChainVerdict = { status: 'unknown' };
export const refused: ChainVerdict = {
  status: 'refused',
  refusal: new PaymentRefused('PAYMENT_INSUFFICIENT_FUNDS', 'none', 'fund it'),
};
export const dead: ChainVerdict = {
  status: 'dead',
  refusal: new PaymentRefused('PAYMENT_EXPIRED', 'too late', 'sign again'),
};

/** What the chain says; what it is not told to say it must not be asked. */
export interface Says {
  look?: ChainVerdict;
  settle?: ChainVerdict;
  finality?: Finality;
  refund?: string | null;
}

/** A call as a request leaves it behind, and whose lease is over. */
export interface LeftBehind {
  accountId: bigint;
  callId: string;
  payment: OnChainPayment;
  begin: Parameters<CallStore['begin']>[0];
}

export type SettlementStage = Awaited<ReturnType<typeof openSettlementStage>>;

export async function openSettlementStage() {
  const database = await openTestDatabase();
  const clock = { nowMs: Date.now() };
  const nowMs = () => clock.nowMs;
  const calls = createCallStore(database, { nowMs, answerTtlMs: 86_400_000 });
  const settlements = createSettlementStore(database.sql, nowMs);

  const stage = {
    database,
    /** What it is everywhere; a test moves it. */
    clock,
    calls,
    settlements,

    async leftBehind(how: {
      answered: boolean;
      state: 'with_chain' | 'refused' | 'settled';
      amountUnits?: bigint;
    }): Promise<LeftBehind> {
      const callId = newTransferId(clock.nowMs);
      const payment = paymentOf(`test:${callId}`, how.amountUnits ?? PRICE, clock.nowMs + LIFE_MS);
      const begin = {
        id: callId,
        accountId: ACCOUNT,
        bucket: 0,
        keyId: null,
        rail: 'x402',
        service: 'first-call',
        priceMicros: PRICE,
        revenue: 'revenue_x402' as const,
        identity: payment.identity,
        onChainIdentity: payment.identity,
        fingerprint: randomBytes(32),
        ttlMs: 60_000,
      };
      assert.equal((await calls.begin(begin)).status, 'authorized');
      const kept = await calls.keep({
        id: callId,
        accountId: ACCOUNT,
        bucket: 0,
        rail: 'x402',
        payment,
        answer: how.answered ? { status: 200, headers: {}, body: '{"it":"is"}' } : null,
        leaseMs: 1_000,
      });
      assert.equal(kept.status, 'kept');
      const one = { accountId: ACCOUNT, callId, payment };
      if (how.state === 'refused') await settlements.markRefused(one, 'PAYMENT_INSUFFICIENT_FUNDS');
      if (how.state === 'settled') await settlements.markSettled(one, AT, 1_000);
      clock.nowMs += how.state === 'refused' ? LIFE_MS : 1_000;
      return { ...one, begin };
    },

    /** @param rails whether the rail of these payments is configured here */
    finisherWith(says: Says, rails: 'known' | 'unknown' = 'known') {
      const told: Finished[] = [];
      const { chains, asked } = chainsThatSay(says);
      const finisher = new SettlementFinisher({
        calls,
        settlements,
        ledger: createLedger(database, nowMs),
        chainsOf: (rail) => (rail === 'x402' && rails === 'known' ? chains : undefined),
        refundAfterMs: REFUND_AFTER_MS,
        nowMs,
        report: (outcome) => void told.push(outcome),
      });
      return { told, asked, run: () => finisher.run() };
    },

    /** One round in which the chain says this. @returns what became of everything that was due, and what was asked */
    async round(says: Says): Promise<{ told: Finished[]; asked: string[] }> {
      const { told, asked, run } = stage.finisherWith(says);
      const further = await run();
      assert.equal(further, told.filter((outcome) => outcome !== 'waiting').length);
      return { told, asked };
    },

    /** Money that moved for good, as seen by an account of the house: credits less debits. */
    async posted(account: keyof typeof HOUSE_ACCOUNTS): Promise<bigint> {
      const id = String(HOUSE_ACCOUNTS[account]);
      const [row] = await database.sql<{ sum: bigint }[]>`
        select coalesce(sum(case when credit_account = ${id} then amount_micros else -amount_micros end), 0)::bigint as sum
        from ledger_transfers where phase in (1, 3) and ${id} in (credit_account, debit_account)`;
      return row?.sum ?? 0n;
    },

    async dueAgainInMs(callId: string): Promise<number> {
      const [row] = await database.sql<{ next_at: Date }[]>`
        select next_at from settlements where call_id = ${callId}`;
      return (row?.next_at.getTime() ?? Number.NaN) - clock.nowMs;
    },

    /** So that the next test has nothing but its own. */
    async forgetAll(): Promise<void> {
      await database.sql`update settlements set final_at = now()`;
      await database.sql`update refunds set state = 1`;
    },

    close: () => database.close(),
  };
  return stage;
}

function chainsThatSay(says: Says): { chains: Chains; asked: string[] } {
  const asked: string[] = [];
  const answer = <K extends keyof Says>(question: K): NonNullable<Says[K]> | null => {
    asked.push(question);
    if (!(question in says)) throw new Error(`nobody expected to be asked to ${question}`);
    return says[question] ?? null;
  };
  const chains: Chains = {
    verify: async () => {},
    balanceOf: async () => 0n,
    look: async () => answer('look') ?? unknown,
    settle: async () => answer('settle') ?? unknown,
    finality: async () => answer('finality') ?? 'unknown',
    canRefund: () => true,
    canEverRefund: () => true,
    refund: async () => answer('refund'),
  };
  return { chains, asked };
}

function paymentOf(identity: string, amountUnits: bigint, deadAfterMs: number): OnChainPayment {
  return {
    identity,
    network: 'eip155:8453',
    asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    payer: `0x${'11'.repeat(20)}`,
    payTo: `0x${'22'.repeat(20)}`,
    amountUnits,
    deadAfterMs,
    evidence: { scheme: 'fake' },
  };
}
