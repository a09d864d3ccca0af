-- The last day (UTC) that is complete; NULL: there is none. A day is complete an hour after its end, if whatever was being written then has
-- ended since, and when no transfer made on it or before is pending.
--
-- p_marked: a moment; all that was being written at it has ended.
CREATE OR REPLACE FUNCTION ledger_complete_day(p_marked timestamptz) RETURNS date
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
  first date := (SELECT open_day FROM ledger_days_head);
  -- A clock that was put back holds it up until it has caught up.
  last date := ((least(p_marked, clock_timestamp()) - interval '1 hour') AT TIME ZONE 'UTC')::date - 1;
  pending timestamptz;
BEGIN
  IF first IS NULL THEN first := (SELECT min(created_at) AT TIME ZONE 'UTC' FROM ledger_transfers)::date; END IF;
  IF first IS NULL OR last < first THEN RETURN NULL; END IF;
  SELECT min(t.created_at) INTO pending FROM ledger_transfers t
  WHERE t.phase = 2 AND t.created_at >= first::timestamp AT TIME ZONE 'UTC'
    AND t.created_at < (last + 1)::timestamp AT TIME ZONE 'UTC'
    AND NOT EXISTS (
      -- Clocks of replicas differ by less than a day: an end is looked for where it can be.
      SELECT 1 FROM ledger_transfers e WHERE e.bucket = t.bucket AND e.account_id = t.account_id AND e.id = t.id AND e.resolves
        AND e.created_at >= (first - 1)::timestamp AT TIME ZONE 'UTC'
    );
  last := least(last, (pending AT TIME ZONE 'UTC')::date - 1);
  RETURN CASE WHEN last >= first THEN last END;
END
$$;
