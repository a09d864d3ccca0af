-- What the keeper moved among the protocols, as the vault's events told it.
CREATE TABLE yield_keeper_moves (
  vault text NOT NULL,
  block_number bigint NOT NULL,
  log_index integer NOT NULL,
  at timestamptz NOT NULL,
  transaction_hash text NOT NULL,
  from_protocol text NOT NULL,
  to_protocol text NOT NULL,
  -- USDC units: that left the one, and that came to count in the other.
  assets numeric(78) NOT NULL,
  received numeric(78) NOT NULL,
  PRIMARY KEY (vault, block_number, log_index)
);
CREATE INDEX yield_keeper_moves_at ON yield_keeper_moves (vault, at);

-- Why a keeper of ours makes a move, written before it is sent: several may be tried until one is made.
CREATE TABLE yield_keeper_reasons (
  vault text NOT NULL,
  -- From when the contract allows it: seconds since 1970, of the chain's clock.
  allowed_at bigint NOT NULL,
  noted_at timestamptz NOT NULL,
  from_protocol text NOT NULL,
  to_protocol text NOT NULL,
  assets numeric(78) NOT NULL,
  -- As `MoveReason` of `yield/keeper/report.ts` shapes it.
  reason jsonb NOT NULL,
  PRIMARY KEY (vault, from_protocol, to_protocol, assets, allowed_at)
);

-- The chain is read once more from the vault's beginning, for the moves that were passed over.
DELETE FROM yield_moves;
DELETE FROM yield_marks;
DELETE FROM yield_index;
