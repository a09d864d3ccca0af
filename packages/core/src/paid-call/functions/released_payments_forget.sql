-- Forgets what was to pay for calls of one week that were released: nothing was taken, and whoever pays with it again buys anew,
-- and changes no row of that week.
CREATE OR REPLACE FUNCTION released_payments_forget(p_week text) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  EXECUTE format($query$
    DELETE FROM call_identities i USING %I c
    WHERE c.state = 2 AND i.bucket = c.bucket AND i.account_id = c.account_id AND i.call_id = c.id
      AND (i.kind, i.identity) IN ((0, c.identity), (1, c.payment_key)) $query$, 'calls_' || p_week);
END
$$;
