-- Lists that others publish and services look things up in: sanctions, mixing services. A job fetches them.
CREATE TABLE data_lists (
  name text PRIMARY KEY,
  -- The list in use; all NULL until the first was fetched.
  published_at timestamptz,
  -- When its publisher last said that this is the list.
  confirmed_at timestamptz,
  -- Of the file as it came.
  sha256 bytea CHECK (length(sha256) = 32),
  parties integer CHECK (parties > 0),
  -- What was read from it: JSON, compressed.
  content bytea,
  -- Where it came from, as answers show it.
  source jsonb,
  -- When it is fetched next; while it is being fetched, when whoever does so has had their time.
  next_at timestamptz NOT NULL,
  -- Whoever fetches it; NULL: nobody.
  lease uuid,
  -- Fetches in a row that failed, and why the last one did.
  failures integer NOT NULL DEFAULT 0,
  failure text,
  CHECK (num_nulls(published_at, confirmed_at, sha256, parties, content, source) IN (0, 6))
);
CREATE INDEX data_lists_due ON data_lists (next_at);
