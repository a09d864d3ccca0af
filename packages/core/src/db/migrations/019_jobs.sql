-- What each job looks for has an index of its own, which holds what is open and nothing that is past.

-- What a chain has still to decide: never behind transactions that are only watched until they are final.
CREATE INDEX settlements_undecided ON settlements (network, next_at)
  WHERE final_at IS NULL AND (state IN (0, 3) OR (state = 1 AND NOT answered));
CREATE INDEX settlements_watched ON settlements (network, next_at) WHERE final_at IS NULL AND state = 1;
DROP INDEX settlements_due;
-- A payer's, the newest first, and not across accounts.
CREATE INDEX settlements_bought ON settlements (account_id, payer, created_at);
DROP INDEX settlements_payer;

-- Checkouts that nobody tried to pay: they go after a while.
CREATE INDEX card_orders_unpaid ON card_orders (created_at)
  WHERE kind = 'checkout' AND state = 2 AND payment_intent_id IS NULL;
-- What the operator's page asks for.
CREATE INDEX card_orders_open ON card_orders (expires_at) WHERE state = 0;
CREATE INDEX card_orders_paid ON card_orders (paid_at) WHERE state = 1;
CREATE INDEX card_orders_disputes ON card_orders (dispute) WHERE dispute IS NOT NULL;

-- These hold few rows that are due among many that are past, and what is past stands before what is due in an index by
-- time until it is vacuumed. A share of all rows would be waited for the longer, the more there are.
ALTER TABLE settlements SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
ALTER TABLE refunds SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
ALTER TABLE call_answers SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
ALTER TABLE relayer_transactions SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
ALTER TABLE mails SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
ALTER TABLE card_orders SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
ALTER TABLE card_events SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

-- The proof of the books that is under way: its number, which grows with each, and who asked for it when. Whoever takes
-- over has the next number, and what an older one found is not written down any more.
ALTER TABLE books_proof ADD COLUMN number bigint NOT NULL DEFAULT 0, ADD COLUMN started_at timestamptz;
