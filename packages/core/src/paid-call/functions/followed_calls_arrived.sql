-- Notes of deliveries that their answers have arrived. One that cannot be cancelled is over, and is forgotten with its answer; another
-- may still be cancelled until p_until, by a client that had not read the answer yet. A delivery that was cancelled, or handed to another
-- caller, is left as it is.
--
-- Its commit waits for no disk: if it is lost, an answer that arrived is kept for longer.
CREATE OR REPLACE FUNCTION followed_calls_arrived(p_delivery uuid[], p_until timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE followed_calls f SET state = 2, expires_at = p_until
  WHERE f.delivery = ANY (p_delivery) AND f.state = 0 AND f.request_id IS NOT NULL;
  WITH gone AS (
    DELETE FROM followed_calls f WHERE f.delivery = ANY (p_delivery) AND f.state = 0 AND f.request_id IS NULL
    RETURNING f.account_id, f.call_id
  )
  DELETE FROM call_answers__week a USING gone g WHERE a.account_id = g.account_id AND a.id = g.call_id;
END
$$;
