-- Transactions of our own keys that have an end of their own: a Solana blockhash, a Tempo validity. Each is stored before
-- it is sent, and a second one for the same purpose is made only when the first can never land any more.
CREATE TABLE ending_transactions (
  -- CAIP-2
  network text NOT NULL,
  -- What the chain knows it by: on Solana its signature.
  hash text NOT NULL,
  -- What it is for.
  id text NOT NULL,
  -- Signed, as it is sent.
  raw text NOT NULL,
  -- After this the chain takes it no more: a block height on Solana, seconds since 1970 on Tempo.
  ends_at bigint NOT NULL,
  -- For whom it opens an account at our cost.
  opens_for text,
  -- 0 on its way   1 landed for good   2 failed for good   3 over: it never landed, and never will
  state smallint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  sent_at timestamptz NOT NULL,
  PRIMARY KEY (network, hash)
);
CREATE UNIQUE INDEX ending_transactions_purpose ON ending_transactions (network, id) WHERE state IN (0, 1);
CREATE INDEX ending_transactions_id ON ending_transactions (network, id);
CREATE INDEX ending_transactions_pending ON ending_transactions (network, sent_at) WHERE state = 0;
CREATE INDEX ending_transactions_opened ON ending_transactions (network, created_at)
  WHERE opens_for IS NOT NULL AND state IN (0, 1);
