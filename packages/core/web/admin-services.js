import { act } from './admin-act.js';
import { ask } from './admin-session.js';
import { badge, code, recordsTable, usd } from './admin-tables.js';
import { el, notice } from './dom.js';
import { moment } from './moments.js';

/**
 * The services that the shop ships with: how each is sold, and by whose word; which version is in force where.
 *
 * @param {{ did: (text: string|null) => void }} page
 */
export async function servicesView(page) {
  const [found, { versions }] = await Promise.all([ask('services'), ask('stock/versions')]);
  return el(
    'div',
    {},
    el('h1', { tabindex: '-1' }, 'Services'),
    refusalOf(found),
    versionsOf(found),
    servicesTable(found.services, page),
    historyTable(versions),
  );
}

function refusalOf({ refused, fileName }) {
  if (refused === null) return null;
  const what = refused.version === null ? fileName : `Version ${refused.version}`;
  return notice('bad', `${what} is refused here, and what was sold before is still sold: ${refused.reason}`);
}

function versionsOf({ inForce, newest, replicas }) {
  return recordsTable({
    caption: `Versions in force (the newest: file ${newest.file ?? 'none'}, operators ${newest.rules ?? 'none'})`,
    rows: replicas,
    none: `Version ${inForce.file ?? 'none'} of the file and ${inForce.rules ?? 'none'} of the operators are in force here.`,
    columns: [
      { label: 'Process', of: ({ replica }) => replica },
      { label: 'Machine', of: ({ host }) => code(host) },
      { label: 'File', of: ({ file }) => file },
      { label: 'Operators', of: ({ rules }) => rules },
      { label: 'Refuses', of: ({ refused }) => (refused === null ? null : (refused.version ?? 'its file')) },
      { label: 'Why', of: ({ refused }) => refused?.reason ?? null },
    ],
  });
}

function servicesTable(services, page) {
  return recordsTable({
    caption: 'What the shop ships with',
    rows: services,
    none: 'The shop ships with no services.',
    columns: [
      { label: 'Service', of: ({ service }) => code(service) },
      {
        label: 'Price',
        number: true,
        of: ({ inForce }) => (inForce.available ? usd(inForce.price) : badge('off sale')),
      },
      { label: 'By default', number: true, of: ({ byDefault }) => usd(byDefault.price) },
      { label: 'Set by', of: ({ byFile, byOperator }) => setBy(byFile, byOperator) },
      {
        label: 'Cost',
        number: true,
        of: ({ margin }) => `${usd(margin.costUsd)}${margin.costFrom === 'measured' ? ' measured' : ''}`,
      },
      {
        label: 'Margin',
        number: true,
        of: ({ margin }) =>
          margin.marginUsd === null ? null : `${usd(margin.marginUsd)} (${margin.marginPercent}%)`,
      },
      {
        label: 'Fresh answers an hour',
        number: true,
        of: ({ supply }) =>
          supply === null ? null : `${supply.answersPerHour.toLocaleString('en')} (${supply.source})`,
      },
      { label: 'MPP', of: ({ inForce }) => (inForce.mpp === true ? 'yes' : null) },
      { label: 'Change', of: (each) => changesOf(each, page) },
    ],
  });
}

/** The rules of the file and of the operators for a service, each where there is one; the operators' word wins. */
function setBy(byFile, byOperator) {
  const said = [
    ['file', byFile],
    ['operator', byOperator],
  ].filter(([, rule]) => rule !== null);
  return said.length === 0
    ? null
    : el('span', {}, ...said.map(([who, rule]) => el('div', {}, `${who}: ${wordsOf(rule)}`)));
}

/** A rule in words. */
function wordsOf({ price, available, mpp }) {
  return [
    ...(price === undefined ? [] : [usd(price)]),
    ...(available === undefined ? [] : [available ? 'on sale' : 'off sale']),
    ...(mpp === undefined ? [] : [mpp ? 'by MPP' : 'not by MPP']),
  ].join(', ');
}

function changesOf({ service, byOperator, inForce, byDefault }, page) {
  const button = (label, wanted) =>
    el(
      'button',
      {
        type: 'button',
        class: 'secondary small',
        onclick: async () => {
          const answer = await act({ path: `services/${service}`, confirm: label, ...wanted });
          if (answer !== null) page.did(`${service} is sold as you said.`);
        },
      },
      label,
    );
  const off = inForce.available;
  return el(
    'span',
    { class: 'actions' },
    button('Price', {
      title: `The price of ${service}`,
      text: `By default ${usd(byDefault.price)}. Terms that were named in the last minutes are still honoured.`,
      amount: {
        field: 'price',
        label: 'Price in USD',
        hint: 'Of one call, with at most six places.',
        value: inForce.price ?? '',
      },
    }),
    button(off ? 'Take off sale' : 'Sell', {
      title: off ? `Take ${service} off sale` : `Sell ${service}`,
      text: off ? 'Nobody can buy it any more. What was bought is still delivered.' : 'Everybody can buy it.',
      danger: off,
      body: { available: !off },
    }),
    off ? mppButton(button, service, inForce.mpp === true) : null,
    ...(byOperator === null
      ? []
      : [
          button('Take back', {
            title: `Sell ${service} as before`,
            text: 'What operators set for it ends: the file decides, and where it says nothing, the default.',
            body: { price: null, available: null, mpp: null },
          }),
        ]),
  );
}

/** Whether MPP buys it too, while it is on sale at all. */
function mppButton(button, service, isSold) {
  return button(isSold ? 'Not by MPP' : 'By MPP', {
    title: isSold ? `Sell ${service} no more by MPP` : `Sell ${service} by MPP too`,
    text: isSold
      ? 'Keys and x402 still buy it. What was bought by MPP is still delivered.'
      : 'MPP buys it at its address below /mpp/, where this server takes MPP.',
    danger: isSold,
    body: { mpp: !isSold },
  });
}

function historyTable(versions) {
  return recordsTable({
    caption: 'History',
    rows: versions,
    none: 'Nothing was ever changed.',
    columns: [
      { label: 'Version', of: ({ version }) => version },
      { label: 'When', of: ({ at }) => moment(at) },
      { label: 'Of', of: ({ kind }) => (kind === 'file' ? 'the file' : 'the operators') },
      { label: 'By', of: ({ by }) => by },
      { label: 'Reason', of: ({ reason }) => reason },
      { label: 'SHA-256', of: ({ sha256 }) => code(sha256.slice(0, 12)) },
    ],
  });
}
