-- Adds transfers that are no calls to their days, in the order of their time: about p_at_once of them. Refunds of calls are
-- added to what was sold as well, on the day of the refund.
--
-- Returns how many transfers it looked at; NULL when somebody else is folding.
CREATE OR REPLACE FUNCTION sales_fold_transfers(p_at_once integer) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
  complete CONSTANT timestamptz := sales_complete();
  since timestamptz;
  until timestamptz;
  looked integer;
BEGIN
  IF complete IS NULL THEN RETURN NULL; END IF;
  SELECT transfers_to INTO since FROM sales_folded;
  until := greatest(since, complete);
  SELECT t.created_at INTO until FROM ledger_transfers t
    WHERE t.code <> 'call' AND t.created_at >= since AND t.created_at < until
    ORDER BY t.created_at OFFSET p_at_once LIMIT 1;
  IF NOT FOUND THEN until := greatest(since, complete);
  ELSIF NOT EXISTS (
    SELECT 1 FROM ledger_transfers t WHERE t.code <> 'call' AND t.created_at >= since AND t.created_at < until
  ) THEN until := until + interval '1 microsecond';
  END IF;

  WITH passed AS MATERIALIZED (
    SELECT t.account_id, t.id, t.code, t.amount_micros, t.note, (t.created_at AT TIME ZONE 'UTC')::date AS day
    FROM ledger_transfers t WHERE t.code <> 'call' AND t.created_at >= since AND t.created_at < until
  ), by_code AS (
    INSERT INTO transfer_days AS d (day, code, transfers, moved_micros)
    SELECT day, code, count(*), sum(amount_micros) FROM passed GROUP BY 1, 2
    ON CONFLICT (day, code) DO UPDATE SET
      transfers = d.transfers + excluded.transfers, moved_micros = d.moved_micros + excluded.moved_micros
  ), counted AS MATERIALIZED (
    SELECT r.account_id, r.day, c.service, c.rail, count(*) AS refunded, sum(r.amount_micros)::bigint AS refunded_micros
    FROM (
      SELECT account_id, day, amount_micros,
             CASE code WHEN 'operator_refund' THEN (
               SELECT a.call_id FROM operator_acts a WHERE a.transfer_id = p.id AND a.account_id = p.account_id LIMIT 1
             ) ELSE substring(note FROM '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$')::uuid END AS call_id
      FROM passed p WHERE code IN ('call_refund', 'operator_refund', 'onchain_refund')
    ) r
    CROSS JOIN LATERAL (
      SELECT service, rail FROM calls WHERE account_id = r.account_id AND id = r.call_id OFFSET 0
    ) c
    GROUP BY 1, 2, 3, 4
  ), of_accounts AS (
    INSERT INTO account_sales_days AS s (account_id, day, service, rail, refunded, refunded_micros)
    SELECT account_id, day, service, rail, refunded, refunded_micros FROM counted
    ON CONFLICT (account_id, day, service, rail) DO UPDATE SET
      refunded = s.refunded + excluded.refunded, refunded_micros = s.refunded_micros + excluded.refunded_micros
  ), of_all AS (
    INSERT INTO sales_days AS s (day, service, rail, refunded, refunded_micros)
    SELECT day, service, rail, sum(refunded), sum(refunded_micros) FROM counted GROUP BY 1, 2, 3
    ON CONFLICT (day, service, rail) DO UPDATE SET
      refunded = s.refunded + excluded.refunded, refunded_micros = s.refunded_micros + excluded.refunded_micros
  )
  SELECT count(*) INTO looked FROM passed;
  UPDATE sales_folded SET transfers_to = until WHERE transfers_to < until;
  RETURN looked;
END
$$;
