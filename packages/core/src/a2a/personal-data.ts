import type { PersonalData } from '../words/personal-data.ts';

const THEIRS = 'account_id = any(:accounts) or call_account_id = any(:accounts)';

export const A2A_PEOPLE: PersonalData = {
  obstacles: [
    {
      despite: null,
      sql: `select id from a2a_tasks where (${THEIRS}) and state in ('working', 'charging')`,
      say: ({ id }) => `The task ${id} has not ended: wait a minute.`,
    },
  ],
  tables: [
    {
      table: 'a2a_tasks',
      what: 'What an agent asked for over A2A, and what its task says',
      why: 'The agent asks for its task later',
      kept: 'an hour; one that bought something as long as its answer',
      columns: ['id', 'context_id', 'message_key', 'input', 'paid_with', 'told'],
      whose: THEIRS,
      erasure: { rows: 'deleted' },
      withheld: ['message_key', 'paid_with'],
    },
  ],
};
