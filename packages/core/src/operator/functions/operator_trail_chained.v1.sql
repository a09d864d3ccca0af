-- Numbers what operators did without gaps, and links each row to the one before it.
CREATE OR REPLACE FUNCTION operator_trail_chained() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_WHEN = 'AFTER' THEN
    UPDATE operator_trail_head SET number = NEW.number, digest = NEW.digest;
    RETURN NULL;
  END IF;
  SELECT h.number + 1, h.digest INTO STRICT NEW.number, NEW.digest FROM operator_trail_head h FOR UPDATE;
  -- Every column, as JSON says it. The books and `audit-chain.ts` have the same text.
  NEW.digest := sha256(NEW.digest || convert_to(
    jsonb_build_array(NEW.number, to_char(NEW.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), NEW.kind, NEW.actor,
      NEW.issuer, NEW.subject, NEW.email, NEW.role, NEW.address, NEW.about)::text, 'UTF8'));
  RETURN NEW;
END
$$;

CREATE OR REPLACE TRIGGER operator_trail_linked BEFORE INSERT ON operator_trail
  FOR EACH ROW EXECUTE FUNCTION operator_trail_chained();

CREATE OR REPLACE TRIGGER operator_trail_counted AFTER INSERT ON operator_trail
  FOR EACH ROW EXECUTE FUNCTION operator_trail_chained();
