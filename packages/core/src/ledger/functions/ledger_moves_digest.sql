-- SHA-256 over the moves of one closed day, ten thousand accounts at a time.
CREATE OR REPLACE FUNCTION ledger_moves_digest(p_day date) RETURNS bytea
LANGUAGE sql STABLE
AS $$
  SELECT sha256(coalesce(string_agg(p.digest, ''::bytea ORDER BY p.part), ''))
  FROM (
    SELECT l.part, sha256(convert_to(string_agg(l.line, E'\n' ORDER BY l.account_id), 'UTF8')) AS digest
    FROM (
      SELECT m.account_id, (row_number() OVER (ORDER BY m.account_id) - 1) / 10000 AS part,
             jsonb_build_array(m.account_id, m.debits_pending, m.debits_posted, m.credits_pending, m.credits_posted)::text
               AS line
      FROM ledger_day_moves m WHERE m.day = p_day
    ) l GROUP BY l.part
  ) p
$$;
