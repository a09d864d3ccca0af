import type { PersonalData } from '../words/personal-data.ts';

const OWNERS = `select 'account:' || a from unnest(:accounts) a`;
const THEIR_WALLETS = `select id from managed_wallets where owner in (${OWNERS})`;

export const CUSTODY_PEOPLE: PersonalData = {
  obstacles: [
    {
      despite: 'wallets',
      sql: `select id from managed_wallets where owner in (${OWNERS}) and deleted_at is null`,
      say: ({ id }) =>
        `The server keeps the keys of the wallet ${id}, which are lost with it: have its owner export them and delete it first.`,
    },
  ],
  tables: [
    {
      table: 'agent_id_claims',
      what: 'The agent that a wallet or an identity is being made for',
      why: 'It is made once',
      kept: 'minutes',
      columns: ['owner', 'agent_key'],
      whose: `owner in (${OWNERS})`,
      erasure: { rows: 'deleted' },
    },
    {
      table: 'managed_wallet_keys',
      what: 'Addresses of a wallet, and its encrypted keys',
      why: 'Its owner asked to have it kept',
      kept: 'the keys until its owner deletes it, the addresses for good',
      columns: ['address', 'wrapped_data_key', 'ciphertext'],
      whose: `wallet_id in (${THEIR_WALLETS})`,
      erasure: { rows: 'deleted' },
      withheld: ['kek_id', 'wrapped_data_key', 'ciphertext'],
    },
    {
      table: 'managed_wallet_events',
      what: 'Who did what to a wallet',
      why: 'Its owner sees it',
      kept: 'for good',
      columns: ['actor', 'request_id'],
      whose: `wallet_id in (${THEIR_WALLETS})`,
      erasure: { rows: 'deleted' },
    },
    {
      table: 'managed_wallets',
      what: 'Names and purpose that an owner gave to an agent and its wallet',
      why: 'Its owner finds it by them',
      kept: 'for good',
      columns: ['owner', 'agent_id', 'agent_name', 'purpose', 'agent_key', 'secret_digest'],
      whose: `owner in (${OWNERS})`,
      erasure: { rows: 'deleted' },
      withheld: ['secret_digest'],
    },
  ],
};
