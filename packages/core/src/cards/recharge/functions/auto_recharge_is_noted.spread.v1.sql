-- On a database that is spread, in place of `auto_recharge_falls_due`: leaves a notice on the account's own server, in the commit of whatever
-- took the money. The coordinator has the kept card, and reads the notices.
CREATE OR REPLACE FUNCTION auto_recharge_is_noted() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  INSERT INTO auto_recharge_notices (bucket, account_id, id) VALUES (NEW.bucket, NEW.id, gen_random_uuid());
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER ledger_account_is_noted AFTER UPDATE ON ledger_accounts
FOR EACH ROW
WHEN (NEW.low_below_micros IS NOT NULL
  AND NEW.credits_posted - NEW.debits_posted < NEW.low_below_micros
  AND (NEW.debits_posted <> OLD.debits_posted OR NEW.credits_posted <> OLD.credits_posted
       OR NEW.low_below_micros IS DISTINCT FROM OLD.low_below_micros))
EXECUTE FUNCTION auto_recharge_is_noted();
