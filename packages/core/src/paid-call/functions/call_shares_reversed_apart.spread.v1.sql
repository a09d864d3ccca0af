-- On a database that is spread: what `call_shares_reversed` does on one PostgreSQL, account by account, because the shares of each lie on a
-- server of their own. It hangs on what the coordinator has heard. A payment that has come back meanwhile takes none.
CREATE OR REPLACE FUNCTION call_shares_reversed_apart() RETURNS trigger
LANGUAGE plpgsql
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
  paid card_orders%ROWTYPE;
  spender record;
  share record;
  home smallint;
  taken bigint := 0;
  v_account bigint[] := '{}'; v_bucket smallint[] := '{}'; v_call uuid[] := '{}'; v_set_aside timestamptz[] := '{}';
  v_due bigint[] := '{}'; v_price bigint[] := '{}'; v_most numeric[] := '{}';
BEGIN
  -- No account is moved meanwhile (`ledger/buckets.ts`), so each share is where it was looked for.
  PERFORM pg_advisory_xact_lock_shared(8406);
  -- Held: whoever gives back what is taken here changes the order.
  SELECT * INTO paid FROM card_orders
  WHERE id = substring(NEW.note FROM '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$')::uuid FOR UPDATE;
  IF paid.account_id IS NULL OR paid.paid_at IS NULL OR paid.reversed_micros = 0 THEN RETURN NULL; END IF;
  FOR spender IN
    SELECT x.account_id, sum(x.micros - coalesce((
             SELECT sum(o.amount_micros) FROM credit_origins o
             WHERE o.payer_account = x.account_id AND o.payer_lot = x.lot AND NOT o.ended), 0)) AS most
    FROM (
      SELECT paid.account_id AS account_id, paid.id AS lot, paid.credit_micros AS micros
      UNION ALL
      SELECT o.account_id, o.lot, o.amount_micros FROM credit_origins o
      WHERE o.order_id = paid.id AND o.account_id IS NOT NULL AND NOT o.ended
    ) x GROUP BY x.account_id
  LOOP
    SELECT a.bucket INTO home FROM ledger_accounts a WHERE a.id = spender.account_id;
    FOR share IN
      SELECT s.call_id, s.set_aside_at, s.due_micros, c.price_micros,
             spender.most - sum(c.price_micros) OVER (ORDER BY s.set_aside_at DESC, s.call_id) + c.price_micros AS most
      FROM call_shares s JOIN calls c ON c.bucket = home AND c.account_id = s.account_id AND c.id = s.call_id
      WHERE s.bucket = home AND s.account_id = spender.account_id
        AND s.state = 1 AND s.due_micros > 0 AND s.reversed_by IS NULL AND s.set_aside_at >= paid.paid_at
    LOOP
      CONTINUE WHEN share.most <= 0;
      v_account := v_account || spender.account_id; v_bucket := v_bucket || home;
      v_call := v_call || share.call_id; v_set_aside := v_set_aside || share.set_aside_at;
      v_due := v_due || share.due_micros; v_price := v_price || share.price_micros; v_most := v_most || share.most;
    END LOOP;
  END LOOP;
  FOR spender IN
    WITH held AS (
      SELECT x.account_id, x.bucket, x.call_id, x.due_micros, x.price_micros, least(x.price_micros, x.most) AS paid_micros,
             sum(least(x.price_micros, x.most)) OVER (ORDER BY x.set_aside_at DESC, x.call_id) - least(x.price_micros, x.most)
               AS newer_micros
      FROM unnest(v_account, v_bucket, v_call, v_set_aside, v_due, v_price, v_most)
             AS x (account_id, bucket, call_id, set_aside_at, due_micros, price_micros, most)
    ), parts AS (
      SELECT account_id, bucket, call_id,
             (due_micros * least(paid_micros, NEW.amount_micros - newer_micros) / price_micros)::bigint AS micros
      FROM held WHERE newer_micros < NEW.amount_micros
    )
    SELECT account_id, bucket, array_agg(call_id) AS calls, array_agg(micros) AS micros
    FROM parts WHERE micros > 0 GROUP BY account_id, bucket ORDER BY account_id
  LOOP
    FOR share IN
      UPDATE call_shares s SET reversed_by = paid.id, reversed_micros = p.micros, due_micros = s.due_micros - p.micros
      FROM unnest(spender.calls, spender.micros) AS p (call_id, micros)
      WHERE s.bucket = spender.bucket AND s.account_id = spender.account_id AND s.call_id = p.call_id
        AND s.state = 1 AND s.reversed_by IS NULL AND s.due_micros >= p.micros
      RETURNING p.micros
    LOOP
      taken := taken + share.micros;
    END LOOP;
  END LOOP;
  IF taken = 0 THEN RETURN NULL; END IF;
  INSERT INTO ledger_transfers
    (bucket, account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at, note)
  VALUES (0, 13, md5('shares reversed by ' || NEW.id)::uuid, 1, 13, 1, taken, 'share_reversed', NEW.created_at,
          'shares of order ' || paid.id);
  RETURN NULL;
END
$$;

DROP TRIGGER IF EXISTS ledger_transfer_reverses_shares ON ledger_transfers_heard;

CREATE OR REPLACE TRIGGER ledger_transfer_reverses_shares_apart AFTER INSERT ON ledger_transfers_heard
FOR EACH ROW WHEN (NEW.code = 'card_reversal' AND NEW.account_id = 11)
EXECUTE FUNCTION call_shares_reversed_apart();
