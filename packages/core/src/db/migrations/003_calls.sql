-- Paid calls: one row each. Its id is also the id of its transfer in the ledger.

CREATE TABLE calls (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  -- 0 authorized (its price is reserved), 1 captured (its price is taken), 2 released (nothing was taken)
  state smallint NOT NULL DEFAULT 0,
  rail text NOT NULL,
  key_id bigint,
  service text NOT NULL,
  price_micros bigint NOT NULL,
  -- What makes a payment this payment and no other: an idempotency key, a transfer's nonce. NULL: bought once, blind.
  identity text,
  -- SHA-256 over what was asked; the same payment for another question is refused.
  fingerprint bytea,
  created_at timestamptz NOT NULL,
  -- When the reconciler may release it: long after the call's own deadline.
  expires_at timestamptz NOT NULL,
  finished_at timestamptz,
  -- Why it was released, or with which status it was answered.
  outcome text,
  PRIMARY KEY (account_id, id)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX calls_identity ON calls (account_id, identity) WHERE identity IS NOT NULL;
-- Open calls are found by time: no index names `state`, so that ending a call is an update in place.
CREATE INDEX calls_time ON calls USING brin (created_at) WITH (pages_per_range = 16);

-- What a captured call with an identity answered, for as long as the same payment may ask again.
CREATE TABLE call_answers (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  status smallint NOT NULL,
  headers jsonb NOT NULL,
  body text NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (account_id, id)
);
CREATE INDEX call_answers_expiry ON call_answers (expires_at);

-- Captured calls by account, day (UTC) and service: what a key's owner sees, and what daily caps are measured by.
CREATE TABLE call_spending (
  account_id bigint NOT NULL,
  day date NOT NULL,
  service text NOT NULL,
  calls bigint NOT NULL,
  spent_micros bigint NOT NULL,
  PRIMARY KEY (account_id, day, service)
) WITH (fillfactor = 50);

-- Begins and finishes paid calls, in one batch and one commit with their transfers. Finishes come first: what they
-- release can be reserved again by the begins of the same batch.
--
-- Begins with an identity must have different ones within a batch (the caller sees to it).
-- f_phase: 3 captures, 4 releases; as in the ledger.
--
-- b_status[i]:  0 authorized   1 not enough available   2 above the day's cap   3 the id is taken
--              10 key revoked  11 key expired  12 key frozen  13 above the cap per call
--              20 this payment was answered, by the call b_answered[i]   21 it is being answered by another call
--              22 it was made for another request
-- f_status[i]:  0 done (also when it had been done before)  1 no longer open: the reconciler released it
-- *_available[i]: what the account can spend after it, in micro-USD; 0 where nothing was asked of the ledger.
-- No array that comes back holds a NULL: the driver does not read them.
CREATE FUNCTION calls_apply(
  b_account bigint[], b_id uuid[], b_key bigint[], b_rail text[], b_service text[], b_price bigint[],
  b_revenue bigint[], b_identity text[], b_fingerprint bytea[], b_ttl_ms integer[],
  f_account bigint[], f_id uuid[], f_phase smallint[], f_price bigint[], f_revenue bigint[], f_service text[],
  f_outcome text[], f_answer_status smallint[], f_answer_headers text[], f_answer_body text[],
  p_answer_ttl interval, p_now timestamptz,
  OUT b_status smallint[], OUT b_available bigint[], OUT b_answered uuid[],
  OUT f_status smallint[], OUT f_available bigint[]
)
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
  r record;
  nb integer := cardinality(b_id);
  nf integer := cardinality(f_id);
  skip boolean[] := array_fill(false, ARRAY[nf + nb]);
  l_status smallint[];
  l_available bigint[];
  ceiling bigint[] := NULL;
  today date := (p_now AT TIME ZONE 'UTC')::date;
BEGIN
  b_status := array_fill(0::smallint, ARRAY[nb]);
  b_available := array_fill(0::bigint, ARRAY[nb]);
  b_answered := array_fill('00000000-0000-0000-0000-000000000000'::uuid, ARRAY[nb]);
  f_status := array_fill(0::smallint, ARRAY[nf]);
  f_available := array_fill(0::bigint, ARRAY[nf]);

  PERFORM 1 FROM ledger_accounts a WHERE a.id = ANY (b_account || f_account) ORDER BY a.id FOR NO KEY UPDATE;

  -- In `skip` and in the ledger's batch the finishes come first: what they release can be reserved again.
  IF nf > 0 THEN
    FOR r IN
      SELECT x.ord::integer AS ord, x.phase, c.state
      FROM unnest(f_account, f_id, f_phase) WITH ORDINALITY AS x (account, id, phase, ord)
      LEFT JOIN calls c ON c.account_id = x.account AND c.id = x.id
      WHERE c.state IS DISTINCT FROM 0
    LOOP
      skip[r.ord] := true;
      IF r.state IS DISTINCT FROM r.phase - 2 THEN f_status[r.ord] := 1; END IF;
    END LOOP;

    UPDATE calls c
    SET state = x.phase - 2, finished_at = p_now, outcome = x.outcome
    FROM unnest(f_account, f_id, f_phase, f_outcome) WITH ORDINALITY AS x (account, id, phase, outcome, ord)
    WHERE NOT skip[x.ord] AND c.account_id = x.account AND c.id = x.id;
  END IF;

  IF nb > 0 THEN
    -- Keys that cannot pay, or not for everything. Most batches have none.
    FOR r IN
      SELECT k.id, k.account_id, k.status, k.expires_at <= p_now AS expired, k.cap_per_call_micros AS call_cap,
             k.cap_per_day_micros AS day_cap, a.debits_posted
      FROM (SELECT DISTINCT key FROM unnest(b_key) AS u (key)) x
      JOIN api_keys k ON k.id = x.key
      JOIN ledger_accounts a ON a.id = k.account_id
      WHERE k.status <> 'active' OR k.expires_at <= p_now OR k.cap_per_call_micros IS NOT NULL
         OR k.cap_per_day_micros IS NOT NULL
    LOOP
      IF r.day_cap IS NOT NULL THEN
        r.day_cap := r.debits_posted + r.day_cap - coalesce((
          SELECT sum(s.spent_micros) FROM call_spending s WHERE s.account_id = r.account_id AND s.day = today), 0);
        ceiling := coalesce(ceiling, array_fill(NULL::bigint, ARRAY[nf + nb]));
      END IF;
      FOR i IN 1..nb LOOP
        CONTINUE WHEN b_key[i] IS DISTINCT FROM r.id;
        IF r.status = 'revoked' THEN b_status[i] := 10;
        ELSIF r.expired THEN b_status[i] := 11;
        ELSIF r.status = 'frozen' THEN b_status[i] := 12;
        ELSIF r.call_cap < b_price[i] THEN b_status[i] := 13;
        ELSIF r.day_cap IS NOT NULL THEN ceiling[nf + i] := r.day_cap;
        END IF;
        skip[nf + i] := b_status[i] <> 0;
      END LOOP;
    END LOOP;

    IF b_identity <> array_fill(NULL::text, ARRAY[nb]) THEN
      FOR r IN
        SELECT x.ord::integer AS ord, x.account, x.fingerprint, c.id, c.state, c.fingerprint AS c_fingerprint
        FROM unnest(b_account, b_identity, b_fingerprint) WITH ORDINALITY AS x (account, identity, fingerprint, ord)
        JOIN calls c ON c.account_id = x.account AND c.identity = x.identity
        WHERE x.identity IS NOT NULL AND b_status[x.ord] NOT IN (10, 12)
      LOOP
        IF r.state = 2 THEN
          -- Nothing was ever taken for it: the payment is free to buy again. The row stays as history.
          UPDATE calls SET identity = NULL WHERE account_id = r.account AND id = r.id;
        ELSE
          IF r.c_fingerprint <> r.fingerprint THEN b_status[r.ord] := 22;
          ELSIF r.state = 1 THEN b_status[r.ord] := 20; b_answered[r.ord] := r.id;
          ELSIF r.id <> b_id[r.ord] THEN b_status[r.ord] := 21;
          END IF;
          skip[nf + r.ord] := b_status[r.ord] <> 0;
        END IF;
      END LOOP;
    END IF;
  END IF;

  SELECT l.status, l.available INTO l_status, l_available
  FROM ledger_apply(f_account || b_account, f_id || b_id, f_phase || array_fill(2::smallint, ARRAY[nb]),
                    f_account || b_account, f_revenue || b_revenue, f_price || b_price,
                    array_fill('call'::text, ARRAY[nf + nb]), NULL, ceiling, skip, p_now, true) l;
  f_available := l_available[:nf];
  b_available := l_available[nf + 1:];

  IF nf > 0 THEN
    -- What had been done before went past the ledger this time, and is told all the same what is left.
    FOR i IN 1..nf LOOP
      IF skip[i] THEN
        f_available[i] := coalesce((
          SELECT a.credits_posted - a.debits_posted - a.debits_pending
          FROM ledger_accounts a WHERE a.id = f_account[i] AND NOT a.house), 0);
      END IF;
    END LOOP;

    IF 0 <> ANY (l_status[:nf]) THEN
      RAISE EXCEPTION 'an open call has no open transfer: ledger status %', l_status[:nf];
    END IF;

    IF f_answer_status <> array_fill(NULL::smallint, ARRAY[nf]) THEN
      INSERT INTO call_answers (account_id, id, status, headers, body, expires_at)
      SELECT x.account, x.id, x.status, x.headers::jsonb, x.body, p_now + p_answer_ttl
      FROM unnest(f_account, f_id, f_answer_status, f_answer_headers, f_answer_body)
             WITH ORDINALITY AS x (account, id, status, headers, body, ord)
      WHERE NOT skip[x.ord] AND f_phase[x.ord] = 3 AND x.status IS NOT NULL;
    END IF;

    INSERT INTO call_spending AS s (account_id, day, service, calls, spent_micros)
    SELECT x.account, today, x.service, count(*), sum(x.price)::bigint
    FROM unnest(f_account, f_service, f_price) WITH ORDINALITY AS x (account, service, price, ord)
    WHERE NOT skip[x.ord] AND f_phase[x.ord] = 3
    GROUP BY x.account, x.service
    ON CONFLICT (account_id, day, service)
    DO UPDATE SET calls = s.calls + excluded.calls, spent_micros = s.spent_micros + excluded.spent_micros;
  END IF;

  IF nb > 0 THEN
    FOR i IN 1..nb LOOP
      IF l_status[nf + i] <> 0 THEN b_status[i] := l_status[nf + i]; skip[nf + i] := true; END IF;
    END LOOP;

    INSERT INTO calls
      (account_id, id, rail, key_id, service, price_micros, identity, fingerprint, created_at, expires_at)
    SELECT x.account, x.id, x.rail, x.key, x.service, x.price, x.identity, x.fingerprint, p_now,
           p_now + x.ttl_ms * interval '1 millisecond'
    FROM unnest(b_account, b_id, b_key, b_rail, b_service, b_price, b_identity, b_fingerprint, b_ttl_ms)
           WITH ORDINALITY AS x (account, id, key, rail, service, price, identity, fingerprint, ttl_ms, ord)
    WHERE NOT skip[nf + x.ord]
    ON CONFLICT (account_id, id) DO NOTHING;
  END IF;
END
$$;
