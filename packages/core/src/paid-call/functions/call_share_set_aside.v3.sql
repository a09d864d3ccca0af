-- What somebody else gets of a call's price is set aside in the commit that takes the price, whoever takes it: by a transfer
-- from what the rail has earned, under the id of the call. No account is locked for it. A share is noted of what is reserved; of
-- a measured call it is the same part of what was taken, and never nothing.
CREATE OR REPLACE FUNCTION call_share_set_aside() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  amount bigint;
BEGIN
  IF NEW.reserved_micros IS NOT NULL THEN
    UPDATE call_shares s
    SET amount_micros = greatest(1, div(s.amount_micros::numeric * NEW.price_micros, NEW.reserved_micros))
    WHERE s.bucket = NEW.bucket AND s.account_id = NEW.account_id AND s.call_id = NEW.id AND s.state = 0;
  END IF;
  UPDATE call_shares s SET state = 1, due_micros = s.amount_micros, set_aside_at = NEW.finished_at
  WHERE s.bucket = NEW.bucket AND s.account_id = NEW.account_id AND s.call_id = NEW.id AND s.state = 0
  RETURNING s.amount_micros INTO amount;
  IF amount IS NULL THEN RETURN NULL; END IF;
  INSERT INTO ledger_transfers
    (bucket, account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at, note)
  SELECT NEW.bucket, 13, NEW.id, 1, t.credit_account, 13, amount, 'share', NEW.finished_at, 'share of call ' || NEW.id
  FROM ledger_transfers t
  WHERE t.bucket = NEW.bucket AND t.account_id = NEW.account_id AND t.id = NEW.id AND t.resolves = false;
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER call_is_shared AFTER UPDATE OF state ON calls
FOR EACH ROW WHEN (NEW.shared AND NEW.state = 1 AND OLD.state <> 1)
EXECUTE FUNCTION call_share_set_aside();
