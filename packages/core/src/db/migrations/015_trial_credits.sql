-- What trials gave: one row an account, whatever keys it has had since. And what a day may give.

CREATE TABLE trial_credits (
  account_id bigint PRIMARY KEY REFERENCES ledger_accounts,
  granted_micros bigint NOT NULL CHECK (granted_micros > 0),
  granted_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  -- When the account first got money of its own, bought or given by an operator.
  bought_at timestamptz,
  -- kept: that ended the trial, and what was left of it stays.   expired: its time did, and what was left was taken.
  ended text CHECK (ended IN ('kept', 'expired')),
  ended_at timestamptz,
  -- Whether the job has to look at it once its time is over.
  due boolean NOT NULL DEFAULT true,
  expired_micros bigint NOT NULL DEFAULT 0 CHECK (expired_micros >= 0),
  -- How many transfers took it; they are named by it.
  rounds integer NOT NULL DEFAULT 0,
  CHECK ((ended IS NULL) = (ended_at IS NULL)),
  CHECK (ended = 'expired' OR expired_micros = 0)
);
CREATE INDEX trial_credits_due ON trial_credits (expires_at) WHERE due;

INSERT INTO trial_credits
  (account_id, granted_micros, granted_at, expires_at, bought_at, ended, ended_at, due, expired_micros, rounds)
SELECT g.account_id, g.amount_micros, g.created_at, g.created_at + interval '7 days',
       CASE WHEN k.paid THEN g.created_at END,
       CASE WHEN e.micros IS NOT NULL OR k.closed THEN 'expired' END,
       CASE WHEN e.micros IS NOT NULL OR k.closed THEN coalesce(e.at, g.created_at + interval '7 days') END,
       NOT (e.micros IS NOT NULL OR coalesce(k.closed, false)), coalesce(e.micros, 0), coalesce(e.count, 0)
FROM ledger_transfers g
LEFT JOIN (
  SELECT account_id, bool_or(kind <> 'trial') AS paid, bool_or(trial_closed) AS closed FROM api_keys GROUP BY 1
) k ON k.account_id = g.account_id
LEFT JOIN (
  SELECT account_id, sum(amount_micros)::bigint AS micros, count(*)::integer AS count, max(created_at) AS at
  FROM ledger_transfers WHERE code = 'trial_expiry' GROUP BY 1
) e ON e.account_id = g.account_id
WHERE g.code = 'trial_grant';

-- Keys do not say any more when a trial's credit ends.
DROP INDEX api_keys_trial_expiry;

-- The price of a call that is given back comes from where it went: it is trial credit again if a trial had paid it. Where
-- that has expired it must not lie there to be spent.
CREATE FUNCTION trial_credit_came_back() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  UPDATE trial_credits SET due = true WHERE account_id = NEW.account_id AND ended = 'expired' AND NOT due;
  RETURN NULL;
END
$$;
CREATE TRIGGER ledger_transfer_gives_back AFTER INSERT ON ledger_transfers
FOR EACH ROW WHEN (NEW.code IN ('call_refund', 'operator_refund'))
EXECUTE FUNCTION trial_credit_came_back();

-- What each day (UTC) has given in trials. Whoever gives one adds it here in the same commit, or gives none.
CREATE TABLE trial_days (
  day date PRIMARY KEY,
  granted_micros bigint NOT NULL CHECK (granted_micros >= 0),
  trials integer NOT NULL CHECK (trials >= 0)
);
INSERT INTO trial_days (day, granted_micros, trials)
SELECT (granted_at AT TIME ZONE 'UTC')::date, sum(granted_micros)::bigint, count(*)::integer FROM trial_credits GROUP BY 1;

-- The IPv6 site (/48) that a claim came from, as an HMAC; NULL for IPv4 and for what is no address.
ALTER TABLE trial_claims ADD COLUMN site bytea;
CREATE INDEX trial_claims_site ON trial_claims (site, claimed_at) WHERE site IS NOT NULL;
