-- In steps.
-- A settlement is signed once. A replica that had found none before another one's was stored, sent and over stores no
-- second: until here only transactions that were on their way or had landed kept others out.

-- Step.
ALTER TABLE ending_transactions ADD COLUMN IF NOT EXISTS only_one boolean NOT NULL DEFAULT false;

-- Step.
DROP INDEX CONCURRENTLY IF EXISTS ending_transactions_only_one;

-- Step.
CREATE UNIQUE INDEX CONCURRENTLY ending_transactions_only_one ON ending_transactions (network, id) WHERE only_one;
