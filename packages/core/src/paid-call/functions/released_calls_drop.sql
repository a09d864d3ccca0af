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
  counted_to CONSTANT timestamptz := (SELECT calls_to FROM sales_folded);
  staying_accounts bigint[]; staying_ids uuid[];
  buckets smallint[]; accounts bigint[]; ids uuid[]; identities text[];
  charged_buckets smallint[]; charged_accounts bigint[]; charged_ids uuid[];
BEGIN
  IF NOT pg_try_advisory_xact_lock(8403) THEN RETURN 0; END IF;
  -- By itself: these are tables of the coordinator, where calls are spread over servers.
  SELECT array_agg(s.account_id), array_agg(s.id) INTO staying_accounts, staying_ids FROM (
    SELECT n.account_id, n.id FROM calls_named(first_id, last_id) n
    UNION ALL SELECT o.account_id, o.id FROM sales_open o WHERE o.id >= first_id AND o.id < last_id
  ) s;
  WITH gone AS MATERIALIZED (
    SELECT c.bucket, c.account_id, c.id, c.identity, c.price_micros FROM calls c
    WHERE c.id >= first_id AND c.id < last_id AND c.created_at >= since AND c.created_at < until AND c.finished_at >= since AND c.finished_at < until
      AND c.state = 2 AND c.account_id >= 1000 AND c.rail = 'credits' AND NOT c.shared
      AND c.begun_at < counted_to
      AND NOT EXISTS (
        SELECT 1 FROM unnest(staying_accounts, staying_ids) s (account_id, id) WHERE s.account_id = c.account_id AND s.id = c.id
      )
    LIMIT p_limit
  )
  SELECT array_agg(bucket), array_agg(account_id), array_agg(id), array_agg(identity), array_agg(bucket) FILTER (WHERE price_micros > 0),
         array_agg(account_id) FILTER (WHERE price_micros > 0), array_agg(id) FILTER (WHERE price_micros > 0)
  INTO buckets, accounts, ids, identities, charged_buckets, charged_accounts, charged_ids FROM gone;
  -- By its key, one by one: as one statement it would be planned as a join with all weeks.
  FOR i IN 1 .. coalesce(cardinality(ids), 0) LOOP
    DELETE FROM call_identities
    WHERE bucket = buckets[i] AND account_id = accounts[i] AND kind = 0 AND identity = identities[i] AND call_id = ids[i];
    DELETE FROM calls WHERE bucket = buckets[i] AND account_id = accounts[i] AND id = ids[i];
  END LOOP;
  IF charged_ids IS NOT NULL THEN PERFORM ledger_drop_released(p_day, charged_buckets, charged_accounts, charged_ids); END IF;
  RETURN coalesce(cardinality(ids), 0);
END
$$;
