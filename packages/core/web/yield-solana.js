import { formatUsd } from './amount.js';
import { el, failed, notice } from './dom.js';
import { whileBusy } from './post.js';
import {
  carryOut,
  forgetDeposit,
  keptDeposit,
  leave,
  prepareDeposit,
  prepareExit,
  rebuildDeposit,
} from './solana-moves.js';
import { priorityChoice, priorityNotice } from './solana-priority.js';
import { refundsOf } from './solana-refunds.js';
import { connectSolanaWallet, watchSolanaWallets } from './solana-wallet.js';
import { askSolana, isNotOffered } from './yield-api.js';
import { amountFigure, figure, percent, riskOf } from './yield-figures.js';
import { daysInWords, showOffer } from './yield-offers.js';

/** Rates, positions, deposits and exits of the Solana portal. Its part of the page is made here, where it is offered. */
export async function showSolana(place) {
  try {
    const [rates, stats] = await Promise.all(['rates', 'stats'].map((path) => askSolana(path)));
    const view = portalView();
    view.figures.replaceChildren(...figuresOf(rates, stats));
    view.fees.textContent = feesText(rates);
    view.risk.textContent = riskOf(rates.daysToEarnBackFees);
    place.replaceChildren(...view.parts);
    showOffer('solana', offerOf(rates, stats));
    listen(view);
    return true;
  } catch (error) {
    showOffer('solana', null);
    if (isNotOffered(error)) return false;
    place.replaceChildren(
      el(
        'section',
        {},
        el('h2', {}, 'On Solana'),
        failed(error.message, () => showSolana(place)),
      ),
    );
    return true;
  }
}

/** Of hundreds of millions nobody reads the cents. */
function wholeDollars(usd) {
  return formatUsd(usd.replace(/\..*$/, '')).replace(/\.00$/, '');
}

function figuresOf({ usdc }, { stats }) {
  return [
    figure('APY now, after the performance fee', percent(usdc.netApyPct), 'main'),
    figure('Lent and to be lent', wholeDollars(stats.tvlUsdc)),
    figure('Utilization', percent(stats.utilizationPct, 1)),
    figure('Can be paid out now', wholeDollars(stats.availableUsdc)),
  ];
}

/** What is told of it beside the other offer. */
function offerOf({ usdc, fees, daysToEarnBackFees }, { stats }) {
  return {
    apy: percent(usdc.netApyPct),
    fees: `${fees.depositPct}% in, ${fees.withdrawalPct}% out`,
    earnedBack: daysInWords(usdc.apyPct === null ? null : daysToEarnBackFees),
    paidOut: wholeDollars(stats.availableUsdc),
  };
}

function feesText({ usdc, fees, daysToEarnBackFees: days }) {
  const { depositPct, withdrawalPct, performancePct } = fees;
  const said = `A deposit costs ${depositPct}%, a withdrawal ${withdrawalPct}%, and ${performancePct}% of the yield are taken on the way out.`;
  if (usdc.apyPct === null) return `${said} ${usdc.reason}`;
  if (days === null) return said;
  return `${said} At the current rate both fees are earned back after ${days} days: whoever leaves sooner gets less than they brought.`;
}

function portalView() {
  const part = (tag, attributes, ...children) => el(tag, attributes, ...children);
  const view = {
    figures: part('dl', { class: 'figures balances' }),
    fees: part('p', { class: 'soft' }),
    risk: part('p', { class: 'notice warn' }),
    wallet: part('input', { id: 'solana-wallet', spellcheck: 'false', required: true, maxlength: '44' }),
    position: part('div', { 'aria-live': 'polite' }),
    unfinished: part('div', { 'aria-live': 'polite' }),
    connect: part('div', { class: 'actions' }),
    account: part('code'),
    amount: part('input', { id: 'solana-amount', inputmode: 'decimal', required: true, value: '100' }),
    part: part('input', { id: 'solana-part', inputmode: 'decimal', required: true, value: '50' }),
    priority: priorityChoice(),
    all: part('button', { type: 'button', class: 'secondary' }, 'Withdraw all'),
    message: part('div', { 'aria-live': 'polite' }),
    steps: part('ol', { class: 'steps', 'aria-live': 'polite' }),
  };
  view.look = part(
    'form',
    { class: 'key-form', autocomplete: 'off' },
    part('label', { for: 'solana-wallet' }, 'Solana wallet'),
    part('div', { class: 'row' }, view.wallet, part('button', { type: 'submit' }, 'Look at it')),
    part('p', { class: 'hint' }, 'Anybody can look at any wallet: all of it stands on the chain.'),
  );
  view.deposit = amountForm('solana-amount', 'USDC to deposit', view.amount, 'Deposit on Solana');
  view.withdraw = amountForm('solana-part', 'USDC to withdraw', view.part, 'Withdraw this');
  view.acts = part(
    'div',
    { hidden: true },
    part('p', { class: 'soft' }, 'Connected: ', view.account),
    view.priority.parts,
    view.unfinished,
    view.deposit,
    view.withdraw,
    part('div', { class: 'actions' }, view.all),
  );
  view.parts = [
    section(
      'On Solana: a lending reserve',
      el(
        'p',
        {},
        'Your USDC goes into the reserve of a lending protocol, and its receipt tokens into your own wallet. The wallet signs each transaction.',
      ),
      view.figures,
      view.fees,
    ),
    section('Your position on Solana', view.look, view.position),
    section(
      'Deposit or leave on Solana',
      el('span', { id: 'solana-act' }),
      view.risk,
      view.connect,
      view.acts,
      view.message,
      view.steps,
    ),
  ];
  return view;
}

function section(title, ...children) {
  return el('section', { 'aria-label': title }, el('h2', {}, title), ...children);
}

function amountForm(id, label, input, act) {
  return el(
    'form',
    { class: 'caps', autocomplete: 'off' },
    el('div', { class: 'field' }, el('label', { for: id }, label), input),
    el('button', { type: 'submit' }, act),
  );
}

function listen(view) {
  let connected = null;

  async function showPosition(wallet) {
    try {
      view.position.replaceChildren(...(await positionParts(wallet)));
    } catch (error) {
      view.position.replaceChildren(notice('bad', error.message));
    }
  }

  /** Does something with the wallet, each step with its state, and shows what it came to. */
  const act = (button, work) =>
    whileBusy(button, async () => {
      view.steps.replaceChildren();
      view.message.replaceChildren();
      try {
        view.message.append(...(await work(stepList(view.steps))));
      } catch (error) {
        view.message.append(notice('bad', error.message));
      }
      showUnfinished();
      await showPosition(connected.account.address);
    });

  /** Says what is amiss and what the chain gets, before the wallet asks its owner. @returns whether there is more to do */
  function introduce({ warnings, stops, priorityFee }) {
    view.message.append(...warnings.map(({ message }) => notice('warn', message)));
    if (!stops) view.message.append(priorityNotice(priorityFee));
    return !stops;
  }

  const finish = (deposit) => async (tell) => [notice('good', await carryOut(connected, deposit, tell))];

  /** What is still to be sent of a deposit may have been priced too low to land: it gets the price of now. */
  const finishAnew = (kept) => async (tell) => {
    if (kept.signatures.length === kept.transactions.length) return finish(kept)(tell);
    const { deposit, priorityFee } = await rebuildDeposit(kept, view.priority.asked());
    view.message.append(priorityNotice(priorityFee));
    return finish(deposit)(tell);
  };

  /** A deposit that this browser began and did not end. */
  function showUnfinished() {
    const deposit = keptDeposit(connected.account.address);
    view.unfinished.replaceChildren(
      ...(deposit === null ? [] : [unfinishedNotice(deposit, act, finishAnew)]),
    );
  }

  async function connect(wallet) {
    try {
      connected = { wallet, account: await connectSolanaWallet(wallet) };
      const { address } = connected.account;
      view.account.textContent = address;
      view.acts.hidden = false;
      view.connect.replaceChildren();
      view.message.replaceChildren();
      view.wallet.value = address;
      showUnfinished();
      await showPosition(address);
    } catch (error) {
      view.message.replaceChildren(notice('bad', String(error?.message ?? error).slice(0, 300)));
    }
  }

  view.look.addEventListener('submit', (event) => {
    event.preventDefault();
    void showPosition(view.wallet.value.trim());
  });
  view.deposit.addEventListener('submit', (event) => {
    event.preventDefault();
    void act(event.submitter, async (tell) => {
      const prepared = await prepareDeposit(connected, view.amount.value.trim(), view.priority.asked());
      return introduce(prepared) ? finish(prepared.deposit)(tell) : [];
    });
  });
  const withdraw = (button, sent) =>
    act(button, async (tell) => {
      const exit = await prepareExit(connected, { ...sent, priority: view.priority.asked() });
      return introduce(exit) ? [notice('good', await leave(connected, exit, tell))] : [];
    });
  view.withdraw.addEventListener('submit', (event) => {
    event.preventDefault();
    void withdraw(event.submitter, { amount_usdc: view.part.value.trim() });
  });
  view.all.addEventListener('click', () => void withdraw(view.all, { amount: 'MAX' }));
  watchSolanaWallets((wallets) => {
    if (connected === null) view.connect.replaceChildren(...connectButtons(wallets, connect));
  });
}

function connectButtons(wallets, connect) {
  if (wallets.length === 0)
    return [
      el(
        'p',
        { class: 'soft' },
        'This browser shows no wallet for Solana. With one you deposit and leave here.',
      ),
    ];
  return wallets.map((wallet) => {
    const button = el('button', { type: 'button' }, `Connect ${String(wallet.name).slice(0, 40)}`);
    button.addEventListener('click', () => whileBusy(button, () => connect(wallet)));
    return button;
  });
}

/** Where each step says how far it is. */
function stepList(list) {
  const rows = [];
  return (index, name, kind, text) => {
    if (rows[index] === undefined) {
      const state = el('span', {});
      rows[index] = state;
      list.append(el('li', {}, el('strong', {}, name), el('br'), state));
    }
    rows[index].className = `state ${kind}`;
    rows[index].textContent = text;
  };
}

function unfinishedNotice(deposit, act, finish) {
  const on = el('button', { type: 'button' }, 'Finish the deposit');
  const off = el('button', { type: 'button', class: 'secondary' }, 'Give it up');
  on.addEventListener('click', () => void act(on, finish(deposit)));
  off.addEventListener(
    'click',
    () =>
      void act(off, async () => {
        forgetDeposit(deposit.wallet);
        return [
          notice(
            'plain',
            'A fee that was paid without its deposit is found by this server and due back to your wallet.',
          ),
        ];
      }),
  );
  return notice(
    'warn',
    el(
      'p',
      {},
      `A deposit of ${formatUsd(deposit.amountUsdc)} is not finished: its fee was sent, and the deposit itself is still to come. It costs no second fee.`,
    ),
    el('div', { class: 'actions' }, on, off),
  );
}

async function positionParts(wallet) {
  const [{ position, next_action }, refunds] = await Promise.all([
    askSolana(`position/${encodeURIComponent(wallet)}`),
    refundsOf(wallet),
  ]);
  const { leavingNow } = position;
  return [
    el(
      'dl',
      { class: 'figures' },
      amountFigure('Worth now', position.currentValueUsdc),
      amountFigure('Deposited', position.depositedUsdc),
      amountFigure('Yield', position.estimatedYieldUsdc),
      amountFigure('You would receive now', leavingNow.receivesUsdc),
    ),
    ...position.notes.map((note) => el('p', { class: 'soft' }, note)),
    ...next_action.map(({ description }) => el('p', { class: 'soft' }, description)),
    ...refunds,
  ];
}
