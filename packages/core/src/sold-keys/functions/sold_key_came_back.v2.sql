-- A price that is given back takes with it what is left of the key that it bought, or keeps the key from being granted. The
-- row is locked until the refund's commit, as a grant locks it: the second of the two finds the first.
CREATE OR REPLACE FUNCTION sold_key_came_back() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  UPDATE sold_keys
  SET refunded_at = NEW.created_at, closed_at = CASE WHEN granted_at IS NULL THEN closed_at END
  WHERE refund_id = NEW.id AND taken_back_micros IS NULL;
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER ledger_transfer_gives_back_a_key AFTER INSERT ON ledger_transfers
FOR EACH ROW WHEN (NEW.code IN ('call_refund', 'operator_refund'))
EXECUTE FUNCTION sold_key_came_back();
