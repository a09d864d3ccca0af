import { ask } from './admin-session.js';
import { badge, recordsTable } from './admin-tables.js';
import { el, notice } from './dom.js';
import { moment } from './moments.js';

/** How the official pages of laws stand, in a few words. */
export function lawPagesWords({ isOn, pages, changed, unreadable, unsteady, notRead }) {
  if (!isOn) return 'not read: LAW_PAGES_BASE_URL is none';
  const parts = [
    [changed, 'changed'],
    [unreadable, 'not readable'],
    [unsteady, 'unsteady'],
    [notRead, 'not read yet'],
  ];
  const told = parts.filter(([count]) => count > 0).map(([count, words]) => `${count} ${words}`);
  return told.length === 0 ? `${pages} read, none changed` : `${told.join(', ')} of ${pages}`;
}

/** The list of the pages, which is asked for when somebody wants it. */
export function lawPagesSection({ rulesAsOf }) {
  const button = el('button', { type: 'button', class: 'secondary small' }, 'List the pages');
  button.addEventListener('click', async () => {
    button.disabled = true;
    try {
      button.replaceWith(pagesTable((await ask('law-pages')).pages));
    } catch (error) {
      button.replaceWith(notice('bad', error.message));
    }
  });
  return el(
    'div',
    {},
    el('p', { class: 'soft' }, `The rules that lead to these pages were last written on ${rulesAsOf}.`),
    button,
  );
}

function pagesTable(pages) {
  return recordsTable({
    caption: 'Official pages that the rules of compliance-consultation lead to',
    rows: pages,
    none: 'No rule leads to a page.',
    columns: [
      { label: 'Page', of: ({ url }) => el('a', { href: url, rel: 'noreferrer' }, new URL(url).hostname) },
      { label: 'Rules', of: ({ rules }) => rules.join(', ') },
      { label: 'State', of: ({ state }) => badge(state) },
      { label: 'Changed', of: ({ changedAt }) => moment(changedAt) },
      { label: 'Last read', of: ({ lastReadAt }) => moment(lastReadAt) },
      { label: 'Not readable', of: troubleOf },
    ],
  });
}

function troubleOf({ unreadableSince, failure }) {
  return unreadableSince === null ? null : el('span', {}, 'since ', moment(unreadableSince), `: ${failure}`);
}
