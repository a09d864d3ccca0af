/** Our side of (c): the ledger as the server makes it. */
import { connectPools } from '../packages/core/src/db/connection.ts';
import { createLedger } from '../packages/core/src/ledger/ledger.ts';
import { newTransferId } from '../packages/core/src/ledger/transfer-id.ts';
import { answerOrders } from './answering-process.ts';
import { type DebitsOrder, type DebitsResult, MAX_CONNECTIONS, runDebits } from './debits.ts';

const ledger = createLedger(connectPools(process.env.BENCH_DATABASE_URL ?? '', MAX_CONNECTIONS), Date.now);

answerOrders<DebitsOrder, DebitsResult>((command) =>
  runDebits(command, async (accountId) => {
    const { status } = await ledger.transfer({
      id: newTransferId(Date.now()),
      accountId,
      phase: 'posted',
      side: 'debit',
      // A reason for which the books expect no call.
      house: 'trial_expired',
      code: 'trial_expiry',
      amountMicros: 1_000n,
    });
    if (status !== 'done') throw new Error(`a debit ended as ${status}`);
  }),
);
