-- On a database that is spread: what `call_shares_restored` does on one PostgreSQL, bucket by bucket, in the commit that changes the order.
CREATE OR REPLACE FUNCTION call_shares_restored_apart() RETURNS trigger
LANGUAGE plpgsql
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
  home record;
  share record;
  given bigint := 0;
BEGIN
  -- No account is moved meanwhile (`ledger/buckets.ts`), so each share is where it was looked for.
  PERFORM pg_advisory_xact_lock_shared(8406);
  FOR home IN
    SELECT DISTINCT s.bucket FROM call_shares s WHERE s.reversed_by = NEW.id AND s.state = 1 ORDER BY s.bucket
  LOOP
    FOR share IN
      SELECT s.reversed_micros FROM call_shares s
      WHERE s.bucket = home.bucket AND s.reversed_by = NEW.id AND s.state = 1 FOR UPDATE
    LOOP
      given := given + share.reversed_micros;
    END LOOP;
    UPDATE call_shares s SET reversed_by = NULL, reversed_micros = 0, due_micros = s.due_micros + s.reversed_micros
    WHERE s.bucket = home.bucket AND s.reversed_by = NEW.id AND s.state = 1;
  END LOOP;
  IF given = 0 THEN RETURN NULL; END IF;
  INSERT INTO ledger_transfers
    (bucket, account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at, note)
  VALUES (0, 13, md5('shares restored by ' || NEW.id || ' ' || NEW.version)::uuid, 1, 1, 13, given, 'share_restored',
          clock_timestamp(), 'shares of order ' || NEW.id);
  RETURN NULL;
END
$$;

DROP TRIGGER IF EXISTS card_order_restores_shares ON card_orders;

CREATE OR REPLACE TRIGGER card_order_restores_shares_apart AFTER UPDATE ON card_orders
FOR EACH ROW WHEN (OLD.reversed_micros > 0 AND NEW.reversed_micros = 0)
EXECUTE FUNCTION call_shares_restored_apart();
