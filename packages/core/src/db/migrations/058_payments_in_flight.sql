-- What payers have in flight: the payments of calls that were begun and that a chain has still to settle. Many signatures
-- over the same money are all good as long as none has settled, so each counts against the payer's balance beside the
-- others.
CREATE TABLE payments_in_flight (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  network text NOT NULL,
  asset text NOT NULL,
  payer text NOT NULL,
  amount_units bigint NOT NULL CHECK (amount_units >= 0),
  -- Whether its service asks an upstream that charges the operator.
  costs_money boolean NOT NULL,
  -- When it was written down that the money had moved, by the database's clock. A balance that was read before counts it
  -- still.
  moved_at timestamptz,
  PRIMARY KEY (account_id, call_id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE INDEX payments_in_flight_payer ON payments_in_flight (payer);
CREATE INDEX payments_in_flight_moved ON payments_in_flight (moved_at) WHERE moved_at IS NOT NULL;
