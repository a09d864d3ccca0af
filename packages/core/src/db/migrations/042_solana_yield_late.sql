-- Fees that are due back are still looked at for a while, since their deposits may come late.
ALTER TABLE solana_yield_fees
  -- When it became due back; NULL: it never did.
  ADD COLUMN unused_at timestamptz,
  -- The slot in which the look began that `looked_before` goes on with; NULL: none is under way.
  ADD COLUMN looked_from bigint;
UPDATE solana_yield_fees SET unused_at = at WHERE state = 'unused';
DROP INDEX solana_yield_fees_due;
CREATE INDEX solana_yield_fees_due ON solana_yield_fees (next_at) WHERE state IN ('waiting', 'unused');

-- How often a transaction was asked for that the node listed and did not show.
ALTER TABLE solana_yield_unread ADD COLUMN tries integer NOT NULL DEFAULT 0;
