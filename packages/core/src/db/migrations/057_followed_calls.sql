-- Calls that nobody could ask for again, followed until their answer has arrived: by whom one may be cancelled, and what is
-- kept of one that was charged and whose answer was lost on its way.
CREATE TABLE followed_calls (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  key_id bigint NOT NULL,
  -- SHA-256 of what was asked, 32 bytes.
  fingerprint bytea NOT NULL,
  -- The delivery of the answer that goes on: the first, or that to a repeat.
  delivery uuid NOT NULL UNIQUE,
  -- The process that delivers, by its row in `replicas`. When it has ended, so has the delivery.
  holder bigint,
  -- How the client names itself and its request; NULL: it did not, or has no way to cancel.
  client text,
  request_id text,
  -- 0 on its way, 1 lost (cancelled, or the stream broke), 2 arrived
  state smallint NOT NULL DEFAULT 0,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (account_id, call_id)
);
CREATE INDEX followed_calls_key ON followed_calls (key_id, fingerprint);
CREATE INDEX followed_calls_expiry ON followed_calls (expires_at);
