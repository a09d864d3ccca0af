-- Ids of agents are compared without regard to case: `agent_key` is the id as words/agent-id.ts folds it. It is NULL in rows from before,
-- which may differ from each other by case alone, and are found by `agent_id`.
ALTER TABLE managed_wallets ADD COLUMN agent_key text;
CREATE UNIQUE INDEX managed_wallets_agent_key ON managed_wallets (owner, agent_key) WHERE deleted_at IS NULL;
ALTER TABLE agent_identities ADD COLUMN agent_key text;
CREATE UNIQUE INDEX agent_identities_agent_key ON agent_identities (owner, agent_key);

-- Calls whose payment is about to settle on a chain, and that will then make a wallet or an identity. While such a row lasts, no other
-- payment of the same buyer settles for the same agent.
CREATE TABLE agent_id_claims (
  kind text NOT NULL CHECK (kind IN ('wallet', 'identity')),
  owner text NOT NULL,
  agent_key text NOT NULL,
  call_id text NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (kind, owner, agent_key)
);
CREATE INDEX agent_id_claims_expiry ON agent_id_claims (expires_at);
