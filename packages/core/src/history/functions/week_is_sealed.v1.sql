-- Refuses what would change the calls of a week that is archived, and their transfers: its files hold them as they were. It is the
-- trigger of a sealed week's tables and, for rows whose week is gone, of the tables of the rest. Other transfers go to any week. What
-- files do not hold may be taken from a call: a person who is erased leaves no Idempotency-Key and no digest of what they asked.
CREATE OR REPLACE FUNCTION week_is_sealed() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  given CONSTANT record := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
BEGIN
  IF TG_TABLE_NAME LIKE 'ledger_transfers%' THEN
    IF given.code <> 'call' THEN RETURN given; END IF;
  ELSIF TG_OP = 'UPDATE' AND to_jsonb(NEW) = to_jsonb(OLD) || '{"identity": null, "fingerprint": null}' THEN
    RETURN NEW;
  END IF;
  IF TG_ARGV[0] IS NULL THEN
    IF NOT EXISTS (SELECT 1 FROM call_archives a WHERE given.id >= a.from_id AND given.id < a.to_id) THEN RETURN given; END IF;
  END IF;
  RAISE EXCEPTION 'call % is of a week that is archived', given.id USING ERRCODE = '23514', CONSTRAINT = 'week_is_sealed';
END
$$;
DROP TRIGGER IF EXISTS week_is_sealed ON calls_rest;
CREATE TRIGGER week_is_sealed BEFORE INSERT ON calls_rest FOR EACH ROW EXECUTE FUNCTION week_is_sealed();
DROP TRIGGER IF EXISTS week_is_sealed ON ledger_transfers_rest;
CREATE TRIGGER week_is_sealed BEFORE INSERT ON ledger_transfers_rest FOR EACH ROW EXECUTE FUNCTION week_is_sealed();
