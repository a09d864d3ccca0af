-- How many transfers were made on one day (UTC), and SHA-256 over all of them. The transfers of each minute have a digest of
-- their own, so that no text grows with the day.
--
-- A day lies in a few pages of one or two weeks, which the index by time finds; without it every week would be read as a whole.
--
-- p_released_apart: without those of calls that were begun and released on the day: they do not stay, and move nothing.
-- p_beside: a table of more transfers, such as those that were read from files; NULL: there is none.
CREATE OR REPLACE FUNCTION ledger_day_transfers(
  p_day date, p_released_apart boolean, p_beside regclass, OUT transfers bigint, OUT digest bytea
)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
AS $$
DECLARE
  since CONSTANT timestamptz := p_day::timestamp AT TIME ZONE 'UTC';
  until CONSTANT timestamptz := (p_day + 1)::timestamp AT TIME ZONE 'UTC';
  columns CONSTANT text := 'account_id, id, phase, debit_account, credit_account, amount_micros, reserved_micros, code, note, created_at';
  made text := format('SELECT %s FROM ledger_transfers WHERE created_at >= $1 AND created_at < $2', columns);
BEGIN
  IF p_beside IS NOT NULL THEN
    made := format('%s UNION ALL SELECT %s FROM %s WHERE created_at >= $1 AND created_at < $2', made, columns, p_beside);
  END IF;
  EXECUTE format($query$
    WITH made AS (%s), released AS (
      SELECT e.account_id, e.id FROM made e JOIN made t ON t.account_id = e.account_id AND t.id = e.id AND t.phase = 2
      WHERE $3 AND e.phase = 4
    )
    SELECT coalesce(sum(m.transfers), 0), sha256(coalesce(string_agg(m.digest, ''::bytea ORDER BY m.minute), ''))
    FROM (
      SELECT l.minute, count(*) AS transfers,
             sha256(convert_to(string_agg(l.line, E'\n' ORDER BY l.account_id, l.id, l.resolves), 'UTF8')) AS digest
      FROM (
        SELECT t.account_id, t.id, t.phase >= 3 AS resolves, floor(extract(epoch FROM t.created_at) / 60) AS minute,
               jsonb_build_array(t.account_id, t.id, t.phase, t.debit_account, t.credit_account, t.amount_micros,
                 t.reserved_micros, t.code, t.note, (extract(epoch FROM t.created_at) * 1000000)::bigint)::text AS line
        FROM made t WHERE NOT EXISTS (SELECT 1 FROM released r WHERE r.account_id = t.account_id AND r.id = t.id)
      ) l GROUP BY l.minute
    ) m $query$, made)
  INTO transfers, digest USING since, until, p_released_apart;
END
$$;
