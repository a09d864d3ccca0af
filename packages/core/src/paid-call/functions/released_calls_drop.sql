-- Deletes so many at most of the calls that a customer's credits were to pay and that were begun and released on one closed day,
-- with their two transfers and their payments' identities. What something else names stays.
--
-- Returns how many it were. Two who ask at once do not wait for each other.
CREATE OR REPLACE FUNCTION released_calls_drop(p_day date, p_limit integer) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
  since CONSTANT timestamptz := p_day::timestamp AT TIME ZONE 'UTC';
  until CONSTANT timestamptz := (p_day + 1)::timestamp AT TIME ZONE 'UTC';
  -- The id of a call is made within the minute before it is begun, or a little after by another clock.
  first_id CONSTANT uuid := (lpad(to_hex((extract(epoch FROM since - interval '1 day') * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;
  last_id CONSTANT uuid := (lpad(to_hex((extract(epoch FROM until + interval '1 day') * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;
  accounts bigint[]; ids uuid[]; identities text[];
  charged_accounts bigint[]; charged_ids uuid[];
BEGIN
  IF NOT pg_try_advisory_xact_lock(8403) THEN RETURN 0; END IF;
  WITH named AS MATERIALIZED (
    SELECT n.account_id, n.id FROM calls_named(first_id, last_id) n
  ), gone AS MATERIALIZED (
    SELECT c.account_id, c.id, c.identity, c.price_micros FROM calls c
    WHERE c.id >= first_id AND c.id < last_id AND c.created_at >= since AND c.created_at < until AND c.finished_at >= since AND c.finished_at < until
      AND c.state = 2 AND c.account_id >= 1000 AND c.rail = 'credits' AND NOT c.shared
      AND c.begun_at < (SELECT calls_to FROM sales_folded)
      AND NOT EXISTS (SELECT 1 FROM named n WHERE n.account_id = c.account_id AND n.id = c.id)
      AND NOT EXISTS (SELECT 1 FROM sales_open o WHERE o.account_id = c.account_id AND o.id = c.id)
    LIMIT p_limit
  )
  SELECT array_agg(account_id), array_agg(id), array_agg(identity), array_agg(account_id) FILTER (WHERE price_micros > 0),
         array_agg(id) FILTER (WHERE price_micros > 0)
  INTO accounts, ids, identities, charged_accounts, charged_ids FROM gone;
  -- By its key, one by one: as one statement it would be planned as a join with all weeks.
  FOR i IN 1 .. coalesce(cardinality(ids), 0) LOOP
    DELETE FROM call_identities
    WHERE account_id = accounts[i] AND kind = 0 AND identity = identities[i] AND call_id = ids[i];
    DELETE FROM calls WHERE account_id = accounts[i] AND id = ids[i];
  END LOOP;
  IF charged_ids IS NOT NULL THEN PERFORM ledger_drop_released(p_day, charged_accounts, charged_ids); END IF;
  RETURN coalesce(cardinality(ids), 0);
END
$$;
