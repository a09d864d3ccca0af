-- Notes card payments among the events of their account, in the commit that changes the order: a recharge that was paid or
-- was not, money that went back, a dispute.
CREATE OR REPLACE FUNCTION webhook_hears_of_card() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  told text;
  details jsonb := jsonb_build_object('orderId', NEW.id);
  back CONSTANT bigint := NEW.reversed_micros - OLD.reversed_micros;
BEGIN
  -- An order that was over may turn out to be paid.
  IF NEW.kind = 'recharge' AND OLD.state <> 1 AND NEW.state = 1 THEN
    told := 'recharge.succeeded';
    details := details || jsonb_build_object('amountUsd', to_char(NEW.amount_micros / 1000000.0, 'FM999999999990.000000'));
  ELSIF NEW.kind = 'recharge' AND OLD.state = 0 AND NEW.state = 2 THEN
    told := 'recharge.failed';
    details := details || jsonb_build_object(
      'amountUsd', to_char(NEW.amount_micros / 1000000.0, 'FM999999999990.000000'),
      'reason', coalesce(NEW.decline_code, NEW.failure));
  ELSIF NEW.dispute IS NOT NULL AND NEW.dispute IS DISTINCT FROM OLD.dispute THEN
    told := 'dispute.changed';
    details := details || jsonb_build_object(
      'status', NEW.dispute, 'disputedUsd', to_char(NEW.disputed_micros / 1000000.0, 'FM999999999990.000000'));
  ELSIF back > 0 AND NEW.disputed_micros = OLD.disputed_micros THEN
    told := 'refund.made';
    details := details || jsonb_build_object(
      'of', 'card_payment', 'amountUsd', to_char(back / 1000000.0, 'FM999999999990.000000'));
  ELSE
    RETURN NULL;
  END IF;

  INSERT INTO account_events (account_id, type, data, about_money, created_at)
  VALUES (NEW.account_id, told, details, true, clock_timestamp());
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER card_order_is_told AFTER UPDATE ON card_orders
FOR EACH ROW
WHEN (NEW.account_id IS NOT NULL
  AND (NEW.state <> OLD.state OR NEW.reversed_micros <> OLD.reversed_micros OR NEW.dispute IS DISTINCT FROM OLD.dispute))
EXECUTE FUNCTION webhook_hears_of_card();
