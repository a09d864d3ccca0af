-- Deletes the two transfers of each of these calls, which were begun and released on one closed day whose digest leaves them out:
-- nothing is moved. Raises where a call has other transfers.
CREATE OR REPLACE FUNCTION ledger_drop_released(p_day date, p_account bigint[], p_id uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  gone bigint;
BEGIN
  IF NOT EXISTS (SELECT 1 FROM ledger_days WHERE day = p_day AND released_apart) THEN
    RAISE EXCEPTION 'the digest of % has the transfers of released calls in it', p_day;
  END IF;
  WITH dropped AS (
    DELETE FROM ledger_transfers t USING unnest(p_account, p_id) AS x (account, id)
    WHERE t.account_id = x.account AND t.id = x.id AND t.phase IN (2, 4) AND t.code = 'call'
      AND (t.created_at AT TIME ZONE 'UTC')::date = p_day
    RETURNING t.account_id, t.id, t.phase, t.amount_micros
  )
  SELECT count(*) INTO gone FROM (
    SELECT 1 FROM dropped GROUP BY account_id, id
    HAVING count(*) = 2 AND sum(CASE phase WHEN 2 THEN amount_micros ELSE -amount_micros END) = 0
  ) pairs;
  IF gone <> cardinality(p_id) THEN RAISE EXCEPTION 'released calls of % have other transfers than one hold and its end', p_day; END IF;
END
$$;
