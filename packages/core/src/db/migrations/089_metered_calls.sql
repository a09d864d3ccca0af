-- Calls whose price is measured in their answer: what was reserved for it is the most that it may cost, and what was taken is
-- what was measured.

-- `price_micros` is what a call costs: what is reserved for it while it runs, and what was taken once it is captured. What was
-- reserved for a measured call stands here once it is captured; NULL: its price was known before.
ALTER TABLE calls ADD COLUMN reserved_micros bigint;
ALTER TABLE calls ADD CONSTRAINT calls_take_no_more_than_reserved
  CHECK (reserved_micros IS NULL OR (price_micros > 0 AND price_micros <= reserved_micros)) NOT VALID;

-- The same in the ledger: a post that takes less than its pending transfer reserved says how much that was, and frees all of it.
ALTER TABLE ledger_transfers ADD COLUMN reserved_micros bigint;
ALTER TABLE ledger_transfers ADD CONSTRAINT ledger_posts_no_more_than_reserved
  CHECK (reserved_micros IS NULL OR (phase = 3 AND amount_micros <= reserved_micros)) NOT VALID;
