/** The opponent of (c): one transaction for each debit, which locks the account's row. */
import { connectDatabase } from '../packages/core/src/db/connection.ts';
import { newTransferId } from '../packages/core/src/ledger/transfer-id.ts';
import { answerOrders } from './answering-process.ts';
import { type DebitsOrder, type DebitsResult, MAX_CONNECTIONS, runDebits } from './debits.ts';

const AMOUNT_MICROS = 1_000n;
const HOUSE_ACCOUNT = '3';

const sql = connectDatabase(process.env.BENCH_DATABASE_URL ?? '', MAX_CONNECTIONS);

answerOrders<DebitsOrder, DebitsResult>((command) =>
  runDebits(command, async (accountId) => {
    const account = String(accountId);
    const amount = String(AMOUNT_MICROS);
    await sql.begin(async (transaction) => {
      const [row] = await transaction<{ debits_posted: bigint; credits_posted: bigint }[]>`
        select debits_posted, credits_posted from bench_opponent.accounts where id = ${account} for update`;
      if (row === undefined || row.debits_posted + AMOUNT_MICROS > row.credits_posted)
        throw new Error('not enough available');
      await transaction`
        insert into bench_opponent.transfers
          (account_id, id, debit_account, credit_account, amount_micros, code, created_at)
        values (${account}, ${newTransferId(Date.now())}, ${account}, ${HOUSE_ACCOUNT}, ${amount}, 'trial_expiry',
                ${new Date().toISOString()})`;
      await transaction`
        update bench_opponent.accounts set debits_posted = debits_posted + ${amount} where id = ${account}`;
    });
  }),
);
