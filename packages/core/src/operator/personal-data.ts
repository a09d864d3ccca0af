import type { PersonalData } from '../words/personal-data.ts';

const OF_ACCOUNT = `account_id = any(:accounts)`;
const STAYS = { stays: 'it is a link of a chain that proves itself' };

/** Operators themselves are no customers: what is kept of them is for those who control them. */
export const OPERATOR_PEOPLE: PersonalData = {
  obstacles: [
    {
      despite: null,
      sql: `select id from operator_proposals where ${OF_ACCOUNT} and ended is null`,
      say: ({ id }) =>
        `A second operator has yet to decide about the proposal ${id}: approve or decline it first.`,
    },
    {
      despite: null,
      sql: `select id from operator_acts a where ${OF_ACCOUNT} and act = 'refund_order'
             and not exists (select 1 from operator_act_outcomes o where o.act_id = a.id)`,
      say: ({ id }) => `The refund ${id} has not ended: go on with it on the operator's page first.`,
    },
  ],
  tables: [
    {
      table: 'operator_proposals',
      what: 'Why an operator wants to give something back',
      why: 'A second operator decides about it',
      kept: 'for good',
      columns: ['reason', 'actor', 'ended_by'],
      whose: `${OF_ACCOUNT} or lower(reason) ~ :mention`,
      erasure: {
        set: { reason: `regexp_replace(reason, :mention, '[erased]', 'gi')` },
        words: 'the address is taken out of the reason',
      },
      withheld: ['idempotency_digest', 'request_digest'],
    },
    {
      table: 'operator_acts',
      what: 'What an operator did with an account, and why',
      why: 'The books hold each such movement of money against it',
      kept: 'for good',
      columns: ['reason', 'actor', 'idempotency_digest', 'request_digest'],
      whose: OF_ACCOUNT,
      erasure: STAYS,
      withheld: ['idempotency_digest', 'request_digest', 'digest'],
    },
    {
      table: 'operator_trail',
      what: 'Which operator asked for something or was shown somebody’s data, from which address',
      why: 'Nobody looks at people’s data unseen',
      kept: 'for good',
      columns: ['actor', 'issuer', 'subject', 'email', 'address', 'about'],
      whose: `exists (select 1 from unnest(:accounts) a where about like '%"accounts":[%"' || a || '"%')`,
      erasure: STAYS,
      withheld: ['actor', 'issuer', 'subject', 'email', 'address', 'digest'],
    },
    {
      table: 'operator_people',
      what: 'Operators: name at their provider, address, and the claims that their role follows from',
      why: 'They sign in, and answer for what they do',
      kept: 'for good',
      columns: ['issuer', 'subject', 'actor', 'email', 'claims'],
      whose: 'lower(email) = :email',
      erasure: { stays: 'whoever has operated the shop stands in its log' },
    },
    {
      table: 'operator_sessions',
      what: 'Sessions of operators: address, browser and times',
      why: 'An admin sees and ends them',
      kept: '`ADMIN_SESSION_RETENTION_DAYS` after their end',
      columns: ['address', 'agent', 'digest', 'state_digest'],
      whose: 'person_id in (select id from operator_people where lower(email) = :email)',
      erasure: { stays: 'it goes when its time is over' },
      withheld: ['digest', 'state_digest'],
    },
  ],
};
