-- Writes a message for each webhook of the account that wants an event, in the event's own commit. A webhook has at most
-- 1,000 messages waiting, and gets 2,000 in a day; the last 500 of a day are for events about money. What finds no room
-- stays in the log, counts as missed, and can be asked for with `recover`.
CREATE OR REPLACE FUNCTION account_event_is_sent() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM 1 FROM webhooks w WHERE w.account_id = NEW.account_id LIMIT 1;
  IF NOT FOUND THEN RETURN NULL; END IF;
  -- Asked by itself: where a database is spread, keys lie on other servers than webhooks.
  PERFORM 1 FROM api_keys k WHERE k.account_id = NEW.account_id AND k.status <> 'revoked' LIMIT 1;
  IF NOT FOUND THEN RETURN NULL; END IF;
  INSERT INTO webhook_deliveries (id, webhook_id, event_id, type, body, created_at, wanted_at, next_at)
  SELECT gen_random_uuid(), w.id, NEW.id, NEW.type,
         jsonb_build_object(
           'type', NEW.type,
           'timestamp', to_char(NEW.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
           'eventId', NEW.id, 'data', NEW.data)::text,
         NEW.created_at, NEW.created_at, NEW.created_at
  FROM webhooks w
  WHERE w.account_id = NEW.account_id AND (NEW.webhook_id IS NULL OR NEW.webhook_id = w.id)
    AND w.disabled_at IS NULL AND NEW.type = ANY (w.events)
    AND (SELECT count(*) FROM (
          SELECT 1 FROM webhook_deliveries d WHERE d.webhook_id = w.id AND d.next_at IS NOT NULL LIMIT 1000
        ) waiting) < 1000
    AND (SELECT count(*) FROM (
          SELECT 1 FROM webhook_deliveries d
          WHERE d.webhook_id = w.id AND d.created_at > NEW.created_at - interval '1 day' LIMIT 2000
        ) of_the_day) < CASE WHEN NEW.about_money THEN 2000 ELSE 1500 END
  -- Its owner may be deleting it: the commit of money waits for nobody's webhook. What is held is left alone.
  FOR KEY SHARE OF w SKIP LOCKED;
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER account_event_is_sent AFTER INSERT ON account_events
FOR EACH ROW EXECUTE FUNCTION account_event_is_sent();
