-- How many transfers were made on one day (UTC), and SHA-256 over all of them. The transfers of each minute have a digest of
-- their own, so that no text grows with the day.
CREATE OR REPLACE FUNCTION ledger_day_transfers(p_day date, OUT transfers bigint, OUT digest bytea)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
  since CONSTANT timestamptz := p_day::timestamp AT TIME ZONE 'UTC';
  until CONSTANT timestamptz := (p_day + 1)::timestamp AT TIME ZONE 'UTC';
BEGIN
  SELECT coalesce(sum(m.transfers), 0), sha256(coalesce(string_agg(m.digest, ''::bytea ORDER BY m.minute), ''))
  INTO transfers, digest
  FROM (
    SELECT l.minute, count(*) AS transfers,
           sha256(convert_to(string_agg(l.line, E'\n' ORDER BY l.account_id, l.id, l.resolves), 'UTF8')) AS digest
    FROM (
      SELECT t.account_id, t.id, t.resolves, floor(extract(epoch FROM t.created_at) / 60) AS minute,
             jsonb_build_array(t.account_id, t.id, t.phase, t.debit_account, t.credit_account, t.amount_micros,
               t.reserved_micros, t.code, t.note, (extract(epoch FROM t.created_at) * 1000000)::bigint)::text AS line
      FROM ledger_transfers t WHERE t.created_at >= since AND t.created_at < until
    ) l GROUP BY l.minute
  ) m;
END
$$;
