-- Notes among the events of an account that the price of a call was given back, in the commit that gives it back. The
-- transfer's note is written for the operator: only the call's id is passed on.
CREATE OR REPLACE FUNCTION webhook_hears_of_refund() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  INSERT INTO account_events (account_id, type, data, about_money, created_at)
  VALUES (
    NEW.account_id, 'refund.made',
    jsonb_build_object(
      'of', 'call', 'callId', substring(NEW.note FROM 'call ([0-9a-f-]{36})'),
      'amountUsd', to_char(NEW.amount_micros / 1000000.0, 'FM999999999990.000000')),
    true, clock_timestamp());
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER ledger_refund_is_told AFTER INSERT ON ledger_transfers
FOR EACH ROW WHEN (NEW.code IN ('call_refund', 'operator_refund') AND NEW.phase IN (1, 3))
EXECUTE FUNCTION webhook_hears_of_refund();
