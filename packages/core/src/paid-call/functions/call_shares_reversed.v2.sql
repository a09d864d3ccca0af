-- Part of a card payment went back after it was spent, which is a claim against the customer. What was set aside of calls that
-- were made since the payment, by the account and by those of keys that were bought with it, goes back to what the calls had
-- earned: the newest first, as far as their prices make up the claim, and of each account no more than it had of the payment
-- beside what it bought keys with. No account is locked for it. What was paid out stays.
CREATE OR REPLACE FUNCTION call_shares_reversed() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  paid card_orders%ROWTYPE;
  taken bigint;
BEGIN
  SELECT * INTO paid FROM card_orders
  WHERE id = substring(NEW.note FROM '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$')::uuid;
  IF paid.account_id IS NULL OR paid.paid_at IS NULL THEN RETURN NULL; END IF;
  WITH spenders AS (
    SELECT x.account_id, sum(x.micros - coalesce((
             SELECT sum(o.amount_micros) FROM credit_origins o
             WHERE o.payer_account = x.account_id AND o.payer_lot = x.lot AND NOT o.ended), 0)) AS most
    FROM (
      SELECT paid.account_id AS account_id, paid.id AS lot, paid.credit_micros AS micros
      UNION ALL
      SELECT o.account_id, o.lot, o.amount_micros FROM credit_origins o
      WHERE o.order_id = paid.id AND o.account_id IS NOT NULL AND NOT o.ended
    ) x GROUP BY x.account_id
  ), calls_of_each AS (
    SELECT s.account_id, s.call_id, s.set_aside_at, s.due_micros, c.price_micros,
           p.most - sum(c.price_micros) OVER (PARTITION BY s.account_id ORDER BY s.set_aside_at DESC, s.call_id)
             + c.price_micros AS most
    FROM spenders p
    JOIN call_shares s ON s.account_id = p.account_id
    JOIN calls c ON c.account_id = s.account_id AND c.id = s.call_id
    WHERE s.state = 1 AND s.due_micros > 0 AND s.reversed_by IS NULL AND s.set_aside_at >= paid.paid_at
  ), held AS (
    SELECT account_id, call_id, due_micros, price_micros, least(price_micros, most) AS paid_micros,
           sum(least(price_micros, most)) OVER (ORDER BY set_aside_at DESC, call_id) - least(price_micros, most) AS newer_micros
    FROM calls_of_each WHERE most > 0
  ), parts AS (
    SELECT account_id, call_id,
           (due_micros * least(paid_micros, NEW.amount_micros - newer_micros) / price_micros)::bigint AS micros
    FROM held WHERE newer_micros < NEW.amount_micros
  ), reversed AS (
    UPDATE call_shares s SET reversed_by = paid.id, reversed_micros = p.micros, due_micros = s.due_micros - p.micros
    FROM parts p
    WHERE s.account_id = p.account_id AND s.call_id = p.call_id AND p.micros > 0
      AND s.state = 1 AND s.reversed_by IS NULL AND s.due_micros >= p.micros
    RETURNING p.micros
  )
  SELECT sum(micros)::bigint INTO taken FROM reversed;
  IF taken IS NULL THEN RETURN NULL; END IF;
  INSERT INTO ledger_transfers
    (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at, note)
  VALUES (13, md5('shares reversed by ' || NEW.id)::uuid, 1, 13, 1, taken, 'share_reversed', NEW.created_at,
          'shares of order ' || paid.id);
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER ledger_transfer_reverses_shares AFTER INSERT ON ledger_transfers
FOR EACH ROW WHEN (NEW.code = 'card_reversal' AND NEW.account_id = 11)
EXECUTE FUNCTION call_shares_reversed();
