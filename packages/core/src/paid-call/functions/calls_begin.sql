-- The two phases of a call that a customer's account pays: most calls, so they run only the statements that have
-- something to do. What a chain pays, and what is kept for one, goes through `calls_apply`; the three may stand in one
-- statement, and then the finishes come before the begins.
--
-- Their plans are kept, and each must stay right however the tables grow. A plan that is made while a table fills one page
-- finds reading all of it as cheap as looking up one row, and would still read all of it a million rows later. So rows are
-- looked up where a plan has one way to do it: in a LATERAL query that is not flattened (OFFSET 0), by all columns of a
-- key; and what is changed is named by its `ctid`, which stays what it is while its account is locked. Two weeks have places
-- in common, so a call is named by its table as well.
--
-- `…__week` is the table of one week where all ids of a batch lie in it and its functions are there, as `db/weeks.ts` tells:
-- such a batch touches no other week, however many there are. Otherwise it is the table of all weeks.
--
-- The connection that calls them sets the planner (`db/connection.ts`): set on the function, it would be set and put
-- back with every call.

-- Reserves the prices of calls and claims the payments of those that have an identity, each on its own: one that is
-- refused does not hold back the others. It waits for nobody's lock.
--
-- All accounts are customers', and no call has a payment key. Those with an identity have different ones within a batch,
-- and no call comes twice (the caller sees to it). p_identity, p_fingerprint: NULL arrays where no call has one; p_free,
-- p_per_minute, p_per_day as well: the terms of its account's keys, as in `call_terms_take`.
--
-- p_may_be_lost: whether the commit need not wait for the disk. A crash then undoes all of it: what is reserved, claimed and
-- counted. Only in a statement that holds nothing else, because it is set for all of the transaction.
--
-- status[i], available[i], answered[i]: as b_* of `calls_apply`, and 4, 14, 15 as in `call_terms_take`; 31: the account is not in the
-- bucket, and nothing was done. answered is NULL where
-- no call has an identity. A free call has the price 0, and no transfer.
CREATE OR REPLACE FUNCTION calls_begin(
  p_bucket smallint, p_account bigint[], p_id uuid[], p_key bigint[], p_rail text[], p_service text[], p_price bigint[],
  p_revenue bigint[], p_ttl_ms integer[], p_identity text[], p_fingerprint bytea[], p_now timestamptz,
  p_holder bigint, p_free integer[], p_per_minute integer[], p_per_day integer[],
  p_may_be_lost boolean,
  OUT status smallint[], OUT available bigint[], OUT answered uuid[]
)
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
DECLARE
  r record;
  n integer := cardinality(p_id);
  v_new boolean[] := array_fill(false, ARRAY[n]);
  -- the accounts that we hold, in order of id: where they are, what was taken or is reserved, and what was given
  held bigint[]; held_at tid[]; held_used bigint[]; held_given bigint[];
  -- the next of them, and the account at hand
  h integer := 0;
  cur bigint := NULL;
  is_held boolean; elsewhere boolean;
  used bigint; given bigint;
  -- accounts that reserve more now
  u_at tid[] := '{}'; u_more bigint[] := '{}';
  ceiling bigint;
  s smallint;
  taken smallint;
  e_state smallint; is_other_request boolean;
  found integer;
BEGIN
  IF p_may_be_lost THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
  status := array_fill(0::smallint, ARRAY[n]);
  available := array_fill(0::bigint, ARRAY[n]);
  IF p_identity IS NOT NULL THEN
    answered := array_fill('00000000-0000-0000-0000-000000000000'::uuid, ARRAY[n]);
  END IF;

  SELECT array_agg(l.id), array_agg(l.at), array_agg(l.used), array_agg(l.given)
  INTO held, held_at, held_used, held_given
  FROM (
    SELECT a.id, a.ctid AS at, a.debits_pending + a.debits_posted AS used, a.credits_posted AS given
    FROM ledger_accounts a WHERE a.bucket = p_bucket AND a.id = ANY (p_account)
    ORDER BY a.id FOR NO KEY UPDATE SKIP LOCKED
  ) l;

  FOR r IN
    SELECT x.ord::integer AS ord, x.account, x.price, t.phase AS t_phase,
           t.phase <> 2 OR t.debit_account <> x.account OR t.credit_account <> x.revenue
             OR t.amount_micros <> x.price AS is_other,
           k.status IS DISTINCT FROM 'active' AND x.key IS NOT NULL OR k.expires_at <= p_now
             OR k.cap_per_call_micros < x.price OR k.cap_per_day_micros IS NOT NULL AS is_limited,
           -- A key without a row has been forgotten. Another replica may still know it by its text.
           coalesce(k.status, 'revoked') AS k_status, k.expires_at <= p_now AS is_expired, k.cap_per_call_micros < x.price AS is_above_cap,
           k.account_id AS k_account, k.cap_per_day_micros AS day_cap,
           e.call_id AS e_id, x.identity, x.fingerprint,
           x.free, x.per_minute, x.per_day
    FROM unnest(p_account, p_id, p_key, p_price, p_revenue, p_identity, p_fingerprint, p_free, p_per_minute, p_per_day)
           WITH ORDINALITY AS x (account, id, key, price, revenue, identity, fingerprint, free, per_minute, per_day, ord)
    LEFT JOIN LATERAL (
      SELECT * FROM ledger_transfers__week t
      WHERE t.bucket = p_bucket AND t.account_id = x.account AND t.id = x.id AND t.resolves = false OFFSET 0
    ) t ON true
    LEFT JOIN LATERAL (SELECT * FROM api_keys k WHERE k.bucket = p_bucket AND k.id = x.key OFFSET 0) k ON true
    LEFT JOIN LATERAL (
      SELECT * FROM call_identities i
      WHERE i.bucket = p_bucket AND i.account_id = x.account AND i.kind = 0 AND i.identity = x.identity OFFSET 0
    ) e ON true
    ORDER BY x.account, x.ord
  LOOP
    IF cur IS DISTINCT FROM r.account THEN
      IF is_held AND used > held_used[h] THEN
        u_at := u_at || held_at[h]; u_more := u_more || used - held_used[h];
      END IF;
      cur := r.account;
      is_held := coalesce(held[h + 1] = cur, false);
      IF is_held THEN
        h := h + 1;
        used := held_used[h]; given := held_given[h];
      ELSIF NOT EXISTS (SELECT 1 FROM ledger_accounts a WHERE a.bucket = p_bucket AND a.id = cur) THEN
        elsewhere := true;
      ELSE
        elsewhere := false;
      END IF;
    END IF;
    IF NOT is_held THEN status[r.ord] := CASE WHEN elsewhere THEN 31 ELSE 30 END; CONTINUE; END IF;

    s := 0;
    ceiling := NULL;
    IF r.is_limited THEN
      IF r.k_status = 'revoked' THEN s := 10;
      ELSIF r.is_expired THEN s := 11;
      ELSIF r.k_status = 'frozen' THEN s := 12;
      ELSIF r.is_above_cap THEN s := 13;
      ELSIF r.day_cap IS NOT NULL THEN
        -- Around midnight another replica may count for the next day already. What is begun here may end on either, and may
        -- exceed neither.
        SELECT a.debits_posted + r.day_cap - coalesce((
          SELECT max(s.spent) FROM (
            SELECT sum(d.spent_micros) AS spent FROM call_spending d
            WHERE d.bucket = p_bucket AND d.account_id = a.id AND d.day >= (p_now AT TIME ZONE 'UTC')::date
              AND d.day <= (p_now AT TIME ZONE 'UTC')::date + 1
            GROUP BY d.day) s), 0)
        INTO ceiling FROM ledger_accounts a WHERE a.bucket = p_bucket AND a.id = r.k_account;
      END IF;
    END IF;

    IF r.e_id IS NOT NULL AND s <> 10 AND s <> 12 THEN
      -- A call of any week: the payment may come again long after.
      e_state := NULL;
      SELECT c.state, c.fingerprint <> r.fingerprint INTO e_state, is_other_request
      FROM calls c WHERE c.bucket = p_bucket AND c.account_id = cur AND c.id = r.e_id;
      IF e_state = 2 THEN
        -- Nothing was ever taken for it: the payment is free to buy again. The row stays as history.
        UPDATE calls SET identity = NULL, payment_key = NULL
        WHERE bucket = p_bucket AND account_id = cur AND id = r.e_id;
        DELETE FROM call_identities
        WHERE bucket = p_bucket AND account_id = cur AND kind = 0 AND identity = r.identity;
      ELSIF is_other_request THEN s := 22;
      ELSIF e_state = 1 THEN s := 20; answered[r.ord] := r.e_id;
      ELSIF e_state = 3 THEN s := 23; answered[r.ord] := r.e_id;
      ELSIF r.e_id <> p_id[r.ord] THEN s := 21;
      END IF;
    END IF;

    -- Neither a cap nor the balance bounds a call that is free.
    IF s IN (0, 13) AND r.t_phase IS NULL AND (r.free > 0 OR r.per_minute IS NOT NULL OR r.per_day IS NOT NULL) THEN
      taken := call_terms_take(cur, p_id[r.ord], p_service[r.ord], r.free, r.per_minute, r.per_day,
        s = 0 AND used + r.price <= given AND (used + r.price > ceiling) IS NOT TRUE, p_now);
      IF taken <> 0 THEN s := taken; END IF;
      IF taken = 4 THEN available[r.ord] := given - used; END IF;
    END IF;

    -- What is refused before money is asked for is not told what is left.
    IF s <> 0 THEN status[r.ord] := s; CONTINUE; END IF;
    IF r.t_phase IS NOT NULL THEN
      IF r.is_other THEN s := 3; END IF;
    ELSIF used + r.price > given THEN s := 1;
    ELSIF used + r.price > ceiling THEN s := 2;
    ELSE
      used := used + r.price;
      v_new[r.ord] := true;
    END IF;
    IF s <> 0 THEN status[r.ord] := s; END IF;
    available[r.ord] := given - used;
  END LOOP;
  IF is_held AND used > held_used[h] THEN
    u_at := u_at || held_at[h]; u_more := u_more || used - held_used[h];
  END IF;

  IF cardinality(u_at) > 0 THEN
    UPDATE ledger_accounts a SET debits_pending = a.debits_pending + u.more
    FROM unnest(u_at, u_more) AS u (at, more) WHERE a.bucket = p_bucket AND a.ctid = u.at;
    GET DIAGNOSTICS found = ROW_COUNT;
    IF found <> cardinality(u_at) THEN RAISE EXCEPTION 'an account that was locked is gone'; END IF;

    INSERT INTO ledger_transfers__week
      (bucket, account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
    SELECT p_bucket, x.account, x.id, 2, x.account, x.revenue, x.price, 'call', p_now
    FROM unnest(p_account, p_id, p_revenue, p_price) WITH ORDINALITY AS x (account, id, revenue, price, ord)
    WHERE v_new[x.ord];
  END IF;

  -- Also for what had its transfer before: a call may be missing beside one that somebody else made.
  INSERT INTO calls__week
    (bucket, account_id, id, rail, key_id, service, price_micros, identity, fingerprint, created_at, expires_at, holder)
  SELECT p_bucket, x.account, x.id, x.rail, x.key, x.service, CASE status[x.ord] WHEN 4 THEN 0 ELSE x.price END, x.identity,
         x.fingerprint, p_now,
         p_now + x.ttl_ms * interval '1 millisecond', p_holder
  FROM unnest(p_account, p_id, p_key, p_rail, p_service, p_price, p_identity, p_fingerprint, p_ttl_ms)
         WITH ORDINALITY AS x (account, id, key, rail, service, price, identity, fingerprint, ttl_ms, ord)
  WHERE status[x.ord] IN (0, 4)
  ON CONFLICT DO NOTHING;

  IF p_identity IS NOT NULL THEN
    -- Refused where another call has it. One that is begun again has it already, or has given it up.
    INSERT INTO call_identities AS i (bucket, account_id, kind, identity, call_id)
    SELECT p_bucket, x.account, 0, x.identity, x.id
    FROM unnest(p_account, p_id, p_identity) WITH ORDINALITY AS x (account, id, identity, ord)
    CROSS JOIN LATERAL (
      SELECT c.identity FROM calls__week c
      WHERE c.bucket = p_bucket AND c.account_id = x.account AND c.id = x.id OFFSET 0
    ) c
    WHERE status[x.ord] IN (0, 4) AND c.identity = x.identity
    ON CONFLICT ON CONSTRAINT call_identities_pkey DO UPDATE SET call_id = NULL WHERE i.call_id <> excluded.call_id;
  END IF;
END
$$;
