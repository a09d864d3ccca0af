-- Credit that is bought with a payment on a chain. The payment is a paid call; a row here says whose credit it buys. It
-- is written before the payment goes to the chain and grants nothing: the credit moves once the call is captured.

CREATE TABLE topups (
  -- Of the paid call, in the account of those who pay on chains.
  call_id uuid PRIMARY KEY,
  -- Whose credit it is. NULL: a new account's, which is opened together with its key when the payment is captured.
  account_id bigint REFERENCES ledger_accounts,
  -- What is stored of the new key, until it is.
  key_lookup bigint,
  key_digest bytea CHECK (length(key_digest) = 32),
  key_prefix text,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  created_at timestamptz NOT NULL,
  -- When the credit was granted, in the commit of its transfer.
  granted_at timestamptz,
  -- What was taken back, because the chain had forgotten the payment: as much of it as was not spent.
  taken_back_micros bigint CHECK (taken_back_micros BETWEEN 0 AND amount_micros),
  -- When it was seen that nothing can happen to it any more.
  closed_at timestamptz,
  CHECK (num_nulls(key_lookup, key_digest, key_prefix) IN (0, 3)),
  CHECK (account_id IS NOT NULL OR key_digest IS NOT NULL),
  CHECK (granted_at IS NULL OR account_id IS NOT NULL),
  CHECK (granted_at IS NOT NULL OR (closed_at IS NULL AND taken_back_micros IS NULL))
);
-- What a job has to look at.
CREATE INDEX topups_open ON topups (created_at) WHERE closed_at IS NULL;
