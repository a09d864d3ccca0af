-- Writes down what was captured by the calls of a week that are about to leave, and forgets what paid for them: an Idempotency-Key
-- is remembered as long as its call. Calls that a chain paid stay, and so does what paid for them.
--
-- p_week: such as 'w20251124'.
CREATE OR REPLACE FUNCTION calls_carry(p_week text) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  EXECUTE format($query$
    INSERT INTO calls_carried (week, account_id, key_id, service, day, calls, charged, spent_micros)
    SELECT $1, c.account_id, coalesce(c.key_id, 0), c.service, (c.finished_at AT TIME ZONE 'UTC')::date, count(*),
           count(*) FILTER (WHERE c.price_micros > 0), sum(c.price_micros)
    FROM %1$I c
    WHERE c.state = 1 AND NOT EXISTS (SELECT 1 FROM %2$I k WHERE k.bucket = c.bucket AND k.account_id = c.account_id AND k.id = c.id)
    GROUP BY 2, 3, 4, 5 $query$, 'calls_' || p_week, 'calls_' || p_week || '_kept')
  USING p_week;
  EXECUTE format($query$
    DELETE FROM call_identities i USING %1$I c
    WHERE c.identity IS NOT NULL AND i.bucket = c.bucket AND i.account_id = c.account_id AND i.kind = 0 AND i.identity = c.identity
      AND i.call_id = c.id AND NOT EXISTS (SELECT 1 FROM %2$I k WHERE k.bucket = c.bucket AND k.account_id = c.account_id AND k.id = c.id) $query$,
    'calls_' || p_week, 'calls_' || p_week || '_kept');
END
$$;
