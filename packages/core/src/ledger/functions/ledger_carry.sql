-- Writes down what the transfers of a week moved, by day and account, that are about to leave: those of calls, but for the calls in the
-- table of what stays. Other transfers stay, also those that come while this is written. Marks their days.
--
-- p_week: such as 'w20251124'.
CREATE OR REPLACE FUNCTION ledger_carry(p_week text) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  EXECUTE format($query$
    INSERT INTO ledger_carried
      (week, day, account_id, transfers, debits_pending, debits_posted, credits_pending, credits_posted)
    SELECT $1, e.day, e.account, count(*) FILTER (WHERE e.account = e.owner),
           coalesce(sum(e.pending) FILTER (WHERE e.debit), 0), coalesce(sum(e.posted) FILTER (WHERE e.debit), 0),
           coalesce(sum(e.pending) FILTER (WHERE NOT e.debit), 0), coalesce(sum(e.posted) FILTER (WHERE NOT e.debit), 0)
    FROM (
      SELECT s.account, s.debit, t.account_id AS owner, (t.created_at AT TIME ZONE 'UTC')::date AS day,
             CASE t.phase WHEN 2 THEN t.amount_micros WHEN 3 THEN -coalesce(t.reserved_micros, t.amount_micros)
               WHEN 4 THEN -t.amount_micros ELSE 0 END AS pending,
             CASE WHEN t.phase IN (1, 3) THEN t.amount_micros ELSE 0 END AS posted
      FROM %1$I t
      CROSS JOIN LATERAL (VALUES (t.debit_account, true), (t.credit_account, false)) AS s (account, debit)
      WHERE t.code = 'call' AND NOT EXISTS (SELECT 1 FROM %2$I k WHERE k.bucket = t.bucket AND k.account_id = t.account_id AND k.id = t.id)
    ) e GROUP BY e.day, e.account $query$, 'ledger_transfers_' || p_week, 'ledger_transfers_' || p_week || '_kept')
  USING p_week;
  UPDATE ledger_days SET archived_at = coalesce(archived_at, now())
  WHERE day IN (SELECT day FROM ledger_carried WHERE week = p_week);
END
$$;
