-- Where the owner of an account is told of what happens to it, and what is still to be told there.
CREATE TABLE webhooks (
  id uuid PRIMARY KEY,
  account_id bigint NOT NULL,
  url text NOT NULL,
  -- The types of events that go there.
  events text[] NOT NULL,
  -- For `balance.low`: below it the balance is low; and whether that was told since it was last above.
  low_below_micros bigint CHECK (low_below_micros > 0),
  low_told boolean NOT NULL DEFAULT false,
  -- Who is told when it is switched off for failing.
  email text,
  -- Encrypted, as is the one before, which signs too until its time is over.
  sealed_secret text NOT NULL,
  sealed_secret_before text,
  before_until timestamptz,
  created_at timestamptz NOT NULL,
  -- Nothing is sent there before: somebody is sending, or it failed a moment ago.
  not_before timestamptz,
  -- Failures in a row, and since when.
  failures integer NOT NULL DEFAULT 0,
  failing_since timestamptz,
  disabled_at timestamptz,
  disabled_because text CHECK (disabled_because IN ('failing', 'gone', 'secret_lost', 'owner')),
  CHECK ((disabled_at IS NULL) = (disabled_because IS NULL))
);
CREATE INDEX webhooks_account ON webhooks (account_id);

-- One event for one webhook, written in the commit of what it tells of. Its id is the message's, however often it is sent.
CREATE TABLE webhook_deliveries (
  id uuid PRIMARY KEY,
  webhook_id uuid NOT NULL REFERENCES webhooks ON DELETE CASCADE,
  type text NOT NULL,
  body text NOT NULL,
  created_at timestamptz NOT NULL,
  -- When it is sent next, or when whoever is at it has had their time; NULL: it was delivered, or given up.
  next_at timestamptz,
  attempts smallint NOT NULL DEFAULT 0,
  -- Since its owner asked for it again; at first since it was written.
  wanted_at timestamptz NOT NULL,
  delivered_at timestamptz,
  given_up_at timestamptz,
  -- What the last attempt got: a status of HTTP, or a word of ours.
  last_result text,
  CHECK (num_nonnulls(next_at, delivered_at, given_up_at) = 1)
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX webhook_deliveries_listed ON webhook_deliveries (webhook_id, created_at);
CREATE INDEX webhook_deliveries_time ON webhook_deliveries (created_at);

-- From where a key was used, as an HMAC; kept only where somebody wants to be told of new ones.
CREATE TABLE key_addresses (
  key_id bigint NOT NULL,
  digest bytea NOT NULL,
  seen_at timestamptz NOT NULL,
  PRIMARY KEY (key_id, digest)
);
