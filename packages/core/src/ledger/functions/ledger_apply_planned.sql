-- As `ledger_apply`, which describes arguments and results, for connections that set the planner themselves: those of
-- group commits. Each account is read once, with its lock. How rows are found is told in `calls_begin.sql`.
CREATE OR REPLACE FUNCTION ledger_apply_planned(
  p_bucket smallint, p_account bigint[], p_id uuid[], p_phase smallint[], p_debit bigint[], p_credit bigint[], p_amount bigint[],
  p_code text[], p_note text[], p_ceiling bigint[], p_skip boolean[], p_now timestamptz, p_wait boolean,
  OUT status smallint[], OUT available bigint[]
)
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
DECLARE
  r record;
  n integer := cardinality(p_id);
  v_new boolean[] := array_fill(false, ARRAY[n]);
  any_new boolean := false;
  -- the customers' accounts that we hold, in order of id: where they are, and their balances
  held bigint[]; held_at tid[]; held_dp bigint[]; held_d bigint[]; held_cp bigint[]; held_c bigint[];
  -- the next of them, and the account at hand with what this batch has added to it
  h integer := 0;
  cur bigint := NULL;
  house boolean; is_held boolean; elsewhere boolean; dp bigint; d bigint; cp bigint; c bigint;
  changed boolean := false;
  -- accounts whose balances changed
  u_at tid[] := '{}'; u_dp bigint[] := '{}'; u_d bigint[] := '{}'; u_cp bigint[] := '{}'; u_c bigint[] := '{}';
  is_debit boolean;
  s smallint;
  found integer;
BEGIN
  status := array_fill(0::smallint, ARRAY[n]);
  available := array_fill(0::bigint, ARRAY[n]);

  IF p_wait THEN
    SELECT array_agg(l.id), array_agg(l.at), array_agg(l.dp), array_agg(l.d), array_agg(l.cp), array_agg(l.c)
    INTO held, held_at, held_dp, held_d, held_cp, held_c
    FROM (
      SELECT a.id, a.ctid AS at, a.debits_pending AS dp, a.debits_posted AS d, a.credits_pending AS cp,
             a.credits_posted AS c
      FROM ledger_accounts a WHERE a.bucket = p_bucket AND a.id = ANY (p_account) AND NOT a.house
      ORDER BY a.id FOR NO KEY UPDATE
    ) l;
  ELSE
    SELECT array_agg(l.id), array_agg(l.at), array_agg(l.dp), array_agg(l.d), array_agg(l.cp), array_agg(l.c)
    INTO held, held_at, held_dp, held_d, held_cp, held_c
    FROM (
      SELECT a.id, a.ctid AS at, a.debits_pending AS dp, a.debits_posted AS d, a.credits_pending AS cp,
             a.credits_posted AS c
      FROM ledger_accounts a WHERE a.bucket = p_bucket AND a.id = ANY (p_account) AND NOT a.house
      ORDER BY a.id FOR NO KEY UPDATE SKIP LOCKED
    ) l;
  END IF;

  FOR r IN
    SELECT x.ord::integer AS ord, x.account, x.phase, x.debit, x.credit, x.amount, p_ceiling[x.ord] AS ceiling,
           t.phase AS t_phase, t.debit_account AS t_debit, t.credit_account AS t_credit, t.amount_micros AS t_amount
    FROM unnest(p_account, p_id, p_phase, p_debit, p_credit, p_amount)
           WITH ORDINALITY AS x (account, id, phase, debit, credit, amount, ord)
    LEFT JOIN LATERAL (
      SELECT * FROM ledger_transfers__week t
      WHERE t.bucket = p_bucket AND t.account_id = x.account AND t.id = x.id AND t.resolves = false OFFSET 0
    ) t ON true
    WHERE p_skip[x.ord] IS NOT TRUE
    ORDER BY x.account, x.ord
  LOOP
    IF cur IS DISTINCT FROM r.account THEN
      IF changed AND NOT house THEN
        u_at := u_at || held_at[h];
        u_dp := u_dp || dp; u_d := u_d || d; u_cp := u_cp || cp; u_c := u_c || c;
      END IF;
      changed := false;
      cur := r.account;
      house := cur < 1000;
      -- Accounts of which all was left out are passed by.
      WHILE held[h + 1] < cur LOOP h := h + 1; END LOOP;
      is_held := house OR coalesce(held[h + 1] = cur, false);
      IF is_held AND NOT house THEN
        h := h + 1;
        dp := held_dp[h]; d := held_d[h]; cp := held_cp[h]; c := held_c[h];
      ELSE
        elsewhere := NOT EXISTS (SELECT 1 FROM ledger_accounts a WHERE a.bucket = p_bucket AND a.id = cur);
        IF house AND elsewhere THEN RAISE EXCEPTION 'there is no account % in bucket %', cur, p_bucket; END IF;
        dp := 0; d := 0; cp := 0; c := 0;
      END IF;
    END IF;
    s := 0;
    IF NOT is_held THEN status[r.ord] := CASE WHEN elsewhere THEN 7 ELSE 6 END; CONTINUE; END IF;
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
      SELECT e.phase INTO s FROM ledger_transfers__week e
      WHERE e.bucket = p_bucket AND e.account_id = r.account AND e.id = p_id[r.ord] AND e.resolves = true;
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
    u_at := u_at || held_at[h]; u_dp := u_dp || dp; u_d := u_d || d; u_cp := u_cp || cp; u_c := u_c || c;
  END IF;

  IF any_new THEN
    IF cardinality(u_at) > 0 THEN
      UPDATE ledger_accounts a
      SET debits_pending = u.dp, debits_posted = u.d, credits_pending = u.cp, credits_posted = u.c
      FROM unnest(u_at, u_dp, u_d, u_cp, u_c) AS u (at, dp, d, cp, c)
      WHERE a.bucket = p_bucket AND a.ctid = u.at;
      GET DIAGNOSTICS found = ROW_COUNT;
      IF found <> cardinality(u_at) THEN RAISE EXCEPTION 'an account that was locked is gone'; END IF;
    END IF;

    INSERT INTO ledger_transfers__week
      (bucket, account_id, id, phase, debit_account, credit_account, amount_micros, code, note, created_at)
    SELECT p_bucket, x.account, x.id, x.phase, x.debit, x.credit, x.amount, p_code[x.ord], p_note[x.ord], p_now
    FROM unnest(p_account, p_id, p_phase, p_debit, p_credit, p_amount)
           WITH ORDINALITY AS x (account, id, phase, debit, credit, amount, ord)
    WHERE v_new[x.ord];
  END IF;
END
$$;
