-- Takes the prices of calls with their answers, or gives them back. It waits for nobody's lock. How it finds rows is
-- told in `calls_begin.sql`.
--
-- All accounts are customers', no call was kept for a chain, and none comes twice (the caller sees to it).
-- p_phase: 3 captures, 4 releases; as in the ledger. p_answer_*: NULL arrays where no call has an answer to keep.
-- p_taken: what a measured call takes of what was reserved, above nothing; NULL where a call takes all of it, and a NULL
-- array where each does.
--
-- status[i], available[i]: as f_* of `calls_apply`; 3: the account is not in the bucket, and nothing was done.
CREATE OR REPLACE FUNCTION calls_finish(
  p_bucket smallint, p_account bigint[], p_id uuid[], p_phase smallint[], p_outcome text[], p_answer_status smallint[],
  p_answer_headers text[], p_answer_body text[], p_taken bigint[], p_answer_ttl interval, p_now timestamptz,
  OUT status smallint[], OUT available bigint[]
)
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
DECLARE
  r record;
  n integer := cardinality(p_id);
  ended integer := 0;
  today CONSTANT date := (p_now AT TIME ZONE 'UTC')::date;
  -- the accounts that we hold, in order of id: where they are, and what can be spent
  held bigint[]; held_at tid[]; held_left bigint[];
  -- the next of them, and the account at hand
  h integer := 0;
  cur bigint := NULL;
  left_micros bigint;
  -- accounts of calls that ended: what is reserved no more, and what of it was taken
  u_at tid[] := '{}'; u_less bigint[] := '{}'; u_taken bigint[] := '{}';
  less bigint; taken bigint;
  -- free calls that were given back
  free_accounts bigint[] := '{}'; free_ids uuid[] := '{}';
  all_held boolean;
  found integer;
BEGIN
  -- 2 until it is known better.
  status := array_fill(2::smallint, ARRAY[n]);
  available := array_fill(0::bigint, ARRAY[n]);

  SELECT array_agg(l.id), array_agg(l.at), array_agg(l.left_micros),
         count(*) = (SELECT count(DISTINCT u) FROM unnest(p_account) AS u)
  INTO held, held_at, held_left, all_held
  FROM (
    SELECT a.id, a.ctid AS at, a.credits_posted - a.debits_posted - a.debits_pending AS left_micros
    FROM ledger_accounts a WHERE a.bucket = p_bucket AND a.id = ANY (p_account)
    ORDER BY a.id FOR NO KEY UPDATE SKIP LOCKED
  ) l;

  FOR r IN
    WITH x AS MATERIALIZED (
      SELECT x.ord, x.phase, x.outcome, c.at, c.place, c.price_micros, t.credit_account,
             CASE WHEN x.phase = 3 THEN p_taken[x.ord] END AS taken
      FROM unnest(p_account, p_id, p_phase, p_outcome) WITH ORDINALITY AS x (account, id, phase, outcome, ord)
      CROSS JOIN LATERAL (
        SELECT c.ctid AS at, c.tableoid AS place, c.price_micros FROM calls__week c
        WHERE c.bucket = p_bucket AND c.account_id = x.account AND c.id = x.id AND c.state = 0 OFFSET 0
      ) c
      LEFT JOIN LATERAL (
        SELECT t.credit_account FROM ledger_transfers__week t
        WHERE t.bucket = p_bucket AND t.account_id = x.account AND t.id = x.id AND t.resolves = false AND t.phase = 2
          AND t.amount_micros = c.price_micros AND t.debit_account = x.account
        OFFSET 0
      ) t ON true
      WHERE all_held OR x.account = ANY (held)
    ), ended AS (
      UPDATE calls__week c
      SET state = x.phase - 2, finished_at = p_now, outcome = x.outcome,
          price_micros = coalesce(x.taken, c.price_micros),
          reserved_micros = CASE WHEN x.taken IS NOT NULL THEN c.price_micros END
      FROM x WHERE c.bucket = p_bucket AND c.ctid = x.at AND c.tableoid = x.place
      RETURNING x.ord, x.phase, x.credit_account, x.price_micros AS reserved, c.account_id, c.id, c.service,
                c.price_micros, c.reserved_micros
    ), posted AS (
      INSERT INTO ledger_transfers__week
        (bucket, account_id, id, phase, debit_account, credit_account, amount_micros, reserved_micros, code, created_at)
      SELECT p_bucket, account_id, id, phase, account_id, credit_account, price_micros, reserved_micros, 'call', p_now FROM ended
      -- A free call has no transfer.
      WHERE reserved > 0
    ), counted AS (
      INSERT INTO call_spending AS s (bucket, account_id, day, service, calls, spent_micros)
      SELECT p_bucket, account_id, today, service, count(*), sum(price_micros)::bigint FROM ended
      WHERE phase = 3 GROUP BY account_id, service
      ON CONFLICT ON CONSTRAINT call_spending_pkey
      DO UPDATE SET calls = s.calls + excluded.calls, spent_micros = s.spent_micros + excluded.spent_micros
    )
    SELECT ord::integer AS ord, account_id, id, phase, reserved, price_micros AS price FROM ended ORDER BY account_id, ord
  LOOP
    IF cur IS DISTINCT FROM r.account_id THEN
      IF cur IS NOT NULL THEN
        u_at := u_at || held_at[h]; u_less := u_less || less; u_taken := u_taken || taken;
      END IF;
      cur := r.account_id; less := 0; taken := 0;
      h := h + 1;
      -- Accounts with nothing to end are passed by.
      WHILE held[h] <> cur LOOP h := h + 1; END LOOP;
      left_micros := held_left[h];
    END IF;
    less := less + r.reserved;
    left_micros := left_micros + r.reserved;
    IF r.phase = 3 THEN taken := taken + r.price; left_micros := left_micros - r.price; END IF;
    IF r.phase = 4 AND r.price = 0 THEN free_accounts := free_accounts || r.account_id; free_ids := free_ids || r.id; END IF;
    status[r.ord] := 0;
    available[r.ord] := left_micros;
    ended := ended + 1;
  END LOOP;

  IF ended > 0 THEN
    u_at := u_at || held_at[h]; u_less := u_less || less; u_taken := u_taken || taken;
    UPDATE ledger_accounts a
    SET debits_pending = a.debits_pending - u.less, debits_posted = a.debits_posted + u.taken
    FROM unnest(u_at, u_less, u_taken) AS u (at, less, taken)
    WHERE a.bucket = p_bucket AND a.ctid = u.at;
    GET DIAGNOSTICS found = ROW_COUNT;
    IF found <> cardinality(u_at) THEN RAISE EXCEPTION 'an account that was locked is gone'; END IF;

    -- By itself: they are counted by root buyer, and lie in no bucket.
    IF cardinality(free_ids) > 0 THEN
      DELETE FROM free_calls f USING unnest(free_accounts, free_ids) AS x (account, id)
      WHERE f.account_id = x.account AND f.call_id = x.id;
    END IF;

    IF p_answer_status IS NOT NULL THEN
      INSERT INTO call_answers__week (bucket, account_id, id, status, headers, body, expires_at)
      SELECT p_bucket, x.account, x.id, x.answer, x.headers::jsonb, x.body, p_now + p_answer_ttl
      FROM unnest(p_account, p_id, p_phase, p_answer_status, p_answer_headers, p_answer_body)
             WITH ORDINALITY AS x (account, id, phase, answer, headers, body, ord)
      WHERE status[x.ord] = 0 AND x.phase = 3 AND x.answer IS NOT NULL
      ON CONFLICT DO NOTHING;
    END IF;
  END IF;

  IF ended < n THEN
    -- What had ended before is told how, and all the same what is left. A call that is not there is not open either, but for one of an
    -- account that is not in the bucket: nothing is known of it here.
    FOR r IN
      SELECT x.ord::integer AS ord, x.phase, c.state, a.left_micros
      FROM unnest(p_account, p_id, p_phase) WITH ORDINALITY AS x (account, id, phase, ord)
      LEFT JOIN LATERAL (
        SELECT a.credits_posted - a.debits_posted - a.debits_pending AS left_micros
        FROM ledger_accounts a WHERE a.bucket = p_bucket AND a.id = x.account OFFSET 0
      ) a ON true
      LEFT JOIN LATERAL (
        SELECT c.state FROM calls__week c
        WHERE c.bucket = p_bucket AND c.account_id = x.account AND c.id = x.id OFFSET 0
      ) c ON true
      WHERE status[x.ord] = 2 AND (x.account = ANY (held) OR a.left_micros IS NULL)
    LOOP
      status[r.ord] := CASE WHEN r.left_micros IS NULL THEN 3 WHEN r.state = r.phase - 2 THEN 0 ELSE 1 END;
      available[r.ord] := coalesce(r.left_micros, 0);
    END LOOP;
  END IF;
END
$$;
