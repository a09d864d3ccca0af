-- Balances that refill themselves from a card that is kept.

-- Below so much somebody wants to know. NULL: nobody does.
ALTER TABLE ledger_accounts ADD COLUMN low_below_micros bigint CHECK (low_below_micros > 0);

CREATE TABLE auto_recharges (
  account_id bigint PRIMARY KEY REFERENCES ledger_accounts,
  -- 0 idle   1 due: the balance is low   2 charging: an order is open   3 off
  state smallint NOT NULL CHECK (state BETWEEN 0 AND 3),
  threshold_micros bigint NOT NULL CHECK (threshold_micros > 0),
  top_up_micros bigint NOT NULL CHECK (top_up_micros >= threshold_micros),
  -- The provider's names of the customer and of the card. NULL: the card must not be charged again.
  customer_id text NOT NULL,
  payment_method_id text,
  -- What its owner knows the card by, such as `visa 4242`.
  card_label text NOT NULL,
  email text,
  -- The order that is under way; it stays so when the recharge is switched off meanwhile.
  order_id uuid,
  -- Declines in a row that may pass.
  soft_failures smallint NOT NULL DEFAULT 0,
  -- When one that is due is tried, and what it waits for. NULL: at once.
  next_at timestamptz,
  waiting_for text CHECK (waiting_for IN ('decline', 'spacing', 'daily_limit', 'thaw')),
  off_reason text,
  last_charged_at timestamptz,
  created_at timestamptz NOT NULL,
  changed_at timestamptz NOT NULL,
  CHECK ((state = 3) = (off_reason IS NOT NULL)),
  CHECK (state = 3 OR payment_method_id IS NOT NULL),
  CHECK (CASE state WHEN 2 THEN order_id IS NOT NULL WHEN 3 THEN true ELSE order_id IS NULL END),
  CHECK (state = 1 OR (next_at IS NULL AND waiting_for IS NULL)),
  CHECK ((next_at IS NULL) = (waiting_for IS NULL))
) WITH (fillfactor = 80);
CREATE INDEX auto_recharges_due ON auto_recharges (next_at) WHERE state = 1;

-- In the commit of whatever took the money. However many debits see the balance low, the first makes it due. A row that
-- is not idle is passed by without waiting for whoever holds it: no call ever waits for a recharge.
CREATE FUNCTION auto_recharge_falls_due() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  UPDATE auto_recharges SET state = 1 WHERE account_id = NEW.id AND state = 0;
  RETURN NULL;
END
$$;

-- The condition is checked before the function is called: an account that nobody watches costs a comparison. What is
-- only reserved may come back, so it does not count.
CREATE TRIGGER ledger_account_is_low AFTER UPDATE ON ledger_accounts
FOR EACH ROW
WHEN (NEW.low_below_micros IS NOT NULL
  AND NEW.credits_posted - NEW.debits_posted < NEW.low_below_micros
  AND (NEW.debits_posted <> OLD.debits_posted OR NEW.credits_posted <> OLD.credits_posted
       OR NEW.low_below_micros IS DISTINCT FROM OLD.low_below_micros))
EXECUTE FUNCTION auto_recharge_falls_due();
