CREATE OR REPLACE FUNCTION operator_trail_only_grows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the trail of operators is only ever added to';
END
$$;

CREATE OR REPLACE TRIGGER operator_trail_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON operator_trail
  FOR EACH STATEMENT EXECUTE FUNCTION operator_trail_only_grows();
