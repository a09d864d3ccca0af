import type { Transaction } from '../../db/connection.ts';
import { HOUSE_ACCOUNTS } from '../../ledger/accounts.ts';
import { HOUSE_BUCKET } from '../../ledger/buckets.ts';
import { transferIdFor } from '../../ledger/transfer-id.ts';
import type { Rail } from '../rail.ts';

/** Why a payment on a chain cannot be sent back. */
export type NoPaymentRefund = 'unknown' | 'not_charged' | 'not_final' | 'already' | 'cannot';

/** A payment that is owed back, and the transfer that will book it. */
export interface OwedPayment {
  service: string;
  amountMicros: bigint;
  transferId: string;
}

/** Sends payments back on the chains that they came from. */
export interface PaymentRefunds {
  /** What would be owed for a call. It holds the settlement until the transaction ends. */
  look(transaction: Transaction, callId: string): Promise<OwedPayment | NoPaymentRefund>;
  /** Owes the price of a call to its payer. A job sends it. @param reason shown in the payment's receipt */
  owe(transaction: Transaction, callId: string, reason: string, at: string): Promise<void>;
}

/** @param rails those whose payments settle on a chain */
export function createPaymentRefunds(rails: readonly Rail[]): PaymentRefunds {
  return {
    async look(transaction, callId) {
      const [row] = await transaction<
        {
          rail: string;
          network: string;
          service: string;
          price_micros: bigint;
          captured: boolean;
          final: boolean;
          refunded: boolean;
        }[]
      >`
        select c.rail, s.network, c.service, c.price_micros, c.state = 1 as captured,
               s.state = 1 and s.final_at is not null as final,
               exists (select 1 from refunds r where r.account_id = s.account_id and r.call_id = s.call_id) as refunded
        from settlements s join calls c on c.bucket = s.bucket and c.account_id = s.account_id and c.id = s.call_id
        where s.bucket = ${HOUSE_BUCKET} and s.account_id = ${String(HOUSE_ACCOUNTS.chain_clearing)} and s.call_id = ${callId}
        for no key update of s`;
      if (row === undefined) return 'unknown';
      if (!row.captured) return 'not_charged';
      if (row.refunded) return 'already';
      // A chain may still take back a payment that is not final.
      if (!row.final) return 'not_final';
      const chains = rails.find(({ name }) => name === row.rail)?.chains;
      if (chains?.canEverRefund(row.network) !== true) return 'cannot';
      return {
        service: row.service,
        amountMicros: row.price_micros,
        transferId: transferIdFor(`refund:${callId}`),
      };
    },

    async owe(transaction, callId, reason, at) {
      await transaction`
        insert into refunds (account_id, call_id, network, asset, payee, amount_micros, reason, created_at, next_at)
        select s.account_id, s.call_id, s.network, s.asset, s.payer, c.price_micros, ${reason}, ${at}, ${at}
        from settlements s join calls c on c.bucket = s.bucket and c.account_id = s.account_id and c.id = s.call_id
        where s.bucket = ${HOUSE_BUCKET} and s.account_id = ${String(HOUSE_ACCOUNTS.chain_clearing)} and s.call_id = ${callId}`;
    },
  };
}
