-- Moves on what `open_calls` looks at, by at most ten minutes with calls in them: what is still open of them is noted.
-- Whoever finds somebody else at it leaves it to them.
--
-- A statement that begins calls ends within seconds, by its `statement_timeout`: what was begun a minute ago is there to
-- see, or never will be. `npm run books` looks whether any was missed.
--
-- Returns whether there may be more to do.
CREATE OR REPLACE FUNCTION calls_settle_past() RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
AS $$
DECLARE
  past CONSTANT timestamptz := clock_timestamp() - interval '1 minute';
  since timestamptz;
  first timestamptz;
  until timestamptz := past;
  l record;
BEGIN
  SELECT begun_at INTO since FROM calls_open_since FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN false; END IF;

  IF since < past THEN
    SELECT min(c.begun_at) INTO first FROM calls c WHERE c.begun_at >= since AND c.begun_at < past;
    until := least(past, first + interval '10 minutes');
    INSERT INTO calls_left_open (account_id, id)
      SELECT c.account_id, c.id FROM calls c
      WHERE c.begun_at >= since AND c.begun_at < until AND c.state = 0 ORDER BY 1, 2
      ON CONFLICT DO NOTHING;
  END IF;
  -- Else the clock was put back: then so is this.
  UPDATE calls_open_since SET begun_at = until;

  -- One by one: as one statement it would be planned as a join with all weeks.
  FOR l IN SELECT account_id, id FROM calls_left_open LOOP
    IF EXISTS (SELECT 1 FROM calls c WHERE c.account_id = l.account_id AND c.id = l.id AND c.state <> 0) THEN
      DELETE FROM calls_left_open o WHERE o.account_id = l.account_id AND o.id = l.id;
    END IF;
  END LOOP;
  RETURN until < past;
END
$$;
