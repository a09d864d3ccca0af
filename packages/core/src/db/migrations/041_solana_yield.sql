-- The Solana yield portal. Amounts are units of six places: USDC as it is, and of the reserve's collateral token.

-- Deposits and withdrawals of wallets, each as the chain shows it.
CREATE TABLE solana_yield_moves (
  -- Of the transaction, base58.
  signature text PRIMARY KEY,
  wallet text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('deposit', 'withdrawal')),
  slot bigint NOT NULL CHECK (slot >= 0),
  -- The block's time; NULL: the chain does not say.
  at timestamptz,
  -- What a deposit minted, or a withdrawal burned.
  collateral bigint NOT NULL CHECK (collateral > 0),
  -- What a deposit paid into the reserve, or a withdrawal took out of it, before any fee.
  usdc bigint NOT NULL CHECK (usdc > 0),
  -- What the wallet's own account of the collateral token held before and after the transaction.
  held_before bigint NOT NULL CHECK (held_before >= 0),
  held_after bigint NOT NULL CHECK (held_after >= 0),
  -- What the same transaction paid to the treasury.
  fee bigint NOT NULL CHECK (fee >= 0),
  -- Whether the chain can still take it back.
  final boolean NOT NULL,
  found_at timestamptz NOT NULL
);
CREATE INDEX solana_yield_moves_wallet ON solana_yield_moves (wallet, slot);
CREATE INDEX solana_yield_moves_open ON solana_yield_moves (found_at) WHERE NOT final;

-- Deposits that wallets claim and that the chain could not be asked about yet. A wallet that claims another's transaction keeps
-- nobody from claiming it too.
CREATE TABLE solana_yield_claims (
  signature text NOT NULL,
  wallet text NOT NULL,
  -- What the caller says it was; compared, and never credited. NULL: the caller did not say.
  claimed_usdc bigint CHECK (claimed_usdc > 0),
  state text NOT NULL CHECK (state IN ('pending', 'confirmed', 'refused', 'given_up')),
  -- Why it was refused or given up.
  reason text,
  claimed_at timestamptz NOT NULL,
  -- When it is looked at next; while it is being looked at, when whoever does so has had their time.
  next_at timestamptz NOT NULL,
  PRIMARY KEY (signature, wallet)
);
CREATE INDEX solana_yield_claims_due ON solana_yield_claims (next_at) WHERE state = 'pending';
CREATE INDEX solana_yield_claims_wallet ON solana_yield_claims (wallet) WHERE state = 'pending';
CREATE INDEX solana_yield_claims_over ON solana_yield_claims (claimed_at) WHERE state <> 'pending';

-- What wallets paid to the treasury ahead of a deposit.
CREATE TABLE solana_yield_fees (
  signature text PRIMARY KEY,
  wallet text NOT NULL,
  usdc bigint NOT NULL CHECK (usdc > 0),
  slot bigint NOT NULL CHECK (slot >= 0),
  at timestamptz NOT NULL,
  -- waiting: its deposit may still come. unused: it did not, and the fee is due back.
  state text NOT NULL CHECK (state IN ('waiting', 'used', 'unused', 'refunded')),
  -- Why it is due back.
  reason text,
  deposit_signature text UNIQUE,
  refund_signature text,
  next_at timestamptz NOT NULL,
  -- How far the wallet's transactions have been looked through for the deposit; NULL: from the newest on.
  looked_before text,
  CHECK ((state = 'used') = (deposit_signature IS NOT NULL)),
  CHECK ((state = 'refunded') = (refund_signature IS NOT NULL))
);
CREATE INDEX solana_yield_fees_wallet ON solana_yield_fees (wallet, slot);
CREATE INDEX solana_yield_fees_due ON solana_yield_fees (next_at) WHERE state = 'waiting';
CREATE INDEX solana_yield_fees_unused ON solana_yield_fees (at) WHERE state = 'unused';

-- How far the transactions of the treasury's token account have been read, the newest first.
CREATE TABLE solana_yield_walks (
  account text PRIMARY KEY,
  -- Everything up to this one has been read. NULL: nothing.
  read_to text,
  -- The newest one of the walk that is under way, and how far down it has come. NULL: none is.
  head text,
  below text,
  -- Grows with each step: who comes second from the same place changes nothing.
  step bigint NOT NULL,
  CHECK ((head IS NULL) = (below IS NULL))
);

-- Transactions that the walk came by and nobody has looked at yet.
CREATE TABLE solana_yield_unread (
  signature text PRIMARY KEY,
  slot bigint NOT NULL,
  listed_at timestamptz NOT NULL,
  next_at timestamptz NOT NULL
);
CREATE INDEX solana_yield_unread_due ON solana_yield_unread (next_at);

-- Bundles that were built for a key of the caller's: the same key, wallet and amount gets another one only when they expired.
CREATE TABLE solana_yield_intents (
  idempotency_key uuid NOT NULL,
  wallet text NOT NULL,
  usdc bigint NOT NULL CHECK (usdc > 0),
  id uuid NOT NULL UNIQUE,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (idempotency_key, wallet, usdc)
);
CREATE INDEX solana_yield_intents_over ON solana_yield_intents (expires_at);
