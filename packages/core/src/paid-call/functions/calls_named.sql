-- The calls of a range of ids that something else names: it stays for them, so they stay as well. A refund has its act, and a sold key,
-- a top-up and a task of A2A their call. Not those that say themselves that they stay, whom whoever asks knows by it: a chain pays for
-- calls of the house's accounts and of another rail than credits, and one that somebody has a share of is marked. Their settlements,
-- refunds and shares are of all times, and lie by account.
CREATE OR REPLACE FUNCTION calls_named(p_from uuid, p_to uuid) RETURNS TABLE (account_id bigint, id uuid)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_custom_plan
AS $$
#variable_conflict use_column
DECLARE
  since CONSTANT timestamptz := to_timestamp(('x' || left(replace(p_from::text, '-', ''), 12))::bit(48)::bigint / 1000.0);
BEGIN
  RETURN QUERY
    SELECT u.account_id, u.call_id FROM undelivered_calls u WHERE u.call_id >= p_from AND u.call_id < p_to
    UNION SELECT f.account_id, f.call_id FROM followed_calls f WHERE f.call_id >= p_from AND f.call_id < p_to
    UNION SELECT f.account_id, f.call_id FROM free_calls f WHERE f.call_id >= p_from AND f.call_id < p_to
    UNION SELECT a.account_id, a.call_id FROM operator_acts a WHERE a.call_id >= p_from AND a.call_id < p_to
    UNION SELECT o.account_id, o.call_id FROM operator_proposals o WHERE o.call_id >= p_from AND o.call_id < p_to
    UNION SELECT k.payer_account, k.call_id FROM sold_keys k WHERE k.call_id >= p_from AND k.call_id < p_to
    UNION SELECT t.call_account_id, t.call_id FROM a2a_tasks t WHERE t.call_id >= p_from AND t.call_id < p_to
    UNION SELECT m.account_id, m.call_id FROM (
      SELECT t.account_id, substring(t.note FROM '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$')::uuid AS call_id
      FROM ledger_transfers t WHERE t.code <> 'call' AND t.created_at >= since
    ) m WHERE m.call_id >= p_from AND m.call_id < p_to;
END
$$;
