-- Credit that is bought by card. What the card provider says of a payment is the truth; a row here is what is needed to
-- ask it, to bring the books to match, and to hand over what was bought.

INSERT INTO ledger_accounts (id, house, name) VALUES
  (9, true, 'card_clearing'), (10, true, 'promotions'), (11, true, 'receivables');

CREATE TABLE card_orders (
  id uuid PRIMARY KEY,
  -- checkout: a person pays on the provider's page. purchase: a card that the caller names. recharge: a card that is kept.
  kind text NOT NULL CHECK (kind IN ('checkout', 'purchase', 'recharge')),
  -- 0 open: it may still be paid   1 paid: its credit is granted   2 over: it was not paid and cannot be any more
  state smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 2),
  -- Grows with every change. Who changes a row says which version the change was made from.
  version integer NOT NULL DEFAULT 0,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  -- What is granted: more than the amount, for packages that say so.
  credit_micros bigint NOT NULL CHECK (credit_micros >= amount_micros),
  -- Whose credit it is. NULL: a new account's, which is opened when it is paid.
  account_id bigint,
  key_id bigint,
  -- The key that it buys, until it is issued: it follows from the secret that the caller holds, which is not here.
  key_lookup bigint,
  key_digest bytea,
  key_prefix text,
  -- SHA-256 of that secret.
  token_digest bytea,
  key_name text,
  email text,
  -- What the caller asked for, for orders with an idempotency key.
  request_digest bytea,
  recharge_threshold_micros bigint,
  recharge_top_up_micros bigint,
  -- What the provider calls it.
  session_id text UNIQUE,
  session_url text,
  payment_intent_id text UNIQUE,
  customer_id text,
  payment_method_id text,
  -- The provider's name for the card, the same whoever pays with it; and where the request came from, as an HMAC.
  card_fingerprint text,
  address_digest bytea,
  -- Why it was not paid, in the provider's words for machines.
  failure text,
  decline_code text,
  -- How much of the payment went back, or is in dispute; and how much of it is still in dispute.
  reversed_micros bigint NOT NULL DEFAULT 0 CHECK (reversed_micros BETWEEN 0 AND amount_micros),
  bonus_taken_micros bigint NOT NULL DEFAULT 0,
  disputed_micros bigint NOT NULL DEFAULT 0 CHECK (disputed_micros BETWEEN 0 AND reversed_micros),
  -- What went back beyond the payment itself: a bank may take what was refunded. That loss is the house's.
  lost_micros bigint NOT NULL DEFAULT 0 CHECK (lost_micros >= 0),
  dispute text,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  -- When the sweeper looks at it next; NULL: only when something is heard of it.
  next_at timestamptz,
  looks integer NOT NULL DEFAULT 0,
  looked_at timestamptz,
  paid_at timestamptz,
  -- When its key was handed over for the first time.
  delivered_at timestamptz
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX card_orders_token ON card_orders (token_digest) WHERE kind = 'purchase';
CREATE INDEX card_orders_due ON card_orders (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX card_orders_account ON card_orders (account_id, created_at);
CREATE INDEX card_orders_address ON card_orders (address_digest, created_at) WHERE kind = 'purchase';
CREATE INDEX card_orders_card ON card_orders (card_fingerprint, created_at) WHERE card_fingerprint IS NOT NULL;
CREATE INDEX card_orders_time ON card_orders (created_at);
-- One charge of a kept card at a time.
CREATE UNIQUE INDEX card_orders_recharging ON card_orders (account_id) WHERE kind = 'recharge' AND state = 0;

-- What the provider has told us of, until somebody went to look. Nothing of what it said is kept but where to look.
CREATE TABLE card_events (
  id text PRIMARY KEY,
  type text NOT NULL,
  order_id uuid,
  session_id text,
  payment_intent_id text,
  -- The provider's time.
  created_at timestamptz NOT NULL,
  received_at timestamptz NOT NULL,
  -- NULL: done.
  next_at timestamptz,
  attempts integer NOT NULL DEFAULT 0
);
CREATE INDEX card_events_due ON card_events (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX card_events_time ON card_events (received_at);

-- How far the provider's own list of events was read.
CREATE TABLE card_event_cursor (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  read_until timestamptz NOT NULL
);

-- What accounts owe: payments that went back after their credit was spent. Together they are `receivables`.
CREATE TABLE account_debts (
  account_id bigint PRIMARY KEY REFERENCES ledger_accounts,
  owed_micros bigint NOT NULL CHECK (owed_micros >= 0),
  -- Grows with every change, and names the transfers that make it.
  changes integer NOT NULL DEFAULT 0,
  since timestamptz NOT NULL
);
CREATE INDEX account_debts_owed ON account_debts (account_id) WHERE owed_micros > 0;

-- Why an account's keys are frozen; they are while there is a row.
CREATE TABLE account_freezes (
  account_id bigint NOT NULL REFERENCES ledger_accounts,
  cause text NOT NULL CHECK (cause IN ('debt', 'operator')),
  note text,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (account_id, cause)
);

-- Until then the owner cannot raise the cap per day: cards that nobody knows yet pay for little at first.
ALTER TABLE api_keys ADD COLUMN cap_fixed_until timestamptz;
CREATE INDEX api_keys_fixed_caps ON api_keys (cap_fixed_until) WHERE cap_fixed_until IS NOT NULL;
