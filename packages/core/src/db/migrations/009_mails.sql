-- Mail on its way out. A row is written in the commit of what it tells of; a job sends it, at least once.
CREATE TABLE mails (
  -- Follows from the cause: the same cause is one mail.
  id uuid PRIMARY KEY,
  recipient text NOT NULL,
  subject text NOT NULL,
  body text NOT NULL,
  created_at timestamptz NOT NULL,
  -- When it is tried next, or when whoever is at it has had their time; NULL: it was sent, or given up.
  next_at timestamptz,
  attempts smallint NOT NULL DEFAULT 0,
  sent_at timestamptz,
  given_up_at timestamptz,
  CHECK (num_nonnulls(next_at, sent_at, given_up_at) = 1)
);
CREATE INDEX mails_due ON mails (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX mails_time ON mails (created_at);
