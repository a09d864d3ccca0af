-- API keys. A key is a way to an account of the ledger; rotation gives the account another key.

CREATE TABLE api_keys (
  id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  account_id bigint NOT NULL REFERENCES ledger_accounts,
  -- The first eight bytes of the digest: what a key is found by. The whole digest is then compared in constant time.
  lookup bigint NOT NULL UNIQUE,
  digest bytea NOT NULL CHECK (length(digest) = 32),
  prefix text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('trial', 'paid', 'grant')),
  label text,
  status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'revoked', 'frozen')),
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  -- Set once the unused rest of an expired trial was taken back.
  trial_closed boolean NOT NULL DEFAULT false,
  -- Micro-USD; NULL: no cap.
  cap_per_call_micros bigint CHECK (cap_per_call_micros > 0),
  cap_per_day_micros bigint CHECK (cap_per_day_micros > 0)
);
CREATE INDEX api_keys_account ON api_keys (account_id);
CREATE INDEX api_keys_trial_expiry ON api_keys (expires_at) WHERE kind = 'trial' AND NOT trial_closed;

-- Who has had a trial. The claimant is an HMAC of an address or of an installation: never the thing itself.
CREATE TABLE trial_claims (
  claimant bytea PRIMARY KEY,
  claimed_at timestamptz NOT NULL,
  account_id bigint NOT NULL REFERENCES ledger_accounts
);
CREATE INDEX trial_claims_time ON trial_claims (claimed_at);
