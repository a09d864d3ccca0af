import type { PersonalData } from '../words/personal-data.ts';

const THEIR_ORDERS = 'lower(email) = :email or account_id = any(:accounts)';
const OF_ACCOUNT = 'account_id = any(:accounts)';

export const CARD_PEOPLE: PersonalData = {
  known: ['select account_id, email from card_orders', 'select account_id, email from auto_recharges'],
  addresses: [
    `select former ->> 'email' as email from auto_recharges, jsonb_array_elements(former_addresses) former`,
  ],
  customers: [
    `select customer_id as customer from card_orders where ${THEIR_ORDERS}`,
    `select customer_id as customer from auto_recharges where ${THEIR_ORDERS}`,
  ],
  obstacles: [
    {
      despite: null,
      sql: `select id from card_orders where (${THEIR_ORDERS}) and state = 0`,
      say: ({ id }) => `The card order ${id} may still be paid: wait until it ends, within a day.`,
    },
    {
      despite: null,
      sql: `select id from card_orders where (${THEIR_ORDERS}) and disputed_micros > 0 and dispute <> 'lost'`,
      say: ({ id }) =>
        `The payment of the card order ${id} is in dispute: wait until the card provider has decided.`,
    },
    {
      despite: null,
      sql: `select order_id from reversal_walks where ${OF_ACCOUNT}`,
      say: ({ order_id: id }) =>
        `What went back of the card order ${id} is being taken from its keys: wait a minute.`,
    },
    {
      despite: 'debt',
      sql: `select account_id, owed_micros::numeric / 1000000 as usd from account_debts where ${OF_ACCOUNT} and owed_micros > 0`,
      say: ({ account_id: id, usd }) =>
        `Account ${id} owes ${Number(usd)} USD, of which nobody could remind them any more: have it paid first.`,
    },
  ],
  tables: [
    {
      table: 'key_links',
      what: 'Mailed links to a new key, as SHA-256',
      why: 'Whoever lost a key gets another',
      kept: 'a day',
      columns: ['token_digest'],
      whose: `order_id in (select id from card_orders where ${THEIR_ORDERS})`,
      erasure: { rows: 'deleted' },
      withheld: ['token_digest'],
    },
    {
      table: 'auto_recharges',
      what: 'A kept card: its last digits, the provider’s names of it and of its customer, and whom charges are told',
      why: 'The account is recharged by it',
      kept: 'until the account has none; without the card once it is switched off',
      columns: [
        'customer_id',
        'payment_method_id',
        'card_label',
        'card_fingerprint',
        'email',
        'former_addresses',
      ],
      whose: THEIR_ORDERS,
      erasure: { rows: 'deleted' },
    },
    {
      table: 'auto_recharges',
      what: 'Addresses that charges of somebody else’s card are still told, because it was theirs before',
      why: 'Nobody moves the mail of a stolen key away unseen',
      kept: '30 days after the move',
      columns: ['former_addresses'],
      whose: `exists (select 1 from jsonb_array_elements(former_addresses) f where lower(f ->> 'email') = :email)`,
      erasure: {
        set: {
          former_addresses: `(select coalesce(jsonb_agg(f), '[]') from jsonb_array_elements(former_addresses) f
            where lower(f ->> 'email') <> :email)`,
        },
        words: 'the address goes',
      },
      withheld: [
        'customer_id',
        'payment_method_id',
        'card_label',
        'card_fingerprint',
        'email',
        'former_addresses',
      ],
    },
    {
      table: 'card_orders',
      what: 'A purchase by card: mail address, name of the key, brand and last four digits of the card, the provider’s names of customer and card, HMAC of the caller’s address',
      why: 'The payment is granted once, and card testing and disputes are recognized',
      kept: 'for good; one that nobody tried to pay for `UNPAID_ORDER_RETENTION_DAYS`',
      columns: [
        ...['key_prefix', 'key_digest', 'token_digest', 'key_name', 'email', 'request_digest', 'session_id'],
        ...['session_url', 'payment_intent_id', 'customer_id', 'payment_method_id', 'card_fingerprint'],
        ...['card_brand', 'card_last4', 'address_digest', 'site_digest', 'page_seal'],
      ],
      whose: THEIR_ORDERS,
      erasure: {
        set: {
          erased_at: 'coalesce(erased_at, :now)',
          email: 'null',
          key_name: 'null',
          request_digest: 'null',
          session_url: 'null',
          customer_id: 'null',
          payment_method_id: 'null',
          card_brand: 'null',
          card_last4: 'null',
          card_fingerprint: 'case when dispute is null then null else card_fingerprint end',
          address_digest: 'null',
          site_digest: 'null',
        },
        words:
          'amounts, times and the provider’s names of the payment stay; of one that was ever in dispute the name of the card too',
      },
      withheld: [
        'key_lookup',
        'key_digest',
        'token_digest',
        'request_digest',
        'address_digest',
        'site_digest',
        'page_seal',
      ],
    },
  ],
};
