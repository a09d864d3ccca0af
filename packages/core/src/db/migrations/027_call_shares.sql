-- What others get of the price of a call, such as the owner of the device whose readings were sold. It is set aside in the
-- commit that takes the price, by a transfer from what the rail has earned, and taken back in the commit that gives the
-- price back. No account is locked for it: a customer's account would have to be, and captures wait for nobody's lock.
-- A job pays it out.

INSERT INTO ledger_accounts (id, house, name) VALUES (13, true, 'shares_owed');

CREATE TABLE call_shares (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  -- The customer's account that gets it.
  beneficiary bigint NOT NULL,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  -- 0 noted: the call is not captured   1 set aside   2 taken back
  state smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 2),
  -- What is still to be paid out of it; below zero when it was paid out and then taken back.
  due_micros bigint NOT NULL DEFAULT 0,
  set_aside_at timestamptz,
  PRIMARY KEY (account_id, call_id),
  CHECK (beneficiary <> account_id)
);
CREATE INDEX call_shares_due ON call_shares (beneficiary) WHERE due_micros <> 0;
CREATE INDEX call_shares_beneficiary ON call_shares (beneficiary, state) INCLUDE (amount_micros);

-- Payouts of an account, by their numbers: a transfer each.
CREATE TABLE share_payouts (
  beneficiary bigint NOT NULL,
  nth integer NOT NULL,
  transfer_id uuid NOT NULL,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  paid_at timestamptz NOT NULL,
  PRIMARY KEY (beneficiary, nth)
);

-- Whether somebody gets a share of it: for all other calls nothing is looked up.
ALTER TABLE calls ADD COLUMN shared boolean NOT NULL DEFAULT false;

-- What came back of a trial's spending: it is trial credit again.
ALTER TABLE trial_credits ADD COLUMN given_back_micros bigint NOT NULL DEFAULT 0;
