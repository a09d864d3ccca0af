-- A database that is spread over servers: what happens on one of them, and its coordinator has to hear of. A server writes it in its own
-- commit, and a job of the coordinator's reads it. On one PostgreSQL the triggers of transfers do at once what is to be done, and these tables stay
-- empty.
CREATE TABLE ledger_outbox (
  bucket smallint NOT NULL DEFAULT 0,
  account_id bigint NOT NULL,
  -- A transfer of this account, by its key.
  id uuid NOT NULL,
  phase smallint NOT NULL,
  PRIMARY KEY (account_id, id, phase)
);

-- The transfers that the coordinator has heard of, from then until nobody can tell of them any more. Triggers on this table do what they
-- would do on `ledger_transfers`: a transfer is in it once.
CREATE TABLE ledger_transfers_heard (
  bucket smallint NOT NULL,
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  debit_account bigint NOT NULL,
  credit_account bigint NOT NULL,
  amount_micros bigint NOT NULL,
  created_at timestamptz NOT NULL,
  heard_at timestamptz NOT NULL DEFAULT now(),
  phase smallint NOT NULL,
  code text NOT NULL,
  note text,
  PRIMARY KEY (account_id, id, phase)
);
CREATE INDEX ledger_transfers_heard_at ON ledger_transfers_heard (heard_at);

-- The notices of a spread database lie beside the accounts, and each has a name to be struck by; on one PostgreSQL it has none.
ALTER TABLE auto_recharge_notices ADD COLUMN bucket smallint NOT NULL DEFAULT 0, ADD COLUMN id uuid;
