-- Moves `sales_folded.complete_to` on: to a minute before the last mark, once every transaction that ran at the mark has
-- ended. A clock alone does not tell: a commit that waits for a standby shows its rows long after they were written.
--
-- The minute is for a statement that has its time already, and no transaction number yet. Statements end within seconds.
--
-- Whoever finds somebody else folding leaves it to them: found is NULL then.
CREATE OR REPLACE FUNCTION sales_complete() RETURNS timestamptz
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  folded sales_folded%ROWTYPE;
BEGIN
  SELECT * INTO folded FROM sales_folded FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN NULL; END IF;
  IF pg_snapshot_xmin(pg_current_snapshot()) >= folded.marked_xid THEN
    folded.complete_to := greatest(folded.complete_to, folded.marked_at - interval '1 minute');
    UPDATE sales_folded SET complete_to = folded.complete_to, marked_at = clock_timestamp(),
      marked_xid = pg_current_xact_id();
  END IF;
  RETURN folded.complete_to;
END
$$;
