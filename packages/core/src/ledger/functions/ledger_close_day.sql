-- Closes the first open day, if it is no later than p_last: writes what each account moved on it, adds that to the closed
-- balances, and chains the day to the one before. All of it is one commit.
--
-- p_by_account: the database is spread over servers, and the digest is a sum over accounts.
-- Returns the day; NULL when there is none to close, or nothing was ever moved.
CREATE OR REPLACE FUNCTION ledger_close_day(p_last date, p_by_account boolean) RETURNS date
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
  head ledger_days_head%ROWTYPE;
  closing date;
  made record;
  moves bytea;
  chained bytea;
BEGIN
  SELECT * INTO head FROM ledger_days_head FOR UPDATE;
  closing := coalesce(head.open_day, (SELECT min(created_at) AT TIME ZONE 'UTC' FROM ledger_transfers)::date);
  IF closing IS NULL OR closing > p_last THEN RETURN NULL; END IF;

  INSERT INTO ledger_day_moves (day, account_id, debits_pending, debits_posted, credits_pending, credits_posted)
  SELECT closing, m.account_id, m.debits_pending, m.debits_posted, m.credits_pending, m.credits_posted
  FROM ledger_day_moved(closing) m;
  INSERT INTO ledger_closed_balances AS b (account_id, debits_pending, debits_posted, credits_pending, credits_posted)
  SELECT m.account_id, m.debits_pending, m.debits_posted, m.credits_pending, m.credits_posted
  FROM ledger_day_moves m WHERE m.day = closing
  ON CONFLICT (account_id) DO UPDATE SET
    debits_pending = b.debits_pending + excluded.debits_pending,
    debits_posted = b.debits_posted + excluded.debits_posted,
    credits_pending = b.credits_pending + excluded.credits_pending,
    credits_posted = b.credits_posted + excluded.credits_posted;

  IF p_by_account THEN SELECT * INTO made FROM ledger_day_transfers_apart(closing);
  ELSE SELECT * INTO made FROM ledger_day_transfers(closing, true, NULL);
  END IF;
  moves := ledger_moves_digest(closing);
  chained := ledger_day_digest(head.digest, closing, made.transfers, made.digest, moves);
  INSERT INTO ledger_days (day, transfers, transfers_digest, moves_digest, digest, released_apart, by_account)
  VALUES (closing, made.transfers, made.digest, moves, chained, true, p_by_account);
  UPDATE ledger_days_head SET open_day = closing + 1, digest = chained;
  RETURN closing;
END
$$;
