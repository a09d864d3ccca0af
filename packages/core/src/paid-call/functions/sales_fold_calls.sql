-- Adds calls to the days on which they ended, in the order in which they were begun: about p_at_once of them, and those that
-- were passed while they were open and have ended since. Each call is counted once, because what is counted and how far it
-- goes are one commit.
--
-- Returns how many calls it looked at; NULL when somebody else is folding.
CREATE OR REPLACE FUNCTION sales_fold_calls(p_at_once integer) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
  complete CONSTANT timestamptz := sales_complete();
  since timestamptz;
  until timestamptz;
  looked integer;
BEGIN
  IF complete IS NULL THEN RETURN NULL; END IF;
  SELECT calls_to INTO since FROM sales_folded;
  -- Where the clock was put back, nothing is passed until it has caught up.
  until := greatest(since, complete);
  SELECT c.begun_at INTO until FROM calls c
    WHERE c.begun_at >= since AND c.begun_at < until ORDER BY c.begun_at OFFSET p_at_once LIMIT 1;
  IF NOT FOUND THEN until := greatest(since, complete);
  ELSIF NOT EXISTS (SELECT 1 FROM calls c WHERE c.begun_at >= since AND c.begun_at < until) THEN
    -- More than p_at_once were begun in one moment: they are taken together.
    until := until + interval '1 microsecond';
  END IF;

  WITH passed AS MATERIALIZED (
    SELECT c.account_id, c.id, c.service, c.rail, c.state, c.price_micros, coalesce(c.finished_at, c.created_at) AS ended_at
    FROM calls c WHERE c.begun_at >= since AND c.begun_at < until
  ), left_open AS (
    INSERT INTO sales_open (account_id, id)
    SELECT account_id, id FROM passed WHERE state NOT IN (1, 2) ON CONFLICT DO NOTHING
  ), closed AS MATERIALIZED (
    SELECT o.account_id, o.id, c.service, c.rail, c.state, c.price_micros, c.ended_at FROM sales_open o
    CROSS JOIN LATERAL (
      SELECT service, rail, state, price_micros, coalesce(finished_at, created_at) AS ended_at FROM calls
      WHERE account_id = o.account_id AND id = o.id OFFSET 0
    ) c WHERE c.state IN (1, 2)
  ), no_longer_open AS (
    DELETE FROM sales_open o USING closed c WHERE o.account_id = c.account_id AND o.id = c.id
  ), counted AS MATERIALIZED (
    SELECT account_id, (ended_at AT TIME ZONE 'UTC')::date AS day, service, rail,
           count(*) FILTER (WHERE state = 1) AS answered,
           coalesce(sum(price_micros) FILTER (WHERE state = 1), 0)::bigint AS answered_micros,
           count(*) FILTER (WHERE state = 2) AS released,
           coalesce(sum(price_micros) FILTER (WHERE state = 2), 0)::bigint AS released_micros
    FROM (SELECT * FROM passed WHERE state IN (1, 2) UNION ALL SELECT * FROM closed) ended
    GROUP BY 1, 2, 3, 4
  ), of_accounts AS (
    INSERT INTO account_sales_days AS s
      (account_id, day, service, rail, answered, answered_micros, released, released_micros)
    SELECT account_id, day, service, rail, answered, answered_micros, released, released_micros FROM counted
    ON CONFLICT (account_id, day, service, rail) DO UPDATE SET
      answered = s.answered + excluded.answered, answered_micros = s.answered_micros + excluded.answered_micros,
      released = s.released + excluded.released, released_micros = s.released_micros + excluded.released_micros
  ), of_all AS (
    INSERT INTO sales_days AS s (day, service, rail, answered, answered_micros, released, released_micros)
    SELECT day, service, rail, sum(answered), sum(answered_micros), sum(released), sum(released_micros)
    FROM counted GROUP BY 1, 2, 3
    ON CONFLICT (day, service, rail) DO UPDATE SET
      answered = s.answered + excluded.answered, answered_micros = s.answered_micros + excluded.answered_micros,
      released = s.released + excluded.released, released_micros = s.released_micros + excluded.released_micros
  )
  SELECT (SELECT count(*) FROM passed) + (SELECT count(*) FROM closed) INTO looked;
  UPDATE sales_folded SET calls_to = until WHERE calls_to < until;
  RETURN looked;
END
$$;
