-- The ledger: accounts, and transfers between them that are only ever added.
--
-- A transfer has an id and at most two rows: what it set out to do (posted at once, or pending) and, for a pending
-- one, how it ended (post or void). Both carry the account whose limit is at stake as `account_id`, which comes
-- first in every key, so that accounts and their transfers stay together when the tables are sharded by it.
--
-- House accounts (revenue, grants) have no running balance: theirs is the sum of their transfers. So no row is
-- touched by every call.

CREATE TABLE ledger_accounts (
  id bigint PRIMARY KEY,
  house boolean NOT NULL,
  name text UNIQUE,
  debits_pending bigint NOT NULL DEFAULT 0,
  debits_posted bigint NOT NULL DEFAULT 0,
  credits_pending bigint NOT NULL DEFAULT 0,
  credits_posted bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK (debits_pending >= 0 AND debits_posted >= 0 AND credits_pending >= 0 AND credits_posted >= 0),
  -- The second line of defence: ledger_apply never lets it come to this.
  CONSTRAINT never_overdrawn CHECK (house OR debits_pending + debits_posted <= credits_posted)
) WITH (fillfactor = 50);

CREATE SEQUENCE ledger_account_ids START 1000;

-- The house's accounts, as `ledger/accounts.ts` lists them.
INSERT INTO ledger_accounts (id, house, name) VALUES
  (1, true, 'revenue_credits'), (2, true, 'trial_grants'), (3, true, 'trial_expired'), (4, true, 'operator_grants');

-- No foreign key: ledger_apply joins the account anyway, and a key would be checked row by row, which costs more
-- than the transfer itself. `npm run books` looks for orphans.
CREATE TABLE ledger_transfers (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  -- 1 posted at once, 2 pending, 3 post of the pending one, 4 void of it
  phase smallint NOT NULL CHECK (phase BETWEEN 1 AND 4),
  resolves boolean NOT NULL GENERATED ALWAYS AS (phase >= 3) STORED,
  debit_account bigint NOT NULL,
  credit_account bigint NOT NULL,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  code text NOT NULL,
  created_at timestamptz NOT NULL,
  note text,
  PRIMARY KEY (account_id, id, resolves),
  CHECK (debit_account <> credit_account),
  CHECK (account_id IN (debit_account, credit_account))
);
CREATE INDEX ledger_transfers_time ON ledger_transfers USING brin (created_at);

-- Applies a batch of transfers in order, each on its own: one that is refused does not hold back the others.
-- Transfers of one batch must have different ids (the caller sees to it). Several batches at once are safe: every
-- batch first locks its accounts in order of id, and reads balances only then (in a VOLATILE function each
-- statement sees what was committed before it).
--
-- p_skip[i]: leave transfer i out (NULL array: none). p_note, p_ceiling: NULL arrays where nothing has one.
-- p_ceiling[i]: refuse a debit that takes debits_pending + debits_posted of the account above it.
-- p_locked: the caller has locked the accounts, in order of id.
--
-- status[i]: 0 done (also when it had been done before)   1 not enough available   2 above the ceiling
--            3 the id is taken by a different transfer     4 there is no such pending transfer
--            5 it was already resolved the other way
-- available[i]: what the account can still spend after transfer i, in micro-USD; 0 for house accounts, which have no
-- limit, and for what was skipped.
CREATE FUNCTION ledger_apply(
  p_account bigint[], p_id uuid[], p_phase smallint[], p_debit bigint[], p_credit bigint[], p_amount bigint[],
  p_code text[], p_note text[], p_ceiling bigint[], p_skip boolean[], p_now timestamptz,
  p_locked boolean DEFAULT false,
  OUT status smallint[], OUT available bigint[]
)
LANGUAGE plpgsql VOLATILE
-- A plan made while the tables are empty is kept for when they are not. These leave it one way to find a row: by key.
-- The same plan every time: planning anew for each batch takes longer than running it.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
  r record;
  n integer := cardinality(p_id);
  v_new boolean[] := array_fill(false, ARRAY[n]);
  any_new boolean := false;
  cur bigint := NULL;
  -- the account at hand, with what this batch has added to it
  house boolean; dp bigint; d bigint; cp bigint; c bigint;
  changed boolean := false;
  -- accounts whose balances changed
  u_id bigint[] := '{}'; u_dp bigint[] := '{}'; u_d bigint[] := '{}'; u_cp bigint[] := '{}'; u_c bigint[] := '{}';
  is_debit boolean;
  s smallint;
BEGIN
  status := array_fill(0::smallint, ARRAY[n]);
  available := array_fill(0::bigint, ARRAY[n]);

  IF NOT p_locked THEN
    PERFORM 1 FROM ledger_accounts a WHERE a.id = ANY (p_account) ORDER BY a.id FOR NO KEY UPDATE;
  END IF;

  FOR r IN
    SELECT x.ord::integer AS ord, x.account, x.phase, x.debit, x.credit, x.amount, p_ceiling[x.ord] AS ceiling,
           t.phase AS t_phase, t.debit_account AS t_debit, t.credit_account AS t_credit, t.amount_micros AS t_amount,
           a.id AS a_id, a.house, a.debits_pending, a.debits_posted, a.credits_pending, a.credits_posted
    FROM unnest(p_account, p_id, p_phase, p_debit, p_credit, p_amount)
           WITH ORDINALITY AS x (account, id, phase, debit, credit, amount, ord)
    LEFT JOIN ledger_accounts a ON a.id = x.account
    LEFT JOIN ledger_transfers t ON t.account_id = x.account AND t.id = x.id AND t.resolves = false
    WHERE p_skip[x.ord] IS NOT TRUE
    ORDER BY x.account, x.ord
  LOOP
    IF cur IS DISTINCT FROM r.account THEN
      IF changed AND NOT house THEN
        u_id := u_id || cur; u_dp := u_dp || dp; u_d := u_d || d; u_cp := u_cp || cp; u_c := u_c || c;
      END IF;
      IF r.a_id IS NULL THEN RAISE EXCEPTION 'there is no account %', r.account; END IF;
      changed := false;
      cur := r.account;
      house := r.house; dp := r.debits_pending; d := r.debits_posted; cp := r.credits_pending; c := r.credits_posted;
    END IF;
    s := 0;
    is_debit := r.debit = r.account;

    IF r.t_phase IS NOT NULL
       AND (r.t_debit <> r.debit OR r.t_credit <> r.credit OR r.t_amount <> r.amount
            OR (r.phase <= 2 AND r.t_phase <> r.phase)) THEN
      s := 3;
    ELSIF r.phase <= 2 THEN
      IF r.t_phase IS NULL THEN
        IF is_debit AND NOT house AND dp + d + r.amount > c THEN s := 1;
        ELSIF is_debit AND dp + d + r.amount > r.ceiling THEN s := 2;
        ELSE
          v_new[r.ord] := true;
          IF r.phase = 1 THEN
            IF is_debit THEN d := d + r.amount; ELSE c := c + r.amount; END IF;
          ELSE
            IF is_debit THEN dp := dp + r.amount; ELSE cp := cp + r.amount; END IF;
          END IF;
        END IF;
      END IF;
    ELSIF r.t_phase IS NULL OR r.t_phase <> 2 THEN
      s := 4;
    ELSE
      -- How the pending transfer ended, if it has.
      SELECT e.phase INTO s FROM ledger_transfers e
      WHERE e.account_id = r.account AND e.id = p_id[r.ord] AND e.resolves = true;
      IF s = r.phase THEN s := 0;
      ELSIF s IS NOT NULL THEN s := 5;
      ELSE
        s := 0;
        v_new[r.ord] := true;
        IF is_debit THEN dp := dp - r.amount; ELSE cp := cp - r.amount; END IF;
        IF r.phase = 3 THEN
          IF is_debit THEN d := d + r.amount; ELSE c := c + r.amount; END IF;
        END IF;
      END IF;
    END IF;

    IF v_new[r.ord] THEN changed := true; any_new := true; END IF;
    IF s <> 0 THEN status[r.ord] := s; END IF;
    IF NOT house THEN available[r.ord] := c - d - dp; END IF;
  END LOOP;
  IF changed AND NOT house THEN
    u_id := u_id || cur; u_dp := u_dp || dp; u_d := u_d || d; u_cp := u_cp || cp; u_c := u_c || c;
  END IF;

  IF any_new THEN
    UPDATE ledger_accounts a
    SET debits_pending = u.dp, debits_posted = u.d, credits_pending = u.cp, credits_posted = u.c
    FROM unnest(u_id, u_dp, u_d, u_cp, u_c) AS u (id, dp, d, cp, c) WHERE a.id = u.id;

    INSERT INTO ledger_transfers
      (account_id, id, phase, debit_account, credit_account, amount_micros, code, note, created_at)
    SELECT x.account, x.id, x.phase, x.debit, x.credit, x.amount, p_code[x.ord], p_note[x.ord], p_now
    FROM unnest(p_account, p_id, p_phase, p_debit, p_credit, p_amount)
           WITH ORDINALITY AS x (account, id, phase, debit, credit, amount, ord)
    WHERE v_new[x.ord];
  END IF;
END
$$;
