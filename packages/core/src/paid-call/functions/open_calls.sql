-- The calls in state 0. It costs what is open, and what was begun in the last minute or so: see `calls_settle_past`.
-- With the time at hand the index is found; as a part of one statement the time would be unknown to its plan.
CREATE OR REPLACE FUNCTION open_calls() RETURNS TABLE (account_id bigint, id uuid)
LANGUAGE plpgsql STABLE ROWS 100
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  since timestamptz := (SELECT begun_at FROM calls_open_since);
BEGIN
  RETURN QUERY
    SELECT c.account_id, c.id FROM calls c WHERE c.begun_at >= since AND c.state = 0
    UNION
    SELECT c.account_id, c.id FROM calls_left_open l
    JOIN calls c ON c.account_id = l.account_id AND c.id = l.id WHERE c.state = 0;
END
$$;
