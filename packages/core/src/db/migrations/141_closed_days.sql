-- Days of the ledger that are closed: nothing made in them is pending any more, and no proof has to read them again but the
-- whole one. `ledger/functions/ledger_close_day.sql` writes these tables; rules of the books hold them.

CREATE TABLE ledger_days (
  -- In UTC. Days follow one another without a gap.
  day date PRIMARY KEY,
  -- The transfers that were made on the day, and SHA-256 over them.
  transfers bigint NOT NULL,
  transfers_digest bytea NOT NULL CHECK (length(transfers_digest) = 32),
  -- SHA-256 over the day's rows of `ledger_day_moves`.
  moves_digest bytea NOT NULL CHECK (length(moves_digest) = 32),
  -- SHA-256 over the digest of the day before and this row.
  digest bytea NOT NULL CHECK (length(digest) = 32),
  closed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Since when the transfers of the day stand in a file and no longer in `ledger_transfers`: their moves stay here.
  archived_at timestamptz
);

-- What each account, the house's among them, moved on a closed day. What was pending may become less on a day.
CREATE TABLE ledger_day_moves (
  day date NOT NULL,
  account_id bigint NOT NULL,
  debits_pending bigint NOT NULL,
  debits_posted bigint NOT NULL,
  credits_pending bigint NOT NULL,
  credits_posted bigint NOT NULL,
  PRIMARY KEY (day, account_id)
);

-- The balances at the end of the last closed day: the sums of the moves of all closed days.
CREATE TABLE ledger_closed_balances (
  account_id bigint PRIMARY KEY,
  debits_pending bigint NOT NULL,
  debits_posted bigint NOT NULL,
  credits_pending bigint NOT NULL,
  credits_posted bigint NOT NULL
) WITH (fillfactor = 50);

-- The end of the chain. Whoever closes a day holds this row.
CREATE TABLE ledger_days_head (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  -- The first day that is open. NULL: no day was closed yet.
  open_day date,
  -- The digest of the last closed day.
  digest bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex') CHECK (length(digest) = 32),
  -- A moment, and the number of the transaction that noted it: whatever was being written then has a lower one.
  marked_at timestamptz NOT NULL DEFAULT '-infinity',
  marked_xid xid8 NOT NULL DEFAULT '0'
);
INSERT INTO ledger_days_head DEFAULT VALUES;
