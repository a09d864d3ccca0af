-- The price of a call that is given back comes from where it went: it is trial credit again if a trial had paid it. Where
-- that has expired it must not lie there to be spent.
CREATE OR REPLACE FUNCTION trial_credit_came_back() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  UPDATE trial_credits SET due = true WHERE account_id = NEW.account_id AND ended = 'expired' AND NOT due;
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER ledger_transfer_gives_back AFTER INSERT ON ledger_transfers
FOR EACH ROW WHEN (NEW.code IN ('call_refund', 'operator_refund'))
EXECUTE FUNCTION trial_credit_came_back();
