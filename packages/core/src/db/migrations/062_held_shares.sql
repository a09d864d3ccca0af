-- Shares of calls that card credit paid wait until the card payment is so old that a theft would have been noticed, and are
-- taken back when it goes back before.
ALTER TABLE call_shares ADD COLUMN held_until timestamptz, ADD COLUMN reversed_by uuid,
  ADD COLUMN reversed_micros bigint NOT NULL DEFAULT 0 CHECK (reversed_micros BETWEEN 0 AND amount_micros),
  ADD CONSTRAINT call_shares_reversed_by_check CHECK ((reversed_by IS NULL) = (reversed_micros = 0));
CREATE INDEX call_shares_reversed ON call_shares (reversed_by) WHERE reversed_by IS NOT NULL;
-- Which keys an account has bought, and with whose credit it was bought itself.
CREATE INDEX sold_keys_payer ON sold_keys (payer_account) WHERE account_id IS NOT NULL;
CREATE INDEX sold_keys_account ON sold_keys (account_id) WHERE account_id IS NOT NULL;
