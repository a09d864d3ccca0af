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
  accounts bigint[]; ids uuid[];
  charged_accounts bigint[]; charged_ids uuid[];
BEGIN
  IF NOT pg_try_advisory_xact_lock(8403) THEN RETURN 0; END IF;
  -- The id of a call is made within the minute before it is begun, or a little after by another clock.
  WITH named AS MATERIALIZED (
    SELECT n.account_id, n.id FROM calls_named(
      (lpad(to_hex((extract(epoch FROM since - interval '1 day') * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid,
      (lpad(to_hex((extract(epoch FROM until + interval '1 day') * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid) n
  ), gone AS MATERIALIZED (
    SELECT c.account_id, c.id, c.price_micros FROM calls c
    WHERE c.created_at >= since AND c.created_at < until AND c.finished_at >= since AND c.finished_at < until
      AND c.state = 2 AND c.account_id >= 1000 AND c.rail = 'credits' AND NOT c.shared
      AND c.begun_at < (SELECT calls_to FROM sales_folded)
      AND NOT EXISTS (SELECT 1 FROM named n WHERE n.account_id = c.account_id AND n.id = c.id)
      AND NOT EXISTS (SELECT 1 FROM sales_open o WHERE o.account_id = c.account_id AND o.id = c.id)
    LIMIT p_limit
  ), forgotten AS (
    DELETE FROM call_identities i USING calls c, gone g
    WHERE c.account_id = g.account_id AND c.id = g.id AND i.account_id = g.account_id AND i.kind = 0
      AND i.identity = c.identity AND i.call_id = g.id
  ), dropped AS (
    DELETE FROM calls c USING gone g WHERE c.account_id = g.account_id AND c.id = g.id RETURNING c.account_id, c.id, c.price_micros
  )
  SELECT array_agg(account_id), array_agg(id), array_agg(account_id) FILTER (WHERE price_micros > 0),
         array_agg(id) FILTER (WHERE price_micros > 0)
  INTO accounts, ids, charged_accounts, charged_ids FROM dropped;
  IF charged_ids IS NOT NULL THEN PERFORM ledger_drop_released(p_day, charged_accounts, charged_ids); END IF;
  RETURN coalesce(cardinality(ids), 0);
END
$$;
