import type { PersonalData } from '../words/personal-data.ts';

const OF_OWNER = `owner in (select 'account:' || a from unnest(:accounts) a)`;

export const IDENTITY_PEOPLE: PersonalData = {
  obstacles: [
    {
      despite: null,
      sql: `select agent_id from agent_identities where ${OF_OWNER} and completed_at is null`,
      say: () => 'An identity is being registered: wait until that has ended.',
    },
  ],
  tables: [
    {
      table: 'agent_identities',
      what: 'Name and address that an owner gave to an agent, and the wallet that holds its identity',
      why: 'It is registered once',
      kept: 'for good, as on the chain',
      columns: ['owner', 'agent_id', 'agent_uri', 'holder', 'agent_key'],
      whose: OF_OWNER,
      erasure: { rows: 'deleted' },
    },
  ],
};
