-- What the house keeps for payers: wallets, and the identities it registered for them.
-- `owner` is whoever paid: a ledger account or a wallet that signed (see custody/owner.ts).

CREATE TABLE managed_wallets (
  id uuid PRIMARY KEY,
  owner text NOT NULL,
  -- The payer's own name for the agent.
  agent_id text NOT NULL,
  agent_name text,
  purpose text,
  networks text[] NOT NULL,
  -- SHA-256 of the wallet's secret, which is random: a slow hash would protect nothing.
  secret_digest bytea NOT NULL CHECK (length(secret_digest) = 32),
  created_by_call text NOT NULL,
  created_at timestamptz NOT NULL,
  -- The row of a deleted wallet stays, without its keys.
  deleted_at timestamptz
);
CREATE UNIQUE INDEX managed_wallets_agent ON managed_wallets (owner, agent_id) WHERE deleted_at IS NULL;

-- A wallet's private keys: one for all EVM chains, one for Solana. Encrypted (see custody/envelope.ts), or destroyed.
CREATE TABLE managed_wallet_keys (
  wallet_id uuid NOT NULL REFERENCES managed_wallets,
  kind text NOT NULL CHECK (kind IN ('evm', 'solana')),
  address text NOT NULL,
  kek_id text,
  wrapped_data_key bytea,
  ciphertext bytea,
  PRIMARY KEY (wallet_id, kind),
  CHECK (num_nulls(kek_id, wrapped_data_key, ciphertext) IN (0, 3))
);
CREATE INDEX managed_wallet_keys_kek ON managed_wallet_keys (kek_id) WHERE kek_id IS NOT NULL;

-- Who did what to a wallet. Only ever added to. An export stands here before the key leaves the house.
CREATE TABLE managed_wallet_events (
  id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  wallet_id uuid NOT NULL REFERENCES managed_wallets,
  at timestamptz NOT NULL,
  action text NOT NULL CHECK (action IN ('created', 'extended', 'secret_renewed', 'exported', 'deleted', 'refused')),
  -- `call:<id>`, `key:<id>`, `wallet-secret`, or what was refused
  actor text NOT NULL,
  request_id text
);
CREATE INDEX managed_wallet_events_wallet ON managed_wallet_events (wallet_id, id);

-- Identities registered on chain. The row is there before the first transaction is sent.
CREATE TABLE agent_identities (
  owner text NOT NULL,
  agent_id text NOT NULL,
  agent_uri text NOT NULL,
  -- To whom the identity goes; NULL: the registrar keeps it.
  holder text,
  -- What the transactions' ids begin with: the call that first set out to register it.
  transaction_key text NOT NULL,
  -- The call that is at it, and since when; NULL: nobody is.
  claimed_by text NOT NULL,
  claimed_at timestamptz,
  token_id numeric(78),
  register_transaction text,
  transfer_transaction text,
  completed_at timestamptz,
  PRIMARY KEY (owner, agent_id),
  CHECK (completed_at IS NULL OR (token_id IS NOT NULL AND (holder IS NULL) = (transfer_transaction IS NULL)))
);
