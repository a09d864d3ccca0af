-- Weeks of calls that are old enough are written to files and leave the database (`history/`); released calls leave it after 30
-- days. What they moved stays, by day and account, so that the books are proved without them.

-- A week that is being archived, or was.
CREATE TABLE call_archives (
  -- Such as `w20251124`, as its tables are called (`db/weeks.ts`).
  week text PRIMARY KEY CHECK (week ~ '^w[0-9]{8}$'),
  -- Ids from the first to before the second are of the week.
  from_id uuid NOT NULL,
  to_id uuid NOT NULL,
  -- Since when nothing in the week can be changed any more. The rows below it are set by the steps, in their order.
  sealed_at timestamptz NOT NULL,
  -- Since when the files hold what is to leave.
  written_at timestamptz,
  -- Since when it has left.
  dropped_at timestamptz,
  -- Who works on it, until when.
  holder uuid,
  lease_until timestamptz NOT NULL DEFAULT '-infinity',
  -- The names of the files in HISTORY_FOLDER, and SHA-256 of each.
  calls_file text,
  calls_sha256 bytea CHECK (length(calls_sha256) = 32),
  transfers_file text,
  transfers_sha256 bytea CHECK (length(transfers_sha256) = 32),
  -- The rows of the files, and what they add up to.
  captured bigint,
  released bigint,
  calls_micros numeric,
  transfers bigint,
  transfers_micros numeric,
  CHECK (written_at IS NULL OR num_nonnulls(calls_file, calls_sha256, transfers_file, transfers_sha256, captured, released,
    calls_micros, transfers, transfers_micros) = 9),
  CHECK (dropped_at IS NULL OR written_at IS NOT NULL)
);

-- What each account, the house's among them, moved on a day by transfers that stand in files.
CREATE TABLE ledger_carried (
  week text NOT NULL,
  day date NOT NULL,
  account_id bigint NOT NULL,
  -- Of customers: how many transfers of theirs it is. Zero for the house, whose transfers are all a customer's.
  transfers bigint NOT NULL,
  debits_pending bigint NOT NULL,
  debits_posted bigint NOT NULL,
  credits_pending bigint NOT NULL,
  credits_posted bigint NOT NULL,
  PRIMARY KEY (day, account_id, week)
);

-- The captured calls that stand in files, by account, key, service and the day (UTC) on which they ended.
CREATE TABLE calls_carried (
  week text NOT NULL,
  account_id bigint NOT NULL,
  -- Zero: no key.
  key_id bigint NOT NULL,
  service text NOT NULL,
  day date NOT NULL,
  calls bigint NOT NULL,
  -- Those of them that cost something.
  charged bigint NOT NULL,
  spent_micros bigint NOT NULL,
  PRIMARY KEY (account_id, day, service, key_id, week)
);
CREATE INDEX calls_carried_day ON calls_carried (day);

ALTER TABLE ledger_days
  -- Whether its digest leaves out calls that were begun and released on the day, which do not stay. Days that were closed before
  -- there was this column have all of their transfers in it.
  ADD COLUMN released_apart boolean NOT NULL DEFAULT false,
  -- Since when they are gone.
  ADD COLUMN released_gone_at timestamptz;
