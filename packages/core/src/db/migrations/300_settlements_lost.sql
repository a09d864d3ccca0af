-- In steps.
-- Payments that were settled and that the chain forgot: the books count them every few minutes, and would read all payments for it.
-- Step.
DROP INDEX CONCURRENTLY IF EXISTS settlements_lost;
-- Step.
CREATE INDEX CONCURRENTLY settlements_lost ON settlements (account_id) WHERE state = 4;
