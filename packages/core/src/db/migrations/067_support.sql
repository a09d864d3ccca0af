-- What a customer who asks for help is found by.

-- The transaction of a payment, and of a refund.
CREATE INDEX settlements_transaction ON settlements (transaction) WHERE transaction IS NOT NULL;
CREATE INDEX refunds_transaction ON refunds (transaction) WHERE transaction IS NOT NULL;

-- Requests that paid on a chain, and requests that failed on our side: by the id that their answers named. Kept for thirty
-- days. They are written beside the calls, so a process that dies loses those of its last seconds.
CREATE TABLE paid_requests (
  request_id text PRIMARY KEY,
  at timestamptz NOT NULL,
  service text NOT NULL,
  rail text NOT NULL,
  outcome text NOT NULL,
  status smallint NOT NULL,
  reason text,
  call_id uuid
);
CREATE INDEX paid_requests_call ON paid_requests (call_id) WHERE call_id IS NOT NULL;
CREATE INDEX paid_requests_time ON paid_requests (at);

-- An operator may send a payment back on the chain that it came from.
ALTER TABLE operator_acts DROP CONSTRAINT operator_acts_act_check;
ALTER TABLE operator_acts ADD CONSTRAINT operator_acts_act_check
  CHECK (act IN ('freeze', 'unfreeze', 'grant', 'refund_order', 'refund_call', 'mail_key', 'refund_payment'));
ALTER TABLE operator_acts DROP CONSTRAINT operator_acts_check2;
ALTER TABLE operator_acts ADD CONSTRAINT operator_acts_call_named
  CHECK ((act IN ('refund_call', 'refund_payment')) = (call_id IS NOT NULL));
ALTER TABLE operator_acts DROP CONSTRAINT operator_acts_check3;
ALTER TABLE operator_acts ADD CONSTRAINT operator_acts_transfer
  CHECK ((act IN ('grant', 'refund_call', 'refund_payment')) = (transfer_id IS NOT NULL));

-- Refunds that wait for a second operator. The act itself is written when that operator agrees.
CREATE TABLE operator_proposals (
  id uuid PRIMARY KEY,
  at timestamptz NOT NULL,
  actor text NOT NULL,
  act text NOT NULL CHECK (act IN ('refund_order', 'refund_call', 'refund_payment')),
  account_id bigint NOT NULL,
  order_id uuid,
  call_id uuid,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  reason text NOT NULL,
  -- SHA-256 of the Idempotency-Key, and of what was asked for.
  idempotency_digest bytea NOT NULL UNIQUE,
  request_digest bytea NOT NULL,
  -- How it ended, and by whom. NULL: it waits.
  ended text CHECK (ended IN ('approved', 'declined')),
  ended_by text,
  ended_at timestamptz,
  CHECK (ended_by IS DISTINCT FROM actor OR ended = 'declined'),
  CHECK (num_nonnulls(ended, ended_by, ended_at) IN (0, 3)),
  CHECK (num_nonnulls(order_id, call_id) = 1)
);
CREATE INDEX operator_proposals_waiting ON operator_proposals (at) WHERE ended IS NULL;
