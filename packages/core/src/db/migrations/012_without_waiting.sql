-- What a stranger's lock, a lost host or an unknown commit may cost: nobody else's time, and nobody's money.

-- The house's accounts have the numbers below 1000. They are sums over transfers and have no row that a call locks.
ALTER TABLE ledger_accounts ADD CONSTRAINT house_numbers CHECK (house = (id < 1000));

-- Processes that serve. Each says again and again that it lives; whoever sees one say nothing for a while notes its end,
-- and what it held is free.
CREATE TABLE replicas (
  id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  beats bigint NOT NULL DEFAULT 0,
  started_at timestamptz NOT NULL,
  seen_at timestamptz NOT NULL,
  ended_at timestamptz
);

-- Which process runs it. NULL: one that does not tell, and whose calls end by their time alone.
ALTER TABLE calls ADD COLUMN holder bigint;
-- Whose lease it is.
ALTER TABLE settlements ADD COLUMN holder bigint;

-- Calls whose capture may have been committed while its answer was withheld: to be given back, or kept for whoever can
-- ask for the answer. A row goes when that is done.
CREATE TABLE undelivered_calls (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  service text NOT NULL,
  price_micros bigint NOT NULL,
  revenue_account bigint NOT NULL,
  retrievable boolean NOT NULL,
  -- When it is tried next.
  next_at timestamptz NOT NULL,
  PRIMARY KEY (account_id, call_id)
);
CREATE INDEX undelivered_calls_due ON undelivered_calls (next_at);

-- Spending of the house is not counted: such a row would be one for every call that a chain pays.
DELETE FROM call_spending WHERE account_id < 1000;

-- Accounts that a debit found low while somebody held their recharge. A job makes it due.
CREATE TABLE auto_recharge_notices (
  account_id bigint NOT NULL
);

-- In the commit of whatever took the money. However many debits see the balance low, the first makes it due. No call
-- waits for whoever holds the row: a notice is left for a job then.
CREATE OR REPLACE FUNCTION auto_recharge_falls_due() RETURNS trigger
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

DROP FUNCTION calls_apply;
DROP FUNCTION ledger_apply;

-- Applies a batch of transfers in order, each on its own: one that is refused does not hold back the others.
-- Transfers of one batch must have different ids (the caller sees to it). Several batches at once are safe: every
-- batch first locks its customers' accounts in order of id, and reads balances only then (in a VOLATILE function each
-- statement sees what was committed before it). Accounts of the house have no balance to protect; that a transfer is
-- there once, and resolved once, is their primary key's to decide.
--
-- p_skip[i]: leave transfer i out (NULL array: none). p_note, p_ceiling: NULL arrays where nothing has one.
-- p_ceiling[i]: refuse a debit that takes debits_pending + debits_posted of the account above it.
-- p_locked: the caller has locked the accounts, in order of id.
-- p_wait: wait for an account that somebody else holds; if not, its transfers are left out and say so.
--
-- status[i]: 0 done (also when it had been done before)   1 not enough available   2 above the ceiling
--            3 the id is taken by a different transfer     4 there is no such pending transfer
--            5 it was already resolved the other way       6 somebody else holds the account; nothing was done
-- available[i]: what the account can still spend after transfer i, in micro-USD; 0 for house accounts, which have no
-- limit, and for what was skipped.
CREATE FUNCTION ledger_apply(
  p_account bigint[], p_id uuid[], p_phase smallint[], p_debit bigint[], p_credit bigint[], p_amount bigint[],
  p_code text[], p_note text[], p_ceiling bigint[], p_skip boolean[], p_now timestamptz,
  p_locked boolean DEFAULT false, p_wait boolean DEFAULT true,
  OUT status smallint[], OUT available bigint[]
)
LANGUAGE plpgsql VOLATILE
-- A plan made while the tables are empty is kept for when they are not. These leave it one way to find a row: by key.
-- The same plan every time: planning anew for each batch takes longer than running it.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
  r record;
  n integer := cardinality(p_id);
  v_new boolean[] := array_fill(false, ARRAY[n]);
  any_new boolean := false;
  cur bigint := NULL;
  -- the account at hand, with what this batch has added to it
  house boolean; dp bigint; d bigint; cp bigint; c bigint;
  changed boolean := false;
  -- accounts whose balances changed
  u_id bigint[] := '{}'; u_dp bigint[] := '{}'; u_d bigint[] := '{}'; u_cp bigint[] := '{}'; u_c bigint[] := '{}';
  is_debit boolean;
  s smallint;
  -- the customers' accounts that we hold, in order of id, and the next of them; NULL: all of them
  held bigint[] := NULL;
  next_held integer := 1;
  is_held boolean;
BEGIN
  status := array_fill(0::smallint, ARRAY[n]);
  available := array_fill(0::bigint, ARRAY[n]);

  IF NOT p_locked AND p_wait THEN
    PERFORM 1 FROM ledger_accounts a WHERE a.id = ANY (p_account) AND NOT a.house ORDER BY a.id FOR NO KEY UPDATE;
  ELSIF NOT p_locked THEN
    held := ARRAY(
      SELECT a.id FROM ledger_accounts a WHERE a.id = ANY (p_account) AND NOT a.house
      ORDER BY a.id FOR NO KEY UPDATE SKIP LOCKED);
  END IF;

  FOR r IN
    SELECT x.ord::integer AS ord, x.account, x.phase, x.debit, x.credit, x.amount, p_ceiling[x.ord] AS ceiling,
           t.phase AS t_phase, t.debit_account AS t_debit, t.credit_account AS t_credit, t.amount_micros AS t_amount,
           a.id AS a_id, a.house, a.debits_pending, a.debits_posted, a.credits_pending, a.credits_posted
    FROM unnest(p_account, p_id, p_phase, p_debit, p_credit, p_amount)
           WITH ORDINALITY AS x (account, id, phase, debit, credit, amount, ord)
    LEFT JOIN ledger_accounts a ON a.id = x.account
    LEFT JOIN ledger_transfers t ON t.account_id = x.account AND t.id = x.id AND t.resolves = false
    WHERE p_skip[x.ord] IS NOT TRUE
    ORDER BY x.account, x.ord
  LOOP
    IF cur IS DISTINCT FROM r.account THEN
      IF changed AND NOT house THEN
        u_id := u_id || cur; u_dp := u_dp || dp; u_d := u_d || d; u_cp := u_cp || cp; u_c := u_c || c;
      END IF;
      IF r.a_id IS NULL THEN RAISE EXCEPTION 'there is no account %', r.account; END IF;
      changed := false;
      cur := r.account;
      is_held := held IS NULL OR r.house OR coalesce(held[next_held] = r.account, false);
      IF is_held AND held IS NOT NULL AND NOT r.house THEN next_held := next_held + 1; END IF;
      house := r.house; dp := r.debits_pending; d := r.debits_posted; cp := r.credits_pending; c := r.credits_posted;
    END IF;
    s := 0;
    IF NOT is_held THEN status[r.ord] := 6; CONTINUE; END IF;
    is_debit := r.debit = r.account;

    IF r.t_phase IS NOT NULL
       AND (r.t_debit <> r.debit OR r.t_credit <> r.credit OR r.t_amount <> r.amount
            OR (r.phase <= 2 AND r.t_phase <> r.phase)) THEN
      s := 3;
    ELSIF r.phase <= 2 THEN
      IF r.t_phase IS NULL THEN
        IF is_debit AND NOT house AND dp + d + r.amount > c THEN s := 1;
        ELSIF is_debit AND dp + d + r.amount > r.ceiling THEN s := 2;
        ELSE
          v_new[r.ord] := true;
          IF r.phase = 1 THEN
            IF is_debit THEN d := d + r.amount; ELSE c := c + r.amount; END IF;
          ELSE
            IF is_debit THEN dp := dp + r.amount; ELSE cp := cp + r.amount; END IF;
          END IF;
        END IF;
      END IF;
    ELSIF r.t_phase IS NULL OR r.t_phase <> 2 THEN
      s := 4;
    ELSE
      -- How the pending transfer ended, if it has.
      SELECT e.phase INTO s FROM ledger_transfers e
      WHERE e.account_id = r.account AND e.id = p_id[r.ord] AND e.resolves = true;
      IF s = r.phase THEN s := 0;
      ELSIF s IS NOT NULL THEN s := 5;
      ELSE
        s := 0;
        v_new[r.ord] := true;
        IF is_debit THEN dp := dp - r.amount; ELSE cp := cp - r.amount; END IF;
        IF r.phase = 3 THEN
          IF is_debit THEN d := d + r.amount; ELSE c := c + r.amount; END IF;
        END IF;
      END IF;
    END IF;

    IF v_new[r.ord] THEN changed := true; any_new := true; END IF;
    IF s <> 0 THEN status[r.ord] := s; END IF;
    IF NOT house THEN available[r.ord] := c - d - dp; END IF;
  END LOOP;
  IF changed AND NOT house THEN
    u_id := u_id || cur; u_dp := u_dp || dp; u_d := u_d || d; u_cp := u_cp || cp; u_c := u_c || c;
  END IF;

  IF any_new THEN
    UPDATE ledger_accounts a
    SET debits_pending = u.dp, debits_posted = u.d, credits_pending = u.cp, credits_posted = u.c
    FROM unnest(u_id, u_dp, u_d, u_cp, u_c) AS u (id, dp, d, cp, c) WHERE a.id = u.id;

    INSERT INTO ledger_transfers
      (account_id, id, phase, debit_account, credit_account, amount_micros, code, note, created_at)
    SELECT x.account, x.id, x.phase, x.debit, x.credit, x.amount, p_code[x.ord], p_note[x.ord], p_now
    FROM unnest(p_account, p_id, p_phase, p_debit, p_credit, p_amount)
           WITH ORDINALITY AS x (account, id, phase, debit, credit, amount, ord)
    WHERE v_new[x.ord];
  END IF;
END
$$;

-- Begins, keeps and finishes paid calls, in one batch and one commit with their transfers. Finishes come first: what
-- they release can be reserved again by the begins of the same batch. It waits for nobody's lock.
--
-- Begins with an identity or a payment key must have different ones within a batch, and no call may come twice (the
-- caller sees to it).
-- f_phase: 3 captures, 4 releases; as in the ledger. f_kept: whether the call must be kept (3) or authorized (0).
-- p_holder: the process that runs them, by its row in `replicas`.
--
-- b_status[i]:  0 authorized   1 not enough available   2 above the day's cap   3 the id is taken
--              10 key revoked  11 key expired  12 key frozen  13 above the cap per call
--              20 this payment was answered, by the call b_answered[i]   21 it is being answered by another call
--              22 it was made for another request   23 it is with the chain, for the call b_answered[i]
--              30 somebody else holds the account, or is claiming the payment; nothing was done
-- k_status[i]:  0 kept (also when it had been before)  1 no longer open  2 somebody else holds it; nothing was done
-- f_status[i]:  0 done (also when it had been done before)  1 no longer open: the reconciler released it
--               2 somebody else holds it; nothing was done
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
  p_answer_ttl interval, p_now timestamptz, p_holder bigint,
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
  customers bigint[];
  held bigint[];
  held_calls uuid[];
  any_of_house boolean;
BEGIN
  b_status := array_fill(0::smallint, ARRAY[nb]);
  b_available := array_fill(0::bigint, ARRAY[nb]);
  b_answered := array_fill('00000000-0000-0000-0000-000000000000'::uuid, ARRAY[nb]);
  k_status := array_fill(0::smallint, ARRAY[nk]);
  f_status := array_fill(0::smallint, ARRAY[nf]);
  f_available := array_fill(0::bigint, ARRAY[nf]);

  -- Nothing here waits for a lock. What somebody else holds is left out and said so; whoever asked asks again.
  customers := ARRAY(SELECT DISTINCT u FROM unnest(b_account || k_account || f_account) AS u WHERE u >= 1000);
  held := ARRAY(
    SELECT a.id FROM ledger_accounts a WHERE a.id = ANY (customers) ORDER BY a.id FOR NO KEY UPDATE SKIP LOCKED);
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
      JOIN calls c ON c.account_id = x.account AND c.id = x.id
      WHERE x.account < 1000 ORDER BY c.id FOR NO KEY UPDATE OF c SKIP LOCKED);
    FOR r IN
      SELECT x.ord::integer AS ord FROM unnest(k_account || f_account, k_id || f_id)
        WITH ORDINALITY AS x (account, id, ord)
      JOIN calls c ON c.account_id = x.account AND c.id = x.id
      WHERE x.account < 1000 AND x.id <> ALL (held_calls)
    LOOP
      IF r.ord <= nk THEN k_status[r.ord] := 2;
      ELSE f_status[r.ord - nk] := 2; skip[r.ord - nk] := true;
      END IF;
    END LOOP;
    IF true = ANY (f_kept) THEN
      held_calls := ARRAY(
        SELECT s.call_id FROM unnest(f_account, f_id, f_kept) AS x (account, id, kept)
        JOIN settlements s ON s.account_id = x.account AND s.call_id = x.id
        WHERE x.kept ORDER BY s.call_id FOR NO KEY UPDATE OF s SKIP LOCKED);
      FOR r IN
        SELECT x.ord::integer AS ord FROM unnest(f_account, f_id, f_kept) WITH ORDINALITY AS x (account, id, kept, ord)
        JOIN settlements s ON s.account_id = x.account AND s.call_id = x.id
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
      THEN b_status[i] := 30; skip[nf + i] := true;
      END IF;
    END LOOP;
  END IF;

  IF nk > 0 THEN
    UPDATE calls c SET state = 3
    FROM unnest(k_account, k_id) WITH ORDINALITY AS x (account, id, ord)
    WHERE k_status[x.ord] = 0 AND c.account_id = x.account AND c.id = x.id AND c.state = 0;

    FOR r IN
      SELECT x.ord::integer AS ord, c.state
      FROM unnest(k_account, k_id) WITH ORDINALITY AS x (account, id, ord)
      LEFT JOIN calls c ON c.account_id = x.account AND c.id = x.id
      WHERE k_status[x.ord] = 0 AND c.state IS DISTINCT FROM 3
    LOOP
      k_status[r.ord] := 1;
    END LOOP;

    INSERT INTO settlements (account_id, call_id, rail, network, asset, payer, pay_to, amount_units, evidence, answered,
                             dead_after, lease_until, holder, next_at, created_at)
    SELECT x.account, x.id, x.rail, x.network, x.asset, x.payer, x.pay_to, x.amount, x.evidence::jsonb,
           x.status IS NOT NULL, x.dead_after, p_now + x.lease_ms * interval '1 millisecond', p_holder,
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
      WHERE f_status[x.ord] = 0 AND c.state IS DISTINCT FROM CASE WHEN x.kept THEN 3 ELSE 0 END
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

    IF b_identity <> array_fill(NULL::text, ARRAY[nb]) THEN
      FOR r IN
        SELECT x.ord::integer AS ord, x.account, x.fingerprint, c.id, c.state, c.fingerprint AS c_fingerprint
        FROM unnest(b_account, b_identity, b_fingerprint) WITH ORDINALITY AS x (account, identity, fingerprint, ord)
        JOIN calls c ON c.account_id = x.account AND c.identity = x.identity
        WHERE x.identity IS NOT NULL AND b_status[x.ord] NOT IN (10, 12, 30)
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
    WHERE NOT skip[x.ord] AND f_phase[x.ord] = 3 AND x.account >= 1000
    GROUP BY x.account, x.service
    ON CONFLICT (account_id, day, service)
    DO UPDATE SET calls = s.calls + excluded.calls, spent_micros = s.spent_micros + excluded.spent_micros;
  END IF;

  IF nb > 0 THEN
    FOR i IN 1..nb LOOP
      IF l_status[nf + i] <> 0 THEN b_status[i] := l_status[nf + i]; skip[nf + i] := true; END IF;
    END LOOP;

    INSERT INTO calls
      (account_id, id, rail, key_id, service, price_micros, identity, payment_key, fingerprint, created_at, expires_at,
       holder)
    SELECT x.account, x.id, x.rail, x.key, x.service, x.price, x.identity, x.payment_key, x.fingerprint, p_now,
           p_now + x.ttl_ms * interval '1 millisecond', p_holder
    FROM unnest(b_account, b_id, b_key, b_rail, b_service, b_price, b_identity, b_payment_key, b_fingerprint, b_ttl_ms)
           WITH ORDINALITY
           AS x (account, id, key, rail, service, price, identity, payment_key, fingerprint, ttl_ms, ord)
    WHERE NOT skip[nf + x.ord]
    ON CONFLICT (account_id, id) DO NOTHING;
  END IF;
END
$$;
