-- A price that is given back takes with it what is left of the key that it bought.
CREATE OR REPLACE FUNCTION sold_key_came_back() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  UPDATE sold_keys SET closed_at = NULL WHERE refund_id = NEW.id AND taken_back_micros IS NULL;
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER ledger_transfer_gives_back_a_key AFTER INSERT ON ledger_transfers
FOR EACH ROW WHEN (NEW.code IN ('call_refund', 'operator_refund'))
EXECUTE FUNCTION sold_key_came_back();
