-- The last day (UTC) that could be closed now; NULL: none can, or somebody else is closing one: see `ledger_complete_day`. On one
-- PostgreSQL, which knows which transactions have ended.
--
-- Each call also sets the mark by which the next one knows what has ended.
CREATE OR REPLACE FUNCTION ledger_closable_day() RETURNS date
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  head ledger_days_head%ROWTYPE;
BEGIN
  SELECT * INTO head FROM ledger_days_head FOR UPDATE SKIP LOCKED;
  IF NOT FOUND OR pg_snapshot_xmin(pg_current_snapshot()) < head.marked_xid THEN RETURN NULL; END IF;
  UPDATE ledger_days_head SET marked_at = clock_timestamp(), marked_xid = pg_current_xact_id();
  IF head.marked_at = '-infinity' THEN RETURN NULL; END IF;
  RETURN ledger_complete_day(head.marked_at);
END
$$;
