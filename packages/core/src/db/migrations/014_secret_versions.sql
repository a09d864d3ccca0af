-- The server's secret has versions, and what was made with one says with which. NULL: from before they had names; the
-- first start that gives names fills it in.

CREATE TABLE secret_versions (
  id text PRIMARY KEY,
  -- Until then things may have been made with it.
  last_current_at timestamptz NOT NULL
);

ALTER TABLE trial_claims ADD COLUMN secret_id text;

-- What the key that an order buys follows from.
ALTER TABLE card_orders ADD COLUMN key_secret_id text;
CREATE INDEX card_orders_unfetched ON card_orders (key_secret_id)
  WHERE key_digest IS NOT NULL AND delivered_at IS NULL AND state < 2;

-- The IPv6 site (/48) that a purchase came from, as an HMAC; NULL for IPv4.
ALTER TABLE card_orders ADD COLUMN site_digest bytea;
CREATE INDEX card_orders_site ON card_orders (site_digest, created_at) WHERE site_digest IS NOT NULL;
