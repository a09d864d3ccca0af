-- All of a payment came back after all, such as by a dispute that was won: its shares are set aside again.
CREATE OR REPLACE FUNCTION call_shares_restored() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  given bigint;
BEGIN
  WITH back AS (
    SELECT account_id, call_id, reversed_micros FROM call_shares
    WHERE reversed_by = NEW.id AND state = 1 FOR UPDATE
  ), restored AS (
    UPDATE call_shares s SET reversed_by = NULL, reversed_micros = 0, due_micros = s.due_micros + b.reversed_micros
    FROM back b WHERE s.account_id = b.account_id AND s.call_id = b.call_id
    RETURNING b.reversed_micros
  )
  SELECT sum(reversed_micros)::bigint INTO given FROM restored;
  IF given IS NULL THEN RETURN NULL; END IF;
  INSERT INTO ledger_transfers
    (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at, note)
  VALUES (13, md5('shares restored by ' || NEW.id || ' ' || NEW.version)::uuid, 1, 1, 13, given, 'share_restored',
          clock_timestamp(), 'shares of order ' || NEW.id);
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER card_order_restores_shares AFTER UPDATE ON card_orders
FOR EACH ROW WHEN (OLD.reversed_micros > 0 AND NEW.reversed_micros = 0)
EXECUTE FUNCTION call_shares_restored();
