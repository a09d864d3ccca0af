-- In steps.
-- Customers' accounts lie in buckets, so that they can be spread over several servers of a database: an account with its keys,
-- calls, answers, transfers, spending and shares has one number, which is written down when the account is opened, and the
-- functions that begin and end calls touch the rows of one bucket alone. All that there is lies in bucket 0, and so does the
-- house: its accounts, and the payments on chains.
--
-- The keys of the tables do not hold the bucket: what is unique is so over all buckets, and a row is found without knowing its
-- bucket. A key that held it would let a kept plan read a whole index by the bucket alone (see `calls_begin.sql`).
-- Step.
ALTER TABLE ledger_accounts ADD COLUMN IF NOT EXISTS bucket smallint NOT NULL DEFAULT 0;
-- Step.
ALTER TABLE ledger_accounts DROP CONSTRAINT IF EXISTS ledger_accounts_bucket,
  ADD CONSTRAINT ledger_accounts_bucket CHECK (bucket BETWEEN 0 AND 4095 AND (NOT house OR bucket = 0)) NOT VALID;
-- Step.
ALTER TABLE ledger_accounts VALIDATE CONSTRAINT ledger_accounts_bucket;
-- Step.
ALTER TABLE api_keys ADD COLUMN IF NOT EXISTS bucket smallint NOT NULL DEFAULT 0;
-- Step.
ALTER TABLE calls ADD COLUMN IF NOT EXISTS bucket smallint NOT NULL DEFAULT 0;
-- Step.
ALTER TABLE call_answers ADD COLUMN IF NOT EXISTS bucket smallint NOT NULL DEFAULT 0;
-- Step.
ALTER TABLE ledger_transfers ADD COLUMN IF NOT EXISTS bucket smallint NOT NULL DEFAULT 0;
-- Step.
ALTER TABLE call_identities ADD COLUMN IF NOT EXISTS bucket smallint NOT NULL DEFAULT 0;
-- Step.
ALTER TABLE call_spending ADD COLUMN IF NOT EXISTS bucket smallint NOT NULL DEFAULT 0;
-- Step.
ALTER TABLE call_shares ADD COLUMN IF NOT EXISTS bucket smallint NOT NULL DEFAULT 0;
-- Step.
ALTER TABLE settlements ADD COLUMN IF NOT EXISTS bucket smallint NOT NULL DEFAULT 0;
-- Step.
ALTER TABLE payments_in_flight ADD COLUMN IF NOT EXISTS bucket smallint NOT NULL DEFAULT 0;
-- Of calls whose end is looked at later, by a process that does not know their account.
-- Step.
ALTER TABLE undelivered_calls ADD COLUMN IF NOT EXISTS bucket smallint NOT NULL DEFAULT 0;
-- The bucket that a key names which is handed out before its account is opened.
-- Step.
ALTER TABLE sold_keys ADD COLUMN IF NOT EXISTS key_bucket smallint NOT NULL DEFAULT 0;
-- Step.
ALTER TABLE topups ADD COLUMN IF NOT EXISTS key_bucket smallint NOT NULL DEFAULT 0;
