-- Deletes the two transfers of each of these calls, which were begun and released on one closed day whose digest leaves them out:
-- nothing is moved. Raises where a call has other transfers. By their key, one by one: as one statement it would be planned as a join with
-- all weeks.
CREATE OR REPLACE FUNCTION ledger_drop_released(p_day date, p_bucket smallint[], p_account bigint[], p_id uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  gone integer := 0;
BEGIN
  IF NOT EXISTS (SELECT 1 FROM ledger_days WHERE day = p_day AND released_apart) THEN
    RAISE EXCEPTION 'the digest of % has the transfers of released calls in it', p_day;
  END IF;
  FOR i IN 1 .. cardinality(p_id) LOOP
    WITH dropped AS (
      DELETE FROM ledger_transfers
      WHERE bucket = p_bucket[i] AND account_id = p_account[i] AND id = p_id[i] AND phase IN (2, 4) AND code = 'call'
        AND (created_at AT TIME ZONE 'UTC')::date = p_day
      RETURNING phase, amount_micros
    )
    SELECT gone + count(*) INTO gone FROM (
      SELECT 1 FROM dropped HAVING count(*) = 2 AND sum(CASE phase WHEN 2 THEN amount_micros ELSE -amount_micros END) = 0
    ) pair;
  END LOOP;
  IF gone <> cardinality(p_id) THEN RAISE EXCEPTION 'released calls of % have other transfers than one hold and its end', p_day; END IF;
END
$$;
