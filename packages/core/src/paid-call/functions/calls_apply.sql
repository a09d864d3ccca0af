-- Begins, keeps and finishes paid calls, in one batch and one commit with their transfers. Finishes come first: what
-- they release can be reserved again by the begins of the same batch. It waits for nobody's lock.
--
-- Begins with an identity or a payment key must have different ones within a batch, and no call may come twice (the
-- caller sees to it).
-- f_phase: 3 captures, 4 releases; as in the ledger. f_kept: whether the call must be kept (3) or authorized (0).
-- p_holder: the process that runs them, by its row in `replicas`.
-- p_may_be_lost: as in `calls_begin`; never for finishes.
--
-- b_status[i]:  0 authorized   1 not enough available   2 above the day's cap   3 the id is taken
--              10 key revoked  11 key expired  12 key frozen  13 above the cap per call
--              20 this payment was answered, by the call b_answered[i]   21 it is being answered by another call
--              22 it was made for another request   23 it is with the chain, for the call b_answered[i]
--              30 somebody else holds the account, or is claiming the payment or another one of its payer; nothing was
--                 done
--              40 the payer has more in flight, and its balance is needed   41 its balance does not hold all of it
--              42 this payer has not paid yet, and has another call in flight that costs us money
-- k_status[i]:  0 kept (also when it had been before)  1 no longer open  2 somebody else holds it; nothing was done
-- f_status[i]:  0 done (also when it had been done before)  1 no longer open: the reconciler released it
--               2 somebody else holds it; nothing was done
-- b_payer[i]: who signed the payment that a chain has to settle; NULL where there is none. Payers are different ones within
-- a batch. b_holds[i]: the payer's balance, as it was read after b_since[i]; NULL: it was not read. b_costs[i]: the
-- service asks an upstream that charges us. b_only_one[i]: and money cannot be sent back.
-- seen_at: when all of it was looked at, by the database's clock and to the microsecond, which a driver's time is not.
-- b_in_flight[i]: what else the payer has in flight. b_known[i]: whether the payer has paid in the last 90 days; true where
-- that is of no interest.
-- *_available[i]: what the account can spend after it, in micro-USD; 0 where nothing was asked of the ledger.
-- No array that comes back holds a NULL: the driver does not read them.
CREATE OR REPLACE FUNCTION calls_apply(
  p_bucket smallint,
  b_account bigint[], b_id uuid[], b_key bigint[], b_rail text[], b_service text[], b_price bigint[],
  b_revenue bigint[], b_identity text[], b_payment_key text[], b_fingerprint bytea[],
  b_ttl_ms integer[], b_network text[], b_asset text[], b_payer text[], b_amount bigint[], b_costs boolean[],
  b_only_one boolean[], b_holds bigint[], b_since timestamptz[],
  k_account bigint[], k_id uuid[], k_rail text[], k_network text[], k_asset text[], k_payer text[], k_pay_to text[],
  k_amount bigint[], k_evidence text[], k_dead_after timestamptz[], k_lease_ms integer[],
  k_answer_status smallint[], k_answer_headers text[], k_answer_body text[],
  f_account bigint[], f_id uuid[], f_phase smallint[], f_price bigint[], f_revenue bigint[], f_service text[],
  f_outcome text[], f_kept boolean[], f_transaction text[], f_block bigint[], f_answer_status smallint[],
  f_answer_headers text[], f_answer_body text[],
  p_answer_ttl interval, p_now timestamptz, p_holder bigint, p_may_be_lost boolean,
  OUT b_status smallint[], OUT b_available bigint[], OUT b_answered uuid[],
  OUT b_in_flight bigint[], OUT b_known boolean[], OUT seen_at text, OUT k_status smallint[],
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
  customers bigint[];
  held bigint[];
  held_calls uuid[];
  any_of_house boolean;
  other record;
  units bigint; costs boolean; is_open boolean;
  moved timestamptz;
BEGIN
  IF p_may_be_lost THEN
    IF nf > 0 THEN RAISE EXCEPTION 'what ends may not be lost'; END IF;
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;
  seen_at := clock_timestamp()::text;
  b_in_flight := array_fill(0::bigint, ARRAY[nb]);
  b_known := array_fill(true, ARRAY[nb]);
  b_status := array_fill(0::smallint, ARRAY[nb]);
  b_available := array_fill(0::bigint, ARRAY[nb]);
  b_answered := array_fill('00000000-0000-0000-0000-000000000000'::uuid, ARRAY[nb]);
  k_status := array_fill(0::smallint, ARRAY[nk]);
  f_status := array_fill(0::smallint, ARRAY[nf]);
  f_available := array_fill(0::bigint, ARRAY[nf]);

  -- Nothing here waits for a lock. What somebody else holds is left out and said so; whoever asked asks again.
  customers := ARRAY(SELECT DISTINCT u FROM unnest(b_account || k_account || f_account) AS u WHERE u >= 1000);
  held := ARRAY(
    SELECT a.id FROM ledger_accounts a WHERE a.bucket = p_bucket AND a.id = ANY (customers)
    ORDER BY a.id FOR NO KEY UPDATE SKIP LOCKED);
  IF cardinality(held) < cardinality(customers) THEN
    FOR i IN 1..nf LOOP
      IF f_account[i] >= 1000 AND f_account[i] <> ALL (held) THEN f_status[i] := 2; skip[i] := true; END IF;
    END LOOP;
    FOR i IN 1..nk LOOP
      IF k_account[i] >= 1000 AND k_account[i] <> ALL (held) THEN k_status[i] := 2; END IF;
    END LOOP;
    FOR i IN 1..nb LOOP
      IF b_account[i] >= 1000 AND b_account[i] <> ALL (held) THEN b_status[i] := 30; skip[nf + i] := true; END IF;
    END LOOP;
  END IF;

  -- Accounts of the house are not locked: they have no balance that could be overdrawn. What two replicas must not do at
  -- once there is to end the same call, and to claim the same payment.
  any_of_house := EXISTS (SELECT 1 FROM unnest(b_account || k_account || f_account) AS u WHERE u < 1000);
  IF any_of_house AND nk + nf > 0 THEN
    held_calls := ARRAY(
      SELECT c.id FROM unnest(k_account || f_account, k_id || f_id) AS x (account, id)
      JOIN calls__week c ON c.bucket = p_bucket AND c.account_id = x.account AND c.id = x.id
      WHERE x.account < 1000 ORDER BY c.id FOR NO KEY UPDATE OF c SKIP LOCKED);
    FOR r IN
      SELECT x.ord::integer AS ord FROM unnest(k_account || f_account, k_id || f_id)
        WITH ORDINALITY AS x (account, id, ord)
      JOIN calls__week c ON c.bucket = p_bucket AND c.account_id = x.account AND c.id = x.id
      WHERE x.account < 1000 AND x.id <> ALL (held_calls)
    LOOP
      IF r.ord <= nk THEN k_status[r.ord] := 2;
      ELSE f_status[r.ord - nk] := 2; skip[r.ord - nk] := true;
      END IF;
    END LOOP;
    IF true = ANY (f_kept) THEN
      held_calls := ARRAY(
        SELECT s.call_id FROM unnest(f_account, f_id, f_kept) AS x (account, id, kept)
        JOIN settlements s ON s.bucket = p_bucket AND s.account_id = x.account AND s.call_id = x.id
        WHERE x.kept ORDER BY s.call_id FOR NO KEY UPDATE OF s SKIP LOCKED);
      FOR r IN
        SELECT x.ord::integer AS ord FROM unnest(f_account, f_id, f_kept) WITH ORDINALITY AS x (account, id, kept, ord)
        JOIN settlements s ON s.bucket = p_bucket AND s.account_id = x.account AND s.call_id = x.id
        WHERE x.kept AND x.id <> ALL (held_calls)
      LOOP
        f_status[r.ord] := 2; skip[r.ord] := true;
      END LOOP;
    END IF;
  END IF;
  IF any_of_house AND nb > 0 THEN
    -- The unique indexes decide who has a payment. These locks only spare whoever comes second the wait for the first.
    FOR i IN 1..nb LOOP
      CONTINUE WHEN b_account[i] >= 1000;
      IF (b_identity[i] IS NOT NULL
          AND NOT pg_try_advisory_xact_lock(hashtextextended('identity ' || b_account[i] || ' ' || b_identity[i], 0)))
        OR (b_payment_key[i] IS NOT NULL
          AND NOT pg_try_advisory_xact_lock(hashtextextended('payment ' || b_account[i] || ' ' || b_payment_key[i], 0)))
        -- Two payments of one payer must see each other.
        OR (b_payer[i] IS NOT NULL AND NOT pg_try_advisory_xact_lock(hashtextextended('payer ' || b_payer[i], 0)))
      THEN b_status[i] := 30; skip[nf + i] := true;
      END IF;
    END LOOP;
  END IF;

  IF nk > 0 THEN
    UPDATE calls__week c SET state = 3
    FROM unnest(k_account, k_id) WITH ORDINALITY AS x (account, id, ord)
    WHERE k_status[x.ord] = 0 AND c.bucket = p_bucket AND c.account_id = x.account AND c.id = x.id AND c.state = 0;

    FOR r IN
      SELECT x.ord::integer AS ord, c.state
      FROM unnest(k_account, k_id) WITH ORDINALITY AS x (account, id, ord)
      LEFT JOIN calls__week c ON c.bucket = p_bucket AND c.account_id = x.account AND c.id = x.id
      WHERE k_status[x.ord] = 0 AND c.state IS DISTINCT FROM 3
    LOOP
      k_status[r.ord] := 1;
    END LOOP;

    INSERT INTO settlements (bucket, account_id, call_id, rail, network, asset, payer, pay_to, amount_units, evidence, answered,
                             dead_after, lease_until, holder, next_at, created_at)
    SELECT p_bucket, x.account, x.id, x.rail, x.network, x.asset, x.payer, x.pay_to, x.amount, x.evidence::jsonb,
           x.status IS NOT NULL, x.dead_after, p_now + x.lease_ms * interval '1 millisecond', p_holder,
           p_now + x.lease_ms * interval '1 millisecond', p_now
    FROM unnest(k_account, k_id, k_rail, k_network, k_asset, k_payer, k_pay_to, k_amount, k_evidence, k_dead_after,
                k_lease_ms, k_answer_status)
           WITH ORDINALITY AS x (account, id, rail, network, asset, payer, pay_to, amount, evidence, dead_after,
                                 lease_ms, status, ord)
    WHERE k_status[x.ord] = 0
    ON CONFLICT DO NOTHING;

    INSERT INTO call_answers__week (bucket, account_id, id, status, headers, body, expires_at)
    SELECT p_bucket, x.account, x.id, x.status, x.headers::jsonb, x.body, p_now + p_answer_ttl
    FROM unnest(k_account, k_id, k_answer_status, k_answer_headers, k_answer_body)
           WITH ORDINALITY AS x (account, id, status, headers, body, ord)
    WHERE k_status[x.ord] = 0 AND x.status IS NOT NULL
    ON CONFLICT DO NOTHING;
  END IF;

  -- In `skip` and in the ledger's batch the finishes come first: what they release can be reserved again.
  IF nf > 0 THEN
    FOR r IN
      SELECT x.ord::integer AS ord, x.phase, c.state
      FROM unnest(f_account, f_id, f_phase, f_kept) WITH ORDINALITY AS x (account, id, phase, kept, ord)
      LEFT JOIN calls__week c ON c.bucket = p_bucket AND c.account_id = x.account AND c.id = x.id
      WHERE f_status[x.ord] = 0 AND c.state IS DISTINCT FROM CASE WHEN x.kept THEN 3 ELSE 0 END
    LOOP
      skip[r.ord] := true;
      IF r.state IS DISTINCT FROM r.phase - 2 THEN f_status[r.ord] := 1; END IF;
    END LOOP;

    UPDATE calls__week c
    SET state = x.phase - 2, finished_at = p_now, outcome = x.outcome
    FROM unnest(f_account, f_id, f_phase, f_outcome) WITH ORDINALITY AS x (account, id, phase, outcome, ord)
    WHERE NOT skip[x.ord] AND c.bucket = p_bucket AND c.account_id = x.account AND c.id = x.id;

    IF true = ANY (f_kept) THEN
      UPDATE settlements s
      SET state = CASE WHEN x.phase = 3 THEN 1 ELSE 2 END, transaction = coalesce(x.transaction, s.transaction),
          block = coalesce(x.block, s.block), settled_at = CASE WHEN x.phase = 3 THEN p_now END,
          reason = CASE WHEN x.phase = 3 THEN s.reason ELSE x.outcome END, lease_until = p_now,
          next_at = p_now + interval '15 seconds'
      FROM unnest(f_account, f_id, f_phase, f_outcome, f_kept, f_transaction, f_block)
             WITH ORDINALITY AS x (account, id, phase, outcome, kept, transaction, block, ord)
      WHERE NOT skip[x.ord] AND x.kept AND s.bucket = p_bucket AND s.account_id = x.account AND s.call_id = x.id;

      DELETE FROM call_answers__week a
      USING unnest(f_account, f_id, f_phase, f_kept) WITH ORDINALITY AS x (account, id, phase, kept, ord)
      WHERE NOT skip[x.ord] AND x.kept AND x.phase = 4
        AND a.bucket = p_bucket AND a.account_id = x.account AND a.id = x.id;
    END IF;

    IF any_of_house THEN
      moved := clock_timestamp();
      UPDATE payments_in_flight p SET moved_at = moved
      FROM unnest(f_account, f_id, f_phase) WITH ORDINALITY AS x (account, id, phase, ord)
      WHERE NOT skip[x.ord] AND x.phase = 3 AND x.account < 1000
        AND p.bucket = p_bucket AND p.account_id = x.account AND p.call_id = x.id
        AND p.moved_at IS NULL;

      DELETE FROM payments_in_flight p
      USING unnest(f_account, f_id, f_phase) WITH ORDINALITY AS x (account, id, phase, ord)
      WHERE NOT skip[x.ord] AND x.phase = 4 AND x.account < 1000
        AND p.bucket = p_bucket AND p.account_id = x.account AND p.call_id = x.id;
    END IF;
  END IF;

  IF nb > 0 THEN
    -- Keys that cannot pay, or not for everything. Most batches have none. As in `calls_begin`, one without a row is revoked.
    FOR r IN
      SELECT x.key AS id, k.account_id, coalesce(k.status, 'revoked') AS status, k.expires_at <= p_now AS expired, k.cap_per_call_micros AS call_cap,
             k.cap_per_day_micros AS day_cap, a.debits_posted
      FROM (SELECT DISTINCT key FROM unnest(b_key) AS u (key) WHERE key IS NOT NULL) x
      LEFT JOIN api_keys k ON k.bucket = p_bucket AND k.id = x.key
      LEFT JOIN ledger_accounts a ON a.bucket = p_bucket AND a.id = k.account_id
      WHERE k.status IS DISTINCT FROM 'active' OR k.expires_at <= p_now OR k.cap_per_call_micros IS NOT NULL
         OR k.cap_per_day_micros IS NOT NULL
    LOOP
      IF r.day_cap IS NOT NULL THEN
        r.day_cap := r.debits_posted + r.day_cap - coalesce((
          -- As in `calls_begin`: another replica may count for the next day already.
          SELECT max(d.spent) FROM (
            SELECT sum(s.spent_micros) AS spent FROM call_spending s
            WHERE s.bucket = p_bucket AND s.account_id = r.account_id AND s.day >= today AND s.day <= today + 1 GROUP BY s.day) d), 0);
        ceiling := coalesce(ceiling, array_fill(NULL::bigint, ARRAY[nf + nb]));
      END IF;
      FOR i IN 1..nb LOOP
        CONTINUE WHEN b_key[i] IS DISTINCT FROM r.id OR b_status[i] = 30;
        IF r.status = 'revoked' THEN b_status[i] := 10;
        ELSIF r.expired THEN b_status[i] := 11;
        ELSIF r.status = 'frozen' THEN b_status[i] := 12;
        ELSIF r.call_cap < b_price[i] THEN b_status[i] := 13;
        ELSIF r.day_cap IS NOT NULL THEN ceiling[nf + i] := r.day_cap;
        END IF;
        skip[nf + i] := b_status[i] <> 0;
      END LOOP;
    END LOOP;

    -- What a payment bought before, and then the same payment under its other name. The call is one of any week.
    FOR which IN 0..1 LOOP
      CONTINUE WHEN which = 0 AND b_identity = array_fill(NULL::text, ARRAY[nb])
        OR which = 1 AND b_payment_key = array_fill(NULL::text, ARRAY[nb]);
      FOR r IN
        SELECT x.ord::integer AS ord, x.account, x.fingerprint, e.call_id AS id
        FROM unnest(b_account, CASE which WHEN 0 THEN b_identity ELSE b_payment_key END, b_fingerprint)
               WITH ORDINALITY AS x (account, identity, fingerprint, ord)
        CROSS JOIN LATERAL (
          SELECT i.call_id FROM call_identities i
          WHERE i.bucket = p_bucket AND i.account_id = x.account AND i.kind = which AND i.identity = x.identity OFFSET 0
        ) e
        WHERE x.identity IS NOT NULL
          AND CASE which WHEN 0 THEN b_status[x.ord] NOT IN (10, 12, 30) ELSE b_status[x.ord] = 0 END
      LOOP
        SELECT c.state, c.fingerprint, c.identity, c.payment_key INTO other
        FROM calls c WHERE c.bucket = p_bucket AND c.account_id = r.account AND c.id = r.id;
        IF other.state = 2 THEN
          -- Nothing was ever taken for it: the payment is free to buy again. The row stays as history.
          UPDATE calls SET identity = NULL, payment_key = NULL
          WHERE bucket = p_bucket AND account_id = r.account AND id = r.id;
          DELETE FROM call_identities i
          WHERE i.bucket = p_bucket AND i.account_id = r.account AND i.kind = 0 AND i.identity = other.identity AND i.call_id = r.id;
          DELETE FROM call_identities i
          WHERE i.bucket = p_bucket AND i.account_id = r.account AND i.kind = 1 AND i.identity = other.payment_key AND i.call_id = r.id;
        ELSE
          IF other.fingerprint <> r.fingerprint THEN b_status[r.ord] := 22;
          ELSIF other.state = 1 THEN b_status[r.ord] := 20; b_answered[r.ord] := r.id;
          ELSIF other.state = 3 THEN b_status[r.ord] := 23; b_answered[r.ord] := r.id;
          ELSIF r.id <> b_id[r.ord] THEN b_status[r.ord] := 21;
          END IF;
          skip[nf + r.ord] := b_status[r.ord] <> 0;
        END IF;
      END LOOP;
    END LOOP;

    FOR i IN 1..nb LOOP
      CONTINUE WHEN b_payer[i] IS NULL OR b_status[i] <> 0;
      IF b_costs[i] THEN
        b_known[i] := EXISTS (
          SELECT 1 FROM settlements s JOIN calls c ON c.bucket = p_bucket AND c.account_id = s.account_id AND c.id = s.call_id
          WHERE s.bucket = p_bucket AND s.account_id = b_account[i] AND s.payer = b_payer[i] AND s.created_at > p_now - interval '90 days'
            AND s.state = 1 AND c.state = 1 AND c.outcome = 'answered');
      END IF;
      -- An earlier attempt to begin this very call may have been committed and not heard.
      CONTINUE WHEN EXISTS (
        SELECT 1 FROM payments_in_flight p
        WHERE p.bucket = p_bucket AND p.account_id = b_account[i] AND p.call_id = b_id[i]);
      units := 0; costs := false;
      FOR r IN
        SELECT p.account_id, p.call_id, p.amount_units, p.costs_money, p.moved_at,
               p.network = b_network[i] AND p.asset = b_asset[i] AS is_same_money
        FROM payments_in_flight p WHERE p.bucket = p_bucket AND p.payer = b_payer[i]
      LOOP
        SELECT c.state IN (0, 3) INTO is_open FROM calls c
        WHERE c.bucket = p_bucket AND c.account_id = r.account_id AND c.id = r.call_id;
        CONTINUE WHEN NOT FOUND;
        IF r.is_same_money AND (r.moved_at IS NULL AND is_open OR r.moved_at >= b_since[i]) THEN
          units := units + r.amount_units;
        END IF;
        costs := costs OR (r.costs_money AND is_open);
      END LOOP;
      b_in_flight[i] := units;
      IF b_only_one[i] AND costs AND NOT b_known[i] THEN b_status[i] := 42;
      ELSIF units = 0 THEN NULL;
      ELSIF b_holds[i] IS NULL THEN b_status[i] := 40;
      ELSIF units + b_amount[i] > b_holds[i] THEN b_status[i] := 41;
      END IF;
      skip[nf + i] := b_status[i] <> 0;
    END LOOP;
  END IF;

  IF nf + nb = 0 THEN RETURN; END IF;

  SELECT l.status, l.available INTO l_status, l_available
  FROM ledger_apply(p_bucket, f_account || b_account, f_id || b_id, f_phase || array_fill(2::smallint, ARRAY[nb]),
                    f_account || b_account, f_revenue || b_revenue, f_price || b_price,
                    array_fill('call'::text, ARRAY[nf + nb]), NULL, ceiling, skip, p_now, true) l;
  -- Who comes here is the house's, and the house does not move.
  IF 7 = ANY (l_status) THEN RAISE EXCEPTION 'an account of these calls is not in bucket %', p_bucket; END IF;
  f_available := l_available[:nf];
  b_available := l_available[nf + 1:];

  IF nf > 0 THEN
    -- What had been done before went past the ledger this time, and is told all the same what is left.
    FOR i IN 1..nf LOOP
      IF skip[i] THEN
        f_available[i] := coalesce((
          SELECT a.credits_posted - a.debits_posted - a.debits_pending
          FROM ledger_accounts a WHERE a.bucket = p_bucket AND a.id = f_account[i] AND NOT a.house), 0);
      END IF;
    END LOOP;

    IF 0 <> ANY (l_status[:nf]) THEN
      RAISE EXCEPTION 'an open call has no open transfer: ledger status %', l_status[:nf];
    END IF;

    IF f_answer_status <> array_fill(NULL::smallint, ARRAY[nf]) THEN
      INSERT INTO call_answers__week (bucket, account_id, id, status, headers, body, expires_at)
      SELECT p_bucket, x.account, x.id, x.status, x.headers::jsonb, x.body, p_now + p_answer_ttl
      FROM unnest(f_account, f_id, f_answer_status, f_answer_headers, f_answer_body)
             WITH ORDINALITY AS x (account, id, status, headers, body, ord)
      WHERE NOT skip[x.ord] AND f_phase[x.ord] = 3 AND x.status IS NOT NULL
      ON CONFLICT DO NOTHING;
    END IF;

    INSERT INTO call_spending AS s (bucket, account_id, day, service, calls, spent_micros)
    SELECT p_bucket, x.account, today, x.service, count(*), sum(x.price)::bigint
    FROM unnest(f_account, f_service, f_price) WITH ORDINALITY AS x (account, service, price, ord)
    WHERE NOT skip[x.ord] AND f_phase[x.ord] = 3 AND x.account >= 1000
    GROUP BY x.account, x.service
    ON CONFLICT ON CONSTRAINT call_spending_pkey
    DO UPDATE SET calls = s.calls + excluded.calls, spent_micros = s.spent_micros + excluded.spent_micros;
  END IF;

  IF nb > 0 THEN
    FOR i IN 1..nb LOOP
      IF l_status[nf + i] <> 0 THEN b_status[i] := l_status[nf + i]; skip[nf + i] := true; END IF;
    END LOOP;

    -- The key of the identities decides who has a payment. A call that is begun again has made them before.
    WITH made AS (
      INSERT INTO calls__week
        (bucket, account_id, id, rail, key_id, service, price_micros, identity, payment_key, fingerprint, created_at, expires_at,
         holder)
      SELECT p_bucket, x.account, x.id, x.rail, x.key, x.service, x.price, x.identity, x.payment_key, x.fingerprint, p_now,
             p_now + x.ttl_ms * interval '1 millisecond', p_holder
      FROM unnest(b_account, b_id, b_key, b_rail, b_service, b_price, b_identity, b_payment_key, b_fingerprint, b_ttl_ms)
             WITH ORDINALITY
             AS x (account, id, key, rail, service, price, identity, payment_key, fingerprint, ttl_ms, ord)
      WHERE NOT skip[nf + x.ord]
      ON CONFLICT DO NOTHING
      RETURNING account_id, id, identity, payment_key
    )
    INSERT INTO call_identities (bucket, account_id, kind, identity, call_id)
    SELECT p_bucket, account_id, 0, identity, id FROM made WHERE identity IS NOT NULL
    UNION ALL
    SELECT p_bucket, account_id, 1, payment_key, id FROM made WHERE payment_key IS NOT NULL;

    INSERT INTO payments_in_flight (bucket, account_id, call_id, network, asset, payer, amount_units, costs_money)
    SELECT p_bucket, x.account, x.id, x.network, x.asset, x.payer, x.amount, x.costs
    FROM unnest(b_account, b_id, b_network, b_asset, b_payer, b_amount, b_costs)
           WITH ORDINALITY AS x (account, id, network, asset, payer, amount, costs, ord)
    WHERE NOT skip[nf + x.ord] AND x.payer IS NOT NULL
    ON CONFLICT DO NOTHING;
  END IF;
END
$$;
