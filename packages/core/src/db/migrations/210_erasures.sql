-- Persons who were erased, by a digest that the server's secret keys: nobody can be read out of it, and whoever is found in a restored
-- database is known again.
CREATE TABLE erasures (
  id uuid PRIMARY KEY,
  -- The version of the secret, and HMAC-SHA-256 of the address.
  secret_id text NOT NULL,
  digest bytea NOT NULL CHECK (length(digest) = 32),
  began_at timestamptz NOT NULL,
  -- NULL: it was cut off, and goes on when it is asked for again.
  ended_at timestamptz,
  -- The person's accounts, which nothing else leads to once it is half done.
  accounts bigint[] NOT NULL,
  -- The card provider's names of the person, until the provider has forgotten them.
  customers text[] NOT NULL,
  CHECK (ended_at IS NULL OR cardinality(customers) = 0)
);
CREATE UNIQUE INDEX erasures_one_open ON erasures (digest) WHERE ended_at IS NULL;

-- When what identified the payer was taken out of an order: nothing is written back, and no link to a new key is sent for it.
ALTER TABLE card_orders ADD COLUMN erased_at timestamptz;
