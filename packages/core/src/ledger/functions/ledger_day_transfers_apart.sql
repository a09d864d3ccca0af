-- How many transfers were made on one day (UTC), and SHA-256 over all of them, on a database that is spread. An account may move to another
-- bucket afterwards, so the digest is of accounts and not of buckets: each account has a digest of its own, and what is kept is their sum,
-- whatever their order and wherever they lie. Each server adds up those that it has.
--
-- The sum is the multiset hash AdHash (Bellare and Micciancio, "A New Paradigm for Collision-Free Hashing", 1997) in the form LtHash: the
-- digest is stretched to 4,096 bits, which are added in 128 lanes of 32 bits. Less would be open to the generalized birthday attack
-- (Wagner, 2002), which takes some 2^(2 * sqrt(4096)) = 2^128 steps here.
--
-- Each minute of an account has a digest too, so that no text grows with the day. What is set aside for others of prices lies with those who
-- paid them, so each of those transfers counts as an account of its own. Transfers of calls that were begun and released on the day are left
-- out, as in `ledger_day_transfers`.
--
-- p_beside: a table of more transfers, such as those that were read from files; NULL: there is none. An account may have moved since they
-- were written, so with it buckets are not looked at, and the rows of all servers are read.
CREATE OR REPLACE FUNCTION ledger_day_transfers_apart(p_day date, p_beside regclass DEFAULT NULL, OUT transfers bigint, OUT digest bytea)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
  since CONSTANT timestamptz := p_day::timestamp AT TIME ZONE 'UTC';
  until CONSTANT timestamptz := (p_day + 1)::timestamp AT TIME ZONE 'UTC';
  columns CONSTANT text :=
    'account_id, id, phase, debit_account, credit_account, amount_micros, reserved_micros, code, note, created_at';
  made text := format('SELECT bucket, %s FROM ledger_transfers WHERE created_at >= $1 AND created_at < $2', columns);
BEGIN
  IF p_beside IS NOT NULL THEN
    made := format('SELECT 0 AS bucket, %1$s FROM ledger_transfers WHERE created_at >= $1 AND created_at < $2
      UNION ALL SELECT 0, %1$s FROM %2$s WHERE created_at >= $1 AND created_at < $2', columns, p_beside);
  END IF;
  EXECUTE format($query$
  SELECT coalesce(max(s.transfers), 0), sha256(coalesce(string_agg(int8send(s.added), ''::bytea ORDER BY s.lane), ''))
  FROM (
    SELECT lane, sum(w.transfers)::bigint AS transfers,
           (sum((get_byte(w.wide, lane * 4)::bigint << 24) + (get_byte(w.wide, lane * 4 + 1) << 16)
                + (get_byte(w.wide, lane * 4 + 2) << 8) + get_byte(w.wide, lane * 4 + 3)) %% 4294967296)::bigint AS added
    FROM (
      -- In this level, because it is worked out once an account here: of one expression PostgreSQL makes one aggregate.
      SELECT m.bucket, m.account_id, m.apart, sum(m.transfers) AS transfers,
             sha512(sha256(string_agg(m.digest, ''::bytea ORDER BY m.minute)) || '\x00')
               || sha512(sha256(string_agg(m.digest, ''::bytea ORDER BY m.minute)) || '\x01')
               || sha512(sha256(string_agg(m.digest, ''::bytea ORDER BY m.minute)) || '\x02')
               || sha512(sha256(string_agg(m.digest, ''::bytea ORDER BY m.minute)) || '\x03')
               || sha512(sha256(string_agg(m.digest, ''::bytea ORDER BY m.minute)) || '\x04')
               || sha512(sha256(string_agg(m.digest, ''::bytea ORDER BY m.minute)) || '\x05')
               || sha512(sha256(string_agg(m.digest, ''::bytea ORDER BY m.minute)) || '\x06')
               || sha512(sha256(string_agg(m.digest, ''::bytea ORDER BY m.minute)) || '\x07') AS wide
      FROM (
        SELECT l.bucket, l.account_id, l.apart, l.minute, count(*) AS transfers,
                 sha256(convert_to(string_agg(l.line, E'\n' ORDER BY l.id, l.resolves), 'UTF8')) AS digest
          FROM (
            SELECT t.bucket, t.account_id, t.id, t.phase >= 3 AS resolves, floor(extract(epoch FROM t.created_at) / 60) AS minute,
                   CASE t.account_id WHEN 13 THEN t.id END AS apart,
                   count(*) FILTER (WHERE t.phase IN (2, 4)) OVER (PARTITION BY t.bucket, t.account_id, t.id) AS of_released,
                   jsonb_build_array(t.account_id, t.id, t.phase, t.debit_account, t.credit_account, t.amount_micros,
                     t.reserved_micros, t.code, t.note, (extract(epoch FROM t.created_at) * 1000000)::bigint)::text AS line
            FROM (%s) t
          ) l WHERE l.of_released < 2 GROUP BY l.bucket, l.account_id, l.apart, l.minute
      ) m GROUP BY m.bucket, m.account_id, m.apart
    ) w CROSS JOIN generate_series(0, 127) AS lane
    GROUP BY lane
  ) s $query$, made)
  INTO transfers, digest USING since, until;
END
$$;
