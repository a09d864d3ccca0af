-- What became of the official pages that the rules of the compliance base lead to, since the base was last written. A job reads each
-- about once a week. No text of a page is kept, only the hash of what a reader sees of it.
CREATE TABLE law_pages (
  -- As the rule has it.
  url text PRIMARY KEY,
  -- The day on which the base was last written. With a later one everything below starts anew.
  rules_as_of date NOT NULL,
  -- Of the visible text, when it was first read after that day.
  first_sha256 bytea CHECK (length(first_sha256) = 32),
  first_at timestamptz,
  -- When a later reading had the same text. Before, a text that differs each time cannot be told from one that has changed.
  confirmed_at timestamptz,
  -- Since when two readings in a row have differed before any was confirmed.
  unsteady_since timestamptz,
  -- Since when it has another text than the first; NULL while it has the same.
  changed_at timestamptz,
  -- When it was last read.
  read_at timestamptz,
  -- Attempts in a row that failed, since when, the HTTP status of the last where it had one, and why it failed in words of ours.
  failures integer NOT NULL DEFAULT 0,
  failing_since timestamptz,
  status smallint,
  failure text,
  -- When it is read next; while it is being read, when whoever does so has had their time.
  next_at timestamptz NOT NULL,
  CHECK (num_nulls(first_sha256, first_at) IN (0, 2)),
  CHECK (confirmed_at IS NULL OR first_at IS NOT NULL),
  CHECK (changed_at IS NULL OR confirmed_at IS NOT NULL),
  CHECK ((failures = 0) = (failing_since IS NULL) AND (failures = 0) = (failure IS NULL))
);
CREATE INDEX law_pages_due ON law_pages (next_at);
