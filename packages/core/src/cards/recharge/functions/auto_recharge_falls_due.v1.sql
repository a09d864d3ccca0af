-- In the commit of whatever took the money. However many debits see the balance low, the first makes it due. No call
-- waits for whoever holds the row: a notice is left for a job then.
CREATE OR REPLACE FUNCTION auto_recharge_falls_due() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM 1 FROM auto_recharges WHERE account_id = NEW.id AND state = 0 FOR NO KEY UPDATE SKIP LOCKED;
  IF FOUND THEN
    UPDATE auto_recharges SET state = 1 WHERE account_id = NEW.id AND state = 0;
  ELSIF EXISTS (SELECT 1 FROM auto_recharges WHERE account_id = NEW.id AND state = 0) THEN
    INSERT INTO auto_recharge_notices (account_id) VALUES (NEW.id);
  END IF;
  RETURN NULL;
END
$$;

-- The condition is checked before the function is called: an account that nobody watches costs a comparison. What is
-- only reserved may come back, so it does not count.
CREATE OR REPLACE TRIGGER ledger_account_is_low AFTER UPDATE ON ledger_accounts
FOR EACH ROW
WHEN (NEW.low_below_micros IS NOT NULL
  AND NEW.credits_posted - NEW.debits_posted < NEW.low_below_micros
  AND (NEW.debits_posted <> OLD.debits_posted OR NEW.credits_posted <> OLD.credits_posted
       OR NEW.low_below_micros IS DISTINCT FROM OLD.low_below_micros))
EXECUTE FUNCTION auto_recharge_falls_due();
