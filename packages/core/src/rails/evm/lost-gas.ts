/**
 * Limits the gas that failed settlements cost us. Each one counts against the payer who made it fail. A wallet's own
 * code decides whether its payment settles. Code that passes a simulation and fails when it is sent could otherwise
 * empty the settler, one settlement after the other.
 */
import type { Database } from '../../db/connection.ts';
import type { PaymentRefused } from '../../paid-call/rail.ts';
import { refuse } from '../on-chain/refusals.ts';

const DAY_MS = 86_400_000;
/** How many settlements of one payer may fail in a day. */
const MAX_FAILURES = 5;
/** How many payers of one wallet factory may have such failures in a day. */
const MAX_FAILED_OF_FACTORY = 20;
const DROPPED_AT_ONCE = 5_000;

/** Whose code a settlement runs. */
export interface Party {
  network: string;
  payer: string;
  /** The factory that deploys the payer's wallet in this settlement; null when none has to. */
  factory: string | null;
}

export interface LostGas {
  /** Why nothing is sent for this payer today; null when it may be. */
  refusal(party: Party): Promise<PaymentRefused | null>;
  /** Counts a settlement as failed before it is sent. @returns why it must not be sent; null when it may be */
  take(party: Party, costWei: bigint): Promise<PaymentRefused | null>;
  /** Takes the count back for a settlement that did not fail. */
  giveBack(party: Party, costWei: bigint): Promise<void>;
  /** Counts a settlement that failed and was not counted before. */
  failed(party: Party, costWei: bigint): Promise<void>;
  dropExpired(): Promise<void>;
}

/** @param budgetWei what wallets' own code may cost on this network in a day, all payers together */
export function openLostGas(
  sql: Database,
  nowMs: () => number,
  budgetWei: (network: string) => bigint,
): LostGas {
  const now = () => new Date(nowMs()).toISOString();
  const since = () => new Date(nowMs() - DAY_MS).toISOString();
  const tooOften = () => refuse('PAYMENT_FAILED_TOO_OFTEN');

  return {
    async refusal({ network, payer, factory }) {
      const [own] = await sql<{ failures: number }[]>`
        select failures from lost_gas where network = ${network} and payer = ${payer} and since > ${since()}`;
      if (own !== undefined && own.failures >= MAX_FAILURES) return tooOften();
      if (factory === null) return null;
      const [made] = await sql<{ payers: number }[]>`
        select count(*)::integer as payers from lost_gas
        where network = ${network} and since > ${since()} and factory = ${factory}`;
      return (made?.payers ?? 0) >= MAX_FAILED_OF_FACTORY ? tooOften() : null;
    },

    async take({ network, payer, factory }, costWei) {
      // One statement, so that of many settlements at once no more get through than may fail.
      const taken = await sql`
        with lost as (
          select coalesce(sum(wei), 0) as wei, count(*) filter (where factory = ${factory}::text) as of_factory
          from lost_gas where network = ${network} and since > ${since()}
        )
        insert into lost_gas as l (network, payer, factory, failures, wei, since)
        select ${network}, ${payer}, ${factory}::text, 1, ${String(costWei)}::numeric, ${now()} from lost
        where lost.wei + ${String(costWei)}::numeric <= ${String(budgetWei(network))}::numeric
          and lost.of_factory < ${MAX_FAILED_OF_FACTORY}
        on conflict (network, payer) do update
        set failures = case when l.since <= ${since()} then 1 else l.failures + 1 end,
          wei = case when l.since <= ${since()} then excluded.wei else l.wei + excluded.wei end,
          since = case when l.since <= ${since()} then excluded.since else l.since end,
          factory = coalesce(excluded.factory, l.factory)
        where l.since <= ${since()} or l.failures < ${MAX_FAILURES}
        returning 1`;
      return taken.length === 1 ? null : tooOften();
    },

    async giveBack({ network, payer }, costWei) {
      const gone = await sql`
        delete from lost_gas where network = ${network} and payer = ${payer} and failures <= 1 returning 1`;
      if (gone.length > 0) return;
      await sql`
        update lost_gas set failures = failures - 1, wei = greatest(wei - ${String(costWei)}::numeric, 0)
        where network = ${network} and payer = ${payer}`;
    },

    async failed({ network, payer, factory }, costWei) {
      await sql`
        insert into lost_gas as l (network, payer, factory, failures, wei, since)
        values (${network}, ${payer}, ${factory}::text, 1, ${String(costWei)}::numeric, ${now()})
        on conflict (network, payer) do update
        set failures = case when l.since <= ${since()} then 1 else l.failures + 1 end,
          wei = case when l.since <= ${since()} then excluded.wei else l.wei + excluded.wei end,
          since = case when l.since <= ${since()} then excluded.since else l.since end`;
    },

    async dropExpired() {
      await sql`
        delete from lost_gas where (network, payer) in (
          select network, payer from lost_gas where since <= ${since()} limit ${DROPPED_AT_ONCE})`;
    },
  };
}
