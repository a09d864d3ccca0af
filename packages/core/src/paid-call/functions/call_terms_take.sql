-- Counts a call that is about to begin against its root buyer's quotas, and takes one of the free calls of the day (UTC) if one
-- is left. It waits for nobody's lock. A call that is begun again counts once.
--
-- Free calls are for accounts that money was ever credited to, or whose root buyer's was; a trial's credit is none. An account
-- without a trial was opened with money, and `bought_at` is when a trial first got some.
--
-- p_free: how many calls of a day cost nothing. p_per_minute, p_per_day: NULL: no bound. p_may_pay: whether the call begins
-- where it is not free; otherwise it does not count then.
--
-- Returns 0: it costs its price  4: it is free  14: no more calls in this minute  15: no more on this day
--         30: somebody else counts for this root buyer; nothing was done
CREATE OR REPLACE FUNCTION call_terms_take(
  p_account bigint, p_id uuid, p_service text, p_free integer, p_per_minute integer, p_per_day integer,
  p_may_pay boolean, p_now timestamptz
) RETURNS smallint
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
DECLARE
  this_minute timestamptz := date_trunc('minute', p_now, 'UTC');
  today date := (p_now AT TIME ZONE 'UTC')::date;
  in_minute integer := 0;
  on_day integer := 0;
  is_free boolean := false;
  own CONSTANT text := 'account:' || p_account;
  root text := own;
  buyer text;
  q record;
BEGIN
  PERFORM 1 FROM free_calls f WHERE f.account_id = p_account AND f.call_id = p_id;
  IF FOUND THEN RETURN 4; END IF;

  SELECT b.root_buyer INTO root FROM root_buyers b WHERE b.account_id = p_account;
  root := coalesce(root, own);
  buyer := CASE WHEN EXISTS (SELECT 1 FROM lifted_bounds l WHERE l.root_buyer = root) THEN own ELSE root END;
  -- Held until the commit, so that of two at once the second counts the first.
  IF NOT pg_try_advisory_xact_lock(hashtextextended('terms ' || p_service || ' ' || buyer, 0)) THEN RETURN 30; END IF;

  SELECT * INTO q FROM call_quotas c WHERE c.root_buyer = buyer AND c.service = p_service;
  -- Around midnight another replica may count for the next minute or day already, and what it counted stays.
  IF q.minute >= this_minute THEN this_minute := q.minute; in_minute := q.minute_calls; END IF;
  IF in_minute >= p_per_minute THEN RETURN 14; END IF;
  IF q.day >= today THEN on_day := q.day_calls; END IF;
  IF on_day >= p_per_day THEN RETURN 15; END IF;

  IF p_free > (
    SELECT count(*) FROM (
      SELECT 1 FROM free_calls f WHERE f.root_buyer = buyer AND f.service = p_service AND f.day = today LIMIT p_free) f
  ) AND (
    -- A wallet that buys a key has paid for it.
    NOT EXISTS (
      SELECT 1 FROM trial_credits t
      WHERE t.account_id = CASE WHEN root LIKE 'account:%' THEN substring(root FROM 9)::bigint END AND t.bought_at IS NULL)
    OR EXISTS (SELECT 1 FROM trial_credits t WHERE t.account_id = p_account AND t.bought_at IS NOT NULL)
  ) THEN
    INSERT INTO free_calls (account_id, call_id, root_buyer, service, day)
    VALUES (p_account, p_id, buyer, p_service, today);
    is_free := true;
  END IF;
  IF NOT is_free AND NOT p_may_pay THEN RETURN 0; END IF;

  IF p_per_minute IS NOT NULL OR p_per_day IS NOT NULL THEN
    INSERT INTO call_quotas (root_buyer, service, minute, minute_calls, day, day_calls)
    VALUES (buyer, p_service, this_minute, in_minute + 1, greatest(today, q.day), on_day + 1)
    ON CONFLICT (root_buyer, service) DO UPDATE
    SET minute = excluded.minute, minute_calls = excluded.minute_calls, day = excluded.day, day_calls = excluded.day_calls;
  END IF;
  RETURN CASE WHEN is_free THEN 4 ELSE 0 END;
END
$$;
