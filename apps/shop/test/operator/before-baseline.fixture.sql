SET check_function_bodies = false;
CREATE FUNCTION account_event_is_sent() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO webhook_deliveries (id, webhook_id, event_id, type, body, created_at, wanted_at, next_at)
  SELECT gen_random_uuid(), w.id, NEW.id, NEW.type,
         jsonb_build_object(
           'type', NEW.type,
           'timestamp', to_char(NEW.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
           'eventId', NEW.id, 'data', NEW.data)::text,
         NEW.created_at, NEW.created_at, NEW.created_at
  FROM webhooks w
  WHERE w.account_id = NEW.account_id AND (NEW.webhook_id IS NULL OR NEW.webhook_id = w.id)
    AND w.disabled_at IS NULL AND NEW.type = ANY (w.events)
    AND EXISTS (SELECT 1 FROM api_keys k WHERE k.account_id = w.account_id AND k.status <> 'revoked')
    AND (SELECT count(*) FROM (
          SELECT 1 FROM webhook_deliveries d WHERE d.webhook_id = w.id AND d.next_at IS NOT NULL LIMIT 1000
        ) waiting) < 1000
    AND (SELECT count(*) FROM (
          SELECT 1 FROM webhook_deliveries d
          WHERE d.webhook_id = w.id AND d.created_at > NEW.created_at - interval '1 day' LIMIT 2000
        ) of_the_day) < CASE WHEN NEW.about_money THEN 2000 ELSE 1500 END
  -- Its owner may be deleting it: the commit of money waits for nobody's webhook. What is held is left alone.
  FOR KEY SHARE OF w SKIP LOCKED;
  RETURN NULL;
END
$$;
CREATE FUNCTION auto_recharge_falls_due() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM 1 FROM auto_recharges WHERE account_id = NEW.id AND state = 0 FOR NO KEY UPDATE SKIP LOCKED;
  IF FOUND THEN
    UPDATE auto_recharges SET state = 1 WHERE account_id = NEW.id AND state = 0;
  ELSIF EXISTS (SELECT 1 FROM auto_recharges WHERE account_id = NEW.id AND state = 0) THEN
    INSERT INTO auto_recharge_notices (account_id) VALUES (NEW.id);
  END IF;
  RETURN NULL;
END
$$;
CREATE FUNCTION call_share_set_aside() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
  amount bigint;
BEGIN
  IF NEW.reserved_micros IS NOT NULL THEN
    UPDATE call_shares s
    SET amount_micros = greatest(1, div(s.amount_micros::numeric * NEW.price_micros, NEW.reserved_micros))
    WHERE s.bucket = NEW.bucket AND s.account_id = NEW.account_id AND s.call_id = NEW.id AND s.state = 0;
  END IF;
  UPDATE call_shares s SET state = 1, due_micros = s.amount_micros, set_aside_at = NEW.finished_at
  WHERE s.bucket = NEW.bucket AND s.account_id = NEW.account_id AND s.call_id = NEW.id AND s.state = 0
  RETURNING s.amount_micros INTO amount;
  IF amount IS NULL THEN RETURN NULL; END IF;
  INSERT INTO ledger_transfers
    (bucket, account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at, note)
  SELECT NEW.bucket, 13, NEW.id, 1, t.credit_account, 13, amount, 'share', NEW.finished_at, 'share of call ' || NEW.id
  FROM ledger_transfers t
  WHERE t.bucket = NEW.bucket AND t.account_id = NEW.account_id AND t.id = NEW.id AND t.resolves = false;
  RETURN NULL;
END
$$;
CREATE FUNCTION call_share_taken_back() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
DECLARE
  call uuid;
  amount bigint;
BEGIN
  IF NEW.code = 'operator_refund' THEN
    SELECT a.call_id INTO call FROM operator_acts a
    WHERE a.account_id = NEW.account_id AND a.transfer_id = NEW.id AND a.call_id IS NOT NULL;
  ELSE
    call := substring(NEW.note FROM '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$')::uuid;
  END IF;
  IF NEW.code IN ('call_refund', 'operator_refund') THEN
    UPDATE trial_credits SET given_back_micros = given_back_micros + NEW.amount_micros
    WHERE account_id = NEW.account_id;
  END IF;
  UPDATE call_shares s SET state = 2, due_micros = s.due_micros - (s.amount_micros - s.reversed_micros)
  FROM calls c
  WHERE s.bucket = NEW.bucket AND s.account_id = NEW.account_id AND s.call_id = call AND s.state = 1
    AND c.bucket = NEW.bucket AND c.account_id = s.account_id AND c.id = s.call_id AND c.price_micros <= NEW.amount_micros
  RETURNING s.amount_micros - s.reversed_micros INTO amount;
  IF coalesce(amount, 0) = 0 THEN RETURN NULL; END IF;
  INSERT INTO ledger_transfers
    (bucket, account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at, note)
  SELECT NEW.bucket, 13, md5('share of ' || call)::uuid, 1, 13, t.debit_account, amount, 'share_back', NEW.created_at,
         'share of call ' || call
  FROM ledger_transfers t
  WHERE t.bucket = NEW.bucket AND t.account_id = 13 AND t.id = call AND t.resolves = false;
  RETURN NULL;
END
$_$;
CREATE FUNCTION call_shares_restored() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
  given bigint;
BEGIN
  WITH back AS (
    SELECT account_id, call_id, reversed_micros FROM call_shares
    WHERE reversed_by = NEW.id AND state = 1 FOR UPDATE
  ), restored AS (
    UPDATE call_shares s SET reversed_by = NULL, reversed_micros = 0, due_micros = s.due_micros + b.reversed_micros
    FROM back b WHERE s.account_id = b.account_id AND s.call_id = b.call_id
    RETURNING b.reversed_micros
  )
  SELECT sum(reversed_micros)::bigint INTO given FROM restored;
  IF given IS NULL THEN RETURN NULL; END IF;
  INSERT INTO ledger_transfers
    (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at, note)
  VALUES (13, md5('shares restored by ' || NEW.id || ' ' || NEW.version)::uuid, 1, 1, 13, given, 'share_restored',
          clock_timestamp(), 'shares of order ' || NEW.id);
  RETURN NULL;
END
$$;
CREATE FUNCTION call_shares_reversed() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
DECLARE
  paid card_orders%ROWTYPE;
  taken bigint;
BEGIN
  SELECT * INTO paid FROM card_orders
  WHERE id = substring(NEW.note FROM '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$')::uuid;
  IF paid.account_id IS NULL OR paid.paid_at IS NULL THEN RETURN NULL; END IF;
  WITH spenders AS (
    SELECT x.account_id, sum(x.micros - coalesce((
             SELECT sum(o.amount_micros) FROM credit_origins o
             WHERE o.payer_account = x.account_id AND o.payer_lot = x.lot AND NOT o.ended), 0)) AS most
    FROM (
      SELECT paid.account_id AS account_id, paid.id AS lot, paid.credit_micros AS micros
      UNION ALL
      SELECT o.account_id, o.lot, o.amount_micros FROM credit_origins o
      WHERE o.order_id = paid.id AND o.account_id IS NOT NULL AND NOT o.ended
    ) x GROUP BY x.account_id
  ), calls_of_each AS (
    SELECT s.account_id, s.call_id, s.set_aside_at, s.due_micros, c.price_micros,
           p.most - sum(c.price_micros) OVER (PARTITION BY s.account_id ORDER BY s.set_aside_at DESC, s.call_id)
             + c.price_micros AS most
    FROM spenders p
    JOIN call_shares s ON s.account_id = p.account_id
    JOIN calls c ON c.account_id = s.account_id AND c.id = s.call_id
    WHERE s.state = 1 AND s.due_micros > 0 AND s.reversed_by IS NULL AND s.set_aside_at >= paid.paid_at
  ), held AS (
    SELECT account_id, call_id, due_micros, price_micros, least(price_micros, most) AS paid_micros,
           sum(least(price_micros, most)) OVER (ORDER BY set_aside_at DESC, call_id) - least(price_micros, most) AS newer_micros
    FROM calls_of_each WHERE most > 0
  ), parts AS (
    SELECT account_id, call_id,
           (due_micros * least(paid_micros, NEW.amount_micros - newer_micros) / price_micros)::bigint AS micros
    FROM held WHERE newer_micros < NEW.amount_micros
  ), reversed AS (
    UPDATE call_shares s SET reversed_by = paid.id, reversed_micros = p.micros, due_micros = s.due_micros - p.micros
    FROM parts p
    WHERE s.account_id = p.account_id AND s.call_id = p.call_id AND p.micros > 0
      AND s.state = 1 AND s.reversed_by IS NULL AND s.due_micros >= p.micros
    RETURNING p.micros
  )
  SELECT sum(micros)::bigint INTO taken FROM reversed;
  IF taken IS NULL THEN RETURN NULL; END IF;
  INSERT INTO ledger_transfers
    (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at, note)
  VALUES (13, md5('shares reversed by ' || NEW.id)::uuid, 1, 13, 1, taken, 'share_reversed', NEW.created_at,
          'shares of order ' || paid.id);
  RETURN NULL;
END
$_$;
CREATE FUNCTION operator_acts_chained() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_WHEN = 'AFTER' THEN
    UPDATE operator_acts_head SET number = NEW.number, digest = NEW.digest;
    RETURN NULL;
  END IF;
  SELECT h.number + 1, h.digest INTO STRICT NEW.number, NEW.digest FROM operator_acts_head h FOR UPDATE;
  -- Every column, as JSON says it. The books have the same text.
  NEW.digest := sha256(NEW.digest || convert_to(
    jsonb_build_array(NEW.number, NEW.id, to_char(NEW.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), NEW.actor, NEW.act,
      NEW.account_id, NEW.key_id, NEW.order_id, NEW.call_id, NEW.amount_micros, NEW.reason, NEW.transfer_id,
      encode(NEW.idempotency_digest, 'hex'), encode(NEW.request_digest, 'hex'))::text, 'UTF8'));
  RETURN NEW;
END
$$;
CREATE FUNCTION operator_acts_only_grow() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  RAISE EXCEPTION 'acts of operators are only ever added';
END
$$;
CREATE FUNCTION operator_trail_chained() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_WHEN = 'AFTER' THEN
    UPDATE operator_trail_head SET number = NEW.number, digest = NEW.digest;
    RETURN NULL;
  END IF;
  SELECT h.number + 1, h.digest INTO STRICT NEW.number, NEW.digest FROM operator_trail_head h FOR UPDATE;
  -- Every column, as JSON says it. The books and `audit-chain.ts` have the same text.
  NEW.digest := sha256(NEW.digest || convert_to(
    jsonb_build_array(NEW.number, to_char(NEW.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), NEW.kind, NEW.actor,
      NEW.issuer, NEW.subject, NEW.email, NEW.role, NEW.address, NEW.about)::text, 'UTF8'));
  RETURN NEW;
END
$$;
CREATE FUNCTION operator_trail_only_grows() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  RAISE EXCEPTION 'the trail of operators is only ever added to';
END
$$;
CREATE FUNCTION sold_key_came_back() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  UPDATE sold_keys
  SET refunded_at = NEW.created_at, closed_at = CASE WHEN granted_at IS NULL THEN closed_at END
  WHERE refund_id = NEW.id AND taken_back_micros IS NULL;
  RETURN NULL;
END
$$;
CREATE FUNCTION stock_versions_only_grow() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  RAISE EXCEPTION 'versions of what is sold are only ever added';
END
$$;
CREATE FUNCTION trial_credit_came_back() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  UPDATE trial_credits SET due = true WHERE account_id = NEW.account_id AND ended = 'expired' AND NOT due;
  RETURN NULL;
END
$$;
CREATE FUNCTION webhook_hears_of_card() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
  told text;
  details jsonb := jsonb_build_object('orderId', NEW.id);
  back CONSTANT bigint := NEW.reversed_micros - OLD.reversed_micros;
BEGIN
  -- An order that was over may turn out to be paid.
  IF NEW.kind = 'recharge' AND OLD.state <> 1 AND NEW.state = 1 THEN
    told := 'recharge.succeeded';
    details := details || jsonb_build_object('amountUsd', to_char(NEW.amount_micros / 1000000.0, 'FM999999999990.000000'));
  ELSIF NEW.kind = 'recharge' AND OLD.state = 0 AND NEW.state = 2 THEN
    told := 'recharge.failed';
    details := details || jsonb_build_object(
      'amountUsd', to_char(NEW.amount_micros / 1000000.0, 'FM999999999990.000000'),
      'reason', coalesce(NEW.decline_code, NEW.failure));
  ELSIF NEW.dispute IS NOT NULL AND NEW.dispute IS DISTINCT FROM OLD.dispute THEN
    told := 'dispute.changed';
    details := details || jsonb_build_object(
      'status', NEW.dispute, 'disputedUsd', to_char(NEW.disputed_micros / 1000000.0, 'FM999999999990.000000'));
  ELSIF back > 0 AND NEW.disputed_micros = OLD.disputed_micros THEN
    told := 'refund.made';
    details := details || jsonb_build_object(
      'of', 'card_payment', 'amountUsd', to_char(back / 1000000.0, 'FM999999999990.000000'));
  ELSE
    RETURN NULL;
  END IF;

  INSERT INTO account_events (account_id, type, data, about_money, created_at)
  VALUES (NEW.account_id, told, details, true, clock_timestamp());
  RETURN NULL;
END
$$;
CREATE FUNCTION webhook_hears_of_refund() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO account_events (account_id, type, data, about_money, created_at)
  VALUES (
    NEW.account_id, 'refund.made',
    jsonb_build_object(
      'of', 'call', 'callId', substring(NEW.note FROM 'call ([0-9a-f-]{36})'),
      'amountUsd', to_char(NEW.amount_micros / 1000000.0, 'FM999999999990.000000')),
    true, clock_timestamp());
  RETURN NULL;
END
$$;
CREATE FUNCTION week_is_sealed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
  given CONSTANT record := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
BEGIN
  IF TG_TABLE_NAME LIKE 'ledger_transfers%' THEN
    IF given.code <> 'call' THEN RETURN given; END IF;
  ELSIF TG_OP = 'UPDATE' AND to_jsonb(NEW) = to_jsonb(OLD) || '{"identity": null, "fingerprint": null}' THEN
    RETURN NEW;
  END IF;
  IF TG_ARGV[0] IS NULL THEN
    IF NOT EXISTS (SELECT 1 FROM call_archives a WHERE given.id >= a.from_id AND given.id < a.to_id) THEN RETURN given; END IF;
  END IF;
  RAISE EXCEPTION 'call % is of a week that is archived', given.id USING ERRCODE = '23514', CONSTRAINT = 'week_is_sealed';
END
$$;
CREATE TABLE a2a_tasks (
  id text NOT NULL,
  account_id bigint,
  context_id text NOT NULL,
  message_key bytea,
  service text,
  input text,
  state text NOT NULL,
  paid_by text,
  paid_with bytea,
  working_until timestamp with time zone,
  call_account_id bigint,
  call_id uuid,
  told text,
  updated_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  worker uuid,
  CONSTRAINT a2a_tasks_check CHECK (((call_id IS NULL) = (call_account_id IS NULL))),
  CONSTRAINT a2a_tasks_check1 CHECK (((state <> 'completed'::text) OR (call_id IS NOT NULL))),
  CONSTRAINT a2a_tasks_context_id_check CHECK (((length(context_id) >= 1) AND (length(context_id) <= 128))),
  CONSTRAINT a2a_tasks_id_check CHECK (((length(id) >= 1) AND (length(id) <= 64))),
  CONSTRAINT a2a_tasks_input_check CHECK ((length(input) <= 20000)),
  CONSTRAINT a2a_tasks_paid_by_check CHECK ((paid_by = ANY (ARRAY['key'::text, 'x402'::text]))),
  CONSTRAINT a2a_tasks_state_check CHECK ((state = ANY (ARRAY['input-required'::text, 'working'::text, 'charging'::text, 'completed'::text, 'failed'::text, 'canceled'::text]))),
  CONSTRAINT a2a_tasks_told_check CHECK ((length(told) <= 20000))
);
CREATE TABLE account_debts (
  account_id bigint NOT NULL,
  owed_micros bigint NOT NULL,
  changes integer DEFAULT 0 NOT NULL,
  since timestamp with time zone NOT NULL,
  CONSTRAINT account_debts_owed_micros_check CHECK ((owed_micros >= 0))
);
CREATE TABLE account_events (
  id uuid DEFAULT gen_random_uuid() NOT NULL,
  account_id bigint NOT NULL,
  webhook_id uuid,
  type text NOT NULL,
  data jsonb NOT NULL,
  about_money boolean NOT NULL,
  created_at timestamp with time zone NOT NULL
);
CREATE TABLE account_freezes (
  account_id bigint NOT NULL,
  cause text NOT NULL,
  note text,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT account_freezes_cause_check CHECK ((cause = ANY (ARRAY['debt'::text, 'operator'::text, 'reversal'::text])))
);
CREATE TABLE account_sales_days (
  account_id bigint NOT NULL,
  day date NOT NULL,
  service text NOT NULL,
  rail text NOT NULL,
  answered bigint DEFAULT 0 NOT NULL,
  answered_micros bigint DEFAULT 0 NOT NULL,
  released bigint DEFAULT 0 NOT NULL,
  released_micros bigint DEFAULT 0 NOT NULL,
  refunded bigint DEFAULT 0 NOT NULL,
  refunded_micros bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE agent_id_claims (
  kind text NOT NULL,
  owner text NOT NULL,
  agent_key text NOT NULL,
  call_id text NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT agent_id_claims_kind_check CHECK ((kind = ANY (ARRAY['wallet'::text, 'identity'::text])))
);
CREATE TABLE agent_identities (
  owner text NOT NULL,
  agent_id text NOT NULL,
  agent_uri text NOT NULL,
  holder text,
  transaction_key text NOT NULL,
  claimed_by text NOT NULL,
  claimed_at timestamp with time zone,
  token_id numeric(78,0),
  register_transaction text,
  transfer_transaction text,
  completed_at timestamp with time zone,
  agent_key text,
  CONSTRAINT agent_identities_check CHECK (((completed_at IS NULL) OR ((token_id IS NOT NULL) AND ((holder IS NULL) = (transfer_transaction IS NULL)))))
);
CREATE TABLE api_keys (
  id bigint NOT NULL,
  account_id bigint NOT NULL,
  lookup bigint NOT NULL,
  digest bytea NOT NULL,
  prefix text NOT NULL,
  kind text NOT NULL,
  label text,
  status text DEFAULT 'active'::text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone,
  trial_closed boolean DEFAULT false NOT NULL,
  cap_per_call_micros bigint,
  cap_per_day_micros bigint,
  cap_fixed_until timestamp with time zone,
  cap_afterwards_micros bigint,
  rotated_at timestamp with time zone,
  bucket smallint DEFAULT 0 NOT NULL,
  CONSTRAINT api_keys_cap_afterwards_micros_check CHECK ((cap_afterwards_micros > 0)),
  CONSTRAINT api_keys_cap_per_call_micros_check CHECK ((cap_per_call_micros > 0)),
  CONSTRAINT api_keys_cap_per_day_micros_check CHECK ((cap_per_day_micros > 0)),
  CONSTRAINT api_keys_digest_check CHECK ((length(digest) = 32)),
  CONSTRAINT api_keys_kind_check CHECK ((kind = ANY (ARRAY['trial'::text, 'paid'::text, 'grant'::text]))),
  CONSTRAINT api_keys_status_check CHECK ((status = ANY (ARRAY['active'::text, 'revoked'::text, 'frozen'::text])))
);
ALTER TABLE api_keys ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME api_keys_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1
);
CREATE TABLE auto_recharge_notices (
  account_id bigint NOT NULL
);
CREATE TABLE auto_recharges (
  account_id bigint NOT NULL,
  state smallint NOT NULL,
  threshold_micros bigint NOT NULL,
  top_up_micros bigint NOT NULL,
  customer_id text NOT NULL,
  payment_method_id text,
  card_label text NOT NULL,
  email text,
  order_id uuid,
  soft_failures smallint DEFAULT 0 NOT NULL,
  next_at timestamp with time zone,
  waiting_for text,
  off_reason text,
  last_charged_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL,
  changed_at timestamp with time zone NOT NULL,
  card_fingerprint text,
  agreed_threshold_micros bigint,
  agreed_top_up_micros bigint,
  former_addresses jsonb DEFAULT '[]'::jsonb NOT NULL,
  CONSTRAINT auto_recharges_check CHECK ((top_up_micros >= threshold_micros)),
  CONSTRAINT auto_recharges_check1 CHECK (((state = 3) = (off_reason IS NOT NULL))),
  CONSTRAINT auto_recharges_check2 CHECK (((state = 3) OR (payment_method_id IS NOT NULL))),
  CONSTRAINT auto_recharges_check3 CHECK (
CASE state
  WHEN 2 THEN (order_id IS NOT NULL)
  WHEN 3 THEN true
  ELSE (order_id IS NULL)
END),
  CONSTRAINT auto_recharges_check4 CHECK (((state = 1) OR ((next_at IS NULL) AND (waiting_for IS NULL)))),
  CONSTRAINT auto_recharges_check5 CHECK (((next_at IS NULL) = (waiting_for IS NULL))),
  CONSTRAINT auto_recharges_state_check CHECK (((state >= 0) AND (state <= 3))),
  CONSTRAINT auto_recharges_threshold_micros_check CHECK ((threshold_micros > 0)),
  CONSTRAINT auto_recharges_waiting_for_check CHECK ((waiting_for = ANY (ARRAY['decline'::text, 'spacing'::text, 'daily_limit'::text, 'thaw'::text])))
)
WITH (fillfactor='80');
CREATE TABLE books_proof (
  one boolean DEFAULT true NOT NULL,
  leased_until timestamp with time zone NOT NULL,
  number bigint DEFAULT 0 NOT NULL,
  started_at timestamp with time zone,
  CONSTRAINT books_proof_one_check CHECK (one)
);
CREATE TABLE books_verdicts (
  id bigint NOT NULL,
  started_at timestamp with time zone NOT NULL,
  ended_at timestamp with time zone NOT NULL,
  balanced boolean NOT NULL,
  books jsonb NOT NULL
);
ALTER TABLE books_verdicts ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME books_verdicts_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1
);
CREATE TABLE call_answers (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  status smallint NOT NULL,
  headers jsonb NOT NULL,
  body text NOT NULL,
  bucket smallint DEFAULT 0 NOT NULL
)
PARTITION BY RANGE (id);
CREATE TABLE call_answers_rest (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  status smallint NOT NULL,
  headers jsonb NOT NULL,
  body text NOT NULL,
  bucket smallint DEFAULT 0 NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000');
CREATE TABLE call_answers_w20261130 (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  status smallint NOT NULL,
  headers jsonb NOT NULL,
  body text NOT NULL,
  bucket smallint DEFAULT 0 NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000');
CREATE TABLE call_archives (
  week text NOT NULL,
  from_id uuid NOT NULL,
  to_id uuid NOT NULL,
  sealed_at timestamp with time zone NOT NULL,
  written_at timestamp with time zone,
  dropped_at timestamp with time zone,
  holder uuid,
  lease_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
  calls_file text,
  calls_sha256 bytea,
  transfers_file text,
  transfers_sha256 bytea,
  captured bigint,
  released bigint,
  calls_micros numeric,
  transfers bigint,
  transfers_micros numeric,
  CONSTRAINT call_archives_calls_sha256_check CHECK ((length(calls_sha256) = 32)),
  CONSTRAINT call_archives_check CHECK (((written_at IS NULL) OR (num_nonnulls(calls_file, calls_sha256, transfers_file, transfers_sha256, captured, released, calls_micros, transfers, transfers_micros) = 9))),
  CONSTRAINT call_archives_check1 CHECK (((dropped_at IS NULL) OR (written_at IS NOT NULL))),
  CONSTRAINT call_archives_transfers_sha256_check CHECK ((length(transfers_sha256) = 32)),
  CONSTRAINT call_archives_week_check CHECK ((week ~ '^w[0-9]{8}$'::text))
);
CREATE TABLE call_identities (
  account_id bigint NOT NULL,
  kind smallint NOT NULL,
  identity text NOT NULL,
  call_id uuid NOT NULL,
  bucket smallint DEFAULT 0 NOT NULL,
  CONSTRAINT call_identities_kind_check CHECK ((kind = ANY (ARRAY[0, 1])))
);
CREATE TABLE call_quotas (
  root_buyer text NOT NULL,
  service text NOT NULL,
  minute timestamp with time zone NOT NULL,
  minute_calls integer NOT NULL,
  day date NOT NULL,
  day_calls integer NOT NULL
);
CREATE TABLE call_shares (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  beneficiary bigint NOT NULL,
  amount_micros bigint NOT NULL,
  state smallint DEFAULT 0 NOT NULL,
  due_micros bigint DEFAULT 0 NOT NULL,
  set_aside_at timestamp with time zone,
  held_until timestamp with time zone,
  reversed_by uuid,
  reversed_micros bigint DEFAULT 0 NOT NULL,
  bucket smallint DEFAULT 0 NOT NULL,
  CONSTRAINT call_shares_amount_micros_check CHECK ((amount_micros > 0)),
  CONSTRAINT call_shares_check CHECK ((beneficiary <> account_id)),
  CONSTRAINT call_shares_check1 CHECK (((reversed_micros >= 0) AND (reversed_micros <= amount_micros))),
  CONSTRAINT call_shares_reversed_by_check CHECK (((reversed_by IS NULL) = (reversed_micros = 0))),
  CONSTRAINT call_shares_state_check CHECK (((state >= 0) AND (state <= 2)))
);
CREATE TABLE call_spending (
  account_id bigint NOT NULL,
  day date NOT NULL,
  service text NOT NULL,
  calls bigint NOT NULL,
  spent_micros bigint NOT NULL,
  bucket smallint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE calls (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  key_id bigint,
  price_micros bigint NOT NULL,
  reserved_micros bigint,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  finished_at timestamp with time zone,
  begun_at timestamp with time zone DEFAULT now(),
  holder bigint,
  state smallint DEFAULT 0 NOT NULL,
  shared boolean DEFAULT false NOT NULL,
  rail text NOT NULL,
  service text NOT NULL,
  outcome text,
  identity text,
  payment_key text,
  fingerprint bytea,
  bucket smallint DEFAULT 0 NOT NULL,
  CONSTRAINT calls_take_no_more_than_reserved CHECK (((reserved_micros IS NULL) OR ((price_micros > 0) AND (price_micros <= reserved_micros))))
)
PARTITION BY RANGE (id);
CREATE TABLE calls_carried (
  week text NOT NULL,
  account_id bigint NOT NULL,
  key_id bigint NOT NULL,
  service text NOT NULL,
  day date NOT NULL,
  calls bigint NOT NULL,
  charged bigint NOT NULL,
  spent_micros bigint NOT NULL
);
CREATE TABLE calls_left_open (
  account_id bigint NOT NULL,
  id uuid NOT NULL
);
CREATE TABLE calls_open_since (
  one boolean DEFAULT true NOT NULL,
  begun_at timestamp with time zone NOT NULL,
  CONSTRAINT calls_open_since_one_check CHECK (one)
);
CREATE TABLE calls_rest (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  key_id bigint,
  price_micros bigint NOT NULL,
  reserved_micros bigint,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  finished_at timestamp with time zone,
  begun_at timestamp with time zone DEFAULT now(),
  holder bigint,
  state smallint DEFAULT 0 NOT NULL,
  shared boolean DEFAULT false NOT NULL,
  rail text NOT NULL,
  service text NOT NULL,
  outcome text,
  identity text,
  payment_key text,
  fingerprint bytea,
  bucket smallint DEFAULT 0 NOT NULL,
  CONSTRAINT calls_take_no_more_than_reserved CHECK (((reserved_micros IS NULL) OR ((price_micros > 0) AND (price_micros <= reserved_micros))))
)
WITH (fillfactor='50');
CREATE TABLE calls_w20261130 (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  key_id bigint,
  price_micros bigint NOT NULL,
  reserved_micros bigint,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  finished_at timestamp with time zone,
  begun_at timestamp with time zone DEFAULT now(),
  holder bigint,
  state smallint DEFAULT 0 NOT NULL,
  shared boolean DEFAULT false NOT NULL,
  rail text NOT NULL,
  service text NOT NULL,
  outcome text,
  identity text,
  payment_key text,
  fingerprint bytea,
  bucket smallint DEFAULT 0 NOT NULL,
  CONSTRAINT calls_take_no_more_than_reserved CHECK (((reserved_micros IS NULL) OR ((price_micros > 0) AND (price_micros <= reserved_micros))))
)
WITH (fillfactor='50');
CREATE TABLE card_event_cursor (
  one boolean DEFAULT true NOT NULL,
  read_until timestamp with time zone NOT NULL,
  CONSTRAINT card_event_cursor_one_check CHECK (one)
);
CREATE TABLE card_events (
  id text NOT NULL,
  type text NOT NULL,
  order_id uuid,
  session_id text,
  payment_intent_id text,
  created_at timestamp with time zone NOT NULL,
  received_at timestamp with time zone NOT NULL,
  next_at timestamp with time zone,
  attempts integer DEFAULT 0 NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000');
CREATE TABLE card_orders (
  id uuid NOT NULL,
  kind text NOT NULL,
  state smallint DEFAULT 0 NOT NULL,
  version integer DEFAULT 0 NOT NULL,
  amount_micros bigint NOT NULL,
  credit_micros bigint NOT NULL,
  account_id bigint,
  key_id bigint,
  key_lookup bigint,
  key_digest bytea,
  key_prefix text,
  token_digest bytea,
  key_name text,
  email text,
  request_digest bytea,
  recharge_threshold_micros bigint,
  recharge_top_up_micros bigint,
  session_id text,
  session_url text,
  payment_intent_id text,
  customer_id text,
  payment_method_id text,
  card_fingerprint text,
  address_digest bytea,
  failure text,
  decline_code text,
  reversed_micros bigint DEFAULT 0 NOT NULL,
  bonus_taken_micros bigint DEFAULT 0 NOT NULL,
  disputed_micros bigint DEFAULT 0 NOT NULL,
  lost_micros bigint DEFAULT 0 NOT NULL,
  dispute text,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  next_at timestamp with time zone,
  looks integer DEFAULT 0 NOT NULL,
  looked_at timestamp with time zone,
  paid_at timestamp with time zone,
  delivered_at timestamp with time zone,
  key_secret_id text,
  site_digest bytea,
  page_seal bytea,
  delivered_to text,
  dispute_due_at timestamp with time zone,
  charge_asked_at timestamp with time zone,
  forget_card_since timestamp with time zone,
  erased_at timestamp with time zone,
  card_brand text,
  card_last4 text,
  CONSTRAINT card_orders_amount_micros_check CHECK ((amount_micros > 0)),
  CONSTRAINT card_orders_check CHECK ((credit_micros >= amount_micros)),
  CONSTRAINT card_orders_check1 CHECK (((reversed_micros >= 0) AND (reversed_micros <= amount_micros))),
  CONSTRAINT card_orders_check2 CHECK (((disputed_micros >= 0) AND (disputed_micros <= reversed_micros))),
  CONSTRAINT card_orders_delivered_to_check CHECK ((delivered_to = ANY (ARRAY['agent'::text, 'page'::text]))),
  CONSTRAINT card_orders_kind_check CHECK ((kind = ANY (ARRAY['checkout'::text, 'purchase'::text, 'recharge'::text]))),
  CONSTRAINT card_orders_lost_micros_check CHECK ((lost_micros >= 0)),
  CONSTRAINT card_orders_state_check CHECK (((state >= 0) AND (state <= 2)))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000');
CREATE TABLE compacted_weeks (
  week text NOT NULL,
  lease_until timestamp with time zone NOT NULL,
  compacted_at timestamp with time zone,
  CONSTRAINT compacted_weeks_week_check CHECK ((week ~ '^w[0-9]{8}$'::text))
);
CREATE TABLE credit_origins (
  call_id uuid NOT NULL,
  nth smallint NOT NULL,
  lot uuid NOT NULL,
  payer_account bigint NOT NULL,
  payer_lot uuid,
  order_id uuid,
  trial boolean NOT NULL,
  amount_micros bigint NOT NULL,
  account_id bigint,
  taken_micros bigint DEFAULT 0 NOT NULL,
  ended boolean DEFAULT false NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT credit_origins_amount_micros_check CHECK ((amount_micros > 0)),
  CONSTRAINT credit_origins_check CHECK (((taken_micros >= 0) AND (taken_micros <= amount_micros))),
  CONSTRAINT credit_origins_check1 CHECK ((NOT (trial AND (order_id IS NOT NULL))))
);
CREATE TABLE data_lists (
  name text NOT NULL,
  published_at timestamp with time zone,
  confirmed_at timestamp with time zone,
  sha256 bytea,
  parties integer,
  content bytea,
  source jsonb,
  next_at timestamp with time zone NOT NULL,
  failures integer DEFAULT 0 NOT NULL,
  failure text,
  CONSTRAINT data_lists_check CHECK ((num_nulls(published_at, confirmed_at, sha256, parties, content, source) = ANY (ARRAY[0, 6]))),
  CONSTRAINT data_lists_parties_check CHECK ((parties > 0)),
  CONSTRAINT data_lists_sha256_check CHECK ((length(sha256) = 32))
);
CREATE TABLE database_lineage (
  one boolean DEFAULT true NOT NULL,
  cluster text NOT NULL,
  timeline integer NOT NULL,
  CONSTRAINT database_lineage_one_check CHECK (one)
);
CREATE TABLE device_exports (
  id text NOT NULL,
  media_type text NOT NULL,
  file_name text NOT NULL,
  content bytea NOT NULL,
  expires_at timestamp with time zone NOT NULL
);
CREATE TABLE device_fleets (
  name text NOT NULL,
  owner bigint NOT NULL
);
CREATE TABLE device_offers (
  digest bytea NOT NULL,
  device bigint NOT NULL,
  expires_at timestamp with time zone NOT NULL
);
CREATE TABLE device_readers (
  device bigint NOT NULL,
  reader text NOT NULL,
  offered_at timestamp with time zone NOT NULL
);
CREATE TABLE device_readings (
  device bigint NOT NULL,
  at timestamp with time zone NOT NULL,
  key text NOT NULL,
  seq bigint NOT NULL,
  received_at timestamp with time zone NOT NULL,
  measured jsonb NOT NULL,
  lat double precision,
  lon double precision
)
PARTITION BY RANGE (at);
CREATE TABLE device_refusals (
  device bigint NOT NULL,
  nth bigint NOT NULL,
  digest bytea NOT NULL,
  report bytea NOT NULL,
  code text NOT NULL,
  reason text NOT NULL,
  count bigint DEFAULT 1 NOT NULL,
  first_at timestamp with time zone NOT NULL,
  last_at timestamp with time zone NOT NULL,
  sensor text,
  due_at timestamp with time zone
);
CREATE TABLE devices (
  no bigint NOT NULL,
  id text NOT NULL,
  owner bigint NOT NULL,
  name text,
  fleet text,
  public boolean NOT NULL,
  simulated boolean NOT NULL,
  sensors jsonb NOT NULL,
  lat double precision,
  lon double precision,
  public_key bytea NOT NULL,
  created_at timestamp with time zone NOT NULL,
  revoked_at timestamp with time zone,
  seq bigint DEFAULT 0 NOT NULL,
  last_at timestamp with time zone,
  refused_at timestamp with time zone,
  refusal text,
  refusals bigint DEFAULT 0 NOT NULL,
  CONSTRAINT devices_check CHECK (((lat IS NULL) = (lon IS NULL)))
)
WITH (fillfactor='50');
ALTER TABLE devices ALTER COLUMN no ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME devices_no_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1
);
CREATE TABLE ending_transactions (
  network text NOT NULL,
  hash text NOT NULL,
  id text NOT NULL,
  raw text NOT NULL,
  ends_at bigint NOT NULL,
  opens_for text,
  state smallint DEFAULT 0 NOT NULL,
  created_at timestamp with time zone NOT NULL,
  sent_at timestamp with time zone NOT NULL,
  paid_by text,
  only_one boolean DEFAULT false NOT NULL
);
CREATE TABLE erasures (
  id uuid NOT NULL,
  secret_id text NOT NULL,
  digest bytea NOT NULL,
  began_at timestamp with time zone NOT NULL,
  ended_at timestamp with time zone,
  accounts bigint[] NOT NULL,
  customers text[] NOT NULL,
  CONSTRAINT erasures_check CHECK (((ended_at IS NULL) OR (cardinality(customers) = 0))),
  CONSTRAINT erasures_digest_check CHECK ((length(digest) = 32))
);
CREATE TABLE followed_calls (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  key_id bigint NOT NULL,
  fingerprint bytea NOT NULL,
  delivery uuid NOT NULL,
  holder bigint,
  client text,
  request_id text,
  state smallint DEFAULT 0 NOT NULL,
  expires_at timestamp with time zone NOT NULL
);
CREATE TABLE free_calls (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  root_buyer text NOT NULL,
  service text NOT NULL,
  day date NOT NULL
);
CREATE TABLE free_hang_ups (
  buyer text NOT NULL,
  day date NOT NULL,
  slot smallint NOT NULL,
  call_id uuid NOT NULL,
  held_until timestamp with time zone
);
CREATE TABLE gas_spent (
  network text NOT NULL,
  address text NOT NULL,
  day date NOT NULL,
  transactions integer NOT NULL,
  priced integer NOT NULL,
  spent numeric NOT NULL
);
CREATE TABLE gate_calls (
  run_id uuid NOT NULL,
  gate text NOT NULL,
  state smallint DEFAULT 0 NOT NULL,
  open_until timestamp with time zone NOT NULL,
  said jsonb,
  body bytea,
  outcome jsonb,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT gate_calls_check CHECK (((state = 3) = (outcome IS NOT NULL))),
  CONSTRAINT gate_calls_state_check CHECK (((state >= 0) AND (state <= 3)))
);
CREATE TABLE gate_messages (
  gate text NOT NULL,
  nonce text NOT NULL,
  expires_at timestamp with time zone NOT NULL
);
CREATE TABLE key_addresses (
  key_id bigint NOT NULL,
  digest bytea NOT NULL,
  seen_at timestamp with time zone NOT NULL
);
CREATE TABLE key_links (
  id uuid NOT NULL,
  order_id uuid NOT NULL,
  token_digest bytea NOT NULL,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  used_at timestamp with time zone,
  key_id bigint,
  CONSTRAINT key_links_check CHECK (((used_at IS NULL) = (key_id IS NULL)))
);
CREATE TABLE law_pages (
  url text NOT NULL,
  rules_as_of date NOT NULL,
  first_sha256 bytea,
  first_at timestamp with time zone,
  confirmed_at timestamp with time zone,
  unsteady_since timestamp with time zone,
  changed_at timestamp with time zone,
  read_at timestamp with time zone,
  failures integer DEFAULT 0 NOT NULL,
  failing_since timestamp with time zone,
  status smallint,
  failure text,
  next_at timestamp with time zone NOT NULL,
  CONSTRAINT law_pages_check CHECK ((num_nulls(first_sha256, first_at) = ANY (ARRAY[0, 2]))),
  CONSTRAINT law_pages_check1 CHECK (((confirmed_at IS NULL) OR (first_at IS NOT NULL))),
  CONSTRAINT law_pages_check2 CHECK (((changed_at IS NULL) OR (confirmed_at IS NOT NULL))),
  CONSTRAINT law_pages_check3 CHECK ((((failures = 0) = (failing_since IS NULL)) AND ((failures = 0) = (failure IS NULL)))),
  CONSTRAINT law_pages_first_sha256_check CHECK ((length(first_sha256) = 32))
);
CREATE SEQUENCE ledger_account_ids
  START WITH 1000
  INCREMENT BY 1
  NO MINVALUE
  NO MAXVALUE
  CACHE 1;
CREATE TABLE ledger_accounts (
  id bigint NOT NULL,
  house boolean NOT NULL,
  name text,
  debits_pending bigint DEFAULT 0 NOT NULL,
  debits_posted bigint DEFAULT 0 NOT NULL,
  credits_pending bigint DEFAULT 0 NOT NULL,
  credits_posted bigint DEFAULT 0 NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  low_below_micros bigint,
  bucket smallint DEFAULT 0 NOT NULL,
  CONSTRAINT house_numbers CHECK ((house = (id < 1000))),
  CONSTRAINT ledger_accounts_bucket CHECK ((((bucket >= 0) AND (bucket <= 4095)) AND ((NOT house) OR (bucket = 0)))),
  CONSTRAINT ledger_accounts_check CHECK (((debits_pending >= 0) AND (debits_posted >= 0) AND (credits_pending >= 0) AND (credits_posted >= 0))),
  CONSTRAINT ledger_accounts_low_below_micros_check CHECK ((low_below_micros > 0)),
  CONSTRAINT never_overdrawn CHECK ((house OR ((debits_pending + debits_posted) <= credits_posted)))
)
WITH (fillfactor='50');
CREATE TABLE ledger_carried (
  week text NOT NULL,
  day date NOT NULL,
  account_id bigint NOT NULL,
  transfers bigint NOT NULL,
  debits_pending bigint NOT NULL,
  debits_posted bigint NOT NULL,
  credits_pending bigint NOT NULL,
  credits_posted bigint NOT NULL
);
CREATE TABLE ledger_closed_balances (
  account_id bigint NOT NULL,
  debits_pending bigint NOT NULL,
  debits_posted bigint NOT NULL,
  credits_pending bigint NOT NULL,
  credits_posted bigint NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE ledger_day_moves (
  day date NOT NULL,
  account_id bigint NOT NULL,
  debits_pending bigint NOT NULL,
  debits_posted bigint NOT NULL,
  credits_pending bigint NOT NULL,
  credits_posted bigint NOT NULL
);
CREATE TABLE ledger_days (
  day date NOT NULL,
  transfers bigint NOT NULL,
  transfers_digest bytea NOT NULL,
  moves_digest bytea NOT NULL,
  digest bytea NOT NULL,
  closed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  archived_at timestamp with time zone,
  released_apart boolean DEFAULT false NOT NULL,
  released_gone_at timestamp with time zone,
  CONSTRAINT ledger_days_digest_check CHECK ((length(digest) = 32)),
  CONSTRAINT ledger_days_moves_digest_check CHECK ((length(moves_digest) = 32)),
  CONSTRAINT ledger_days_transfers_digest_check CHECK ((length(transfers_digest) = 32))
);
CREATE TABLE ledger_days_head (
  one boolean DEFAULT true NOT NULL,
  open_day date,
  digest bytea DEFAULT decode(repeat('00'::text, 32), 'hex'::text) NOT NULL,
  marked_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
  marked_xid xid8 DEFAULT '0'::xid8 NOT NULL,
  CONSTRAINT ledger_days_head_digest_check CHECK ((length(digest) = 32)),
  CONSTRAINT ledger_days_head_one_check CHECK (one)
);
CREATE TABLE ledger_transfers (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  debit_account bigint NOT NULL,
  credit_account bigint NOT NULL,
  amount_micros bigint NOT NULL,
  created_at timestamp with time zone NOT NULL,
  phase smallint NOT NULL,
  resolves boolean GENERATED ALWAYS AS ((phase >= 3)) STORED NOT NULL,
  code text NOT NULL,
  note text,
  reserved_micros bigint,
  bucket smallint DEFAULT 0 NOT NULL,
  CONSTRAINT ledger_posts_no_more_than_reserved CHECK (((reserved_micros IS NULL) OR ((phase = 3) AND (amount_micros <= reserved_micros)))),
  CONSTRAINT ledger_transfers_amount_micros_check1 CHECK ((amount_micros > 0)),
  CONSTRAINT ledger_transfers_check2 CHECK ((debit_account <> credit_account)),
  CONSTRAINT ledger_transfers_check3 CHECK (((account_id = debit_account) OR (account_id = credit_account))),
  CONSTRAINT ledger_transfers_phase_check1 CHECK (((phase >= 1) AND (phase <= 4)))
)
PARTITION BY RANGE (id);
CREATE TABLE ledger_transfers_caused (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  debit_account bigint NOT NULL,
  credit_account bigint NOT NULL,
  amount_micros bigint NOT NULL,
  created_at timestamp with time zone NOT NULL,
  phase smallint NOT NULL,
  resolves boolean GENERATED ALWAYS AS ((phase >= 3)) STORED NOT NULL,
  code text NOT NULL,
  note text,
  reserved_micros bigint,
  bucket smallint DEFAULT 0 NOT NULL,
  CONSTRAINT ledger_posts_no_more_than_reserved CHECK (((reserved_micros IS NULL) OR ((phase = 3) AND (amount_micros <= reserved_micros)))),
  CONSTRAINT ledger_transfers_amount_micros_check1 CHECK ((amount_micros > 0)),
  CONSTRAINT ledger_transfers_check2 CHECK ((debit_account <> credit_account)),
  CONSTRAINT ledger_transfers_check3 CHECK (((account_id = debit_account) OR (account_id = credit_account))),
  CONSTRAINT ledger_transfers_phase_check1 CHECK (((phase >= 1) AND (phase <= 4)))
);
CREATE TABLE ledger_transfers_rest (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  debit_account bigint NOT NULL,
  credit_account bigint NOT NULL,
  amount_micros bigint NOT NULL,
  created_at timestamp with time zone NOT NULL,
  phase smallint NOT NULL,
  resolves boolean GENERATED ALWAYS AS ((phase >= 3)) STORED NOT NULL,
  code text NOT NULL,
  note text,
  reserved_micros bigint,
  bucket smallint DEFAULT 0 NOT NULL,
  CONSTRAINT ledger_posts_no_more_than_reserved CHECK (((reserved_micros IS NULL) OR ((phase = 3) AND (amount_micros <= reserved_micros)))),
  CONSTRAINT ledger_transfers_amount_micros_check1 CHECK ((amount_micros > 0)),
  CONSTRAINT ledger_transfers_check2 CHECK ((debit_account <> credit_account)),
  CONSTRAINT ledger_transfers_check3 CHECK (((account_id = debit_account) OR (account_id = credit_account))),
  CONSTRAINT ledger_transfers_phase_check1 CHECK (((phase >= 1) AND (phase <= 4)))
);
CREATE TABLE ledger_transfers_w20261130 (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  debit_account bigint NOT NULL,
  credit_account bigint NOT NULL,
  amount_micros bigint NOT NULL,
  created_at timestamp with time zone NOT NULL,
  phase smallint NOT NULL,
  resolves boolean GENERATED ALWAYS AS ((phase >= 3)) STORED NOT NULL,
  code text NOT NULL,
  note text,
  reserved_micros bigint,
  bucket smallint DEFAULT 0 NOT NULL,
  CONSTRAINT ledger_posts_no_more_than_reserved CHECK (((reserved_micros IS NULL) OR ((phase = 3) AND (amount_micros <= reserved_micros)))),
  CONSTRAINT ledger_transfers_amount_micros_check1 CHECK ((amount_micros > 0)),
  CONSTRAINT ledger_transfers_check2 CHECK ((debit_account <> credit_account)),
  CONSTRAINT ledger_transfers_check3 CHECK (((account_id = debit_account) OR (account_id = credit_account))),
  CONSTRAINT ledger_transfers_phase_check1 CHECK (((phase >= 1) AND (phase <= 4)))
)
WITH (fillfactor='100');
CREATE TABLE lifted_bounds (
  root_buyer text NOT NULL,
  lifted_at timestamp with time zone NOT NULL
);
CREATE TABLE lost_gas (
  network text NOT NULL,
  payer text NOT NULL,
  factory text,
  failures integer NOT NULL,
  wei numeric NOT NULL,
  since timestamp with time zone NOT NULL
);
CREATE TABLE mails (
  id uuid NOT NULL,
  recipient text NOT NULL,
  subject text NOT NULL,
  body text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  next_at timestamp with time zone,
  attempts smallint DEFAULT 0 NOT NULL,
  sent_at timestamp with time zone,
  given_up_at timestamp with time zone,
  secret boolean DEFAULT false NOT NULL,
  CONSTRAINT mails_check CHECK ((num_nonnulls(next_at, sent_at, given_up_at) = 1))
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000');
CREATE TABLE managed_wallet_events (
  id bigint NOT NULL,
  wallet_id uuid NOT NULL,
  at timestamp with time zone NOT NULL,
  action text NOT NULL,
  actor text NOT NULL,
  request_id text,
  CONSTRAINT managed_wallet_events_action_check CHECK ((action = ANY (ARRAY['created'::text, 'extended'::text, 'secret_renewed'::text, 'exported'::text, 'deleted'::text, 'refused'::text])))
);
ALTER TABLE managed_wallet_events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME managed_wallet_events_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1
);
CREATE TABLE managed_wallet_keys (
  wallet_id uuid NOT NULL,
  kind text NOT NULL,
  address text NOT NULL,
  kek_id text,
  wrapped_data_key bytea,
  ciphertext bytea,
  CONSTRAINT managed_wallet_keys_check CHECK ((num_nulls(kek_id, wrapped_data_key, ciphertext) = ANY (ARRAY[0, 3]))),
  CONSTRAINT managed_wallet_keys_kind_check CHECK ((kind = ANY (ARRAY['evm'::text, 'solana'::text])))
);
CREATE TABLE managed_wallets (
  id uuid NOT NULL,
  owner text NOT NULL,
  agent_id text NOT NULL,
  agent_name text,
  purpose text,
  networks text[] NOT NULL,
  secret_digest bytea NOT NULL,
  created_by_call text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  deleted_at timestamp with time zone,
  agent_key text,
  CONSTRAINT managed_wallets_secret_digest_check CHECK ((length(secret_digest) = 32))
);
CREATE TABLE operator_access (
  one boolean DEFAULT true NOT NULL,
  tokens_off_at timestamp with time zone,
  tokens_off_by text,
  CONSTRAINT operator_access_one_check CHECK (one)
);
CREATE TABLE operator_act_outcomes (
  act_id uuid NOT NULL,
  at timestamp with time zone NOT NULL,
  status text NOT NULL,
  refund_id text
);
CREATE TABLE operator_acts (
  number bigint NOT NULL,
  id uuid NOT NULL,
  at timestamp with time zone NOT NULL,
  actor text NOT NULL,
  act text NOT NULL,
  account_id bigint NOT NULL,
  key_id bigint,
  order_id uuid,
  call_id uuid,
  amount_micros bigint,
  reason text NOT NULL,
  transfer_id uuid,
  idempotency_digest bytea NOT NULL,
  request_digest bytea NOT NULL,
  digest bytea NOT NULL,
  CONSTRAINT operator_acts_act_check CHECK ((act = ANY (ARRAY['freeze'::text, 'unfreeze'::text, 'grant'::text, 'refund_order'::text, 'refund_call'::text, 'mail_key'::text, 'refund_payment'::text, 'lift_bounds'::text, 'set_service'::text]))),
  CONSTRAINT operator_acts_amount CHECK (((act = ANY (ARRAY['freeze'::text, 'unfreeze'::text, 'mail_key'::text, 'lift_bounds'::text, 'set_service'::text])) = (amount_micros IS NULL))),
  CONSTRAINT operator_acts_amount_micros_check CHECK ((amount_micros > 0)),
  CONSTRAINT operator_acts_call_named CHECK (((act = ANY (ARRAY['refund_call'::text, 'refund_payment'::text])) = (call_id IS NOT NULL))),
  CONSTRAINT operator_acts_digest_check CHECK ((length(digest) = 32)),
  CONSTRAINT operator_acts_order CHECK (((act = ANY (ARRAY['refund_order'::text, 'mail_key'::text])) = (order_id IS NOT NULL))),
  CONSTRAINT operator_acts_transfer CHECK (((act = ANY (ARRAY['grant'::text, 'refund_call'::text, 'refund_payment'::text])) = (transfer_id IS NOT NULL)))
);
CREATE TABLE operator_acts_head (
  one boolean DEFAULT true NOT NULL,
  number bigint NOT NULL,
  digest bytea NOT NULL,
  CONSTRAINT operator_acts_head_digest_check CHECK ((length(digest) = 32)),
  CONSTRAINT operator_acts_head_one_check CHECK (one)
);
ALTER TABLE operator_acts ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME operator_acts_number_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1
);
CREATE TABLE operator_people (
  id bigint NOT NULL,
  issuer text NOT NULL,
  subject text NOT NULL,
  actor text NOT NULL,
  email text,
  claims jsonb NOT NULL,
  role_set text,
  first_at timestamp with time zone NOT NULL,
  last_at timestamp with time zone NOT NULL,
  CONSTRAINT operator_people_role_set_check CHECK ((role_set = ANY (ARRAY['none'::text, 'read'::text, 'support'::text, 'money'::text, 'admin'::text])))
);
ALTER TABLE operator_people ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME operator_people_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1
);
CREATE TABLE operator_proposals (
  id uuid NOT NULL,
  at timestamp with time zone NOT NULL,
  actor text NOT NULL,
  act text NOT NULL,
  account_id bigint NOT NULL,
  order_id uuid,
  call_id uuid,
  amount_micros bigint NOT NULL,
  reason text NOT NULL,
  idempotency_digest bytea NOT NULL,
  request_digest bytea NOT NULL,
  ended text,
  ended_by text,
  ended_at timestamp with time zone,
  CONSTRAINT operator_proposals_act_check CHECK ((act = ANY (ARRAY['refund_order'::text, 'refund_call'::text, 'refund_payment'::text, 'grant'::text]))),
  CONSTRAINT operator_proposals_amount_micros_check CHECK ((amount_micros > 0)),
  CONSTRAINT operator_proposals_check CHECK (((ended_by IS DISTINCT FROM actor) OR (ended = 'declined'::text))),
  CONSTRAINT operator_proposals_check1 CHECK ((num_nonnulls(ended, ended_by, ended_at) = ANY (ARRAY[0, 3]))),
  CONSTRAINT operator_proposals_check2 CHECK ((num_nonnulls(order_id, call_id) =
CASE act
  WHEN 'grant'::text THEN 0
  ELSE 1
END)),
  CONSTRAINT operator_proposals_ended_check CHECK ((ended = ANY (ARRAY['approved'::text, 'declined'::text])))
);
CREATE TABLE operator_sessions (
  id uuid NOT NULL,
  digest bytea NOT NULL,
  state_digest bytea NOT NULL,
  person_id bigint NOT NULL,
  address text NOT NULL,
  agent text,
  began_at timestamp with time zone NOT NULL,
  seen_at timestamp with time zone NOT NULL,
  ends_at timestamp with time zone NOT NULL,
  ended_at timestamp with time zone,
  ended_why text,
  CONSTRAINT operator_sessions_check CHECK (((ended_at IS NULL) = (ended_why IS NULL))),
  CONSTRAINT operator_sessions_digest_check CHECK ((length(digest) = 32)),
  CONSTRAINT operator_sessions_ended_why_check CHECK ((ended_why = ANY (ARRAY['signed_out'::text, 'by_admin'::text, 'role_taken'::text, 'too_many'::text]))),
  CONSTRAINT operator_sessions_state_digest_check CHECK ((length(state_digest) = 32))
);
CREATE TABLE operator_trail (
  number bigint NOT NULL,
  at timestamp with time zone NOT NULL,
  kind text NOT NULL,
  actor text NOT NULL,
  issuer text,
  subject text,
  email text,
  role text,
  address text,
  about text NOT NULL,
  digest bytea NOT NULL,
  CONSTRAINT operator_trail_digest_check CHECK ((length(digest) = 32))
);
CREATE TABLE operator_trail_head (
  one boolean DEFAULT true NOT NULL,
  number bigint NOT NULL,
  digest bytea NOT NULL,
  CONSTRAINT operator_trail_head_digest_check CHECK ((length(digest) = 32)),
  CONSTRAINT operator_trail_head_one_check CHECK (one)
);
CREATE TABLE paid_requests (
  request_id text NOT NULL,
  at timestamp with time zone NOT NULL,
  service text NOT NULL,
  rail text NOT NULL,
  outcome text NOT NULL,
  status smallint NOT NULL,
  reason text,
  call_id uuid
);
CREATE TABLE payments_in_flight (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  network text NOT NULL,
  asset text NOT NULL,
  payer text NOT NULL,
  amount_units bigint NOT NULL,
  costs_money boolean NOT NULL,
  moved_at timestamp with time zone,
  bucket smallint DEFAULT 0 NOT NULL,
  CONSTRAINT payments_in_flight_amount_units_check CHECK ((amount_units >= 0))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000');
CREATE TABLE purchase_brake (
  one boolean DEFAULT true NOT NULL,
  paused_until timestamp with time zone NOT NULL,
  CONSTRAINT purchase_brake_one_check CHECK (one)
);
CREATE TABLE recovered_sales (
  source text NOT NULL,
  reference text NOT NULL,
  recovery_id bigint NOT NULL,
  amount_micros bigint NOT NULL,
  became text NOT NULL,
  call_id uuid,
  at timestamp with time zone NOT NULL,
  CONSTRAINT recovered_sales_amount_micros_check CHECK ((amount_micros > 0)),
  CONSTRAINT recovered_sales_became_check CHECK ((became = ANY (ARRAY['granted'::text, 'recorded'::text, 'owed'::text, 'refunded'::text])))
);
CREATE TABLE recoveries (
  id bigint NOT NULL,
  found_at timestamp with time zone NOT NULL,
  reason text NOT NULL,
  known_until timestamp with time zone NOT NULL,
  opened_at timestamp with time zone,
  opened_by text,
  CONSTRAINT recoveries_check CHECK (((opened_at IS NULL) = (opened_by IS NULL))),
  CONSTRAINT recoveries_reason_check CHECK ((reason = ANY (ARRAY['restored'::text, 'cluster'::text, 'timeline'::text, 'rewound'::text])))
);
ALTER TABLE recoveries ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME recoveries_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1
);
CREATE TABLE refunds (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  network text NOT NULL,
  asset text NOT NULL,
  payee text NOT NULL,
  amount_micros bigint NOT NULL,
  reason text NOT NULL,
  state smallint DEFAULT 0 NOT NULL,
  transaction text,
  created_at timestamp with time zone NOT NULL,
  next_at timestamp with time zone NOT NULL,
  attempts integer DEFAULT 0 NOT NULL,
  paid_at timestamp with time zone,
  CONSTRAINT refunds_amount_micros_check CHECK ((amount_micros > 0))
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000');
CREATE TABLE relayer_transactions (
  network text NOT NULL,
  address text NOT NULL,
  nonce bigint NOT NULL,
  id text NOT NULL,
  to_address text NOT NULL,
  data text NOT NULL,
  gas_limit bigint NOT NULL,
  max_fee_wei numeric NOT NULL,
  raw text NOT NULL,
  hashes text[] NOT NULL,
  filler text,
  state smallint DEFAULT 0 NOT NULL,
  block bigint,
  created_at timestamp with time zone NOT NULL,
  sent_at timestamp with time zone NOT NULL,
  max_cost_wei numeric
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000');
CREATE TABLE relayers (
  network text NOT NULL,
  address text NOT NULL,
  next_nonce bigint NOT NULL
);
CREATE TABLE replicas (
  id bigint NOT NULL,
  beats bigint DEFAULT 0 NOT NULL,
  started_at timestamp with time zone NOT NULL,
  seen_at timestamp with time zone NOT NULL,
  ended_at timestamp with time zone,
  clock_ahead_ms bigint
);
ALTER TABLE replicas ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME replicas_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1
);
CREATE TABLE reversal_walks (
  order_id uuid NOT NULL,
  account_id bigint NOT NULL,
  take_micros bigint DEFAULT 0 NOT NULL,
  give_micros bigint DEFAULT 0 NOT NULL,
  "position" bigint,
  again boolean DEFAULT false NOT NULL,
  rounds integer DEFAULT 0 NOT NULL,
  steps integer DEFAULT 0 NOT NULL,
  next_at timestamp with time zone NOT NULL,
  newest bigint DEFAULT 0 NOT NULL,
  CONSTRAINT reversal_walks_give_micros_check CHECK ((give_micros >= 0)),
  CONSTRAINT reversal_walks_take_micros_check CHECK ((take_micros >= 0))
);
CREATE TABLE root_buyers (
  account_id bigint NOT NULL,
  root_buyer text NOT NULL
);
CREATE TABLE sales_days (
  day date NOT NULL,
  service text NOT NULL,
  rail text NOT NULL,
  answered bigint DEFAULT 0 NOT NULL,
  answered_micros bigint DEFAULT 0 NOT NULL,
  released bigint DEFAULT 0 NOT NULL,
  released_micros bigint DEFAULT 0 NOT NULL,
  refunded bigint DEFAULT 0 NOT NULL,
  refunded_micros bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE sales_folded (
  one boolean DEFAULT true NOT NULL,
  calls_to timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
  transfers_to timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
  complete_to timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
  marked_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
  marked_xid xid8 DEFAULT '0'::xid8 NOT NULL,
  CONSTRAINT sales_folded_one_check CHECK (one)
);
CREATE TABLE sales_open (
  account_id bigint NOT NULL,
  id uuid NOT NULL
);
CREATE TABLE schema_migrations (
  name text NOT NULL,
  checksum text NOT NULL,
  applied_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE secret_versions (
  id text NOT NULL,
  last_current_at timestamp with time zone NOT NULL
);
CREATE TABLE service_figures (
  service text NOT NULL,
  answered integer NOT NULL,
  failed integer NOT NULL,
  median_ms integer,
  measured_at timestamp with time zone NOT NULL
);
CREATE TABLE settlements (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  rail text NOT NULL,
  network text NOT NULL,
  asset text NOT NULL,
  payer text NOT NULL,
  pay_to text NOT NULL,
  amount_units bigint NOT NULL,
  evidence jsonb NOT NULL,
  answered boolean NOT NULL,
  state smallint DEFAULT 0 NOT NULL,
  dead_after timestamp with time zone NOT NULL,
  lease_until timestamp with time zone NOT NULL,
  next_at timestamp with time zone NOT NULL,
  attempts integer DEFAULT 0 NOT NULL,
  missed integer DEFAULT 0 NOT NULL,
  reason text,
  transaction text,
  block bigint,
  created_at timestamp with time zone NOT NULL,
  settled_at timestamp with time zone,
  final_at timestamp with time zone,
  holder bigint,
  bucket smallint DEFAULT 0 NOT NULL
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000');
CREATE TABLE share_payouts (
  beneficiary bigint NOT NULL,
  nth integer NOT NULL,
  transfer_id uuid NOT NULL,
  amount_micros bigint NOT NULL,
  paid_at timestamp with time zone NOT NULL,
  CONSTRAINT share_payouts_amount_micros_check CHECK ((amount_micros > 0))
);
CREATE TABLE sign_in_nonces (
  nonce text NOT NULL,
  address text NOT NULL,
  expires_at timestamp with time zone NOT NULL
);
CREATE TABLE solana_yield_claims (
  signature text NOT NULL,
  wallet text NOT NULL,
  claimed_usdc bigint,
  state text NOT NULL,
  reason text,
  claimed_at timestamp with time zone NOT NULL,
  next_at timestamp with time zone NOT NULL,
  CONSTRAINT solana_yield_claims_claimed_usdc_check CHECK ((claimed_usdc > 0)),
  CONSTRAINT solana_yield_claims_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'confirmed'::text, 'refused'::text, 'given_up'::text])))
);
CREATE TABLE solana_yield_fees (
  signature text NOT NULL,
  wallet text NOT NULL,
  usdc bigint NOT NULL,
  slot bigint NOT NULL,
  at timestamp with time zone NOT NULL,
  state text NOT NULL,
  reason text,
  deposit_signature text,
  refund_signature text,
  next_at timestamp with time zone NOT NULL,
  looked_before text,
  unused_at timestamp with time zone,
  looked_from bigint,
  CONSTRAINT solana_yield_fees_check CHECK (((state = 'used'::text) = (deposit_signature IS NOT NULL))),
  CONSTRAINT solana_yield_fees_check1 CHECK (((state = 'refunded'::text) = (refund_signature IS NOT NULL))),
  CONSTRAINT solana_yield_fees_slot_check CHECK ((slot >= 0)),
  CONSTRAINT solana_yield_fees_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'used'::text, 'unused'::text, 'refunded'::text]))),
  CONSTRAINT solana_yield_fees_usdc_check CHECK ((usdc > 0))
);
CREATE TABLE solana_yield_intents (
  idempotency_key uuid NOT NULL,
  wallet text NOT NULL,
  usdc bigint NOT NULL,
  id uuid NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT solana_yield_intents_usdc_check CHECK ((usdc > 0))
);
CREATE TABLE solana_yield_moves (
  signature text NOT NULL,
  wallet text NOT NULL,
  kind text NOT NULL,
  slot bigint NOT NULL,
  at timestamp with time zone,
  collateral bigint NOT NULL,
  usdc bigint NOT NULL,
  held_before bigint NOT NULL,
  held_after bigint NOT NULL,
  fee bigint NOT NULL,
  final boolean NOT NULL,
  found_at timestamp with time zone NOT NULL,
  CONSTRAINT solana_yield_moves_collateral_check CHECK ((collateral > 0)),
  CONSTRAINT solana_yield_moves_fee_check CHECK ((fee >= 0)),
  CONSTRAINT solana_yield_moves_held_after_check CHECK ((held_after >= 0)),
  CONSTRAINT solana_yield_moves_held_before_check CHECK ((held_before >= 0)),
  CONSTRAINT solana_yield_moves_kind_check CHECK ((kind = ANY (ARRAY['deposit'::text, 'withdrawal'::text]))),
  CONSTRAINT solana_yield_moves_slot_check CHECK ((slot >= 0)),
  CONSTRAINT solana_yield_moves_usdc_check CHECK ((usdc > 0))
);
CREATE TABLE solana_yield_unread (
  signature text NOT NULL,
  slot bigint NOT NULL,
  listed_at timestamp with time zone NOT NULL,
  next_at timestamp with time zone NOT NULL,
  tries integer DEFAULT 0 NOT NULL
);
CREATE TABLE solana_yield_walks (
  account text NOT NULL,
  read_to text,
  head text,
  below text,
  step bigint NOT NULL,
  CONSTRAINT solana_yield_walks_check CHECK (((head IS NULL) = (below IS NULL)))
);
CREATE TABLE sold_keys (
  call_id uuid NOT NULL,
  payer_account bigint NOT NULL,
  refund_id uuid NOT NULL,
  label text,
  amount_micros bigint NOT NULL,
  sealed_key text,
  key_lookup bigint NOT NULL,
  key_digest bytea NOT NULL,
  key_prefix text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  account_id bigint,
  granted_at timestamp with time zone,
  taken_back_micros bigint,
  closed_at timestamp with time zone,
  refunded_at timestamp with time zone,
  key_bucket smallint DEFAULT 0 NOT NULL,
  CONSTRAINT closed_once_granted_or_refunded CHECK (((closed_at IS NULL) OR (granted_at IS NOT NULL) OR (refunded_at IS NOT NULL))),
  CONSTRAINT sealed_until_it_is_granted_or_closed CHECK (((sealed_key IS NOT NULL) = ((granted_at IS NULL) AND (closed_at IS NULL)))),
  CONSTRAINT sold_keys_amount_micros_check CHECK ((amount_micros > 0)),
  CONSTRAINT sold_keys_check CHECK (((taken_back_micros >= 0) AND (taken_back_micros <= amount_micros))),
  CONSTRAINT sold_keys_check1 CHECK (((granted_at IS NULL) = (account_id IS NULL))),
  CONSTRAINT sold_keys_key_digest_check CHECK ((length(key_digest) = 32)),
  CONSTRAINT taken_back_once_granted CHECK (((taken_back_micros IS NULL) OR (granted_at IS NOT NULL)))
);
CREATE TABLE source_budgets (
  process uuid NOT NULL,
  source text NOT NULL,
  missing double precision NOT NULL,
  at timestamp with time zone NOT NULL,
  CONSTRAINT source_budgets_missing_check CHECK ((missing > (0)::double precision))
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000');
CREATE TABLE source_costs (
  day date NOT NULL,
  source text NOT NULL,
  requests bigint NOT NULL,
  cost_micros bigint NOT NULL,
  CONSTRAINT source_costs_cost_micros_check CHECK ((cost_micros >= 0)),
  CONSTRAINT source_costs_requests_check CHECK ((requests > 0))
);
CREATE TABLE sql_functions (
  name text NOT NULL,
  wanted_at timestamp with time zone NOT NULL
);
CREATE TABLE sql_triggers (
  name text NOT NULL,
  text_number integer NOT NULL
);
CREATE TABLE status_looks (
  one boolean DEFAULT true NOT NULL,
  looked_at timestamp with time zone NOT NULL,
  CONSTRAINT status_looks_one_check CHECK (one)
);
CREATE TABLE status_spells (
  component text NOT NULL,
  began_at timestamp with time zone NOT NULL,
  seen_at timestamp with time zone NOT NULL,
  ended_at timestamp with time zone,
  CONSTRAINT status_spells_check CHECK ((seen_at >= began_at)),
  CONSTRAINT status_spells_check1 CHECK ((ended_at >= began_at)),
  CONSTRAINT status_spells_component_check CHECK (((length(component) >= 1) AND (length(component) <= 200)))
);
CREATE TABLE stock_replicas (
  replica bigint NOT NULL,
  host text NOT NULL,
  file_version bigint,
  rules_version bigint,
  refused_version bigint,
  reason text,
  noted_at timestamp with time zone NOT NULL
);
CREATE TABLE stock_versions (
  number bigint NOT NULL,
  kind text NOT NULL,
  content text NOT NULL,
  digest bytea NOT NULL,
  made_at timestamp with time zone NOT NULL,
  made_by text NOT NULL,
  act_id uuid,
  CONSTRAINT stock_versions_check CHECK ((digest = sha256(convert_to(content, 'UTF8'::name)))),
  CONSTRAINT stock_versions_check1 CHECK (((kind = 'rules'::text) = (act_id IS NOT NULL))),
  CONSTRAINT stock_versions_kind_check CHECK ((kind = ANY (ARRAY['file'::text, 'rules'::text]))),
  CONSTRAINT stock_versions_number_check CHECK ((number > 0))
);
CREATE TABLE topups (
  call_id uuid NOT NULL,
  account_id bigint,
  key_lookup bigint,
  key_digest bytea,
  key_prefix text,
  amount_micros bigint NOT NULL,
  created_at timestamp with time zone NOT NULL,
  granted_at timestamp with time zone,
  taken_back_micros bigint,
  closed_at timestamp with time zone,
  key_bucket smallint DEFAULT 0 NOT NULL,
  CONSTRAINT topups_amount_micros_check CHECK ((amount_micros > 0)),
  CONSTRAINT topups_check CHECK (((taken_back_micros >= 0) AND (taken_back_micros <= amount_micros))),
  CONSTRAINT topups_check1 CHECK ((num_nulls(key_lookup, key_digest, key_prefix) = ANY (ARRAY[0, 3]))),
  CONSTRAINT topups_check2 CHECK (((account_id IS NOT NULL) OR (key_digest IS NOT NULL))),
  CONSTRAINT topups_check3 CHECK (((granted_at IS NULL) OR (account_id IS NOT NULL))),
  CONSTRAINT topups_check4 CHECK (((granted_at IS NOT NULL) OR ((closed_at IS NULL) AND (taken_back_micros IS NULL)))),
  CONSTRAINT topups_key_digest_check CHECK ((length(key_digest) = 32))
);
CREATE TABLE transfer_days (
  day date NOT NULL,
  code text NOT NULL,
  transfers bigint DEFAULT 0 NOT NULL,
  moved_micros bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE trial_claims (
  claimant bytea NOT NULL,
  claimed_at timestamp with time zone NOT NULL,
  account_id bigint NOT NULL,
  secret_id text,
  site bytea
);
CREATE TABLE trial_credits (
  account_id bigint NOT NULL,
  granted_micros bigint NOT NULL,
  granted_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  bought_at timestamp with time zone,
  ended text,
  ended_at timestamp with time zone,
  due boolean DEFAULT true NOT NULL,
  expired_micros bigint DEFAULT 0 NOT NULL,
  rounds integer DEFAULT 0 NOT NULL,
  moved_from bigint,
  given_back_micros bigint DEFAULT 0 NOT NULL,
  CONSTRAINT trial_credits_check CHECK (((ended IS NULL) = (ended_at IS NULL))),
  CONSTRAINT trial_credits_check1 CHECK (((ended = 'expired'::text) OR (expired_micros = 0))),
  CONSTRAINT trial_credits_ended_check CHECK ((ended = ANY (ARRAY['kept'::text, 'expired'::text]))),
  CONSTRAINT trial_credits_expired_micros_check CHECK ((expired_micros >= 0)),
  CONSTRAINT trial_credits_granted_micros_check CHECK ((granted_micros > 0))
);
CREATE TABLE trial_days (
  day date NOT NULL,
  granted_micros bigint NOT NULL,
  trials integer NOT NULL,
  CONSTRAINT trial_days_granted_micros_check CHECK ((granted_micros >= 0)),
  CONSTRAINT trial_days_trials_check CHECK ((trials >= 0))
);
CREATE TABLE undelivered_calls (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  service text NOT NULL,
  price_micros bigint NOT NULL,
  revenue_account bigint NOT NULL,
  retrievable boolean NOT NULL,
  next_at timestamp with time zone NOT NULL,
  bucket smallint DEFAULT 0 NOT NULL
);
CREATE TABLE webhook_deliveries (
  id uuid NOT NULL,
  webhook_id uuid NOT NULL,
  type text NOT NULL,
  body text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  next_at timestamp with time zone,
  attempts smallint DEFAULT 0 NOT NULL,
  wanted_at timestamp with time zone NOT NULL,
  delivered_at timestamp with time zone,
  given_up_at timestamp with time zone,
  last_result text,
  event_id uuid,
  CONSTRAINT webhook_deliveries_check CHECK ((num_nonnulls(next_at, delivered_at, given_up_at) = 1))
);
CREATE TABLE webhooks (
  id uuid NOT NULL,
  account_id bigint NOT NULL,
  url text NOT NULL,
  events text[] NOT NULL,
  low_below_micros bigint,
  low_told boolean DEFAULT false NOT NULL,
  email text,
  sealed_secret text NOT NULL,
  sealed_secret_before text,
  before_until timestamp with time zone,
  created_at timestamp with time zone NOT NULL,
  not_before timestamp with time zone,
  failures integer DEFAULT 0 NOT NULL,
  failing_since timestamp with time zone,
  disabled_at timestamp with time zone,
  disabled_because text,
  hears_since timestamp with time zone,
  former_secrets jsonb DEFAULT '[]'::jsonb NOT NULL,
  CONSTRAINT webhooks_check CHECK (((disabled_at IS NULL) = (disabled_because IS NULL))),
  CONSTRAINT webhooks_disabled_because_check CHECK ((disabled_because = ANY (ARRAY['failing'::text, 'gone'::text, 'secret_lost'::text, 'owner'::text]))),
  CONSTRAINT webhooks_former_secrets_check CHECK (((jsonb_typeof(former_secrets) = 'array'::text) AND (jsonb_array_length(former_secrets) <= 5))),
  CONSTRAINT webhooks_low_below_micros_check CHECK ((low_below_micros > 0))
);
CREATE TABLE yield_index (
  vault text NOT NULL,
  next_block bigint NOT NULL,
  last_hash text,
  CONSTRAINT yield_index_next_block_check CHECK ((next_block >= 0))
);
CREATE TABLE yield_index_samples (
  vault text NOT NULL,
  at timestamp with time zone NOT NULL,
  block_number bigint NOT NULL,
  protocols jsonb NOT NULL
);
CREATE TABLE yield_keeper (
  vault text NOT NULL,
  looked_until timestamp with time zone NOT NULL,
  look bigint NOT NULL,
  reported_at timestamp with time zone,
  report jsonb
);
CREATE TABLE yield_keeper_moves (
  vault text NOT NULL,
  block_number bigint NOT NULL,
  log_index integer NOT NULL,
  at timestamp with time zone NOT NULL,
  transaction_hash text NOT NULL,
  from_protocol text NOT NULL,
  to_protocol text NOT NULL,
  assets numeric(78,0) NOT NULL,
  received numeric(78,0) NOT NULL
);
CREATE TABLE yield_keeper_reasons (
  vault text NOT NULL,
  allowed_at bigint NOT NULL,
  noted_at timestamp with time zone NOT NULL,
  from_protocol text NOT NULL,
  to_protocol text NOT NULL,
  assets numeric(78,0) NOT NULL,
  reason jsonb NOT NULL
);
CREATE TABLE yield_marks (
  vault text NOT NULL,
  block_number bigint NOT NULL,
  block_hash text NOT NULL
);
CREATE TABLE yield_moves (
  vault text NOT NULL,
  block_number bigint NOT NULL,
  log_index integer NOT NULL,
  kind text NOT NULL,
  at timestamp with time zone NOT NULL,
  from_wallet text,
  to_wallet text,
  shares numeric(78,0) NOT NULL,
  assets numeric(78,0),
  priced_assets numeric(78,0),
  priced_shares numeric(78,0),
  CONSTRAINT yield_moves_check CHECK ((num_nulls(assets, priced_assets, priced_shares) = ANY (ARRAY[0, 3]))),
  CONSTRAINT yield_moves_check1 CHECK ((num_nulls(from_wallet, to_wallet) <= 1)),
  CONSTRAINT yield_moves_kind_check CHECK ((kind = ANY (ARRAY['deposit'::text, 'withdraw'::text, 'in_kind'::text, 'transfer'::text, 'fee'::text]))),
  CONSTRAINT yield_moves_priced_shares_check CHECK ((priced_shares > (0)::numeric)),
  CONSTRAINT yield_moves_shares_check CHECK ((shares > (0)::numeric))
);
CREATE TABLE yield_samples (
  vault text NOT NULL,
  at timestamp with time zone NOT NULL,
  block_number bigint NOT NULL,
  total_assets numeric(78,0) NOT NULL,
  priced_assets numeric(78,0) NOT NULL,
  active text NOT NULL,
  protocols jsonb NOT NULL,
  idle numeric(78,0) NOT NULL
);
ALTER TABLE ONLY call_answers ATTACH PARTITION call_answers_rest DEFAULT;
ALTER TABLE ONLY call_answers ATTACH PARTITION call_answers_w20261130 FOR VALUES FROM ('01a229c0-5400-0000-0000-000000000000') TO ('01a24dcc-d800-0000-0000-000000000000');
ALTER TABLE ONLY calls ATTACH PARTITION calls_rest DEFAULT;
ALTER TABLE ONLY calls ATTACH PARTITION calls_w20261130 FOR VALUES FROM ('01a229c0-5400-0000-0000-000000000000') TO ('01a24dcc-d800-0000-0000-000000000000');
ALTER TABLE ONLY ledger_transfers ATTACH PARTITION ledger_transfers_caused FOR VALUES FROM ('10000000-0000-0000-0000-000000000000') TO (MAXVALUE);
ALTER TABLE ONLY ledger_transfers ATTACH PARTITION ledger_transfers_rest DEFAULT;
ALTER TABLE ONLY ledger_transfers ATTACH PARTITION ledger_transfers_w20261130 FOR VALUES FROM ('01a229c0-5400-0000-0000-000000000000') TO ('01a24dcc-d800-0000-0000-000000000000');
INSERT INTO api_keys OVERRIDING SYSTEM VALUE VALUES
  (1, 1000, 7848456544052410956, '\x6ceb51a4d7557a4cca3ce18c21a81eade3c94846c9ac6869e393be553cfd9887', 'fbx_live_e56', 'grant', 'test', 'active', '2026-11-30 01:58:10.15+00', NULL, false, NULL, NULL, NULL, NULL, NULL, 0),
  (2, 1001, 4246283291515287110, '\x3aedd427e671f6467f824a9f3e5ae1a543f30f51048c3adc64182b99d2cbad13', 'fbx_live_62c', 'paid', 'of the old', 'active', '2026-11-30 01:58:11.512+00', NULL, false, NULL, NULL, NULL, NULL, NULL, 0);
INSERT INTO books_proof VALUES
  (true, '-infinity', 1, '2026-11-30 01:58:15.486+00');
INSERT INTO call_answers_w20261130 VALUES
  (1000, '01a22a2c-897c-7b0b-a000-4649095bc23a', '2026-12-02 01:58:11.719+00', 200, '{"content-type": "application/json; charset=utf-8", "cache-control": "private, no-store"}', '{"success":true,"service":"Farebox","version":"0.0.0-test","echo":"pong","chains":[],"servicesAvailable":45,"documentation":"http://farebox.test/docs","timestamp":"2026-11-30T01:58:11.719Z","provenance":{"mode":"computed","method":"Answered by this server itself.","sources":[],"notes":[]}}', 0);
INSERT INTO call_identities VALUES
  (1000, 0, 'key:9dbd897f-55cf-4f0f-a2a8-7c10191b6161', '01a22a2c-897c-7b0b-a000-4649095bc23a', 0);
INSERT INTO call_spending VALUES
  (1000, '2026-11-30', 'instant-api-key', 1, 1000000, 0),
  (1000, '2026-11-30', 'ping', 2, 500000, 0);
INSERT INTO calls_open_since VALUES
  (true, '2026-11-30 01:57:16.237493+00');
INSERT INTO calls_w20261130 VALUES
  (1000, '01a22a2c-8523-7819-8000-4ab7e5bd870e', 1, 1000000, NULL, '2026-11-30 01:58:10.493+00', '2026-11-30 01:58:45.493+00', '2026-11-30 01:58:11.154+00', '2026-11-30 01:58:10.629068+00', 1, 1, false, 'credits', 'instant-api-key', 'answered', NULL, NULL, NULL, 0),
  (1000, '01a22a2c-897c-7b0b-a000-4649095bc23a', 1, 250000, NULL, '2026-11-30 01:58:11.58+00', '2026-11-30 01:58:46.58+00', '2026-11-30 01:58:11.719+00', '2026-11-30 01:58:11.610575+00', 1, 1, false, 'credits', 'ping', 'answered', 'key:9dbd897f-55cf-4f0f-a2a8-7c10191b6161', NULL, '\xd3994882852f4fd1b5615c49c07dad84975d72fdfbb2c53a389a965457c8d30c', 0),
  (1000, '01a22a2c-8a4a-7011-b000-ebcb833af655', 1, 250000, NULL, '2026-11-30 01:58:11.786+00', '2026-11-30 01:58:46.786+00', '2026-11-30 01:58:11.791+00', '2026-11-30 01:58:11.786678+00', 1, 1, false, 'credits', 'ping', 'answered', NULL, NULL, NULL, 0);
INSERT INTO credit_origins VALUES
  ('01a22a2c-8523-7819-8000-4ab7e5bd870e', 0, '6a58f443-85f7-8d71-bd75-55284f1a4425', 1000, '01a22a2c-8324-7baa-a88b-621de7b2cb78', NULL, false, 1000000, 1001, 0, false, '2026-11-30 01:58:11.045+00');
INSERT INTO ledger_accounts VALUES
  (1, true, 'revenue_credits', 0, 0, 0, 0, '2026-11-30 01:58:00.316001+00', NULL, 0),
  (2, true, 'trial_grants', 0, 0, 0, 0, '2026-11-30 01:58:00.316001+00', NULL, 0),
  (3, true, 'trial_expired', 0, 0, 0, 0, '2026-11-30 01:58:00.316001+00', NULL, 0),
  (4, true, 'operator_grants', 0, 0, 0, 0, '2026-11-30 01:58:00.316001+00', NULL, 0),
  (5, true, 'chain_clearing', 0, 0, 0, 0, '2026-11-30 01:58:00.378892+00', NULL, 0),
  (6, true, 'revenue_x402', 0, 0, 0, 0, '2026-11-30 01:58:00.378892+00', NULL, 0),
  (7, true, 'revenue_mpp', 0, 0, 0, 0, '2026-11-30 01:58:00.378892+00', NULL, 0),
  (8, true, 'settlement_losses', 0, 0, 0, 0, '2026-11-30 01:58:00.378892+00', NULL, 0),
  (9, true, 'card_clearing', 0, 0, 0, 0, '2026-11-30 01:58:00.427576+00', NULL, 0),
  (10, true, 'promotions', 0, 0, 0, 0, '2026-11-30 01:58:00.427576+00', NULL, 0),
  (11, true, 'receivables', 0, 0, 0, 0, '2026-11-30 01:58:00.427576+00', NULL, 0),
  (13, true, 'shares_owed', 0, 0, 0, 0, '2026-11-30 01:58:00.74162+00', NULL, 0),
  (1001, false, NULL, 0, 0, 0, 1000000, '2026-11-30 01:58:11.297492+00', NULL, 0),
  (1000, false, NULL, 0, 1500000, 0, 6000000, '2026-11-30 01:58:09.945072+00', NULL, 0);
INSERT INTO ledger_days_head VALUES
  (true, NULL, '\x0000000000000000000000000000000000000000000000000000000000000000', '2026-11-30 01:58:15.49814+00', '1726');
INSERT INTO ledger_transfers_caused VALUES
  (1001, 'dbe821a2-6ade-879d-b957-a7fa26f61dc1', 1, 1001, 1000000, '2026-11-30 01:58:11.392+00', 1, DEFAULT, 'sold_key', 'key of call 01a22a2c-8523-7819-8000-4ab7e5bd870e', NULL, 0);
INSERT INTO ledger_transfers_w20261130 VALUES
  (1000, '01a22a2c-8324-7baa-a88b-621de7b2cb78', 4, 1000, 5000000, '2026-11-30 01:58:09.968+00', 1, DEFAULT, 'operator_grant', 'test', NULL, 0),
  (1000, '01a22a2c-8523-7819-8000-4ab7e5bd870e', 1000, 1, 1000000, '2026-11-30 01:58:10.493+00', 2, DEFAULT, 'call', NULL, NULL, 0),
  (1000, '01a22a2c-8523-7819-8000-4ab7e5bd870e', 1000, 1, 1000000, '2026-11-30 01:58:11.154+00', 3, DEFAULT, 'call', NULL, NULL, 0),
  (1000, '01a22a2c-897c-7b0b-a000-4649095bc23a', 1000, 1, 250000, '2026-11-30 01:58:11.58+00', 2, DEFAULT, 'call', NULL, NULL, 0),
  (1000, '01a22a2c-897c-7b0b-a000-4649095bc23a', 1000, 1, 250000, '2026-11-30 01:58:11.719+00', 3, DEFAULT, 'call', NULL, NULL, 0),
  (1000, '01a22a2c-8a4a-7011-b000-ebcb833af655', 1000, 1, 250000, '2026-11-30 01:58:11.786+00', 2, DEFAULT, 'call', NULL, NULL, 0),
  (1000, '01a22a2c-8a4a-7011-b000-ebcb833af655', 1000, 1, 250000, '2026-11-30 01:58:11.791+00', 3, DEFAULT, 'call', NULL, NULL, 0),
  (1000, '01a22a2c-8ac4-74b1-903b-a815d84e8f68', 4, 1000, 1000000, '2026-11-30 01:58:11.978+00', 1, DEFAULT, 'operator_grant', 'desk: for the chain', NULL, 0);
INSERT INTO operator_access VALUES
  (true, NULL, NULL);
INSERT INTO operator_acts OVERRIDING SYSTEM VALUE VALUES
  (1, '01a22a2c-8ac4-74b1-903b-a815d84e8f68', '2026-11-30 01:58:11.94+00', 'desk', 'grant', 1000, NULL, NULL, NULL, 1000000, 'for the chain', '01a22a2c-8ac4-74b1-903b-a815d84e8f68', '\x46160df909b574dd8d53404cd9d0d87cc31662fd6785089fbe54dfbadf880e9e', '\x2f7b70841c681bc0a9cf4bb7a1e80105564d3cf3bbd4599b59b740915dcfd7ce', '\x1f8d9ab37a09ac27d518368ea29b547a88a4fc5e94b133a462fae6a58d842e89');
INSERT INTO operator_acts_head VALUES
  (true, 1, '\x1f8d9ab37a09ac27d518368ea29b547a88a4fc5e94b133a462fae6a58d842e89');
INSERT INTO operator_trail VALUES
  (1, '2026-11-30 01:58:11.821+00', 'asked', 'desk', NULL, NULL, NULL, 'admin', '127.0.0.1', '{"route":"POST /accounts/:account/grant","of":{"account":"1000"},"keySha256":"46160df909b574dd8d53404cd9d0d87cc31662fd6785089fbe54dfbadf880e9e"}', '\x27bf80a6c73beed3958924503ec42bc88517f959d596e4bec4dfb48135731494');
INSERT INTO operator_trail_head VALUES
  (true, 1, '\x27bf80a6c73beed3958924503ec42bc88517f959d596e4bec4dfb48135731494');
INSERT INTO purchase_brake VALUES
  (true, '1970-01-01 00:00:00+00');
INSERT INTO root_buyers VALUES
  (1001, 'account:1000');
INSERT INTO sales_folded VALUES
  (true, '-infinity', '2026-11-30 01:57:13.503289+00', '2026-11-30 01:57:13.503289+00', '2026-11-30 01:58:14.835457+00', '1722');
INSERT INTO schema_migrations VALUES
  ('001_ledger.sql', 'ace8a960022988004e8e62c10937520f4d801fb555d2af5e22626b5e12156f98', '2026-11-30 01:58:00.316001+00'),
  ('002_keys.sql', 'b0a19688dbccfded5bcd90e28fccf7bf8852b2ab531d303d9b0a3a7cc9dcaa6f', '2026-11-30 01:58:00.341147+00'),
  ('003_calls.sql', '4d12b5475712c574e37de64807c3519e57b12d560e08d07ebf632e47a096ccf1', '2026-11-30 01:58:00.36518+00'),
  ('004_settlements.sql', 'e5069e96841e376adc2fabbe7f494e11a73207c4549147743b72e371afd9c694', '2026-11-30 01:58:00.378892+00'),
  ('005_custody.sql', 'd168a6ff89d0619d21454517096727b7498ca274996d0ab7b2470ab40e768d77', '2026-11-30 01:58:00.40655+00'),
  ('006_cards.sql', '4b950b774068978dbe1fe0d98f4641a62be227ef17ff77425be879baf37b84e4', '2026-11-30 01:58:00.427576+00'),
  ('007_auto_recharge.sql', 'bd2bd8f6df67b2d8d6165a64f98c8c5d0cb2ba835dda913861a9ce161022f582', '2026-11-30 01:58:00.460455+00'),
  ('008_topups.sql', 'aba088140dba52627a297c343f1ac7f41f8d5117e6c1fd16d66dbdf1c5190782', '2026-11-30 01:58:00.477789+00'),
  ('009_mails.sql', 'fd698b65bb7cbb008c4ec4fd59989a3e30658c63ba605f216fce1827560a6bf8', '2026-11-30 01:58:00.485145+00'),
  ('010_operator.sql', 'aa36e4b4a07405484399961e8b428f1d4c8d7becbfa0cee40755069eab0ccfc4', '2026-11-30 01:58:00.508341+00'),
  ('011_purchases.sql', 'a4a47688f9b2221d2366aaf2aea6aa0e0494d5d6c33bb70467a04872024f637e', '2026-11-30 01:58:00.540188+00'),
  ('012_without_waiting.sql', '0581ebf9fcd75265c4cf539901f268f8c8378d8ff770d97c2dabe29316dd445e', '2026-11-30 01:58:00.548623+00'),
  ('014_secret_versions.sql', '939781f486527f1d359316afcedf889a135cfb2e43c3f60427b6754c2e566790', '2026-11-30 01:58:00.578971+00'),
  ('015_trial_credits.sql', '43168016fc2281d42963a40128c44a0a3d39791d07b53343fe6a2cb6ea5c0cfc', '2026-11-30 01:58:00.58963+00'),
  ('016_lost_gas.sql', '75c7d725f86c68cf4c04cc6ef55c0bb535e2f70cff7ec812d7699bab085078d8', '2026-11-30 01:58:00.620594+00'),
  ('017_ending_transactions.sql', '655e2d3b3152557f356869b3a7e303278b237de44a95b0ac16cb8cdca2c95af2', '2026-11-30 01:58:00.628925+00'),
  ('018_open_calls.sql', '4641ff7cc8213855bfd931a37439838d983034d0ebb8e8c679cf28695015c4a6', '2026-11-30 01:58:00.639805+00'),
  ('019_jobs.sql', 'd2955818935e24f841a8fd52de80e5f020a75e0a50195eb1b7128ec00cd45061', '2026-11-30 01:58:00.648646+00'),
  ('020_sold_keys.sql', '035e994f5cfe5db8020310699bf24a1559ba43094adebdd8f1a2877e20ec53d1', '2026-11-30 01:58:00.662831+00'),
  ('022_data_lists.sql', 'f3e15e04c11011b27d11b3b701eaab85a4d7e09afd96a37f0a635f3c2cade268', '2026-11-30 01:58:00.673178+00'),
  ('023_gas_spent.sql', 'bf52010f57913649f14213a806a9f2347366e72c782f916f0ff2633cbb79f221', '2026-11-30 01:58:00.679758+00'),
  ('024_key_links.sql', 'fc79a9dee6061b409fff81fc7a9bb5a98992677464271d93a79a033ef25a3a58', '2026-11-30 01:58:00.692911+00'),
  ('026_devices.sql', 'df3f2cc3197aff00b4cceadf323e611f0a01258f064081fd7d9326b81b218f36', '2026-11-30 01:58:00.713152+00'),
  ('027_call_shares.sql', 'bc32779b1b2f8898ea850db15be429441fe6c80081c19503c174979d9ca27540', '2026-11-30 01:58:00.74162+00'),
  ('028_lean_calls.sql', '1f6b737c7b48b2c8797e27d500ba0975a5057762f0b2148b24eeeb63975f1d06', '2026-11-30 01:58:00.753568+00'),
  ('029_lean_ledger.sql', 'e9d0a187ba2b8a7703a3db88248932c51dd19550f397df0cdc246f73aca1ad3b', '2026-11-30 01:58:00.757155+00'),
  ('031_yield_history.sql', 'ea56b038a464af9a741f91e265e302e40484b961345aba0e3180918890b85d9e', '2026-11-30 01:58:00.7732+00'),
  ('033_yield_keeper.sql', 'c0a548de1bc61e28e5a7861ed7801e11fb796464164844e3f344cc81d7497071', '2026-11-30 01:58:00.798852+00'),
  ('035_functions.sql', 'b528ecf00fadc8cb609fc8e7f0f98308b24ff1c0f74cd9e086aa2a78c55b2b8b', '2026-11-30 01:58:00.806146+00'),
  ('036_key_links_end.sql', '5978f0ad093de5efca725a0fe0141c7d9d13ccf47a5d7ef91e7417d5d56f77e1', '2026-11-30 01:58:00.826801+00'),
  ('040_dispute_due.sql', 'a047cdebae9854c2552da25899ae54e1bf027251c86fca6731d78b959020ad6e', '2026-11-30 01:58:00.83267+00'),
  ('041_solana_yield.sql', '993ae6b67ed214b68df586ac5b7a8e4ca1adb4f33568f82a6ca7cde9524ad975', '2026-11-30 01:58:00.857322+00'),
  ('042_solana_yield_late.sql', '3e83089dae812f376180e06492efea945b43e67e99b5939586a251d0ea3e0fbd', '2026-11-30 01:58:00.881588+00'),
  ('044_webhooks.sql', '73efa1c7df1f4816a6831c4f448bafacad1617a5ac5f5f0d7f4aa7f223b39ce2', '2026-11-30 01:58:00.89388+00'),
  ('045_a2a_tasks.sql', 'de43037cf62fc3e88e3a027a5a9e57efb136dc2adb005a1c44b22c13bf3ff4d8', '2026-11-30 01:58:00.90365+00'),
  ('046_yield_keeper_moves.sql', 'd6374a9b2317c5758a2062c3b7b888b9e4f1675db665583c30ba85b49f0c14c3', '2026-11-30 01:58:00.920372+00'),
  ('047_a2a_workers.sql', 'f3ca4feb3b793fb8edb6618d590de826afc667e7d93f3b155852c599dd9377b9', '2026-11-30 01:58:00.937042+00'),
  ('048_forgetting.sql', '9cbab5d657d0bb83e257654992dde5fb6e9eb300fb30db9132b431a092614079', '2026-11-30 01:58:00.944894+00'),
  ('049_yield_index_samples.sql', '8e15304ee855683d00419662abcb7ab64a14efd41a433fac6e2b0d2dcb6dd94a', '2026-11-30 01:58:00.956863+00'),
  ('051_device_refusals.sql', 'e54bbeaf845b3f6499c8e8c9cef891722d60cca614ee16996555d63c23ff4413', '2026-11-30 01:58:00.96367+00'),
  ('053_root_buyers.sql', '88127ac1ff426382df3b1f5e33a83945975e7a2b55bb422510db15f868047974', '2026-11-30 01:58:00.980907+00'),
  ('054_sold_key_refunds.sql', 'e91241d4f4d27b33af6535cc770702e53dbc17bae2ef1b9df49bd2f385a3acee', '2026-11-30 01:58:00.991599+00'),
  ('055_credit_origins.sql', '85a4560f3a7494602b1a02114b4b27155b361e6d4b4f9fd4c9bbd04ce29ad2ca', '2026-11-30 01:58:01.008662+00'),
  ('056_free_hang_ups.sql', '253530f4a9af33d9f73cc1eea9936a94b059a9911c543a4d48f0d2000df38b04', '2026-11-30 01:58:01.020967+00'),
  ('057_followed_calls.sql', '7092dbbeeb7db0efb68adbad3adeea984cd3c00c63f7ae9dd67c2db37a1901c8', '2026-11-30 01:58:01.029457+00'),
  ('058_payments_in_flight.sql', '7a9ede14d95f2384e2db72f351a67d772b099f72564ac739dd71af9d08f03596', '2026-11-30 01:58:01.035065+00'),
  ('060_charges_asked_for.sql', 'd07ada9976a36685843390d9017b998b0f00625e99b133ab0e0b6487cd14561d', '2026-11-30 01:58:01.041547+00'),
  ('061_card_consent.sql', '3bb65ec8ac54e6ae591a9821e84410356eb086f771a6f29213726e73e5482964', '2026-11-30 01:58:01.04875+00'),
  ('062_held_shares.sql', 'ae453e1c659a1c02e5ebbd30cde401e531751ae6752ec863cf1aae64fc521c9e', '2026-11-30 01:58:01.05802+00'),
  ('063_clocks_of_replicas.sql', '6356bddfbcbde7ed7ca23d8d7d2bbb9d0f9d172dcc4613f02a3d176ee83269fc', '2026-11-30 01:58:01.061791+00'),
  ('066_account_events.sql', '1466a05059010572741d1663fb79865a7f8eb37e030e492e92f34683bb68bf77', '2026-11-30 01:58:01.067285+00'),
  ('067_support.sql', 'ffc32cda87618e6a71195a926e8bbc35492ad8a14471f41ec12e1581a490358a', '2026-11-30 01:58:01.075021+00'),
  ('068_lift_bounds.sql', '4fc4f162c2f1e33af9a7ec094865f8bcb4c3c68ad42d62be9553f95042936054', '2026-11-30 01:58:01.097859+00'),
  ('070_agent_keys.sql', 'b28ea86595a24ebcb1064170317370e6f5f318339cf77e8febd721ff5699ca10', '2026-11-30 01:58:01.102005+00'),
  ('071_former_webhook_secrets.sql', 'd778eaf98a51699b1b3d6d5b0aba19a5fe809027fcf29676c8a48670b0501b54', '2026-11-30 01:58:01.121741+00'),
  ('072_rotated_keys.sql', '7587d76d6940aa74c4cf85372ed5b6d7d444ef43de32e3b193e7d9d4a8a56057', '2026-11-30 01:58:01.14435+00'),
  ('073_acts_chained.sql', 'd5d0762a799fabd4075ffdec49857ce0de4c3577ed237cdcbd385845e963b499', '2026-11-30 01:58:01.152583+00'),
  ('084_walk_newest.sql', '1e22e9b913980cf39f8da0d6bd43881c2251cd3583a83286c11f28a3aea2360b', '2026-11-30 01:58:01.188947+00'),
  ('085_second_operator_grants.sql', 'e43a76583ed5cff8e401cb776bcd25a2386468b6145f31a9926f688ec922da51', '2026-11-30 01:58:01.206644+00'),
  ('086_public_fleets.sql', '3018513e35cdfcdc36371bb8bbdd953bc012631b1b784698273d2d2dccd0b922', '2026-11-30 01:58:01.213762+00'),
  ('089_metered_calls.sql', '9f14525d0ad2a62f3c23a7807afc31d66e22f1affbc9614557ed58676f8078ba', '2026-11-30 01:58:01.231626+00'),
  ('090_stock_versions.sql', '9caac02c25b0dbc92a8c205724ff5afc2d9f0de3ef5e0ef64e8e7f8949074c3d', '2026-11-30 01:58:01.242218+00'),
  ('091_call_terms.sql', '2689ae42b6644df0d87693ced28802377079ead9e1ba113027ddee8145c370a6', '2026-11-30 01:58:01.253578+00'),
  ('095_gate_calls.sql', '825edf2c3a46589a0805f98a5ca3173e3f53afe9cdd23d27a4dcdf5583b8565f', '2026-11-30 01:58:01.270219+00'),
  ('105_service_figures.sql', 'ce6855784deed58a1675494182df7acc7b3b410825159061a41156ce1ee2682d', '2026-11-30 01:58:01.292209+00'),
  ('121_open_checkouts.sql', 'a1ec02d72879f720f64a4a1bbae5d7728df16cadff532ed0d311aa284626e2a7', '2026-11-30 01:58:01.3005+00'),
  ('130_weeks_of_calls.sql', 'eef7b152b0597f8139491977c21f56aa484378060bcd564f736f350384552631', '2026-11-30 01:58:01.310393+00'),
  ('140_sales_days.sql', 'ac7ac013cadf12a0fa3750db59db64accac613d4297bd109a257bb5b238fc49d', '2026-11-30 01:58:01.386256+00'),
  ('141_closed_days.sql', '5829acc399330e9e2e7afe4dde7367c402648dab3c72ae84b03d71dc24274ee9', '2026-11-30 01:58:01.43038+00'),
  ('150_operator_sessions.sql', 'a92dd56268f5100d45714f9f6c9cab3173003aabb4830be4e75cba51e48af860', '2026-11-30 01:58:01.45809+00'),
  ('160_recovery.sql', '56afea1c2244a22c9782b2b3f119cbf94198801f58c866e02ffaf2d2ba5c3c6b', '2026-11-30 01:58:01.547128+00'),
  ('170_status_spells.sql', '9f58bb2313ed1ccc8680875d60c28d003c6404049e37c6d17e97c94a0ae272e7', '2026-11-30 01:58:01.567793+00'),
  ('185_only_one_transaction.sql', '01376f838cc7083627bc58c50a095e8990ca10319ceae18ad7b81ee97a597412', '2026-11-30 01:58:01.663047+00'),
  ('186_data_lists_lease.sql', '1888d825b6bfa72913a10acefda9b9ab9e321efdf43812a79041efbf321d9ca3', '2026-11-30 01:58:01.672474+00'),
  ('187_source_budgets.sql', '78be699fd142f502d333698caefb4b16ae57c9250a0d9ea3791149d55ff85a89', '2026-11-30 01:58:01.678774+00'),
  ('188_source_costs.sql', '088bfaad8b5b74f757d5c49ebd4250ea30571c62d5563162a3c6c5150f67ce14', '2026-11-30 01:58:01.688515+00'),
  ('190_call_archives.sql', 'b770a9acb6a740b5271720876bf931b58a118a4f37ade81450db9760c18c4621', '2026-11-30 01:58:01.715287+00'),
  ('200_buckets.sql', '0d16d72ab02712af53313ae3113db848d819b19b7243df93c832e3833fbaf206', '2026-11-30 01:58:01.849616+00'),
  ('210_erasures.sql', 'eb7a80bbb5c464666dfb0f6759d8270f20eb9daf4cf7525a9ec98e1d729acce7', '2026-11-30 01:58:01.853068+00'),
  ('240_cards_shown.sql', 'dc9c6122caf41445c9b2573949c80b6a38fbd5c8c8b5888714b92c4f6cd7ef63', '2026-11-30 01:58:01.871686+00'),
  ('250_compacted_weeks.sql', '7db113c9e8723698b8afb5fb1d509f2e8776afffc4f3e094f02184e10c46059f', '2026-11-30 01:58:01.884147+00'),
  ('270_followed_calls_owed.sql', '46d3cd0f447f5b1f53fb62ec28088f11150e4301f2687d4cc22306c5de3bf91f', '2026-11-30 01:58:01.940094+00'),
  ('280_law_pages.sql', '9b6e363078f5ffee6e2268fbfc1787ad4df888123ee21e264b6f7350e4ce3a93', '2026-11-30 01:58:01.941398+00');
INSERT INTO secret_versions VALUES
  ('0345e27832fefe29', '2026-11-30 01:58:09.254+00');
INSERT INTO sold_keys VALUES
  ('01a22a2c-8523-7819-8000-4ab7e5bd870e', 1000, '00d887e7-d823-8ea1-89f8-5b0a69895109', 'of the old', 1000000, NULL, 4246283291515287110, '\x3aedd427e671f6467f824a9f3e5ae1a543f30f51048c3adc64182b99d2cbad13', 'fbx_live_62c', '2026-11-30 01:58:10.908+00', 1001, '2026-11-30 01:58:11.517+00', NULL, '2026-11-30 01:58:15.472+00', NULL, 0);
INSERT INTO sql_triggers VALUES
  ('auto_recharge_falls_due', 1),
  ('operator_acts_only_grow', 1),
  ('account_event_is_sent', 1),
  ('call_share_set_aside', 3),
  ('call_share_taken_back', 3),
  ('call_shares_restored', 1),
  ('call_shares_reversed', 2),
  ('operator_acts_chained', 1),
  ('operator_trail_chained', 1),
  ('operator_trail_only_grows', 1),
  ('sold_key_came_back', 2),
  ('stock_versions_only_grow', 1),
  ('trial_credit_came_back', 1),
  ('webhook_hears_of_card', 2),
  ('webhook_hears_of_refund', 2),
  ('week_is_sealed', 1);
SELECT pg_catalog.setval('api_keys_id_seq', 2, true);
SELECT pg_catalog.setval('books_verdicts_id_seq', 1, true);
SELECT pg_catalog.setval('devices_no_seq', 1, false);
SELECT pg_catalog.setval('ledger_account_ids', 1001, true);
SELECT pg_catalog.setval('managed_wallet_events_id_seq', 1, false);
SELECT pg_catalog.setval('operator_acts_number_seq', 1, true);
SELECT pg_catalog.setval('operator_people_id_seq', 1, false);
SELECT pg_catalog.setval('recoveries_id_seq', 1, false);
SELECT pg_catalog.setval('replicas_id_seq', 1, true);
ALTER TABLE ONLY a2a_tasks ADD CONSTRAINT a2a_tasks_message_key_key UNIQUE (message_key);
ALTER TABLE ONLY a2a_tasks ADD CONSTRAINT a2a_tasks_pkey PRIMARY KEY (id);
ALTER TABLE ONLY account_debts ADD CONSTRAINT account_debts_pkey PRIMARY KEY (account_id);
ALTER TABLE ONLY account_events ADD CONSTRAINT account_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY account_freezes ADD CONSTRAINT account_freezes_pkey PRIMARY KEY (account_id, cause);
ALTER TABLE ONLY account_sales_days ADD CONSTRAINT account_sales_days_pkey PRIMARY KEY (account_id, day, service, rail);
ALTER TABLE ONLY agent_id_claims ADD CONSTRAINT agent_id_claims_pkey PRIMARY KEY (kind, owner, agent_key);
ALTER TABLE ONLY agent_identities ADD CONSTRAINT agent_identities_pkey PRIMARY KEY (owner, agent_id);
ALTER TABLE ONLY api_keys ADD CONSTRAINT api_keys_lookup_key UNIQUE (lookup);
ALTER TABLE ONLY api_keys ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY auto_recharges ADD CONSTRAINT auto_recharges_pkey PRIMARY KEY (account_id);
ALTER TABLE ONLY books_proof ADD CONSTRAINT books_proof_pkey PRIMARY KEY (one);
ALTER TABLE ONLY books_verdicts ADD CONSTRAINT books_verdicts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY call_answers ADD CONSTRAINT call_answers_pkey PRIMARY KEY (account_id, id);
ALTER TABLE ONLY call_answers_rest ADD CONSTRAINT call_answers_rest_pkey PRIMARY KEY (account_id, id);
ALTER TABLE ONLY call_answers_w20261130 ADD CONSTRAINT call_answers_w20261130_pkey PRIMARY KEY (account_id, id);
ALTER TABLE ONLY call_archives ADD CONSTRAINT call_archives_pkey PRIMARY KEY (week);
ALTER TABLE ONLY call_identities ADD CONSTRAINT call_identities_pkey PRIMARY KEY (account_id, kind, identity);
ALTER TABLE ONLY call_quotas ADD CONSTRAINT call_quotas_pkey PRIMARY KEY (root_buyer, service);
ALTER TABLE ONLY call_shares ADD CONSTRAINT call_shares_pkey PRIMARY KEY (account_id, call_id);
ALTER TABLE ONLY call_spending ADD CONSTRAINT call_spending_pkey PRIMARY KEY (account_id, day, service);
ALTER TABLE ONLY calls_carried ADD CONSTRAINT calls_carried_pkey PRIMARY KEY (account_id, day, service, key_id, week);
ALTER TABLE ONLY calls_left_open ADD CONSTRAINT calls_left_open_pkey PRIMARY KEY (account_id, id);
ALTER TABLE ONLY calls_open_since ADD CONSTRAINT calls_open_since_pkey PRIMARY KEY (one);
ALTER TABLE ONLY calls ADD CONSTRAINT calls_pkey PRIMARY KEY (account_id, id);
ALTER TABLE ONLY calls_rest ADD CONSTRAINT calls_rest_pkey PRIMARY KEY (account_id, id);
ALTER TABLE ONLY calls_w20261130 ADD CONSTRAINT calls_w20261130_pkey PRIMARY KEY (account_id, id);
ALTER TABLE ONLY card_event_cursor ADD CONSTRAINT card_event_cursor_pkey PRIMARY KEY (one);
ALTER TABLE ONLY card_events ADD CONSTRAINT card_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY card_orders ADD CONSTRAINT card_orders_payment_intent_id_key UNIQUE (payment_intent_id);
ALTER TABLE ONLY card_orders ADD CONSTRAINT card_orders_pkey PRIMARY KEY (id);
ALTER TABLE ONLY card_orders ADD CONSTRAINT card_orders_session_id_key UNIQUE (session_id);
ALTER TABLE card_orders ADD CONSTRAINT card_orders_shown_card CHECK ((((card_brand IS NULL) = (card_last4 IS NULL)) AND (card_brand ~ '^[a-z_]{1,32}$'::text) AND (card_last4 ~ '^[0-9]{4}$'::text))) NOT VALID;
ALTER TABLE ONLY compacted_weeks ADD CONSTRAINT compacted_weeks_pkey PRIMARY KEY (week);
ALTER TABLE ONLY credit_origins ADD CONSTRAINT credit_origins_pkey PRIMARY KEY (call_id, nth);
ALTER TABLE ONLY data_lists ADD CONSTRAINT data_lists_pkey PRIMARY KEY (name);
ALTER TABLE ONLY database_lineage ADD CONSTRAINT database_lineage_pkey PRIMARY KEY (one);
ALTER TABLE ONLY device_exports ADD CONSTRAINT device_exports_pkey PRIMARY KEY (id);
ALTER TABLE ONLY device_fleets ADD CONSTRAINT device_fleets_pkey PRIMARY KEY (name);
ALTER TABLE ONLY device_offers ADD CONSTRAINT device_offers_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY device_readers ADD CONSTRAINT device_readers_pkey PRIMARY KEY (device, reader);
ALTER TABLE ONLY device_readings ADD CONSTRAINT device_readings_pkey PRIMARY KEY (device, at, key);
ALTER TABLE ONLY device_refusals ADD CONSTRAINT device_refusals_device_digest_key UNIQUE (device, digest);
ALTER TABLE ONLY device_refusals ADD CONSTRAINT device_refusals_pkey PRIMARY KEY (device, nth);
ALTER TABLE ONLY devices ADD CONSTRAINT devices_id_key UNIQUE (id);
ALTER TABLE ONLY devices ADD CONSTRAINT devices_pkey PRIMARY KEY (no);
ALTER TABLE ONLY ending_transactions ADD CONSTRAINT ending_transactions_pkey PRIMARY KEY (network, hash);
ALTER TABLE ONLY erasures ADD CONSTRAINT erasures_pkey PRIMARY KEY (id);
ALTER TABLE ONLY followed_calls ADD CONSTRAINT followed_calls_delivery_key UNIQUE (delivery);
ALTER TABLE ONLY followed_calls ADD CONSTRAINT followed_calls_pkey PRIMARY KEY (account_id, call_id);
ALTER TABLE ONLY free_calls ADD CONSTRAINT free_calls_pkey PRIMARY KEY (account_id, call_id);
ALTER TABLE ONLY free_hang_ups ADD CONSTRAINT free_hang_ups_pkey PRIMARY KEY (buyer, day, slot);
ALTER TABLE ONLY gas_spent ADD CONSTRAINT gas_spent_pkey PRIMARY KEY (network, address, day);
ALTER TABLE ONLY gate_calls ADD CONSTRAINT gate_calls_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY gate_messages ADD CONSTRAINT gate_messages_pkey PRIMARY KEY (gate, nonce);
ALTER TABLE ONLY key_addresses ADD CONSTRAINT key_addresses_pkey PRIMARY KEY (key_id, digest);
ALTER TABLE ONLY key_links ADD CONSTRAINT key_links_pkey PRIMARY KEY (id);
ALTER TABLE ONLY key_links ADD CONSTRAINT key_links_token_digest_key UNIQUE (token_digest);
ALTER TABLE ONLY law_pages ADD CONSTRAINT law_pages_pkey PRIMARY KEY (url);
ALTER TABLE ONLY ledger_accounts ADD CONSTRAINT ledger_accounts_name_key UNIQUE (name);
ALTER TABLE ONLY ledger_accounts ADD CONSTRAINT ledger_accounts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ledger_carried ADD CONSTRAINT ledger_carried_pkey PRIMARY KEY (day, account_id, week);
ALTER TABLE ONLY ledger_closed_balances ADD CONSTRAINT ledger_closed_balances_pkey PRIMARY KEY (account_id);
ALTER TABLE ONLY ledger_day_moves ADD CONSTRAINT ledger_day_moves_pkey PRIMARY KEY (day, account_id);
ALTER TABLE ONLY ledger_days_head ADD CONSTRAINT ledger_days_head_pkey PRIMARY KEY (one);
ALTER TABLE ONLY ledger_days ADD CONSTRAINT ledger_days_pkey PRIMARY KEY (day);
ALTER TABLE ONLY ledger_transfers ADD CONSTRAINT ledger_transfers_pkey PRIMARY KEY (account_id, id, resolves);
ALTER TABLE ONLY ledger_transfers_caused ADD CONSTRAINT ledger_transfers_caused_pkey PRIMARY KEY (account_id, id, resolves);
ALTER TABLE ONLY ledger_transfers_rest ADD CONSTRAINT ledger_transfers_rest_pkey PRIMARY KEY (account_id, id, resolves);
ALTER TABLE ONLY ledger_transfers_w20261130 ADD CONSTRAINT ledger_transfers_w20261130_pkey PRIMARY KEY (account_id, id, resolves);
ALTER TABLE ONLY lifted_bounds ADD CONSTRAINT lifted_bounds_pkey PRIMARY KEY (root_buyer);
ALTER TABLE ONLY lost_gas ADD CONSTRAINT lost_gas_pkey PRIMARY KEY (network, payer);
ALTER TABLE ONLY mails ADD CONSTRAINT mails_pkey PRIMARY KEY (id);
ALTER TABLE ONLY managed_wallet_events ADD CONSTRAINT managed_wallet_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY managed_wallet_keys ADD CONSTRAINT managed_wallet_keys_pkey PRIMARY KEY (wallet_id, kind);
ALTER TABLE ONLY managed_wallets ADD CONSTRAINT managed_wallets_pkey PRIMARY KEY (id);
ALTER TABLE ONLY operator_access ADD CONSTRAINT operator_access_pkey PRIMARY KEY (one);
ALTER TABLE ONLY operator_act_outcomes ADD CONSTRAINT operator_act_outcomes_pkey PRIMARY KEY (act_id);
ALTER TABLE ONLY operator_acts_head ADD CONSTRAINT operator_acts_head_pkey PRIMARY KEY (one);
ALTER TABLE ONLY operator_acts ADD CONSTRAINT operator_acts_idempotency_digest_key UNIQUE (idempotency_digest);
ALTER TABLE ONLY operator_acts ADD CONSTRAINT operator_acts_number_key UNIQUE (number);
ALTER TABLE ONLY operator_acts ADD CONSTRAINT operator_acts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY operator_people ADD CONSTRAINT operator_people_actor_key UNIQUE (actor);
ALTER TABLE ONLY operator_people ADD CONSTRAINT operator_people_issuer_subject_key UNIQUE (issuer, subject);
ALTER TABLE ONLY operator_people ADD CONSTRAINT operator_people_pkey PRIMARY KEY (id);
ALTER TABLE ONLY operator_proposals ADD CONSTRAINT operator_proposals_idempotency_digest_key UNIQUE (idempotency_digest);
ALTER TABLE ONLY operator_proposals ADD CONSTRAINT operator_proposals_pkey PRIMARY KEY (id);
ALTER TABLE ONLY operator_sessions ADD CONSTRAINT operator_sessions_digest_key UNIQUE (digest);
ALTER TABLE ONLY operator_sessions ADD CONSTRAINT operator_sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY operator_sessions ADD CONSTRAINT operator_sessions_state_digest_key UNIQUE (state_digest);
ALTER TABLE ONLY operator_trail_head ADD CONSTRAINT operator_trail_head_pkey PRIMARY KEY (one);
ALTER TABLE ONLY operator_trail ADD CONSTRAINT operator_trail_pkey PRIMARY KEY (number);
ALTER TABLE ONLY paid_requests ADD CONSTRAINT paid_requests_pkey PRIMARY KEY (request_id);
ALTER TABLE ONLY payments_in_flight ADD CONSTRAINT payments_in_flight_pkey PRIMARY KEY (account_id, call_id);
ALTER TABLE ONLY purchase_brake ADD CONSTRAINT purchase_brake_pkey PRIMARY KEY (one);
ALTER TABLE ONLY recovered_sales ADD CONSTRAINT recovered_sales_pkey PRIMARY KEY (source, reference);
ALTER TABLE ONLY recoveries ADD CONSTRAINT recoveries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY refunds ADD CONSTRAINT refunds_pkey PRIMARY KEY (account_id, call_id);
ALTER TABLE ONLY relayer_transactions ADD CONSTRAINT relayer_transactions_pkey PRIMARY KEY (network, address, nonce);
ALTER TABLE ONLY relayers ADD CONSTRAINT relayers_pkey PRIMARY KEY (network, address);
ALTER TABLE ONLY replicas ADD CONSTRAINT replicas_pkey PRIMARY KEY (id);
ALTER TABLE ONLY reversal_walks ADD CONSTRAINT reversal_walks_pkey PRIMARY KEY (order_id);
ALTER TABLE ONLY root_buyers ADD CONSTRAINT root_buyers_pkey PRIMARY KEY (account_id);
ALTER TABLE ONLY sales_days ADD CONSTRAINT sales_days_pkey PRIMARY KEY (day, service, rail);
ALTER TABLE ONLY sales_folded ADD CONSTRAINT sales_folded_pkey PRIMARY KEY (one);
ALTER TABLE ONLY sales_open ADD CONSTRAINT sales_open_pkey PRIMARY KEY (account_id, id);
ALTER TABLE ONLY schema_migrations ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (name);
ALTER TABLE ONLY secret_versions ADD CONSTRAINT secret_versions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY service_figures ADD CONSTRAINT service_figures_pkey PRIMARY KEY (service);
ALTER TABLE ONLY settlements ADD CONSTRAINT settlements_pkey PRIMARY KEY (account_id, call_id);
ALTER TABLE ONLY share_payouts ADD CONSTRAINT share_payouts_pkey PRIMARY KEY (beneficiary, nth);
ALTER TABLE ONLY sign_in_nonces ADD CONSTRAINT sign_in_nonces_pkey PRIMARY KEY (nonce, address);
ALTER TABLE ONLY solana_yield_claims ADD CONSTRAINT solana_yield_claims_pkey PRIMARY KEY (signature, wallet);
ALTER TABLE ONLY solana_yield_fees ADD CONSTRAINT solana_yield_fees_deposit_signature_key UNIQUE (deposit_signature);
ALTER TABLE ONLY solana_yield_fees ADD CONSTRAINT solana_yield_fees_pkey PRIMARY KEY (signature);
ALTER TABLE ONLY solana_yield_intents ADD CONSTRAINT solana_yield_intents_id_key UNIQUE (id);
ALTER TABLE ONLY solana_yield_intents ADD CONSTRAINT solana_yield_intents_pkey PRIMARY KEY (idempotency_key, wallet, usdc);
ALTER TABLE ONLY solana_yield_moves ADD CONSTRAINT solana_yield_moves_pkey PRIMARY KEY (signature);
ALTER TABLE ONLY solana_yield_unread ADD CONSTRAINT solana_yield_unread_pkey PRIMARY KEY (signature);
ALTER TABLE ONLY solana_yield_walks ADD CONSTRAINT solana_yield_walks_pkey PRIMARY KEY (account);
ALTER TABLE ONLY sold_keys ADD CONSTRAINT sold_keys_pkey PRIMARY KEY (call_id);
ALTER TABLE ONLY sold_keys ADD CONSTRAINT sold_keys_refund_id_key UNIQUE (refund_id);
ALTER TABLE ONLY source_budgets ADD CONSTRAINT source_budgets_pkey PRIMARY KEY (process, source);
ALTER TABLE ONLY source_costs ADD CONSTRAINT source_costs_pkey PRIMARY KEY (day, source);
ALTER TABLE ONLY sql_functions ADD CONSTRAINT sql_functions_pkey PRIMARY KEY (name);
ALTER TABLE ONLY sql_triggers ADD CONSTRAINT sql_triggers_pkey PRIMARY KEY (name);
ALTER TABLE ONLY status_looks ADD CONSTRAINT status_looks_pkey PRIMARY KEY (one);
ALTER TABLE ONLY status_spells ADD CONSTRAINT status_spells_pkey PRIMARY KEY (component, began_at);
ALTER TABLE ONLY stock_replicas ADD CONSTRAINT stock_replicas_pkey PRIMARY KEY (replica);
ALTER TABLE ONLY stock_versions ADD CONSTRAINT stock_versions_act_id_key UNIQUE (act_id);
ALTER TABLE ONLY stock_versions ADD CONSTRAINT stock_versions_pkey PRIMARY KEY (number);
ALTER TABLE ONLY topups ADD CONSTRAINT topups_pkey PRIMARY KEY (call_id);
ALTER TABLE ONLY transfer_days ADD CONSTRAINT transfer_days_pkey PRIMARY KEY (day, code);
ALTER TABLE ONLY trial_claims ADD CONSTRAINT trial_claims_pkey PRIMARY KEY (claimant);
ALTER TABLE ONLY trial_credits ADD CONSTRAINT trial_credits_pkey PRIMARY KEY (account_id);
ALTER TABLE ONLY trial_days ADD CONSTRAINT trial_days_pkey PRIMARY KEY (day);
ALTER TABLE ONLY undelivered_calls ADD CONSTRAINT undelivered_calls_pkey PRIMARY KEY (account_id, call_id);
ALTER TABLE ONLY webhook_deliveries ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY webhooks ADD CONSTRAINT webhooks_pkey PRIMARY KEY (id);
ALTER TABLE ONLY yield_index ADD CONSTRAINT yield_index_pkey PRIMARY KEY (vault);
ALTER TABLE ONLY yield_index_samples ADD CONSTRAINT yield_index_samples_pkey PRIMARY KEY (vault, at);
ALTER TABLE ONLY yield_keeper_moves ADD CONSTRAINT yield_keeper_moves_pkey PRIMARY KEY (vault, block_number, log_index);
ALTER TABLE ONLY yield_keeper ADD CONSTRAINT yield_keeper_pkey PRIMARY KEY (vault);
ALTER TABLE ONLY yield_keeper_reasons ADD CONSTRAINT yield_keeper_reasons_pkey PRIMARY KEY (vault, from_protocol, to_protocol, assets, allowed_at);
ALTER TABLE ONLY yield_marks ADD CONSTRAINT yield_marks_pkey PRIMARY KEY (vault, block_number);
ALTER TABLE ONLY yield_moves ADD CONSTRAINT yield_moves_pkey PRIMARY KEY (vault, block_number, log_index);
ALTER TABLE ONLY yield_samples ADD CONSTRAINT yield_samples_pkey PRIMARY KEY (vault, at);
CREATE INDEX a2a_tasks_expiry ON a2a_tasks USING btree (expires_at);
CREATE INDEX a2a_tasks_of ON a2a_tasks USING btree (account_id, updated_at DESC, id DESC) WHERE (account_id IS NOT NULL);
CREATE INDEX a2a_tasks_unpaid ON a2a_tasks USING btree (expires_at) WHERE (call_id IS NULL);
CREATE INDEX account_debts_owed ON account_debts USING btree (account_id) WHERE (owed_micros > 0);
CREATE INDEX account_events_listed ON account_events USING btree (account_id, created_at, id);
CREATE INDEX account_events_time ON account_events USING btree (created_at);
CREATE INDEX account_freezes_reversal ON account_freezes USING btree (account_id) WHERE (cause = 'reversal'::text);
CREATE INDEX agent_id_claims_expiry ON agent_id_claims USING btree (expires_at);
CREATE UNIQUE INDEX agent_identities_agent_key ON agent_identities USING btree (owner, agent_key);
CREATE INDEX api_keys_account ON api_keys USING btree (account_id);
CREATE INDEX api_keys_fixed_caps ON api_keys USING btree (cap_fixed_until) WHERE (cap_fixed_until IS NOT NULL);
CREATE INDEX api_keys_rotated ON api_keys USING btree (rotated_at, id) WHERE (rotated_at IS NOT NULL);
CREATE INDEX auto_recharges_card ON auto_recharges USING btree (card_fingerprint) WHERE (payment_method_id IS NOT NULL);
CREATE INDEX auto_recharges_due ON auto_recharges USING btree (next_at) WHERE (state = 1);
CREATE INDEX books_verdicts_time ON books_verdicts USING btree (ended_at);
CREATE INDEX call_answers_expiry ON ONLY call_answers USING btree (expires_at);
CREATE INDEX call_answers_rest_expires_at_idx ON call_answers_rest USING btree (expires_at);
CREATE INDEX call_answers_w20261130_expires_at_idx ON call_answers_w20261130 USING btree (expires_at);
CREATE INDEX call_quotas_day ON call_quotas USING btree (day);
CREATE INDEX call_shares_beneficiary ON call_shares USING btree (beneficiary, state) INCLUDE (amount_micros);
CREATE INDEX call_shares_due ON call_shares USING btree (beneficiary) WHERE (due_micros <> 0);
CREATE INDEX call_shares_reversed ON call_shares USING btree (reversed_by) WHERE (reversed_by IS NOT NULL);
CREATE INDEX calls_begun ON ONLY calls USING btree (begun_at) WHERE (begun_at IS NOT NULL);
CREATE INDEX calls_carried_day ON calls_carried USING btree (day);
CREATE INDEX calls_rest_begun_at_idx ON calls_rest USING btree (begun_at) WHERE (begun_at IS NOT NULL);
CREATE INDEX calls_time ON ONLY calls USING brin (created_at) WITH (pages_per_range='16');
CREATE INDEX calls_rest_created_at_idx ON calls_rest USING brin (created_at) WITH (pages_per_range='16');
CREATE INDEX calls_w20261130_begun_at_idx ON calls_w20261130 USING btree (begun_at) WHERE (begun_at IS NOT NULL);
CREATE INDEX calls_w20261130_created_at_idx ON calls_w20261130 USING brin (created_at) WITH (pages_per_range='16');
CREATE INDEX card_events_due ON card_events USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX card_events_time ON card_events USING btree (received_at);
CREATE INDEX card_orders_account ON card_orders USING btree (account_id, created_at);
CREATE INDEX card_orders_address ON card_orders USING btree (address_digest, created_at) WHERE (kind = 'purchase'::text);
CREATE INDEX card_orders_card ON card_orders USING btree (card_fingerprint, created_at) WHERE (card_fingerprint IS NOT NULL);
CREATE INDEX card_orders_dispute ON card_orders USING btree (dispute_due_at) WHERE (dispute IS NOT NULL);
CREATE INDEX card_orders_disputes ON card_orders USING btree (dispute) WHERE (dispute IS NOT NULL);
CREATE INDEX card_orders_due ON card_orders USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX card_orders_forget_card ON card_orders USING btree (forget_card_since) WHERE (forget_card_since IS NOT NULL);
CREATE INDEX card_orders_open ON card_orders USING btree (expires_at) WHERE (state = 0);
CREATE INDEX card_orders_open_checkouts ON card_orders USING btree (address_digest) WHERE ((kind = 'checkout'::text) AND (state = 0));
CREATE INDEX card_orders_paid ON card_orders USING btree (paid_at) WHERE (state = 1);
CREATE UNIQUE INDEX card_orders_recharging ON card_orders USING btree (account_id) WHERE ((kind = 'recharge'::text) AND (state = 0));
CREATE INDEX card_orders_site ON card_orders USING btree (site_digest, created_at) WHERE (site_digest IS NOT NULL);
CREATE INDEX card_orders_time ON card_orders USING btree (created_at);
CREATE UNIQUE INDEX card_orders_token ON card_orders USING btree (token_digest) WHERE (kind = 'purchase'::text);
CREATE INDEX card_orders_unfetched ON card_orders USING btree (key_secret_id) WHERE ((key_digest IS NOT NULL) AND (delivered_at IS NULL) AND (state < 2));
CREATE INDEX card_orders_unpaid ON card_orders USING btree (created_at) WHERE ((kind = 'checkout'::text) AND (state = 2) AND (payment_intent_id IS NULL));
CREATE INDEX credit_origins_account ON credit_origins USING btree (account_id) WHERE (account_id IS NOT NULL);
CREATE INDEX credit_origins_order ON credit_origins USING btree (order_id, account_id) WHERE (order_id IS NOT NULL);
CREATE INDEX credit_origins_payer ON credit_origins USING btree (payer_account);
CREATE INDEX data_lists_due ON data_lists USING btree (next_at);
CREATE INDEX device_exports_expiry ON device_exports USING btree (expires_at);
CREATE INDEX device_offers_expiry ON device_offers USING btree (expires_at);
CREATE INDEX device_readings_seq ON ONLY device_readings USING btree (device, seq);
CREATE INDEX device_refusals_due ON device_refusals USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX device_refusals_time ON device_refusals USING btree (last_at);
CREATE INDEX devices_fleet ON devices USING btree (fleet) WHERE (fleet IS NOT NULL);
CREATE INDEX devices_owner ON devices USING btree (owner, no);
CREATE INDEX devices_public_fleets ON devices USING btree (no) WHERE (public AND (revoked_at IS NULL) AND (fleet IS NOT NULL));
CREATE INDEX ending_transactions_id ON ending_transactions USING btree (network, id);
CREATE UNIQUE INDEX ending_transactions_only_one ON ending_transactions USING btree (network, id) WHERE only_one;
CREATE INDEX ending_transactions_opened ON ending_transactions USING btree (network, created_at) WHERE ((opens_for IS NOT NULL) AND (state = ANY (ARRAY[0, 1])));
CREATE INDEX ending_transactions_pending ON ending_transactions USING btree (network, sent_at) WHERE (state = 0);
CREATE UNIQUE INDEX ending_transactions_purpose ON ending_transactions USING btree (network, id) WHERE (state = ANY (ARRAY[0, 1]));
CREATE UNIQUE INDEX erasures_one_open ON erasures USING btree (digest) WHERE (ended_at IS NULL);
CREATE INDEX followed_calls_expiry ON followed_calls USING btree (expires_at);
CREATE INDEX followed_calls_owed ON followed_calls USING btree (key_id, fingerprint) WHERE (state <> 2);
CREATE INDEX followed_calls_request ON followed_calls USING btree (key_id, request_id) WHERE (request_id IS NOT NULL);
CREATE INDEX free_calls_day ON free_calls USING btree (day);
CREATE INDEX free_calls_of_day ON free_calls USING btree (root_buyer, service, day);
CREATE INDEX free_hang_ups_call ON free_hang_ups USING btree (call_id);
CREATE INDEX gate_calls_expiry ON gate_calls USING btree (expires_at);
CREATE INDEX gate_messages_expiry ON gate_messages USING btree (expires_at);
CREATE INDEX key_addresses_time ON key_addresses USING btree (seen_at);
CREATE INDEX key_links_created ON key_links USING btree (created_at);
CREATE INDEX key_links_order ON key_links USING btree (order_id, created_at);
CREATE INDEX law_pages_due ON law_pages USING btree (next_at);
CREATE INDEX ledger_transfers_other_account ON ONLY ledger_transfers USING btree (account_id, created_at) WHERE (code <> 'call'::text);
CREATE INDEX ledger_transfers_caused_account_id_created_at_idx ON ledger_transfers_caused USING btree (account_id, created_at) WHERE (code <> 'call'::text);
CREATE INDEX ledger_transfers_time ON ONLY ledger_transfers USING brin (created_at);
CREATE INDEX ledger_transfers_caused_created_at_idx ON ledger_transfers_caused USING brin (created_at);
CREATE INDEX ledger_transfers_other_time ON ONLY ledger_transfers USING btree (created_at) WHERE (code <> 'call'::text);
CREATE INDEX ledger_transfers_caused_created_at_idx1 ON ledger_transfers_caused USING btree (created_at) WHERE (code <> 'call'::text);
CREATE INDEX ledger_transfers_rest_account_id_created_at_idx ON ledger_transfers_rest USING btree (account_id, created_at) WHERE (code <> 'call'::text);
CREATE INDEX ledger_transfers_rest_created_at_idx ON ledger_transfers_rest USING brin (created_at);
CREATE INDEX ledger_transfers_rest_created_at_idx1 ON ledger_transfers_rest USING btree (created_at) WHERE (code <> 'call'::text);
CREATE INDEX ledger_transfers_w20261130_account_id_created_at_idx ON ledger_transfers_w20261130 USING btree (account_id, created_at) WHERE (code <> 'call'::text);
CREATE INDEX ledger_transfers_w20261130_created_at_idx ON ledger_transfers_w20261130 USING brin (created_at);
CREATE INDEX ledger_transfers_w20261130_created_at_idx1 ON ledger_transfers_w20261130 USING btree (created_at) WHERE (code <> 'call'::text);
CREATE INDEX lost_gas_since ON lost_gas USING btree (network, since);
CREATE INDEX lost_gas_time ON lost_gas USING btree (since);
CREATE INDEX mails_due ON mails USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX mails_time ON mails USING btree (created_at);
CREATE INDEX managed_wallet_events_wallet ON managed_wallet_events USING btree (wallet_id, id);
CREATE INDEX managed_wallet_keys_kek ON managed_wallet_keys USING btree (kek_id) WHERE (kek_id IS NOT NULL);
CREATE UNIQUE INDEX managed_wallets_agent ON managed_wallets USING btree (owner, agent_id) WHERE (deleted_at IS NULL);
CREATE UNIQUE INDEX managed_wallets_agent_key ON managed_wallets USING btree (owner, agent_key) WHERE (deleted_at IS NULL);
CREATE INDEX operator_acts_account ON operator_acts USING btree (account_id, number);
CREATE INDEX operator_acts_actor ON operator_acts USING btree (actor, at);
CREATE UNIQUE INDEX operator_acts_call ON operator_acts USING btree (account_id, call_id) WHERE (call_id IS NOT NULL);
CREATE INDEX operator_proposals_waiting ON operator_proposals USING btree (at) WHERE (ended IS NULL);
CREATE INDEX operator_sessions_end ON operator_sessions USING btree (ends_at);
CREATE INDEX operator_sessions_person ON operator_sessions USING btree (person_id, began_at);
CREATE INDEX paid_requests_call ON paid_requests USING btree (call_id) WHERE (call_id IS NOT NULL);
CREATE INDEX paid_requests_time ON paid_requests USING btree (at);
CREATE INDEX payments_in_flight_moved ON payments_in_flight USING btree (moved_at) WHERE (moved_at IS NOT NULL);
CREATE INDEX payments_in_flight_payer ON payments_in_flight USING btree (payer);
CREATE UNIQUE INDEX recoveries_shut ON recoveries USING btree (((opened_at IS NULL))) WHERE (opened_at IS NULL);
CREATE INDEX refunds_due ON refunds USING btree (next_at) WHERE (state = 0);
CREATE INDEX refunds_transaction ON refunds USING btree (transaction) WHERE (transaction IS NOT NULL);
CREATE INDEX relayer_transactions_id ON relayer_transactions USING btree (network, id);
CREATE UNIQUE INDEX relayer_transactions_pending ON relayer_transactions USING btree (network, id) WHERE (state = 0);
CREATE INDEX replicas_ended ON replicas USING btree (ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX reversal_walks_account ON reversal_walks USING btree (account_id);
CREATE INDEX reversal_walks_due ON reversal_walks USING btree (next_at);
CREATE INDEX root_buyers_root ON root_buyers USING btree (root_buyer, account_id);
CREATE INDEX settlements_bought ON settlements USING btree (account_id, payer, created_at);
CREATE INDEX settlements_transaction ON settlements USING btree (transaction) WHERE (transaction IS NOT NULL);
CREATE INDEX settlements_undecided ON settlements USING btree (network, next_at) WHERE ((final_at IS NULL) AND ((state = ANY (ARRAY[0, 3])) OR ((state = 1) AND (NOT answered))));
CREATE INDEX settlements_watched ON settlements USING btree (network, next_at) WHERE ((final_at IS NULL) AND (state = 1));
CREATE INDEX sign_in_nonces_expiry ON sign_in_nonces USING btree (expires_at);
CREATE INDEX solana_yield_claims_due ON solana_yield_claims USING btree (next_at) WHERE (state = 'pending'::text);
CREATE INDEX solana_yield_claims_over ON solana_yield_claims USING btree (claimed_at) WHERE (state <> 'pending'::text);
CREATE INDEX solana_yield_claims_wallet ON solana_yield_claims USING btree (wallet) WHERE (state = 'pending'::text);
CREATE INDEX solana_yield_fees_due ON solana_yield_fees USING btree (next_at) WHERE (state = ANY (ARRAY['waiting'::text, 'unused'::text]));
CREATE INDEX solana_yield_fees_unused ON solana_yield_fees USING btree (at) WHERE (state = 'unused'::text);
CREATE INDEX solana_yield_fees_wallet ON solana_yield_fees USING btree (wallet, slot);
CREATE INDEX solana_yield_intents_over ON solana_yield_intents USING btree (expires_at);
CREATE INDEX solana_yield_moves_open ON solana_yield_moves USING btree (found_at) WHERE (NOT final);
CREATE INDEX solana_yield_moves_wallet ON solana_yield_moves USING btree (wallet, slot);
CREATE INDEX solana_yield_unread_due ON solana_yield_unread USING btree (next_at);
CREATE INDEX sold_keys_account ON sold_keys USING btree (account_id) WHERE (account_id IS NOT NULL);
CREATE INDEX sold_keys_open ON sold_keys USING btree (created_at) WHERE (closed_at IS NULL);
CREATE INDEX sold_keys_payer ON sold_keys USING btree (payer_account) WHERE (account_id IS NOT NULL);
CREATE INDEX status_spells_by_end ON status_spells USING btree (ended_at);
CREATE UNIQUE INDEX status_spells_open ON status_spells USING btree (component) WHERE (ended_at IS NULL);
CREATE INDEX stock_versions_kind ON stock_versions USING btree (kind, number);
CREATE INDEX topups_open ON topups USING btree (created_at) WHERE (closed_at IS NULL);
CREATE INDEX trial_claims_site ON trial_claims USING btree (site, claimed_at) WHERE (site IS NOT NULL);
CREATE INDEX trial_claims_time ON trial_claims USING btree (claimed_at);
CREATE INDEX trial_credits_due ON trial_credits USING btree (expires_at) WHERE due;
CREATE INDEX undelivered_calls_due ON undelivered_calls USING btree (next_at);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries USING btree (webhook_id, next_at) WHERE (next_at IS NOT NULL);
CREATE UNIQUE INDEX webhook_deliveries_event ON webhook_deliveries USING btree (webhook_id, event_id) WHERE (event_id IS NOT NULL);
CREATE INDEX webhook_deliveries_listed ON webhook_deliveries USING btree (webhook_id, created_at);
CREATE INDEX webhook_deliveries_time ON webhook_deliveries USING btree (created_at);
CREATE INDEX webhooks_account ON webhooks USING btree (account_id);
CREATE INDEX yield_keeper_moves_at ON yield_keeper_moves USING btree (vault, at);
CREATE INDEX yield_keeper_reasons_time ON yield_keeper_reasons USING btree (vault, noted_at);
CREATE INDEX yield_moves_from ON yield_moves USING btree (vault, from_wallet, block_number, log_index) WHERE (from_wallet IS NOT NULL);
CREATE INDEX yield_moves_priced ON yield_moves USING btree (vault, block_number, log_index) WHERE (priced_shares IS NOT NULL);
CREATE INDEX yield_moves_to ON yield_moves USING btree (vault, to_wallet, block_number, log_index) WHERE (to_wallet IS NOT NULL);
CREATE INDEX yield_samples_block ON yield_samples USING btree (vault, block_number);
ALTER INDEX call_answers_expiry ATTACH PARTITION call_answers_rest_expires_at_idx;
ALTER INDEX call_answers_pkey ATTACH PARTITION call_answers_rest_pkey;
ALTER INDEX call_answers_expiry ATTACH PARTITION call_answers_w20261130_expires_at_idx;
ALTER INDEX call_answers_pkey ATTACH PARTITION call_answers_w20261130_pkey;
ALTER INDEX calls_begun ATTACH PARTITION calls_rest_begun_at_idx;
ALTER INDEX calls_time ATTACH PARTITION calls_rest_created_at_idx;
ALTER INDEX calls_pkey ATTACH PARTITION calls_rest_pkey;
ALTER INDEX calls_begun ATTACH PARTITION calls_w20261130_begun_at_idx;
ALTER INDEX calls_time ATTACH PARTITION calls_w20261130_created_at_idx;
ALTER INDEX calls_pkey ATTACH PARTITION calls_w20261130_pkey;
ALTER INDEX ledger_transfers_other_account ATTACH PARTITION ledger_transfers_caused_account_id_created_at_idx;
ALTER INDEX ledger_transfers_time ATTACH PARTITION ledger_transfers_caused_created_at_idx;
ALTER INDEX ledger_transfers_other_time ATTACH PARTITION ledger_transfers_caused_created_at_idx1;
ALTER INDEX ledger_transfers_pkey ATTACH PARTITION ledger_transfers_caused_pkey;
ALTER INDEX ledger_transfers_other_account ATTACH PARTITION ledger_transfers_rest_account_id_created_at_idx;
ALTER INDEX ledger_transfers_time ATTACH PARTITION ledger_transfers_rest_created_at_idx;
ALTER INDEX ledger_transfers_other_time ATTACH PARTITION ledger_transfers_rest_created_at_idx1;
ALTER INDEX ledger_transfers_pkey ATTACH PARTITION ledger_transfers_rest_pkey;
ALTER INDEX ledger_transfers_other_account ATTACH PARTITION ledger_transfers_w20261130_account_id_created_at_idx;
ALTER INDEX ledger_transfers_time ATTACH PARTITION ledger_transfers_w20261130_created_at_idx;
ALTER INDEX ledger_transfers_other_time ATTACH PARTITION ledger_transfers_w20261130_created_at_idx1;
ALTER INDEX ledger_transfers_pkey ATTACH PARTITION ledger_transfers_w20261130_pkey;
CREATE TRIGGER account_event_is_sent AFTER INSERT ON account_events FOR EACH ROW EXECUTE FUNCTION account_event_is_sent();
CREATE TRIGGER call_is_shared AFTER UPDATE OF state ON calls FOR EACH ROW WHEN ((new.shared AND (new.state = 1) AND (old.state <> 1))) EXECUTE FUNCTION call_share_set_aside();
CREATE TRIGGER card_order_is_told AFTER UPDATE ON card_orders FOR EACH ROW WHEN (((new.account_id IS NOT NULL) AND ((new.state <> old.state) OR (new.reversed_micros <> old.reversed_micros) OR (new.dispute IS DISTINCT FROM old.dispute)))) EXECUTE FUNCTION webhook_hears_of_card();
CREATE TRIGGER card_order_restores_shares AFTER UPDATE ON card_orders FOR EACH ROW WHEN (((old.reversed_micros > 0) AND (new.reversed_micros = 0))) EXECUTE FUNCTION call_shares_restored();
CREATE TRIGGER ledger_account_is_low AFTER UPDATE ON ledger_accounts FOR EACH ROW WHEN (((new.low_below_micros IS NOT NULL) AND ((new.credits_posted - new.debits_posted) < new.low_below_micros) AND ((new.debits_posted <> old.debits_posted) OR (new.credits_posted <> old.credits_posted) OR (new.low_below_micros IS DISTINCT FROM old.low_below_micros)))) EXECUTE FUNCTION auto_recharge_falls_due();
CREATE TRIGGER ledger_refund_is_told AFTER INSERT ON ledger_transfers FOR EACH ROW WHEN (((new.code = ANY (ARRAY['call_refund'::text, 'operator_refund'::text])) AND (new.phase = ANY (ARRAY[1, 3])))) EXECUTE FUNCTION webhook_hears_of_refund();
CREATE TRIGGER ledger_transfer_gives_back AFTER INSERT ON ledger_transfers FOR EACH ROW WHEN ((new.code = ANY (ARRAY['call_refund'::text, 'operator_refund'::text]))) EXECUTE FUNCTION trial_credit_came_back();
CREATE TRIGGER ledger_transfer_gives_back_a_key AFTER INSERT ON ledger_transfers FOR EACH ROW WHEN ((new.code = ANY (ARRAY['call_refund'::text, 'operator_refund'::text]))) EXECUTE FUNCTION sold_key_came_back();
CREATE TRIGGER ledger_transfer_reverses_shares AFTER INSERT ON ledger_transfers FOR EACH ROW WHEN (((new.code = 'card_reversal'::text) AND (new.account_id = 11))) EXECUTE FUNCTION call_shares_reversed();
CREATE TRIGGER ledger_transfer_takes_share AFTER INSERT ON ledger_transfers FOR EACH ROW WHEN ((new.code = ANY (ARRAY['call_refund'::text, 'onchain_refund'::text, 'settlement_lost'::text, 'operator_refund'::text]))) EXECUTE FUNCTION call_share_taken_back();
CREATE TRIGGER operator_act_outcomes_stay BEFORE DELETE OR UPDATE OR TRUNCATE ON operator_act_outcomes FOR EACH STATEMENT EXECUTE FUNCTION operator_acts_only_grow();
CREATE TRIGGER operator_acts_counted AFTER INSERT ON operator_acts FOR EACH ROW EXECUTE FUNCTION operator_acts_chained();
CREATE TRIGGER operator_acts_linked BEFORE INSERT ON operator_acts FOR EACH ROW EXECUTE FUNCTION operator_acts_chained();
CREATE TRIGGER operator_acts_stay BEFORE DELETE OR UPDATE OR TRUNCATE ON operator_acts FOR EACH STATEMENT EXECUTE FUNCTION operator_acts_only_grow();
CREATE TRIGGER operator_trail_counted AFTER INSERT ON operator_trail FOR EACH ROW EXECUTE FUNCTION operator_trail_chained();
CREATE TRIGGER operator_trail_linked BEFORE INSERT ON operator_trail FOR EACH ROW EXECUTE FUNCTION operator_trail_chained();
CREATE TRIGGER operator_trail_stays BEFORE DELETE OR UPDATE OR TRUNCATE ON operator_trail FOR EACH STATEMENT EXECUTE FUNCTION operator_trail_only_grows();
CREATE TRIGGER stock_versions_stay BEFORE DELETE OR UPDATE OR TRUNCATE ON stock_versions FOR EACH STATEMENT EXECUTE FUNCTION stock_versions_only_grow();
CREATE TRIGGER week_is_sealed BEFORE INSERT ON calls_rest FOR EACH ROW EXECUTE FUNCTION week_is_sealed();
CREATE TRIGGER week_is_sealed BEFORE INSERT ON ledger_transfers_rest FOR EACH ROW EXECUTE FUNCTION week_is_sealed();
ALTER TABLE ONLY account_debts ADD CONSTRAINT account_debts_account_id_fkey FOREIGN KEY (account_id) REFERENCES ledger_accounts(id);
ALTER TABLE ONLY account_freezes ADD CONSTRAINT account_freezes_account_id_fkey FOREIGN KEY (account_id) REFERENCES ledger_accounts(id);
ALTER TABLE ONLY api_keys ADD CONSTRAINT api_keys_account_id_fkey FOREIGN KEY (account_id) REFERENCES ledger_accounts(id);
ALTER TABLE ONLY auto_recharges ADD CONSTRAINT auto_recharges_account_id_fkey FOREIGN KEY (account_id) REFERENCES ledger_accounts(id);
ALTER TABLE ONLY device_offers ADD CONSTRAINT device_offers_device_fkey FOREIGN KEY (device) REFERENCES devices(no);
ALTER TABLE ONLY device_readers ADD CONSTRAINT device_readers_device_fkey FOREIGN KEY (device) REFERENCES devices(no);
ALTER TABLE ONLY device_refusals ADD CONSTRAINT device_refusals_device_fkey FOREIGN KEY (device) REFERENCES devices(no);
ALTER TABLE ONLY devices ADD CONSTRAINT devices_fleet_fkey FOREIGN KEY (fleet) REFERENCES device_fleets(name);
ALTER TABLE ONLY key_links ADD CONSTRAINT key_links_order_id_fkey FOREIGN KEY (order_id) REFERENCES card_orders(id);
ALTER TABLE ONLY managed_wallet_events ADD CONSTRAINT managed_wallet_events_wallet_id_fkey FOREIGN KEY (wallet_id) REFERENCES managed_wallets(id);
ALTER TABLE ONLY managed_wallet_keys ADD CONSTRAINT managed_wallet_keys_wallet_id_fkey FOREIGN KEY (wallet_id) REFERENCES managed_wallets(id);
ALTER TABLE ONLY operator_act_outcomes ADD CONSTRAINT operator_act_outcomes_act_id_fkey FOREIGN KEY (act_id) REFERENCES operator_acts(id);
ALTER TABLE ONLY operator_acts ADD CONSTRAINT operator_acts_account_id_fkey FOREIGN KEY (account_id) REFERENCES ledger_accounts(id);
ALTER TABLE ONLY operator_sessions ADD CONSTRAINT operator_sessions_person_id_fkey FOREIGN KEY (person_id) REFERENCES operator_people(id);
ALTER TABLE ONLY recovered_sales ADD CONSTRAINT recovered_sales_recovery_id_fkey FOREIGN KEY (recovery_id) REFERENCES recoveries(id);
ALTER TABLE ONLY root_buyers ADD CONSTRAINT root_buyers_account_id_fkey FOREIGN KEY (account_id) REFERENCES ledger_accounts(id);
ALTER TABLE ONLY sold_keys ADD CONSTRAINT sold_keys_account_id_fkey FOREIGN KEY (account_id) REFERENCES ledger_accounts(id);
ALTER TABLE ONLY sold_keys ADD CONSTRAINT sold_keys_payer_account_fkey FOREIGN KEY (payer_account) REFERENCES ledger_accounts(id);
ALTER TABLE ONLY stock_replicas ADD CONSTRAINT stock_replicas_replica_fkey FOREIGN KEY (replica) REFERENCES replicas(id) ON DELETE CASCADE;
ALTER TABLE ONLY stock_versions ADD CONSTRAINT stock_versions_act_id_fkey FOREIGN KEY (act_id) REFERENCES operator_acts(id);
ALTER TABLE ONLY topups ADD CONSTRAINT topups_account_id_fkey FOREIGN KEY (account_id) REFERENCES ledger_accounts(id);
ALTER TABLE ONLY trial_claims ADD CONSTRAINT trial_claims_account_id_fkey FOREIGN KEY (account_id) REFERENCES ledger_accounts(id);
ALTER TABLE ONLY trial_credits ADD CONSTRAINT trial_credits_account_id_fkey FOREIGN KEY (account_id) REFERENCES ledger_accounts(id);
ALTER TABLE ONLY trial_credits ADD CONSTRAINT trial_credits_moved_from_fkey FOREIGN KEY (moved_from) REFERENCES ledger_accounts(id);
ALTER TABLE ONLY webhook_deliveries ADD CONSTRAINT webhook_deliveries_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES webhooks(id) ON DELETE CASCADE;
