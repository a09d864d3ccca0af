/** A balance that refills itself, in words, and the form that changes it. */
import { formatUsd } from './amount.js';
import { byId, el, notice } from './dom.js';
import { forgetProblems, tellRefusal } from './field-problems.js';
import { momentWords } from './moments.js';

/** Why it is off, for the owner of the card. What is not listed is a code of the card's bank. */
const OFF_BECAUSE = {
  owner: 'You switched it off.',
  dispute: 'A payment by this card is disputed.',
  refund: 'A payment by this card was refunded.',
  card_detached: 'The card was taken back from the card provider.',
  declined_too_often: 'The card has declined too often.',
  no_active_key: 'There is no key left that a charge would be for.',
  authentication_required: 'The bank wants its customer to confirm each charge, which nobody is there to do.',
  expired_card: 'The card has expired.',
  insufficient_funds: 'The card kept declining for want of funds.',
};

/** What one that is due waits for. */
const WAITS_FOR = {
  decline: 'The card declined, and nothing was taken.',
  spacing: 'The last charge was less than a minute ago.',
  daily_limit: 'The limit of a day is reached.',
  thaw: 'The key is frozen, and a frozen key is not topped up.',
};

/**
 * How it stands, in sentences.
 *
 * @param {object} view `autoRecharge` of GET /api/keys/me
 * @returns {{ tone: string, badge: string, sentences: string[] }}
 */
function rechargeInWords(view) {
  if (view.how !== undefined) {
    const how =
      'No card is kept for this key. To refill it automatically, buy credit for it below and keep the card.';
    return { tone: 'plain', badge: 'off', sentences: [how] };
  }
  const card = view.card ?? 'the card';
  const rule = `${capital(card)} is charged ${formatUsd(view.topUpUsd)} when the balance falls below ${formatUsd(view.thresholdUsd)}.`;
  const limit = `${view.chargesToday} of at most ${view.maxChargesPerDay} charges in the last 24 hours.`;
  switch (view.state) {
    case 'off':
      return {
        tone: view.disabledReason === 'owner' ? 'plain' : 'bad',
        badge: 'off',
        sentences: [
          OFF_BECAUSE[view.disabledReason] ?? `The card was declined: ${words(view.disabledReason)}.`,
          view.card === null
            ? 'This card must not be charged again. To use another one, buy credit below and keep the card.'
            : `${view.chargeUnderWay === null ? 'Nothing is charged. ' : ''}Calls are paid from the balance until it is used up. ${capital(card)} is still kept.`,
          ...(view.chargeUnderWay === null
            ? []
            : [
                `A charge of ${formatUsd(view.chargeUnderWay.amountUsd)} is under way. ${view.chargeUnderWay.note}`,
              ]),
        ],
      };
    case 'charging':
      return {
        tone: 'warn',
        badge: 'charging',
        sentences: [
          `The balance is low, and ${card} is being charged ${formatUsd(view.topUpUsd)}. It is charged once, even when the answer is slow.`,
        ],
      };
    case 'due':
      return {
        tone: 'warn',
        badge: 'waiting',
        sentences: [
          WAITS_FOR[view.waitingFor] ?? 'The balance is low.',
          `The next attempt is ${whenInWords(view.nextAttemptAt)}. ${limit}`,
        ],
      };
    default:
      return { tone: 'good', badge: 'on', sentences: [rule, limit, ...lastCharge(view)] };
  }
}

/** How it stands, in the line of the setting. */
function lineOf(view) {
  if (view.how !== undefined) return 'off';
  if (view.state === 'off') return 'off';
  return `${view.state === 'charging' ? 'charging' : 'on'}: ${formatUsd(view.topUpUsd)} below ${formatUsd(view.thresholdUsd)}`;
}

/** What the card's owner agreed to, and who hears of charges. */
function consentInWords({ agreed, email, alsoTold }) {
  const most = `${formatUsd(agreed.topUpUsd)} below ${formatUsd(agreed.thresholdUsd)}, and ${formatUsd(agreed.perDayUsd)} in 24 hours`;
  return [
    `The card’s owner agreed to at most ${most}. For more, buy credit below and keep the card.`,
    ...(email === null ? [] : [`Mail about it goes to ${email}.`]),
    ...alsoTold.map((former) => `${former.email} hears of each charge until ${momentWords(former.until)}.`),
  ];
}

function lastCharge({ lastChargedAt }) {
  return lastChargedAt === null ? [] : [`Last charged ${momentWords(lastChargedAt)}.`];
}

/**
 * Shows it in the key page's section.
 *
 * @param {object} view `autoRecharge` of GET /api/keys/me
 * @param {(change: object) => Promise<void>} change sends `autoRecharge` of PATCH /api/keys/me; throws what may be shown
 */
export function showRecharge(view, change) {
  const { tone, badge, sentences } = rechargeInWords(view);
  byId('recharge-line').textContent = lineOf(view);
  byId('recharge-state').replaceChildren(
    el('span', { class: `badge ${tone}` }, badge),
    ...sentences.map((sentence) => el('p', {}, sentence)),
    ...(view.how === undefined ? consentInWords(view).map((text) => el('p', { class: 'soft' }, text)) : []),
  );
  const isKept = view.how === undefined;
  const form = byId('recharge-form');
  form.hidden = !isKept;
  if (!isKept) return;
  byId('recharge-below').value = plain(view.thresholdUsd);
  byId('recharge-top-up').value = plain(view.topUpUsd);
  const toggle = byId('recharge-toggle');
  toggle.textContent = view.enabled ? 'Switch off' : 'Switch on again';
  toggle.hidden = !view.enabled && view.card === null;
  form.onsubmit = (event) => {
    event.preventDefault();
    void say(change({ thresholdUsd: amountOf('recharge-below'), topUpUsd: amountOf('recharge-top-up') }));
  };
  toggle.onclick = () => void say(change({ enabled: !view.enabled }));
}

async function say(changing) {
  const outcome = byId('recharge-message');
  outcome.replaceChildren();
  forgetProblems(byId('recharge-form'));
  try {
    await changing;
    outcome.replaceChildren(notice('good', 'Saved.'));
  } catch (error) {
    if (!tellRefusal(error, { thresholdUsd: 'recharge-below', topUpUsd: 'recharge-top-up' }))
      outcome.replaceChildren(notice('bad', error.message));
  }
}

function amountOf(id) {
  return byId(id).value.trim().replace(/^\$/, '');
}

function plain(usd) {
  return formatUsd(usd).replace(/[$,]/g, '');
}

function whenInWords(iso) {
  return iso === null || Date.parse(iso) <= Date.now() ? 'at once' : momentWords(iso);
}

/** A code such as `do_not_honor`, as words. */
function words(code) {
  return String(code).replaceAll('_', ' ');
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
