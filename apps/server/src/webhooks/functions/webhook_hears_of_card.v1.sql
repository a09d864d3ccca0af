-- Tells webhooks of their account's card payments, in the commit that changes the order: a recharge that was paid or was
-- not, money that went back, a dispute. What a webhook can have waiting, and gets in a day, is bounded.
CREATE OR REPLACE FUNCTION webhook_hears_of_card() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  told text;
  details jsonb := jsonb_build_object('orderId', NEW.id);
  at CONSTANT timestamptz := clock_timestamp();
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

  INSERT INTO webhook_deliveries (id, webhook_id, type, body, created_at, wanted_at, next_at)
  SELECT gen_random_uuid(), w.id, told,
         jsonb_build_object('type', told, 'timestamp', to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
                            'data', details)::text,
         at, at, at
  FROM webhooks w
  WHERE w.account_id = NEW.account_id AND w.disabled_at IS NULL AND told = ANY (w.events)
    AND EXISTS (SELECT 1 FROM api_keys k WHERE k.account_id = w.account_id AND k.status <> 'revoked')
    AND (SELECT count(*) FROM (
          SELECT 1 FROM webhook_deliveries d WHERE d.webhook_id = w.id AND d.next_at IS NOT NULL LIMIT 1000
        ) waiting) < 1000
    AND (SELECT count(*) FROM (
          SELECT 1 FROM webhook_deliveries d WHERE d.webhook_id = w.id AND d.created_at > at - interval '1 day' LIMIT 2000
        ) of_the_day) < 2000
  -- Its owner may be deleting it: the commit of money waits for nobody's webhook. What is held is left alone.
  FOR KEY SHARE OF w SKIP LOCKED;
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER card_order_is_told AFTER UPDATE ON card_orders
FOR EACH ROW
WHEN (NEW.account_id IS NOT NULL
  AND (NEW.state <> OLD.state OR NEW.reversed_micros <> OLD.reversed_micros OR NEW.dispute IS DISTINCT FROM OLD.dispute))
EXECUTE FUNCTION webhook_hears_of_card();
