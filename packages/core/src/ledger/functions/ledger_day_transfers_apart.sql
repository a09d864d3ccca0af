-- How many transfers were made on one day (UTC), and SHA-256 over all of them, on a database that is spread: each bucket has a digest of
-- its own, which the server makes that has it. Each minute of a bucket has one too, so that no text grows with the day. Transfers of calls
-- that were begun and released on the day are left out, as in `ledger_day_transfers`.
CREATE OR REPLACE FUNCTION ledger_day_transfers_apart(p_day date, OUT transfers bigint, OUT digest bytea)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
  since CONSTANT timestamptz := p_day::timestamp AT TIME ZONE 'UTC';
  until CONSTANT timestamptz := (p_day + 1)::timestamp AT TIME ZONE 'UTC';
BEGIN
  SELECT coalesce(sum(b.transfers), 0),
         sha256(coalesce(string_agg(int2send(b.bucket) || b.digest, ''::bytea ORDER BY b.bucket), ''))
  INTO transfers, digest
  FROM (
    SELECT m.bucket, sum(m.transfers) AS transfers, sha256(string_agg(m.digest, ''::bytea ORDER BY m.minute)) AS digest
    FROM (
      SELECT l.bucket, l.minute, count(*) AS transfers,
             sha256(convert_to(string_agg(l.line, E'\n' ORDER BY l.account_id, l.id, l.resolves), 'UTF8')) AS digest
      FROM (
        SELECT t.bucket, t.account_id, t.id, t.resolves, floor(extract(epoch FROM t.created_at) / 60) AS minute,
               count(*) FILTER (WHERE t.phase IN (2, 4)) OVER (PARTITION BY t.bucket, t.account_id, t.id) AS of_released,
               jsonb_build_array(t.account_id, t.id, t.phase, t.debit_account, t.credit_account, t.amount_micros,
                 t.reserved_micros, t.code, t.note, (extract(epoch FROM t.created_at) * 1000000)::bigint)::text AS line
        FROM ledger_transfers t WHERE t.created_at >= since AND t.created_at < until
      ) l WHERE l.of_released < 2 GROUP BY l.bucket, l.minute
    ) m GROUP BY m.bucket
  ) b;
END
$$;
