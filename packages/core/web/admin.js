import { accountView } from './admin-account.js';
import { accountingView } from './admin-accounting.js';
import { actsTable } from './admin-act.js';
import { callView, findIn, findView } from './admin-find.js';
import { keysView } from './admin-keys.js';
import { operatorsView } from './admin-operators.js';
import { overviewView } from './admin-overview.js';
import { servicesView } from './admin-services.js';
import { ask, Refusal, rememberedToken, rememberToken, waysIn } from './admin-session.js';
import { code } from './admin-tables.js';
import { byId, el, notice, SHOP } from './dom.js';

const form = byId('token-form');
const input = byId('token');
const message = byId('message');
const view = byId('view');
const views = byId('views');
const leave = byId('leave');
const desk = byId('desk');
const provider = byId('provider');
const tokensOff = byId('tokens-off');

/** How operators sign in here. */
let ways = { provider: null, token: true, session: false, problem: null };

/** Who acts, and what can be done; null while nobody is let in. */
let session = null;
/** Counts what was opened, so that a slow answer does not cover a later one. */
let opened = 0;

const page = {
  tell: (tone, text) => message.replaceChildren(notice(tone, text)),
  again: () => void show({ quietly: true }),
  did(text) {
    if (text !== null) page.tell('good', text);
    page.again();
  },
  async goOn({ actId }) {
    try {
      await ask(`acts/${actId}/go-on`, {});
      page.tell('good', 'The action is done.');
    } catch (error) {
      page.tell('bad', error.message);
    }
    page.again();
  },
};

const VIEWS = {
  overview: () => overviewView({ ...page, actor: session.actor }),
  find: () => findView(),
  keys: () => keysView(),
  services: () => servicesView(page),
  audit: () => auditView(),
  accounting: () => accountingView(),
  operators: () => operatorsView({ ...page, session }),
};

/** @param {{ quietly?: boolean }} how quietly: the same view again, so the focus stays where it is */
async function show({ quietly = false } = {}) {
  if (session === null) return;
  const name = location.hash.slice(1) || 'overview';
  const [, accountId, orderId] = /^account-(\d{1,19})(?:-order-([\w-]{1,36}))?$/.exec(name) ?? [];
  const at = ++opened;
  const from = document.activeElement;
  for (const link of views.querySelectorAll('a')) {
    const current = link.hash === `#${name}` || (accountId !== undefined && link.hash === '#keys');
    if (current) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (!quietly) message.replaceChildren();
  view.setAttribute('aria-busy', 'true');
  try {
    const shown = await shownOf(name, accountId);
    if (at !== opened) return;
    const focused = quietly && view.contains(document.activeElement) ? document.activeElement.id : '';
    view.replaceChildren(shown);
    document.title = `${view.querySelector('h1')?.textContent ?? 'Admin'} · Admin · ${SHOP}`;
    // Whoever has gone on to the box above meanwhile types there.
    if (document.activeElement !== from && document.activeElement !== document.body) return;
    // What had the focus may be there again under its name; if not, the view's own heading takes it.
    const order = orderId === undefined ? null : document.getElementById(`order-${orderId}`);
    if (order !== null && !quietly) {
      order.scrollIntoView({ block: 'center' });
      order.focus({ preventScroll: true });
      return;
    }
    const next = focused === '' ? view.querySelector('h1') : document.getElementById(focused);
    if (!quietly || document.activeElement === document.body) next?.focus({ preventScroll: true });
  } catch (error) {
    if (at !== opened) return;
    if (error instanceof Refusal && error.status === 401) return close();
    page.tell('bad', error.message);
    if (!quietly) view.replaceChildren();
  } finally {
    if (at === opened) view.removeAttribute('aria-busy');
  }
}

/** What an address within the page leads to. */
function shownOf(name, accountId) {
  if (accountId !== undefined) return accountView(accountId, { ...page, cards: session.cards });
  const [, callId, of] = /^call-([\da-f-]{36})(?:-of-(\d{1,19}))?$/.exec(name) ?? [];
  if (callId !== undefined) return callView(callId, of, page);
  return (VIEWS[name] ?? VIEWS.overview)();
}

/** Every action, the newest first. */
async function auditView() {
  const list = el('div', {});
  const more = async (after) => {
    const found = await ask(`acts${after === null ? '' : `?after=${after}`}`);
    const [last] = found.acts;
    if (after === null && last !== undefined)
      list.append(
        el('p', { class: 'soft' }, `Digest of action ${last.number}, the last one: `, code(last.sha256)),
      );
    list.append(actsTable(after === null ? 'Newest first' : 'Older actions', found.acts, page.goOn));
    if (found.after === null) return;
    const button = el('button', { type: 'button', class: 'secondary' }, 'Older actions');
    button.addEventListener('click', async () => {
      button.remove();
      await more(found.after).catch((error) => page.tell('bad', error.message));
    });
    list.append(button);
  };
  await more(null);
  return el('div', {}, el('h1', { tabindex: '-1' }, 'Audit log'), list);
}

/** Lets in whoever is signed in; else shows how to sign in. */
async function open() {
  const [, problem = null] = /^#sign-in-([A-Z_]{1,40})$/.exec(location.hash) ?? [];
  try {
    ways = await waysIn(problem);
  } catch (error) {
    close({ forget: false });
    page.tell('bad', error.message);
    return;
  }
  if (problem !== null) {
    history.replaceState(null, '', location.pathname);
    page.tell('bad', ways.problem ?? 'The sign-in did not hold. Sign in again.');
  }
  if (rememberedToken() === '' && !ways.session) return close();
  try {
    session = await ask('session');
  } catch (error) {
    const isOver = error instanceof Refusal && (error.status === 401 || error.status === 403);
    close({ forget: isOver });
    if (problem === null) page.tell('bad', error.message);
    return;
  }
  for (const each of [form, provider, tokensOff, byId('closed-title')]) each.hidden = true;
  input.value = '';
  byId('actor').textContent = `signed in as ${session.actor}, role ${session.role}`;
  for (const each of [views, view, desk]) each.hidden = false;
  await show();
}

function close({ forget = true } = {}) {
  session = null;
  opened += 1;
  if (forget) rememberToken('');
  byId('actor').textContent = '';
  view.replaceChildren();
  for (const each of [views, view, desk]) each.hidden = true;
  byId('closed-title').hidden = false;
  provider.hidden = ways.provider === null;
  byId('provider-hint').textContent = `At ${ways.provider}, which tells this server who you are.`;
  form.hidden = !ways.token;
  tokensOff.hidden = ways.token || ways.provider === null;
  byId('token-emergency').hidden = ways.provider === null;
  byId('token-submit').className = ways.provider === null ? '' : 'secondary';
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  rememberToken(input.value.trim());
  message.replaceChildren();
  void open();
});

leave.addEventListener('click', async () => {
  const byToken = session.by === 'token';
  try {
    if (!byToken) await ask('sign-out', {});
  } catch (error) {
    // A session that is over needs no end; any other one is still there.
    if (!(error instanceof Refusal && error.status === 401)) return page.tell('bad', error.message);
  }
  close();
  page.tell(
    'plain',
    byToken
      ? 'You are signed out: this tab has forgotten your token.'
      : 'You are signed out here. At the provider you may still be signed in.',
  );
  (byToken ? input : byId('provider-link')).focus();
});

byId('find-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const isNamed = findIn(byId('find-query'));
  if (location.hash === '#find') void show();
  else if (isNamed) location.hash = '#find';
});

window.addEventListener('hashchange', () => void show());

await open();
