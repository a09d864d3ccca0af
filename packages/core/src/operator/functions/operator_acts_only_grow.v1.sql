CREATE OR REPLACE FUNCTION operator_acts_only_grow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'acts of operators are only ever added';
END
$$;

CREATE OR REPLACE TRIGGER operator_acts_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON operator_acts
  FOR EACH STATEMENT EXECUTE FUNCTION operator_acts_only_grow();

CREATE OR REPLACE TRIGGER operator_act_outcomes_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON operator_act_outcomes
  FOR EACH STATEMENT EXECUTE FUNCTION operator_acts_only_grow();
