-- A sold key whose price went back stays on record, also when it was never granted: the refund can then be told from one of
-- a key that is still good. Whoever grants and whoever gives back take this row's lock, so the second finds the first.
ALTER TABLE sold_keys ADD COLUMN refunded_at timestamptz;
UPDATE sold_keys k SET refunded_at = t.created_at FROM ledger_transfers t
WHERE t.account_id = k.payer_account AND t.id = k.refund_id AND t.code IN ('call_refund', 'operator_refund');

DO $$
DECLARE
  stale text;
BEGIN
  FOR stale IN
    SELECT conname FROM pg_constraint
    WHERE conrelid = 'sold_keys'::regclass AND contype = 'c'
      AND (pg_get_constraintdef(oid) LIKE '%sealed_key%' OR pg_get_constraintdef(oid) LIKE '%closed_at%')
  LOOP
    EXECUTE format('ALTER TABLE sold_keys DROP CONSTRAINT %I', stale);
  END LOOP;
END
$$;
ALTER TABLE sold_keys
  ADD CONSTRAINT sealed_until_it_is_granted_or_closed
    CHECK ((sealed_key IS NOT NULL) = (granted_at IS NULL AND closed_at IS NULL)),
  ADD CONSTRAINT closed_once_granted_or_refunded
    CHECK (closed_at IS NULL OR granted_at IS NOT NULL OR refunded_at IS NOT NULL),
  ADD CONSTRAINT taken_back_once_granted CHECK (taken_back_micros IS NULL OR granted_at IS NOT NULL);
