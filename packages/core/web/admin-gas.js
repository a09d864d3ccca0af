import { badge, recordsTable, shortened } from './admin-tables.js';
import { chainName } from './chain-names.js';
import { el } from './dom.js';
import { moment } from './moments.js';

const DUTIES = {
  settle: 'settles payments',
  refund: 'sends refunds',
  register: 'registers identities',
  move: 'moves the vault’s funds',
};

/** The keys of ours that pay for transactions, on whichever chain: what they hold, and how long it lasts. */
export function gasSection(gas) {
  return el(
    'div',
    {},
    recordsTable({
      caption: 'Keys that pay for transactions',
      rows: gas,
      none: 'No key of ours pays for transactions.',
      columns: [
        { label: 'Key', of: ({ address }) => shortened(address) },
        { label: 'Does', of: ({ duty }) => DUTIES[duty] },
        { label: 'Network', of: ({ network }) => chainName(network) },
        { label: 'State', of: ({ isAble }) => badge(isAble ? 'able' : 'unable') },
        { label: 'Holds', number: true, of: ({ balance, token }) => amount(balance, token) },
        { label: 'Needs', number: true, of: ({ least, token }) => amount(least, token) },
        { label: 'Spends a day', number: true, of: ({ spentPerDay, token }) => amount(spentPerDay, token) },
        {
          label: 'Days left',
          of: ({ daysLeft, daysUnknown }) => daysLeft?.toLocaleString('en') ?? daysUnknown,
        },
        { label: 'Seen', of: ({ seenAt }) => moment(seenAt) },
        { label: 'Why', of: ({ reason, unableSince }) => why(reason, unableSince) },
      ],
    }),
    gas.some(({ isAble }) => !isAble)
      ? el(
          'p',
          { class: 'soft' },
          'What needs such a key is not offered, unless another one can do it. Fill it, and it is.',
        )
      : null,
  );
}

/** The chains that payments are taken on, and what is wrong there. */
export function railsSection(rails) {
  return el(
    'div',
    {},
    recordsTable({
      caption: 'Chains that payments are taken on',
      rows: rails,
      none: 'No payments are taken on a chain.',
      columns: [
        { label: 'Network', of: ({ network }) => chainName(network) },
        { label: 'State', of: ({ offered }) => badge(offered ? 'able' : 'unable') },
        { label: 'Why', of: ({ reason, since }) => why(reason, since) },
      ],
    }),
  );
}

function amount(whole, token) {
  return whole === null ? null : `${Number(Number(whole).toPrecision(6))} ${token}`;
}

function why(reason, unableSince) {
  return reason === null ? null : el('span', {}, reason, ', since ', moment(unableSince));
}
