-- Tells webhooks of their account of the price of a call that was given back, in the commit that gives it back. What a
-- webhook can have waiting, and gets in a day, is bounded. The transfer's note is the house's own and is not passed on, but for the call.
CREATE OR REPLACE FUNCTION webhook_hears_of_refund() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  at CONSTANT timestamptz := clock_timestamp();
BEGIN
  INSERT INTO webhook_deliveries (id, webhook_id, type, body, created_at, wanted_at, next_at)
  SELECT gen_random_uuid(), w.id, 'refund.made',
         jsonb_build_object(
           'type', 'refund.made', 'timestamp', to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
           'data', jsonb_build_object(
             'of', 'call', 'callId', substring(NEW.note FROM 'call ([0-9a-f-]{36})'),
             'amountUsd', to_char(NEW.amount_micros / 1000000.0, 'FM999999999990.000000')))::text,
         at, at, at
  FROM webhooks w
  WHERE w.account_id = NEW.account_id AND w.disabled_at IS NULL AND 'refund.made' = ANY (w.events)
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

CREATE OR REPLACE TRIGGER ledger_refund_is_told AFTER INSERT ON ledger_transfers
FOR EACH ROW WHEN (NEW.code IN ('call_refund', 'operator_refund') AND NEW.phase IN (1, 3))
EXECUTE FUNCTION webhook_hears_of_refund();
