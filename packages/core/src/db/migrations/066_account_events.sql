-- What happened to an account: kept for thirty days, whether or not a webhook took it. Rows about money are written in the
-- commit that moves it. A trigger on this table hands each row to the account's webhooks.
CREATE TABLE account_events (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  account_id bigint NOT NULL,
  -- Set: the event concerns this webhook alone, such as a balance below its threshold.
  webhook_id uuid,
  type text NOT NULL,
  data jsonb NOT NULL,
  -- Money has moved. Such events keep their room in a webhook's day when there are too many others.
  about_money boolean NOT NULL,
  created_at timestamptz NOT NULL
);
CREATE INDEX account_events_listed ON account_events (account_id, created_at, id);
CREATE INDEX account_events_time ON account_events (created_at);

-- The event that a message tells of; NULL: a test message, or one that was written before there was a log.
ALTER TABLE webhook_deliveries ADD COLUMN event_id uuid;
CREATE UNIQUE INDEX webhook_deliveries_event ON webhook_deliveries (webhook_id, event_id) WHERE event_id IS NOT NULL;

-- Events since then count as missed when no message was written for them. NULL: since it was registered.
ALTER TABLE webhooks ADD COLUMN hears_since timestamptz;
