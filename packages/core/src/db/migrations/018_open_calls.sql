-- Open calls are found by what is open, however many have ended.

-- Half of each page stays free: a call that ends changes its row in place, and no index hears of it. (With a fifth free
-- six calls in ten moved to another page, which every index of the table had to note.)
ALTER TABLE calls SET (fillfactor = 50);

-- When it was begun by the database's own clock, which is one for all replicas. NULL: before there was this column.
ALTER TABLE calls ADD COLUMN begun_at timestamptz;
ALTER TABLE calls ALTER COLUMN begun_at SET DEFAULT now();
UPDATE calls SET begun_at = now() WHERE state = 0;
CREATE INDEX calls_begun ON calls (begun_at) WHERE begun_at IS NOT NULL;

-- What was begun before this has ended, or stands in `calls_left_open`.
CREATE TABLE calls_open_since (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  begun_at timestamptz NOT NULL
);
-- A statement that waits for this migration may carry an older time.
INSERT INTO calls_open_since (begun_at) VALUES (now() - interval '1 hour');

CREATE TABLE calls_left_open (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  PRIMARY KEY (account_id, id)
);

-- The calls in state 0. It costs what is open, and what was begun in the last minute or so: see `calls_settle_past`.
-- With the time at hand the index is found; as a part of one statement the time would be unknown to its plan.
CREATE FUNCTION open_calls() RETURNS TABLE (account_id bigint, id uuid)
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

-- Moves on what `open_calls` looks at, by at most ten minutes with calls in them: what is still open of them is noted.
-- Whoever finds somebody else at it leaves it to them.
--
-- A statement that begins calls ends within seconds, by its `statement_timeout`: what was begun a minute ago is there to
-- see, or never will be. `npm run books` looks whether any was missed.
--
-- Returns whether there may be more to do.
CREATE FUNCTION calls_settle_past() RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
AS $$
DECLARE
  past CONSTANT timestamptz := clock_timestamp() - interval '1 minute';
  since timestamptz;
  first timestamptz;
  until timestamptz := past;
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

  DELETE FROM calls_left_open l USING calls c
    WHERE c.account_id = l.account_id AND c.id = l.id AND c.state <> 0;
  RETURN until < past;
END
$$;
