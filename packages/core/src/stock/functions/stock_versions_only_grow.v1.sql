CREATE OR REPLACE FUNCTION stock_versions_only_grow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'versions of what is sold are only ever added';
END
$$;

CREATE OR REPLACE TRIGGER stock_versions_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON stock_versions
  FOR EACH STATEMENT EXECUTE FUNCTION stock_versions_only_grow();
