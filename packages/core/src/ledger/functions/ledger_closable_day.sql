-- The last day (UTC) that could be closed now; NULL: none can, or somebody else is closing one. A day can be closed an hour
-- after its end, once every transaction that ran then has ended, and when no transfer made on it or before is pending.
--
-- Each call also sets the mark by which the next one knows what has ended.
CREATE OR REPLACE FUNCTION ledger_closable_day() RETURNS date
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
  head ledger_days_head%ROWTYPE;
  first date;
  last date;
  pending timestamptz;
BEGIN
  SELECT * INTO head FROM ledger_days_head FOR UPDATE SKIP LOCKED;
  IF NOT FOUND OR pg_snapshot_xmin(pg_current_snapshot()) < head.marked_xid THEN RETURN NULL; END IF;
  UPDATE ledger_days_head SET marked_at = clock_timestamp(), marked_xid = pg_current_xact_id();
  IF head.marked_at = '-infinity' THEN RETURN NULL; END IF;
  -- A clock that was put back holds it up until it has caught up.
  last := (least(head.marked_at, clock_timestamp()) - interval '1 hour') AT TIME ZONE 'UTC';
  last := last - 1;

  first := coalesce(head.open_day, (SELECT min(created_at) AT TIME ZONE 'UTC' FROM ledger_transfers)::date);
  IF first IS NULL OR last < first THEN RETURN NULL; END IF;
  SELECT min(t.created_at) INTO pending FROM ledger_transfers t
  WHERE t.phase = 2 AND t.created_at >= first::timestamp AT TIME ZONE 'UTC'
    AND t.created_at < (last + 1)::timestamp AT TIME ZONE 'UTC'
    AND NOT EXISTS (
      -- Clocks of replicas differ by less than a day: an end is looked for where it can be.
      SELECT 1 FROM ledger_transfers e WHERE e.account_id = t.account_id AND e.id = t.id AND e.resolves
        AND e.created_at >= (first - 1)::timestamp AT TIME ZONE 'UTC'
    );
  last := least(last, (pending AT TIME ZONE 'UTC')::date - 1);
  RETURN CASE WHEN last >= first THEN last END;
END
$$;
