-- As `calls_finish`, which describes arguments and results, for a database that is spread over servers: each of its statements
-- changes one table, as Citus plans them, and finds calls by their key. Plans are made anew there, so none is kept that was made for
-- small tables.
CREATE OR REPLACE FUNCTION calls_finish_apart(
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
  -- the calls that ended
  e_ord integer[] := '{}'; e_price bigint[] := '{}'; e_reserved bigint[] := '{}'; e_service text[] := '{}';
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
    UPDATE calls__week c
    SET state = x.phase - 2, finished_at = p_now, outcome = x.outcome,
        price_micros = CASE WHEN x.phase = 3 THEN coalesce(x.taken, c.price_micros) ELSE c.price_micros END,
        reserved_micros = CASE WHEN x.phase = 3 AND x.taken IS NOT NULL THEN c.price_micros END
    FROM unnest(p_account, p_id, p_phase, p_outcome, coalesce(p_taken, array_fill(NULL::bigint, ARRAY[n])))
           WITH ORDINALITY AS x (account, id, phase, outcome, taken, ord)
    WHERE (all_held OR x.account = ANY (held)) AND c.bucket = p_bucket AND c.account_id = x.account AND c.id = x.id AND c.state = 0
    RETURNING x.ord::integer AS ord, c.price_micros, c.reserved_micros, c.service
  LOOP
    e_ord := e_ord || r.ord; e_price := e_price || r.price_micros; e_reserved := e_reserved || r.reserved_micros;
    e_service := e_service || r.service;
  END LOOP;

  IF cardinality(e_ord) > 0 THEN
    -- A free call has no transfer.
    INSERT INTO ledger_transfers__week
      (bucket, account_id, id, phase, debit_account, credit_account, amount_micros, reserved_micros, code, created_at)
    SELECT p_bucket, t.account_id, t.id, p_phase[e.ord], t.account_id, t.credit_account, e.price, e.reserved, 'call', p_now
    FROM unnest(e_ord, e_price, e_reserved) AS e (ord, price, reserved)
    JOIN ledger_transfers__week t ON t.bucket = p_bucket AND t.account_id = p_account[e.ord] AND t.id = p_id[e.ord]
      AND t.resolves = false AND t.phase = 2 AND t.debit_account = p_account[e.ord]
      AND t.amount_micros = coalesce(e.reserved, e.price)
    WHERE coalesce(e.reserved, e.price) > 0;
    GET DIAGNOSTICS found = ROW_COUNT;
    IF found <> (SELECT count(*) FROM unnest(e_price, e_reserved) AS e (price, reserved) WHERE coalesce(e.reserved, e.price) > 0) THEN
      RAISE EXCEPTION 'an open call has no open transfer';
    END IF;

    INSERT INTO call_spending AS s (bucket, account_id, day, service, calls, spent_micros)
    SELECT p_bucket, p_account[e.ord], today, e.service, count(*), sum(e.price)::bigint
    FROM unnest(e_ord, e_price, e_service) AS e (ord, price, service)
    WHERE p_phase[e.ord] = 3 GROUP BY p_account[e.ord], e.service
    ON CONFLICT ON CONSTRAINT call_spending_pkey
    DO UPDATE SET calls = s.calls + excluded.calls, spent_micros = s.spent_micros + excluded.spent_micros;
  END IF;

  FOR r IN
    SELECT e.ord, p_account[e.ord] AS account_id, p_id[e.ord] AS id, p_phase[e.ord] AS phase,
           coalesce(e.reserved, e.price) AS reserved, e.price
    FROM unnest(e_ord, e_price, e_reserved) AS e (ord, price, reserved) ORDER BY 2, 1
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
