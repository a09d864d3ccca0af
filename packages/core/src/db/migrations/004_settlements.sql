-- Calls that are paid on a chain: the chain decides, and a row here is what is needed to hear it, to make it decide,
-- and to prove afterwards that it did.

INSERT INTO ledger_accounts (id, house, name) VALUES
  (5, true, 'chain_clearing'), (6, true, 'revenue_x402'), (7, true, 'revenue_mpp'), (8, true, 'settlement_losses');

-- calls.state 3: kept. Its answer is stored (or its payment is sent before it runs) and what becomes of it stands in
-- `settlements`; only that row's outcome captures or releases it.
-- What the chain itself takes at most once, such as an authorization's nonce; `identity` may be the payer's own name
-- for the payment, so that one name with two signatures is still one purchase.
ALTER TABLE calls ADD COLUMN payment_key text;
CREATE UNIQUE INDEX calls_payment_key ON calls (account_id, payment_key) WHERE payment_key IS NOT NULL;

CREATE TABLE settlements (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  rail text NOT NULL,
  -- CAIP-2, such as eip155:8453
  network text NOT NULL,
  asset text NOT NULL,
  payer text NOT NULL,
  pay_to text NOT NULL,
  amount_units bigint NOT NULL,
  -- What was presented, from which anybody who holds it can settle: it can pay nobody but us.
  evidence jsonb NOT NULL,
  -- Whether the answer is stored. If not, the service runs only after the money has come.
  answered boolean NOT NULL,
  -- 0 with the chain   1 settled   2 dead: it can never settle   3 refused by us; watched until it is dead
  -- 4 lost: it was settled, and the chain forgot it
  state smallint NOT NULL DEFAULT 0,
  -- After this the chain would refuse it.
  dead_after timestamptz NOT NULL,
  -- Nobody else touches it before this.
  lease_until timestamptz NOT NULL,
  -- When the reconciler looks at it next, if nobody else did.
  next_at timestamptz NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  -- How often in a row the chain did not know the transaction.
  missed integer NOT NULL DEFAULT 0,
  reason text,
  transaction text,
  block bigint,
  created_at timestamptz NOT NULL,
  settled_at timestamptz,
  -- When the transaction was found deep enough in the chain to stay.
  final_at timestamptz,
  PRIMARY KEY (account_id, call_id)
) WITH (fillfactor = 80);
-- What a job has to look at: rows leave this index when nothing can happen to them any more.
CREATE INDEX settlements_due ON settlements (next_at) WHERE final_at IS NULL AND state <> 2;
CREATE INDEX settlements_payer ON settlements (payer, created_at);

-- Money that goes back on a chain, because what it paid for could not be delivered.
CREATE TABLE refunds (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  network text NOT NULL,
  asset text NOT NULL,
  payee text NOT NULL,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  reason text NOT NULL,
  -- 0 owed   1 paid
  state smallint NOT NULL DEFAULT 0,
  transaction text,
  created_at timestamptz NOT NULL,
  next_at timestamptz NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  paid_at timestamptz,
  PRIMARY KEY (account_id, call_id)
);
CREATE INDEX refunds_due ON refunds (next_at) WHERE state = 0;

-- Sign-in nonces that were used, until they would be refused for their age.
CREATE TABLE sign_in_nonces (
  nonce text NOT NULL,
  address text NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (nonce, address)
);
CREATE INDEX sign_in_nonces_expiry ON sign_in_nonces (expires_at);

DROP FUNCTION calls_apply;

-- Begins, keeps and finishes paid calls, in one batch and one commit with their transfers. Finishes come first: what
-- they release can be reserved again by the begins of the same batch.
--
-- Begins with an identity or a payment key must have different ones within a batch, and no call may come twice (the
-- caller sees to it).
-- f_phase: 3 captures, 4 releases; as in the ledger. f_kept: whether the call must be kept (3) or authorized (0).
--
-- b_status[i]:  0 authorized   1 not enough available   2 above the day's cap   3 the id is taken
--              10 key revoked  11 key expired  12 key frozen  13 above the cap per call
--              20 this payment was answered, by the call b_answered[i]   21 it is being answered by another call
--              22 it was made for another request   23 it is with the chain, for the call b_answered[i]
-- k_status[i]:  0 kept (also when it had been before)  1 no longer open
-- f_status[i]:  0 done (also when it had been done before)  1 no longer open: the reconciler released it
-- *_available[i]: what the account can spend after it, in micro-USD; 0 where nothing was asked of the ledger.
-- No array that comes back holds a NULL: the driver does not read them.
CREATE FUNCTION calls_apply(
  b_account bigint[], b_id uuid[], b_key bigint[], b_rail text[], b_service text[], b_price bigint[],
  b_revenue bigint[], b_identity text[], b_payment_key text[], b_fingerprint bytea[],
  b_ttl_ms integer[],
  k_account bigint[], k_id uuid[], k_rail text[], k_network text[], k_asset text[], k_payer text[], k_pay_to text[],
  k_amount bigint[], k_evidence text[], k_dead_after timestamptz[], k_lease_ms integer[],
  k_answer_status smallint[], k_answer_headers text[], k_answer_body text[],
  f_account bigint[], f_id uuid[], f_phase smallint[], f_price bigint[], f_revenue bigint[], f_service text[],
  f_outcome text[], f_kept boolean[], f_transaction text[], f_block bigint[], f_answer_status smallint[],
  f_answer_headers text[], f_answer_body text[],
  p_answer_ttl interval, p_now timestamptz,
  OUT b_status smallint[], OUT b_available bigint[], OUT b_answered uuid[], OUT k_status smallint[],
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
  nk integer := cardinality(k_id);
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
  k_status := array_fill(0::smallint, ARRAY[nk]);
  f_status := array_fill(0::smallint, ARRAY[nf]);
  f_available := array_fill(0::bigint, ARRAY[nf]);

  PERFORM 1 FROM ledger_accounts a WHERE a.id = ANY (b_account || k_account || f_account) ORDER BY a.id FOR NO KEY UPDATE;

  IF nk > 0 THEN
    UPDATE calls c SET state = 3
    FROM unnest(k_account, k_id) AS x (account, id)
    WHERE c.account_id = x.account AND c.id = x.id AND c.state = 0;

    FOR r IN
      SELECT x.ord::integer AS ord, c.state
      FROM unnest(k_account, k_id) WITH ORDINALITY AS x (account, id, ord)
      LEFT JOIN calls c ON c.account_id = x.account AND c.id = x.id
      WHERE c.state IS DISTINCT FROM 3
    LOOP
      k_status[r.ord] := 1;
    END LOOP;

    INSERT INTO settlements (account_id, call_id, rail, network, asset, payer, pay_to, amount_units, evidence, answered,
                             dead_after, lease_until, next_at, created_at)
    SELECT x.account, x.id, x.rail, x.network, x.asset, x.payer, x.pay_to, x.amount, x.evidence::jsonb,
           x.status IS NOT NULL, x.dead_after, p_now + x.lease_ms * interval '1 millisecond',
           p_now + x.lease_ms * interval '1 millisecond', p_now
    FROM unnest(k_account, k_id, k_rail, k_network, k_asset, k_payer, k_pay_to, k_amount, k_evidence, k_dead_after,
                k_lease_ms, k_answer_status)
           WITH ORDINALITY AS x (account, id, rail, network, asset, payer, pay_to, amount, evidence, dead_after,
                                 lease_ms, status, ord)
    WHERE k_status[x.ord] = 0
    ON CONFLICT (account_id, call_id) DO NOTHING;

    INSERT INTO call_answers (account_id, id, status, headers, body, expires_at)
    SELECT x.account, x.id, x.status, x.headers::jsonb, x.body, p_now + p_answer_ttl
    FROM unnest(k_account, k_id, k_answer_status, k_answer_headers, k_answer_body)
           WITH ORDINALITY AS x (account, id, status, headers, body, ord)
    WHERE k_status[x.ord] = 0 AND x.status IS NOT NULL
    ON CONFLICT (account_id, id) DO NOTHING;
  END IF;

  -- In `skip` and in the ledger's batch the finishes come first: what they release can be reserved again.
  IF nf > 0 THEN
    FOR r IN
      SELECT x.ord::integer AS ord, x.phase, c.state
      FROM unnest(f_account, f_id, f_phase, f_kept) WITH ORDINALITY AS x (account, id, phase, kept, ord)
      LEFT JOIN calls c ON c.account_id = x.account AND c.id = x.id
      WHERE c.state IS DISTINCT FROM CASE WHEN x.kept THEN 3 ELSE 0 END
    LOOP
      skip[r.ord] := true;
      IF r.state IS DISTINCT FROM r.phase - 2 THEN f_status[r.ord] := 1; END IF;
    END LOOP;

    UPDATE calls c
    SET state = x.phase - 2, finished_at = p_now, outcome = x.outcome
    FROM unnest(f_account, f_id, f_phase, f_outcome) WITH ORDINALITY AS x (account, id, phase, outcome, ord)
    WHERE NOT skip[x.ord] AND c.account_id = x.account AND c.id = x.id;

    IF true = ANY (f_kept) THEN
      UPDATE settlements s
      SET state = CASE x.phase WHEN 3 THEN 1 ELSE 2 END, transaction = coalesce(x.transaction, s.transaction),
          block = coalesce(x.block, s.block), settled_at = CASE x.phase WHEN 3 THEN p_now END,
          reason = CASE x.phase WHEN 3 THEN s.reason ELSE x.outcome END, lease_until = p_now,
          next_at = p_now + interval '15 seconds'
      FROM unnest(f_account, f_id, f_phase, f_outcome, f_kept, f_transaction, f_block)
             WITH ORDINALITY AS x (account, id, phase, outcome, kept, transaction, block, ord)
      WHERE NOT skip[x.ord] AND x.kept AND s.account_id = x.account AND s.call_id = x.id;

      DELETE FROM call_answers a
      USING unnest(f_account, f_id, f_phase, f_kept) WITH ORDINALITY AS x (account, id, phase, kept, ord)
      WHERE NOT skip[x.ord] AND x.kept AND x.phase = 4 AND a.account_id = x.account AND a.id = x.id;
    END IF;
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
          UPDATE calls SET identity = NULL, payment_key = NULL WHERE account_id = r.account AND id = r.id;
        ELSE
          IF r.c_fingerprint <> r.fingerprint THEN b_status[r.ord] := 22;
          ELSIF r.state = 1 THEN b_status[r.ord] := 20; b_answered[r.ord] := r.id;
          ELSIF r.state = 3 THEN b_status[r.ord] := 23; b_answered[r.ord] := r.id;
          ELSIF r.id <> b_id[r.ord] THEN b_status[r.ord] := 21;
          END IF;
          skip[nf + r.ord] := b_status[r.ord] <> 0;
        END IF;
      END LOOP;
    END IF;

    -- The same payment under another name.
    IF b_payment_key <> array_fill(NULL::text, ARRAY[nb]) THEN
      FOR r IN
        SELECT x.ord::integer AS ord, x.account, x.fingerprint, c.id, c.state, c.fingerprint AS c_fingerprint
        FROM unnest(b_account, b_payment_key, b_fingerprint) WITH ORDINALITY AS x (account, key, fingerprint, ord)
        JOIN calls c ON c.account_id = x.account AND c.payment_key = x.key
        WHERE x.key IS NOT NULL AND b_status[x.ord] = 0
      LOOP
        IF r.state = 2 THEN
          UPDATE calls SET identity = NULL, payment_key = NULL WHERE account_id = r.account AND id = r.id;
        ELSE
          IF r.c_fingerprint <> r.fingerprint THEN b_status[r.ord] := 22;
          ELSIF r.state = 1 THEN b_status[r.ord] := 20; b_answered[r.ord] := r.id;
          ELSIF r.state = 3 THEN b_status[r.ord] := 23; b_answered[r.ord] := r.id;
          ELSIF r.id <> b_id[r.ord] THEN b_status[r.ord] := 21;
          END IF;
          skip[nf + r.ord] := b_status[r.ord] <> 0;
        END IF;
      END LOOP;
    END IF;
  END IF;

  IF nf + nb = 0 THEN RETURN; END IF;

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
      WHERE NOT skip[x.ord] AND f_phase[x.ord] = 3 AND x.status IS NOT NULL
      ON CONFLICT (account_id, id) DO NOTHING;
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
      (account_id, id, rail, key_id, service, price_micros, identity, payment_key, fingerprint, created_at, expires_at)
    SELECT x.account, x.id, x.rail, x.key, x.service, x.price, x.identity, x.payment_key, x.fingerprint, p_now,
           p_now + x.ttl_ms * interval '1 millisecond'
    FROM unnest(b_account, b_id, b_key, b_rail, b_service, b_price, b_identity, b_payment_key, b_fingerprint, b_ttl_ms)
           WITH ORDINALITY
           AS x (account, id, key, rail, service, price, identity, payment_key, fingerprint, ttl_ms, ord)
    WHERE NOT skip[nf + x.ord]
    ON CONFLICT (account_id, id) DO NOTHING;
  END IF;
END
$$;

-- Transactions of our own keys. A nonce is given out together with the signed transaction that uses it, in one commit,
-- so that none is ever given twice and none is left without a transaction to fill it.
CREATE TABLE relayers (
  network text NOT NULL,
  address text NOT NULL,
  next_nonce bigint NOT NULL,
  PRIMARY KEY (network, address)
);

CREATE TABLE relayer_transactions (
  network text NOT NULL,
  address text NOT NULL,
  nonce bigint NOT NULL,
  -- What it is for: one pending transaction each.
  id text NOT NULL,
  to_address text NOT NULL,
  data text NOT NULL,
  gas_limit bigint NOT NULL,
  max_fee_wei numeric NOT NULL,
  -- The signed transaction that was sent last, and the hashes of all that were sent with this nonce.
  raw text NOT NULL,
  hashes text[] NOT NULL,
  -- The hash of a transfer of nothing that fills the nonce in its stead.
  filler text,
  -- 0 pending   1 success   2 reverted   3 given up: its nonce was filled with a transfer of nothing
  state smallint NOT NULL DEFAULT 0,
  block bigint,
  created_at timestamptz NOT NULL,
  sent_at timestamptz NOT NULL,
  PRIMARY KEY (network, address, nonce)
);
CREATE UNIQUE INDEX relayer_transactions_pending ON relayer_transactions (network, id) WHERE state = 0;
CREATE INDEX relayer_transactions_id ON relayer_transactions (network, id);
