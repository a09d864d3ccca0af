-- A settlement is signed once. A replica that had found none before another one's was stored, sent and over stores no
-- second: until here only transactions that were on their way or had landed kept others out.
ALTER TABLE ending_transactions ADD COLUMN only_one boolean NOT NULL DEFAULT false;
CREATE UNIQUE INDEX ending_transactions_only_one ON ending_transactions (network, id) WHERE only_one;
