import { formatCents } from './amount.js';
import { byId, el, failed, notice } from './dom.js';
import { whileBusy } from './post.js';
import { askYield, isNotOffered } from './yield-api.js';
import { holdingsView, PROTOCOLS, ratesChart } from './yield-chart.js';
import { amountFigure, figure, percent, riskOf } from './yield-figures.js';
import { movesView } from './yield-moves.js';
import { daysInWords, showOffer } from './yield-offers.js';
import { showSolana } from './yield-solana.js';
import { carryOut, connectWallet, lookFor, sentBefore, watchWallets } from './yield-wallet.js';

/** What nobody can go on with all the same: the transaction would fail in the wallet. */
const LACKING = ['INSUFFICIENT_USDC', 'INSUFFICIENT_ETH'];

const UNREAD =
  'One of the protocols cannot be read at the moment. What the vault has there counts as nothing in these figures, deposits are closed, and nothing is redeemed for USDC until it can be read: whoever waits loses nothing by that.';

const message = byId('message');
const walletInput = byId('wallet');
const steps = byId('steps');
const actMessage = byId('act-message');
let connected = null;

async function showVault() {
  const isOffered = await fillVault();
  // Until now it kept the place below it, so that nothing on the screen moves when the figures come.
  document.getElementById('loading')?.remove();
  byId('vault').hidden = !isOffered;
  byId('solana').hidden = false;
}

async function fillVault() {
  try {
    const [rates, stats, manifest, history] = await Promise.all(
      ['rates', 'stats', 'manifest', 'history?days=30'].map(askYield),
    );
    message.replaceChildren();
    if (!stats.stats.everythingReadable) message.append(notice('warn', UNREAD));
    byId('figures').replaceChildren(
      figure('APY now, after the performance fee', percent(manifest.currentAPY), 'main'),
      amountFigure('In the vault', stats.stats.tvlUsdc),
      figure('Price of a share', stats.stats.pricePerShare),
      amountFigure('Can be paid out now', stats.stats.withdrawableNowUsdc),
    );
    showOffer('vault', {
      apy: percent(manifest.currentAPY),
      fees: `${stats.fees.entryFeePct}% in, free out`,
      earnedBack: daysInWords(manifest.daysToEarnBackEntryFee),
      paidOut: formatCents(stats.stats.withdrawableNowUsdc),
    });
    byId('earned-back').textContent = earnedBack(manifest, stats.fees);
    byId('risk').textContent = riskOf(manifest.daysToEarnBackEntryFee);
    byId('rates').replaceChildren(ratesTable(rates, stats));
    byId('rates-chart').replaceChildren(ratesChart(history.points, history.moves));
    byId('moves').replaceChildren(movesView(history.moves));
    byId('where').replaceChildren(holdingsView(stats.stats));
  } catch (error) {
    showOffer('vault', null);
    if (isNotOffered(error)) return false;
    message.replaceChildren(failed(error.message, showVault));
  }
  return true;
}

function earnedBack({ daysToEarnBackEntryFee: days }, { entryFeePct, performanceFeePct }) {
  const fees = `A deposit costs ${entryFeePct}% once, and ${performanceFeePct}% of the yield; leaving is free.`;
  if (days === null) return `${fees} After how many days the entry fee is earned back is not known now.`;
  return `${fees} At the current rate the entry fee is earned back after ${days} days: whoever leaves sooner gets less than they brought.`;
}

function ratesTable({ rates }, { stats, routing }) {
  const takes = (name, status) =>
    name === routing.currentProtocol &&
    status === 'live' &&
    stats.depositsOpen &&
    !routing.leftProtocols.includes(name);
  return el(
    'table',
    { class: 'by-service' },
    el(
      'thead',
      {},
      el(
        'tr',
        {},
        el('th', { scope: 'col' }, 'Protocol'),
        el('th', { scope: 'col', class: 'number' }, 'Gross'),
        el('th', { scope: 'col', class: 'number' }, 'Net'),
      ),
    ),
    el(
      'tbody',
      {},
      ...PROTOCOLS.map(({ name }) => {
        const { protocol, grossApyPercent, netApyPercent, status, reason } = rates[name];
        return el(
          'tr',
          {},
          el(
            'th',
            { scope: 'row' },
            protocol,
            ' ',
            takes(name, status) ? el('span', { class: 'badge good' }, 'takes deposits') : null,
            routing.leftProtocols.includes(name) ? el('span', { class: 'badge warn' }, 'left') : null,
            status === 'live' ? null : el('span', { class: 'badge warn' }, reason ?? status),
          ),
          el('td', { class: 'number' }, percent(grossApyPercent)),
          el('td', { class: 'number' }, percent(netApyPercent)),
        );
      }),
    ),
  );
}

async function showPosition(wallet) {
  const place = byId('position');
  try {
    const { position, next_action } = await askYield(`position/${encodeURIComponent(wallet)}`);
    place.replaceChildren(
      el(
        'dl',
        { class: 'figures' },
        amountFigure('Worth now', position.currentValueUsdc),
        amountFigure('Deposited', position.depositedUsdc),
        amountFigure('Yield after fees', position.netYieldUsdc),
        amountFigure('Gain, entry fee and all', position.gainUsdc),
      ),
      ...notesOf(position).map((note) => el('p', { class: 'soft' }, note)),
      ...next_action.map(({ action, description }) =>
        el('p', { class: 'soft' }, action === 'redeem' ? 'Connect this wallet below to leave.' : description),
      ),
    );
  } catch (error) {
    place.replaceChildren(notice('bad', error.message));
  }
}

/** What is wrong with the figures, and not how they are called in the answer. */
function notesOf({ notes, netYieldUsdc, everythingReadable }) {
  if (netYieldUsdc === null) return notes;
  return everythingReadable ? [] : notes.slice(0, 1);
}

/**
 * Asks for transactions and has them carried out, each step with its state. It stops at every warning of what may cost money.
 *
 * @param {string[]} [accepted] codes of the warnings that somebody has read, and goes on all the same
 */
async function act(button, path, accepted = []) {
  await whileBusy(button, async () => {
    steps.replaceChildren();
    actMessage.replaceChildren();
    try {
      const answer = await askYield(path);
      const stops = answer.warnings.flatMap(({ code, costs }) => (costs ? [code] : []));
      actMessage.replaceChildren(...answer.warnings.map((warning) => notice('warn', warning.message)));
      if (stops.some((code) => LACKING.includes(code))) return;
      if (stops.some((code) => !accepted.includes(code))) {
        actMessage.append(goOnButton(button, path, stops));
        return;
      }
      const rows = answer.steps.map(({ action, note }) => {
        const state = el('span', { class: 'state soft' }, 'waits for its turn');
        steps.append(el('li', {}, el('strong', {}, action), ' ', note, el('br'), state));
        return state;
      });
      await carryOut(connected.provider, connected.account, answer.steps, (index, kind, text) => {
        rows[index].className = `state ${kind}`;
        rows[index].textContent = text;
      });
      actMessage.append(notice('good', 'Done: every transaction is mined.'));
    } catch (error) {
      const instead = error.body?.instead ?? [];
      actMessage.replaceChildren(
        notice('bad', el('p', {}, error.message), ...instead.map((way) => insteadButton(button, way))),
      );
    }
    await Promise.all([showPosition(connected.account), showVault()]);
  });
}

const WAYS = {
  available: 'Take what there is',
  partly: 'Take my part of what can be read, and forfeit the rest',
  'in-kind': 'Take my part of each position',
  'in-kind-partly': 'Give up what is not handed over, and take the rest',
};

function insteadButton(button, { how }) {
  const path = `redeem-tx?wallet=${connected.account}&how=${how}`;
  return el(
    'button',
    { type: 'button', class: 'secondary', onclick: () => void act(button, path) },
    WAYS[how] ?? how,
  );
}

function goOnButton(button, path, accepted) {
  return el(
    'button',
    { type: 'button', class: 'secondary', onclick: () => void act(button, path, accepted) },
    'I have read this: go on all the same',
  );
}

watchWallets((wallets) => {
  if (connected !== null) return;
  const place = byId('connect');
  if (wallets.length === 0) {
    place.replaceChildren(
      el('p', { class: 'soft' }, 'This browser shows no wallet. With one you deposit and leave here.'),
    );
    return;
  }
  place.replaceChildren(
    ...wallets.map(({ name, provider }) => {
      const button = el('button', { type: 'button' }, `Connect ${name}`);
      button.addEventListener('click', () => whileBusy(button, () => connect(provider)));
      return button;
    }),
  );
});

async function connect(provider) {
  try {
    connected = { provider, account: await connectWallet(provider) };
    byId('account').textContent = connected.account;
    byId('acts').hidden = false;
    byId('connect').replaceChildren();
    actMessage.replaceChildren();
    walletInput.value = connected.account;
    await showPosition(connected.account);
    await goOnLooking();
  } catch (error) {
    actMessage.replaceChildren(notice('bad', String(error?.message ?? error).slice(0, 300)));
  }
}

/** A tab that was closed may have left a transaction under way: whoever deposits again now would do it twice. */
async function goOnLooking() {
  const { provider, account } = connected;
  const hash = sentBefore(account);
  if (hash === null) return;
  let told = notice('warn', `This browser sent a transaction that is not mined yet. Wait for it: ${hash}`);
  // What somebody did meanwhile is not written over.
  const tell = (kind, text) => {
    const next = notice(kind, text);
    told.replaceWith(next);
    told = next;
  };
  actMessage.replaceChildren(told);
  try {
    await lookFor(provider, account, hash);
    tell('good', 'The transaction that this browser had sent is mined. Your position shows what came of it.');
  } catch (error) {
    tell('bad', error.message);
  }
  await Promise.all([showPosition(account), showVault()]);
}

byId('wallet-form').addEventListener('submit', (event) => {
  event.preventDefault();
  void showPosition(walletInput.value.trim());
});
byId('deposit-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const amount = encodeURIComponent(byId('amount').value.trim());
  const mode = byId('permit').checked ? 'permit' : 'standard';
  void act(event.submitter, `deposit-tx?recipient=${connected.account}&amount=${amount}&mode=${mode}`);
});
byId('leave').addEventListener('click', ({ currentTarget }) => {
  void act(currentTarget, `redeem-tx?wallet=${connected.account}`);
});
await Promise.all([showVault(), showSolana(byId('solana'))]);
