-- Numbers acts without gaps, and links each to the one before it. What is not written in the end leaves no number out.
CREATE OR REPLACE FUNCTION operator_acts_chained() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_WHEN = 'AFTER' THEN
    UPDATE operator_acts_head SET number = NEW.number, digest = NEW.digest;
    RETURN NULL;
  END IF;
  SELECT h.number + 1, h.digest INTO STRICT NEW.number, NEW.digest FROM operator_acts_head h FOR UPDATE;
  -- Every column, as JSON says it. The books have the same text.
  NEW.digest := sha256(NEW.digest || convert_to(
    jsonb_build_array(NEW.number, NEW.id, to_char(NEW.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), NEW.actor, NEW.act,
      NEW.account_id, NEW.key_id, NEW.order_id, NEW.call_id, NEW.amount_micros, NEW.reason, NEW.transfer_id,
      encode(NEW.idempotency_digest, 'hex'), encode(NEW.request_digest, 'hex'))::text, 'UTF8'));
  RETURN NEW;
END
$$;

CREATE OR REPLACE TRIGGER operator_acts_linked BEFORE INSERT ON operator_acts
  FOR EACH ROW EXECUTE FUNCTION operator_acts_chained();

CREATE OR REPLACE TRIGGER operator_acts_counted AFTER INSERT ON operator_acts
  FOR EACH ROW EXECUTE FUNCTION operator_acts_chained();
