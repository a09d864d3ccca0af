/** A lock on accounts that somebody else holds: a forgotten session of an operator's, say, with settings of its own. */
import assert from 'node:assert/strict';
import postgres from 'postgres';

const DAY_MS = 86_400_000;

/** @returns gives the accounts free, and ends the session */
export async function lockAccounts(url: string, accounts: readonly bigint[]): Promise<() => Promise<void>> {
  const session = postgres(url, {
    max: 1,
    onnotice: () => {},
    // As long as it likes: the server would end it after its own minute. (The driver leaves out a zero.)
    connection: { idle_in_transaction_session_timeout: DAY_MS },
  });
  const locked = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const transaction = session.begin(async (sql) => {
    const found = await sql`
      select id from ledger_accounts where id = any(${accounts.map(String)}::bigint[]) order by id for no key update`;
    assert.equal(found.length, accounts.length, 'not every account was there to be locked');
    locked.resolve();
    await released.promise;
  });
  await Promise.race([locked.promise, transaction]);
  return async () => {
    released.resolve();
    await transaction;
    await session.end();
  };
}
