-- Notes that the released calls of a closed day are gone, but for those that stay. Only when nobody is deleting some of them, and
-- the count of sales has passed the day.
CREATE OR REPLACE FUNCTION released_day_done(p_day date) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  IF NOT pg_try_advisory_xact_lock(8403)
    OR NOT EXISTS (SELECT 1 FROM sales_folded WHERE calls_to >= (p_day + 1)::timestamp AT TIME ZONE 'UTC') THEN
    RETURN false;
  END IF;
  UPDATE ledger_days SET released_gone_at = now() WHERE day = p_day AND released_apart AND released_gone_at IS NULL;
  RETURN true;
END
$$;
