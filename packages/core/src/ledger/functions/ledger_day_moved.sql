-- What each account moved on one day (UTC), from the transfers that were made on it, on both of their sides. As in
-- `ledger_day_transfers`, other weeks are not read.
CREATE OR REPLACE FUNCTION ledger_day_moved(p_day date) RETURNS TABLE (
  account_id bigint, debits_pending bigint, debits_posted bigint, credits_pending bigint, credits_posted bigint
)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  since CONSTANT timestamptz := p_day::timestamp AT TIME ZONE 'UTC';
  until CONSTANT timestamptz := (p_day + 1)::timestamp AT TIME ZONE 'UTC';
BEGIN
  RETURN QUERY
    SELECT e.account, coalesce(sum(e.pending) FILTER (WHERE e.debit), 0)::bigint,
           coalesce(sum(e.posted) FILTER (WHERE e.debit), 0)::bigint,
           coalesce(sum(e.pending) FILTER (WHERE NOT e.debit), 0)::bigint,
           coalesce(sum(e.posted) FILTER (WHERE NOT e.debit), 0)::bigint
    FROM (
      SELECT s.account, s.debit,
             CASE t.phase WHEN 2 THEN t.amount_micros WHEN 3 THEN -coalesce(t.reserved_micros, t.amount_micros)
               WHEN 4 THEN -t.amount_micros ELSE 0 END AS pending,
             CASE WHEN t.phase IN (1, 3) THEN t.amount_micros ELSE 0 END AS posted
      FROM ledger_transfers t
      CROSS JOIN LATERAL (VALUES (t.debit_account, true), (t.credit_account, false)) AS s (account, debit)
      WHERE t.created_at >= since AND t.created_at < until
    ) e GROUP BY e.account;
END
$$;
