-- A share is taken back in the commit that gives the call's price back. Such a transfer names the call at the end of its note,
-- or belongs to an operator's act that does. What was paid above the price goes back without it; and what has gone back of the
-- share before, with a card payment, does not go back again.
CREATE OR REPLACE FUNCTION call_share_taken_back() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  call uuid;
  amount bigint;
BEGIN
  IF NEW.code = 'operator_refund' THEN
    SELECT a.call_id INTO call FROM operator_acts a
    WHERE a.account_id = NEW.account_id AND a.transfer_id = NEW.id AND a.call_id IS NOT NULL;
  ELSE
    call := substring(NEW.note FROM '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$')::uuid;
  END IF;
  IF NEW.code IN ('call_refund', 'operator_refund') THEN
    UPDATE trial_credits SET given_back_micros = given_back_micros + NEW.amount_micros
    WHERE account_id = NEW.account_id;
  END IF;
  UPDATE call_shares s SET state = 2, due_micros = s.due_micros - (s.amount_micros - s.reversed_micros)
  FROM calls c
  WHERE s.bucket = NEW.bucket AND s.account_id = NEW.account_id AND s.call_id = call AND s.state = 1
    AND c.bucket = NEW.bucket AND c.account_id = s.account_id AND c.id = s.call_id AND c.price_micros <= NEW.amount_micros
  RETURNING s.amount_micros - s.reversed_micros INTO amount;
  IF coalesce(amount, 0) = 0 THEN RETURN NULL; END IF;
  INSERT INTO ledger_transfers
    (bucket, account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at, note)
  SELECT NEW.bucket, 13, md5('share of ' || call)::uuid, 1, 13, t.debit_account, amount, 'share_back', NEW.created_at,
         'share of call ' || call
  FROM ledger_transfers t
  WHERE t.bucket = NEW.bucket AND t.account_id = 13 AND t.id = call AND t.resolves = false;
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER ledger_transfer_takes_share AFTER INSERT ON ledger_transfers
FOR EACH ROW WHEN (NEW.code IN ('call_refund', 'onchain_refund', 'settlement_lost', 'operator_refund'))
EXECUTE FUNCTION call_share_taken_back();
