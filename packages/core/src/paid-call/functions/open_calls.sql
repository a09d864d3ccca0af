-- The calls in state 0. It costs what is open, and what was begun in the last minute or so: see `calls_settle_past`.
-- With the time at hand the index is found; as a part of one statement the time would be unknown to its plan.
--
-- It returns what is asked of an open call, and looks those that were left open up one by one: joined with `calls`, all weeks would be
-- read for some hundred open ones.
CREATE OR REPLACE FUNCTION open_calls() RETURNS TABLE (
  account_id bigint, id uuid, bucket smallint, service text, price_micros bigint, expires_at timestamptz, holder bigint
)
LANGUAGE plpgsql STABLE ROWS 100
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  since timestamptz := (SELECT begun_at FROM calls_open_since);
  l record;
BEGIN
  RETURN QUERY
    SELECT c.account_id, c.id, c.bucket, c.service, c.price_micros, c.expires_at, c.holder
    FROM calls c WHERE c.begun_at >= since AND c.state = 0;
  FOR l IN SELECT o.account_id, o.id FROM calls_left_open o LOOP
    RETURN QUERY
      SELECT c.account_id, c.id, c.bucket, c.service, c.price_micros, c.expires_at, c.holder
      FROM calls c WHERE c.account_id = l.account_id AND c.id = l.id AND c.state = 0 AND (c.begun_at >= since) IS NOT TRUE;
  END LOOP;
END
$$;
