-- Begins to follow calls of a batch, except those whose answer the caller of the same call before did not get: owed[i] says so, and
-- nothing is written of it, unless p_anyway[i].
--
-- Its commit waits for no disk. A capture is durable when it is answered, and with it whatever was committed before: no price is
-- taken for an answer that nobody follows. Doing it again changes nothing.
--
-- p_client, p_request: NULL for calls that cannot be cancelled.
CREATE OR REPLACE FUNCTION followed_calls_begin(
  p_account bigint[], p_call uuid[], p_key bigint[], p_fingerprint bytea[], p_delivery uuid[], p_client text[], p_request text[],
  p_expires timestamptz[], p_anyway boolean[], p_holder bigint, p_now timestamptz,
  OUT owed boolean[]
)
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT array_agg(o.is_owed ORDER BY x.ord) INTO owed
  FROM unnest(p_account, p_key, p_fingerprint, p_anyway) WITH ORDINALITY AS x (account, key, fingerprint, anyway, ord)
  CROSS JOIN LATERAL (
    SELECT NOT x.anyway AND EXISTS (
      SELECT 1 FROM followed_calls f
      WHERE f.key_id = x.key AND f.fingerprint = x.fingerprint AND f.state <> 2 AND f.account_id = x.account
        AND f.expires_at > p_now
        AND (f.state = 1 OR f.holder IS DISTINCT FROM p_holder
          AND EXISTS (SELECT 1 FROM replicas r WHERE r.id = f.holder AND r.ended_at IS NOT NULL))
    ) AS is_owed OFFSET 0
  ) o;
  INSERT INTO followed_calls
    (account_id, call_id, key_id, fingerprint, delivery, holder, client, request_id, expires_at)
  SELECT x.account, x.call, x.key, x.fingerprint, x.delivery, p_holder, x.client, x.request, x.expires
  FROM unnest(p_account, p_call, p_key, p_fingerprint, p_delivery, p_client, p_request, p_expires, owed)
    AS x (account, call, key, fingerprint, delivery, client, request, expires, is_owed)
  WHERE NOT x.is_owed
  ON CONFLICT (account_id, call_id) DO NOTHING;
END
$$;
