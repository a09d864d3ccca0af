-- What the yield vault's events told, so that a holder's yield can be told from their own entry. All of it can be read from
-- the chain again.
CREATE TABLE yield_index (
  vault text PRIMARY KEY,
  -- The blocks below this one have been read.
  next_block bigint NOT NULL CHECK (next_block >= 0),
  -- Of the block before; NULL: none has been read.
  last_hash text
);

-- Blocks that were the chain's when they were read: where a chain that took another way left the old one is found by them.
CREATE TABLE yield_marks (
  vault text NOT NULL,
  block_number bigint NOT NULL,
  block_hash text NOT NULL,
  PRIMARY KEY (vault, block_number)
);

-- Shares that came to be, changed hands or went.
CREATE TABLE yield_moves (
  vault text NOT NULL,
  block_number bigint NOT NULL,
  log_index integer NOT NULL,
  kind text NOT NULL CHECK (kind IN ('deposit', 'withdraw', 'in_kind', 'transfer', 'fee')),
  at timestamptz NOT NULL,
  -- NULL: the shares were made, or burned.
  from_wallet text,
  to_wallet text,
  shares numeric(78) NOT NULL CHECK (shares > 0),
  -- USDC units that were paid or received. NULL: the event does not say.
  assets numeric(78),
  -- USDC units, and the shares that they are the price of: those of the entry fee are among them. NULL: no price was told.
  priced_assets numeric(78),
  priced_shares numeric(78) CHECK (priced_shares > 0),
  PRIMARY KEY (vault, block_number, log_index),
  CHECK (num_nulls(assets, priced_assets, priced_shares) IN (0, 3)),
  CHECK (num_nulls(from_wallet, to_wallet) <= 1)
);
CREATE INDEX yield_moves_from ON yield_moves (vault, from_wallet, block_number, log_index) WHERE from_wallet IS NOT NULL;
CREATE INDEX yield_moves_to ON yield_moves (vault, to_wallet, block_number, log_index) WHERE to_wallet IS NOT NULL;
CREATE INDEX yield_moves_priced ON yield_moves (vault, block_number, log_index) WHERE priced_shares IS NOT NULL;

-- Rates and holdings every few minutes, for charts.
CREATE TABLE yield_samples (
  vault text NOT NULL,
  -- The beginning of the few minutes.
  at timestamptz NOT NULL,
  block_number bigint NOT NULL,
  -- USDC units.
  total_assets numeric(78) NOT NULL,
  -- USDC units of 10^30 shares.
  priced_assets numeric(78) NOT NULL,
  active text NOT NULL,
  -- By protocol: { "apyPercent": number or null, "assets": USDC units as text }.
  protocols jsonb NOT NULL,
  idle numeric(78) NOT NULL,
  PRIMARY KEY (vault, at)
);
CREATE INDEX yield_samples_block ON yield_samples (vault, block_number);
