import type { PersonalData } from '../words/personal-data.ts';

const OF_ACCOUNT = 'account_id = any(:accounts)';

export const KEY_PEOPLE: PersonalData = {
  obstacles: [
    {
      despite: 'credit',
      sql: `select id, (credits_posted - debits_posted)::numeric / 1000000 as usd from ledger_accounts
            where id = any(:accounts) and credits_posted > debits_posted`,
      say: ({ id, usd }) =>
        `Account ${id} has ${Number(usd)} USD of credit left, which nobody could spend any more: send it back first.`,
    },
  ],
  tables: [
    {
      table: 'api_keys',
      what: 'Name and prefix of a key, and SHA-256 of it',
      why: 'A key opens its credit',
      kept: 'for good; a key that a rotation ended for 90 days',
      columns: ['label', 'prefix', 'digest'],
      whose: OF_ACCOUNT,
      erasure: { set: { status: `'revoked'`, label: 'null' }, words: 'it ends, and its name goes' },
      withheld: ['digest', 'lookup'],
    },
    {
      table: 'api_keys',
      what: 'Name of a key that was bought with somebody’s credit',
      why: 'Its buyer named it',
      kept: 'for good',
      columns: ['label'],
      whose: `account_id = any(:bought) and ${OF_ACCOUNT} is not true`,
      erasure: { set: { label: 'null' }, words: 'its name goes; it stays good' },
      withheld: ['digest', 'lookup'],
    },
    {
      table: 'trial_claims',
      what: 'HMAC of the address or the installation that took a trial',
      why: 'Everybody gets one trial a week',
      kept: 'seven days',
      columns: ['claimant', 'site'],
      whose: OF_ACCOUNT,
      erasure: { rows: 'deleted' },
      withheld: ['claimant', 'site'],
    },
    {
      table: 'account_freezes',
      what: 'Why an account is frozen',
      why: 'Its owner and operators are told',
      kept: 'until it is thawed',
      columns: ['note'],
      whose: OF_ACCOUNT,
      erasure: { set: { note: 'null' }, words: 'the note goes; it stays frozen' },
    },
    {
      table: 'ledger_accounts',
      what: 'The sums of an account',
      why: 'The books',
      kept: 'for good',
      columns: [],
      whose: 'id = any(:accounts)',
      erasure: { stays: 'the books need it, and it names nobody' },
    },
    {
      table: 'ledger_transfers',
      what: 'Movements of an account’s money, with notes of the server and reasons of operators',
      why: 'The books',
      kept: 'for good',
      columns: ['note'],
      whose: OF_ACCOUNT,
      erasure: { stays: 'the books need it; a reason of an operator cannot hold an address' },
    },
  ],
};
