-- What operators do, and what they look at.

-- Every act of an operator. Only ever added to: an act that is told wrong is answered by another act.
CREATE TABLE operator_acts (
  -- In the order in which they were done.
  number bigint NOT NULL UNIQUE GENERATED ALWAYS AS IDENTITY,
  -- Also the id of the transfer that the act makes, where it makes one under a name of its own.
  id uuid PRIMARY KEY,
  at timestamptz NOT NULL,
  -- The name that stands before the token in ADMIN_TOKENS.
  actor text NOT NULL,
  act text NOT NULL CHECK (act IN ('freeze', 'unfreeze', 'grant', 'refund_order', 'refund_call')),
  account_id bigint NOT NULL REFERENCES ledger_accounts,
  -- The key that paid for what is refunded.
  key_id bigint,
  order_id uuid,
  call_id uuid,
  amount_micros bigint CHECK (amount_micros > 0),
  reason text NOT NULL,
  transfer_id uuid,
  -- SHA-256 of the Idempotency-Key: the same key is the same act.
  idempotency_digest bytea NOT NULL UNIQUE,
  -- SHA-256 of what was asked for, and by whom.
  request_digest bytea NOT NULL,
  CHECK ((act IN ('freeze', 'unfreeze')) = (amount_micros IS NULL)),
  CHECK ((act = 'refund_order') = (order_id IS NOT NULL)),
  CHECK ((act = 'refund_call') = (call_id IS NOT NULL)),
  CHECK ((act IN ('grant', 'refund_call')) = (transfer_id IS NOT NULL))
);
CREATE INDEX operator_acts_account ON operator_acts (account_id, number);
CREATE UNIQUE INDEX operator_acts_call ON operator_acts (account_id, call_id) WHERE call_id IS NOT NULL;

-- How an act ended that needs somebody else, the card provider, to do its part. An act of that kind without a row here
-- is under way, or was cut off: it is safe to repeat.
CREATE TABLE operator_act_outcomes (
  act_id uuid PRIMARY KEY REFERENCES operator_acts,
  at timestamptz NOT NULL,
  status text NOT NULL,
  refund_id text
);

CREATE FUNCTION operator_acts_only_grow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'acts of operators are only ever added';
END
$$;
CREATE TRIGGER operator_acts_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON operator_acts
  FOR EACH STATEMENT EXECUTE FUNCTION operator_acts_only_grow();
CREATE TRIGGER operator_act_outcomes_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON operator_act_outcomes
  FOR EACH STATEMENT EXECUTE FUNCTION operator_acts_only_grow();

-- What proving the books came to, each time; forgotten after a while.
CREATE TABLE books_verdicts (
  id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  started_at timestamptz NOT NULL,
  ended_at timestamptz NOT NULL,
  balanced boolean NOT NULL,
  -- As `ledger/books.ts` tells it; amounts in micro-USD, as text.
  books jsonb NOT NULL
);
CREATE INDEX books_verdicts_time ON books_verdicts (ended_at);

-- Who is proving them now, on whichever replica: proving reads all there is, so one at a time is enough.
CREATE TABLE books_proof (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  leased_until timestamptz NOT NULL
);
INSERT INTO books_proof (leased_until) VALUES ('-infinity');

-- Money that moved for anything but a call: little of it, and looked for by account and by time.
CREATE INDEX ledger_transfers_other_account ON ledger_transfers (account_id, created_at) WHERE code <> 'call';
CREATE INDEX ledger_transfers_other_time ON ledger_transfers (created_at) WHERE code <> 'call';
