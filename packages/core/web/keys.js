import { formatUsd, microsOf } from './amount.js';
import { showRecharge } from './auto-recharge.js';
import { offerCredit, offerCreditFor } from './buy-credit.js';
import { loadCapabilities } from './catalog.js';
import { byId, codeBlock, el, notice } from './dom.js';
import { forgetProblems, tellAtFields, tellRefusal } from './field-problems.js';
import { rememberedKey, rememberKey } from './key-session.js';
import { standingNotices } from './key-standing.js';
import { spendingView } from './spending-chart.js';
import { freshKey, trialKeyOffer } from './trial-key.js';
import { offerWebTools } from './web-tools.js';
import { showWebhooks } from './webhooks.js';

const form = byId('key-form');
const input = byId('key');
const message = byId('message');
const board = byId('board');
const main = byId('main');

/** One request about the key. Answers the body, or throws an `Error` that may be shown, with the `fields` that are wrong. */
async function ask(method, path, body) {
  let response;
  try {
    response = await fetch(path, {
      method,
      cache: 'no-store',
      headers: {
        'x-api-key': rememberedKey(),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch {
    throw new Error('The server could not be reached.');
  }
  const answer = response.status === 204 ? {} : await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const error = new Error(answer.message ?? `The server answered ${response.status}.`);
  throw Object.assign(error, { fields: answer.fields, status: response.status });
}

async function showKey() {
  forgetProblems(form);
  if (rememberedKey() === '') {
    showBoard(false);
    offerCreditFor(null);
    return;
  }
  try {
    render(await ask('GET', '/api/keys/me'));
    showBoard(true);
    message.replaceChildren();
  } catch (error) {
    showBoard(false);
    offerCreditFor(null);
    const isUnknown = error.status === 401;
    message.replaceChildren(...(isUnknown ? [] : [notice('bad', error.message)]));
    if (isUnknown) tellAtFields({ key: unknownKey(rememberedKey(), error.message) });
  }
}

/** With a key open, what it has comes first; the box for another one is a button away. */
function showBoard(isOpen) {
  board.hidden = !isOpen;
  main.classList.toggle('open', isOpen);
  for (const each of [form, byId('lead'), byId('trial')]) each.hidden = isOpen;
}

const KEY_CHARACTERS = 73;

/** Why a key cannot be opened: most often a part of it is missing. */
function unknownKey(key, refusal) {
  return key.length === KEY_CHARACTERS
    ? refusal
    : `This key is not known here. A whole one has ${KEY_CHARACTERS} characters; this has ${key.length}.`;
}

function render(key) {
  offerCreditFor(key.keyPrefix);
  byId('prefix').textContent = `${key.keyPrefix}…`;
  byId('label').textContent = [
    key.label,
    KINDS[key.kind] ?? key.kind,
    key.status === 'active' ? null : key.status,
  ]
    .filter(Boolean)
    .join(' · ');
  byId('available').textContent = formatUsd(key.availableUsd);
  byId('balances').replaceChildren(
    figure('Reserved', formatUsd(key.reservedUsd)),
    figure('Spent today', formatUsd(key.spentTodayUsd)),
    figure('Spent in all', formatUsd(key.spentUsd)),
    figure('Expires', expiryInWords(key.expiresAt)),
  );
  byId('standing').replaceChildren(...standingNotices(key));
  showRecharge(key.autoRecharge, async (autoRecharge) => {
    render(await ask('PATCH', '/api/keys/me', { autoRecharge }));
  });
  byId('spending').replaceChildren(spendingView(key.spending));
  byId('caps-line').textContent = capsLine(key.caps);
  byId('per-call').value = plain(key.caps.perCallUsd);
  byId('per-day').value = plain(key.caps.perDayUsd);
  void showWebhooks(key.kind === 'trial' ? null : ask);
}

/** Its caps, in the line of the setting. */
function capsLine({ perCallUsd, perDayUsd }) {
  const set = [
    perCallUsd === null ? null : `${formatUsd(perCallUsd)} a call`,
    perDayUsd === null ? null : `${formatUsd(perDayUsd)} a day`,
  ].filter(Boolean);
  return set.length === 0 ? 'none' : set.join(', ');
}

const KINDS = { trial: 'trial key', paid: 'paid key', grant: 'granted key' };

function figure(label, value) {
  return el('div', {}, el('dt', {}, label), el('dd', {}, value));
}

function plain(usd) {
  return usd === null ? '' : formatUsd(usd).replace(/[$,]/g, '');
}

function expiryInWords(expiresAt) {
  if (expiresAt === null) return 'never';
  const leftMs = Date.parse(expiresAt) - Date.now();
  if (leftMs <= 0) return 'expired';
  const hours = Math.floor(leftMs / 3_600_000);
  if (hours >= 48) return `in ${Math.floor(hours / 24)} days`;
  return hours >= 1 ? `in ${hours} h` : 'within the hour';
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  rememberKey(input.value.trim());
  void showKey();
});

byId('forget').addEventListener('click', () => {
  rememberKey('');
  input.value = '';
  message.replaceChildren();
  void showKey();
});

byId('another').addEventListener('click', () => {
  form.hidden = false;
  input.value = '';
  input.focus();
});

byId('refresh').addEventListener('click', () => void showKey());

byId('caps-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const outcome = byId('caps-message');
  outcome.replaceChildren();
  forgetProblems(event.currentTarget);
  const caps = { perCallUsd: amountIn('per-call'), perDayUsd: amountIn('per-day') };
  const wrong = { 'per-call': caps.perCallUsd, 'per-day': caps.perDayUsd };
  const problems = Object.entries(wrong).flatMap(([id, text]) =>
    text === null || isAmount(text) ? [] : [[id, `“${text}” is not an amount in USD.`]],
  );
  if (problems.length > 0) return tellAtFields(Object.fromEntries(problems));
  try {
    render(await ask('PATCH', '/api/keys/me', { caps }));
    outcome.replaceChildren(notice('good', 'Saved.'));
  } catch (error) {
    if (!tellRefusal(error, { perCallUsd: 'per-call', perDayUsd: 'per-day' }))
      outcome.replaceChildren(notice('bad', error.message));
  }
});

/** What a box for an amount says; null when it is empty. */
function amountIn(id) {
  const text = byId(id).value.trim().replace(/^\$/, '');
  return text === '' ? null : text;
}

function isAmount(text) {
  try {
    return microsOf(text) >= 0n;
  } catch {
    return false;
  }
}

/** Opens a dialog that asks before something that cannot be undone. */
function confirmThen(dialogId, act) {
  const dialog = byId(dialogId);
  dialog.returnValue = '';
  dialog.showModal();
  dialog.addEventListener(
    'close',
    async () => {
      if (dialog.returnValue !== 'yes') return;
      try {
        await act();
      } catch (error) {
        message.replaceChildren(notice('bad', error.message));
      }
    },
    { once: true },
  );
}

for (const button of document.querySelectorAll('dialog button')) {
  button.addEventListener('click', () => button.closest('dialog').close(button.value));
}

byId('rotate').addEventListener('click', () =>
  confirmThen('rotate-dialog', async () => {
    const { apiKey } = await ask('POST', '/api/keys/me/rotate');
    rememberKey(apiKey);
    input.value = apiKey;
    await showKey();
    message.replaceChildren(freshKey(apiKey, 'Your new key. The old one no longer works.'));
  }),
);

byId('revoke').addEventListener('click', () =>
  confirmThen('revoke-dialog', async () => {
    await ask('DELETE', '/api/keys/me');
    rememberKey('');
    input.value = '';
    await showKey();
    message.replaceChildren(notice('good', 'The key is revoked. It will never pay for a call again.'));
  }),
);

input.value = rememberedKey();
await showKey();
const capabilities = await loadCapabilities().catch(() => null);
const credits = capabilities?.authModes.find(({ mode }) => mode === 'api_key');

function haveKey(key) {
  input.value = key;
  void showKey();
}

if (credits?.obtain.free_trial) byId('trial').replaceChildren(trialKeyOffer(haveKey));
if (credits?.obtain.hosted_checkout) {
  offerCredit(credits.tiers, haveKey);
  const walletsPay = capabilities.authModes.some(({ mode }) => mode === 'x402_onchain');
  byId('agent-ways').replaceChildren(...waysForAgents(credits.obtain, walletsPay));
  byId('buy').hidden = false;
  byId('to-buy').hidden = false;
  byId('recharge').hidden = false;
  // It was hidden when the browser looked for it.
  if (location.hash === '#buy') byId('buy').scrollIntoView();
}

/** How a program gets credit, with the request to send. */
function waysForAgents({ hosted_checkout: checkout, direct_card: direct }, walletsPay) {
  const json = "-H 'Content-Type: application/json'";
  const way = (text, command) => el('li', {}, el('p', {}, text), codeBlock(command, 'the command'));
  const ways = [
    way(
      'A new key that a person pays for: the answer has a page for the person, and where to fetch the key.',
      `curl -sS -X POST ${checkout.endpoint} ${json} -d '{"amountUsd":10}'`,
    ),
  ];
  if (direct !== null) {
    ways.push(
      way(
        'Credit for the key that is sent along, from a card that the card provider knows by this name. No person is needed. A new UUID names each purchase: keep it secret. ' +
          direct.newCustomers.rule,
        `curl -sS -X POST ${direct.endpoint} -H "X-API-KEY: $KEY" ${json} -d '{"paymentMethodId":"pm_…","amountUsd":10,"idempotencyKey":"…"}'`,
      ),
    );
  }
  if (walletsPay) {
    ways.push(
      way(
        'Credit for the key that is sent along, in USDC: the answer is a 402 with the terms, which an x402 wallet signs.',
        `curl -sS -X POST ${location.origin}/api/m2m/credits/topup -H "X-API-KEY: $KEY" ${json} -d '{"amountUsd":10}'`,
      ),
    );
  }
  return ways;
}
void offerWebTools();
