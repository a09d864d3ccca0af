-- Applies a batch of transfers in order, each on its own: one that is refused does not hold back the others.
-- Transfers of one batch must have different ids (the caller sees to it). Several batches at once are safe: every
-- batch first locks its customers' accounts in order of id, and reads balances only then (in a VOLATILE function each
-- statement sees what was committed before it). Accounts of the house have no balance to protect; that a transfer is
-- there once, and resolved once, is their primary key's to decide.
--
-- p_skip[i]: leave transfer i out (NULL array: none). p_note, p_ceiling: NULL arrays where nothing has one.
-- p_ceiling[i]: refuse a debit that takes debits_pending + debits_posted of the account above it.
-- p_locked: the caller has locked the accounts, in order of id.
-- p_wait: wait for an account that somebody else holds; if not, its transfers are left out and say so.
--
-- status[i]: 0 done (also when it had been done before)   1 not enough available   2 above the ceiling
--            3 the id is taken by a different transfer     4 there is no such pending transfer
--            5 it was already resolved the other way       6 somebody else holds the account; nothing was done
--            7 the account is not in the bucket; nothing was done
-- available[i]: what the account can still spend after transfer i, in micro-USD; 0 for house accounts, which have no
-- limit, and for what was skipped.
CREATE OR REPLACE FUNCTION ledger_apply(
  p_bucket smallint, p_account bigint[], p_id uuid[], p_phase smallint[], p_debit bigint[], p_credit bigint[], p_amount bigint[],
  p_code text[], p_note text[], p_ceiling bigint[], p_skip boolean[], p_now timestamptz,
  p_locked boolean DEFAULT false, p_wait boolean DEFAULT true,
  OUT status smallint[], OUT available bigint[]
)
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
AS $$
BEGIN
  SELECT l.status, l.available INTO status, available
  FROM ledger_apply_planned(p_bucket, p_account, p_id, p_phase, p_debit, p_credit, p_amount, p_code, p_note, p_ceiling, p_skip,
                            p_now, p_wait AND NOT p_locked) l;
END
$$;
