-- Keys that are sold. The purchase is a paid call; a row here is the key that it buys. It is written while the call runs
-- and grants nothing: the key comes to be, with what was paid for it, once the call is captured.

CREATE TABLE sold_keys (
  call_id uuid PRIMARY KEY,
  -- Whose call it is: a customer's account, or that of those who pay on chains.
  payer_account bigint NOT NULL REFERENCES ledger_accounts,
  -- Of the transfer that would give back its price.
  refund_id uuid NOT NULL UNIQUE,
  label text,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  -- The key, encrypted for its call, so that the call run again answers the same. Gone once it is granted.
  sealed_key text,
  key_lookup bigint NOT NULL,
  key_digest bytea NOT NULL CHECK (length(key_digest) = 32),
  key_prefix text NOT NULL,
  created_at timestamptz NOT NULL,
  -- The new key's account, opened in the commit that moves the money to it.
  account_id bigint REFERENCES ledger_accounts,
  granted_at timestamptz,
  -- What was taken back of it: its price was given back, or a chain forgot the payment.
  taken_back_micros bigint CHECK (taken_back_micros BETWEEN 0 AND amount_micros),
  -- When it was seen that there is nothing left to do; a refund opens it again.
  closed_at timestamptz,
  CHECK ((granted_at IS NULL) = (account_id IS NULL)),
  CHECK ((granted_at IS NULL) = (sealed_key IS NOT NULL)),
  CHECK (granted_at IS NOT NULL OR (taken_back_micros IS NULL AND closed_at IS NULL))
);
-- What a job has to look at.
CREATE INDEX sold_keys_open ON sold_keys (created_at) WHERE closed_at IS NULL;

-- Trial credit that paid for a key is trial credit there too. The account that it came from; NULL: a day's trial.
ALTER TABLE trial_credits ADD COLUMN moved_from bigint REFERENCES ledger_accounts;
