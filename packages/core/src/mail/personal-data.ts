import type { PersonalData } from '../words/personal-data.ts';

const IS_TO_THEM = 'lower(recipient) = :email';
/** Mail to others may name them, such as when a recharge is told to another address from now on. */
const unnamed = (column: string) =>
  `case when ${IS_TO_THEM} then '' else regexp_replace(${column}, :mention, '[erased]', 'gi') end`;

export const MAIL_PEOPLE: PersonalData = {
  addresses: ['select recipient as email from mails'],
  tables: [
    {
      table: 'mails',
      what: 'Recipient, subject and text of mail that was sent or waits',
      why: 'An outage of the mail server loses none, and none is sent twice',
      kept: '`MAIL_RETENTION_DAYS`; a text that holds a secret until it is sent',
      columns: ['recipient', 'subject', 'body'],
      whose: `${IS_TO_THEM} or lower(subject) ~ :mention or lower(body) ~ :mention`,
      erasure: {
        set: {
          recipient: `case when ${IS_TO_THEM} then '' else recipient end`,
          subject: unnamed('subject'),
          body: unnamed('body'),
          given_up_at: `case when ${IS_TO_THEM} and next_at is not null then :now else given_up_at end`,
          next_at: `case when ${IS_TO_THEM} then null else next_at end`,
        },
        words: 'stays empty; one that waits is not sent; in mail to others the address is taken out',
      },
    },
  ],
};
