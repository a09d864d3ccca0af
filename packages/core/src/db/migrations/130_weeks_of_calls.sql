-- Calls, their answers and their transfers lie in a table for each week, so that what is old can be put away without touching
-- what is new. The week is the one in the id: it begins with its time (UUID version 7), and is the second column of each key.
--
--   …_w20261123   the calls whose id was made in the week from that Monday (UTC); a job makes them ahead (`db/weeks.ts`)
--   …_caused      transfers whose id follows from a cause (UUID version 8, or an MD5): the upper fifteen sixteenths of all ids,
--                 which no time reaches before the year 2527. They stay for ever, so that no cause is applied twice
--   …_rest        all other ids: of a clock that is wrong, of a week that was not made yet, and a sixteenth of those that follow
--                 from a cause
--
-- A key over several tables cannot keep a payment unique, so what a payment bought stands in a narrow table of its own.

CREATE TABLE call_identities (
  account_id bigint NOT NULL,
  -- 0 what distinguishes the payment  1 the same payment under the name that its chain gives it
  kind smallint NOT NULL CHECK (kind IN (0, 1)),
  identity text NOT NULL,
  call_id uuid NOT NULL,
  PRIMARY KEY (account_id, kind, identity)
);
INSERT INTO call_identities (account_id, kind, identity, call_id)
SELECT account_id, 0, identity, id FROM calls WHERE identity IS NOT NULL
UNION ALL
SELECT account_id, 1, payment_key, id FROM calls WHERE payment_key IS NOT NULL;

-- The versions before this one name rows by their place, which two tables have in common: they would end other calls as well.
DO $$
DECLARE
  f record;
BEGIN
  FOR f IN
    SELECT p.proname, p.oid::regprocedure AS signature FROM pg_proc p
    WHERE p.pronamespace = current_schema()::regnamespace AND p.proname ~
      '^(calls_apply|calls_begin|calls_finish|calls_settle_past|ledger_apply|ledger_apply_planned|open_calls)(_[0-9a-f]{12})?$'
  LOOP
    EXECUTE 'DROP FUNCTION ' || f.signature;
    DELETE FROM sql_functions WHERE name = f.proname;
  END LOOP;
END
$$;

ALTER TABLE calls RENAME TO calls_before;
ALTER TABLE call_answers RENAME TO call_answers_before;
ALTER TABLE ledger_transfers RENAME TO ledger_transfers_before;

-- Columns that have one size come first: nothing is left empty between them.
CREATE TABLE calls (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  key_id bigint,
  -- What it costs: what is reserved for it while it runs, and what was taken once it is captured.
  price_micros bigint NOT NULL,
  -- What was reserved for a measured call, once it is captured; NULL: its price was known before.
  reserved_micros bigint,
  created_at timestamptz NOT NULL,
  -- When the reconciler may release it: long after the call's own deadline.
  expires_at timestamptz NOT NULL,
  finished_at timestamptz,
  -- When it was begun by the database's own clock, which is one for all replicas. NULL: before there was this column.
  begun_at timestamptz DEFAULT now(),
  holder bigint,
  -- 0 authorized (its price is reserved), 1 captured (its price is taken), 2 released (nothing was taken), 3 kept for a chain
  state smallint NOT NULL DEFAULT 0,
  -- Whether somebody gets a share of it: for all other calls nothing is looked up.
  shared boolean NOT NULL DEFAULT false,
  rail text NOT NULL,
  service text NOT NULL,
  -- Why it was released, or with which status it was answered.
  outcome text,
  -- As in `call_identities`, which keeps it unique. NULL: bought once, blind; or nothing was taken for it.
  identity text,
  payment_key text,
  -- SHA-256 over what was asked; the same payment for another question is refused.
  fingerprint bytea,
  CONSTRAINT calls_new_pkey PRIMARY KEY (account_id, id),
  CONSTRAINT calls_take_no_more_than_reserved
    CHECK (reserved_micros IS NULL OR (price_micros > 0 AND price_micros <= reserved_micros))
) PARTITION BY RANGE (id);

CREATE TABLE call_answers (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  expires_at timestamptz NOT NULL,
  status smallint NOT NULL,
  headers jsonb NOT NULL,
  body text NOT NULL,
  CONSTRAINT call_answers_new_pkey PRIMARY KEY (account_id, id)
) PARTITION BY RANGE (id);

CREATE TABLE ledger_transfers (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  debit_account bigint NOT NULL,
  credit_account bigint NOT NULL,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  created_at timestamptz NOT NULL,
  -- 1 posted at once, 2 pending, 3 post of the pending one, 4 void of it
  phase smallint NOT NULL CHECK (phase BETWEEN 1 AND 4),
  resolves boolean NOT NULL GENERATED ALWAYS AS (phase >= 3) STORED,
  code text NOT NULL,
  note text,
  -- What the pending transfer reserved, where a post takes less; all of it is freed.
  reserved_micros bigint,
  CONSTRAINT ledger_transfers_new_pkey PRIMARY KEY (account_id, id, resolves),
  CHECK (debit_account <> credit_account),
  CHECK (account_id IN (debit_account, credit_account)),
  CONSTRAINT ledger_posts_no_more_than_reserved
    CHECK (reserved_micros IS NULL OR (phase = 3 AND amount_micros <= reserved_micros))
) PARTITION BY RANGE (id);

CREATE TABLE calls_rest PARTITION OF calls DEFAULT WITH (fillfactor = 50);
CREATE TABLE call_answers_rest PARTITION OF call_answers DEFAULT
  WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE TABLE ledger_transfers_rest PARTITION OF ledger_transfers DEFAULT;
CREATE TABLE ledger_transfers_caused PARTITION OF ledger_transfers
  FOR VALUES FROM ('10000000-0000-0000-0000-000000000000') TO (MAXVALUE);

-- The weeks of the calls that there are. Those of the days to come are made by the start.
DO $$
DECLARE
  week CONSTANT bigint := 604800000;
  -- The first Monday of 1970.
  monday CONSTANT bigint := 345600000;
  at bigint;
  name text;
  bounds text;
BEGIN
  FOR at IN
    SELECT DISTINCT (ms - monday) / week * week + monday FROM (
      SELECT ('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint AS ms FROM calls_before
      WHERE substring(id::text FROM 15 FOR 1) = '7'
    ) made
    WHERE ms BETWEEN 1577836800000 AND (extract(epoch FROM now()) * 1000)::bigint
  LOOP
    name := '_w' || to_char(to_timestamp(at / 1000) AT TIME ZONE 'UTC', 'YYYYMMDD');
    bounds := format('FROM (%L) TO (%L)', lpad(to_hex(at), 12, '0') || repeat('0', 20),
                     lpad(to_hex(at + week), 12, '0') || repeat('0', 20));
    EXECUTE format('CREATE TABLE %I PARTITION OF calls FOR VALUES %s WITH (fillfactor = 50)', 'calls' || name, bounds);
    EXECUTE format('CREATE TABLE %I PARTITION OF call_answers FOR VALUES %s
      WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000)', 'call_answers' || name, bounds);
    EXECUTE format('CREATE TABLE %I PARTITION OF ledger_transfers FOR VALUES %s', 'ledger_transfers' || name, bounds);
  END LOOP;
END
$$;

INSERT INTO calls (account_id, id, key_id, price_micros, reserved_micros, created_at, expires_at, finished_at, begun_at,
                   holder, state, shared, rail, service, outcome, identity, payment_key, fingerprint)
SELECT account_id, id, key_id, price_micros, reserved_micros, created_at, expires_at, finished_at, begun_at,
       holder, state, shared, rail, service, outcome, identity, payment_key, fingerprint
FROM calls_before ORDER BY created_at;
INSERT INTO call_answers (account_id, id, expires_at, status, headers, body)
SELECT account_id, id, expires_at, status, headers, body FROM call_answers_before;
INSERT INTO ledger_transfers (account_id, id, debit_account, credit_account, amount_micros, created_at, phase, code, note,
                              reserved_micros)
SELECT account_id, id, debit_account, credit_account, amount_micros, created_at, phase, code, note, reserved_micros
FROM ledger_transfers_before ORDER BY created_at;

DROP TABLE calls_before, call_answers_before, ledger_transfers_before;
ALTER INDEX calls_new_pkey RENAME TO calls_pkey;
ALTER INDEX call_answers_new_pkey RENAME TO call_answers_pkey;
ALTER INDEX ledger_transfers_new_pkey RENAME TO ledger_transfers_pkey;

-- Open calls are found by time: no index names `state`, so that ending a call is an update in place.
CREATE INDEX calls_time ON calls USING brin (created_at) WITH (pages_per_range = 16);
CREATE INDEX calls_begun ON calls (begun_at) WHERE begun_at IS NOT NULL;
CREATE INDEX call_answers_expiry ON call_answers (expires_at);
CREATE INDEX ledger_transfers_time ON ledger_transfers USING brin (created_at);
CREATE INDEX ledger_transfers_other_account ON ledger_transfers (account_id, created_at) WHERE code <> 'call';
CREATE INDEX ledger_transfers_other_time ON ledger_transfers (created_at) WHERE code <> 'call';

-- Triggers went with the tables that they were on. The start brings them again.
DELETE FROM sql_triggers
WHERE name IN ('call_share_set_aside', 'call_share_taken_back', 'sold_key_came_back', 'webhook_hears_of_refund',
               'trial_credit_came_back');
