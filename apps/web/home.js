import { formatMicros, formatUsd } from './amount.js';
import { loadCapabilities, loadCatalog, priceOf } from './catalog.js';
import { byId, codeBlock, el, notice } from './dom.js';
import { trialKeyOffer } from './trial-key.js';

function figures(catalog) {
  const prices = catalog.services.map((entry) => BigInt(entry.priceMicro)).sort((a, b) => (a < b ? -1 : 1));
  const range = prices.length === 0 ? '—' : `${formatMicros(prices[0])} – ${formatMicros(prices.at(-1))}`;
  const figure = (value, label) => el('div', {}, el('dt', {}, label), el('dd', {}, value));
  return [
    figure(String(catalog.totalServices), 'services'),
    figure(String(catalog.availableServices), 'for sale now'),
    figure(range, 'a call'),
  ];
}

function steps(catalog, capabilities) {
  const credits = capabilities.authModes.find(({ mode }) => mode === 'api_key');
  const trial = credits?.obtain.free_trial ?? null;
  const shown = [];
  if (trial !== null) {
    shown.push([
      'Take a key',
      `${formatUsd(trial.creditsUsd)} of credits for ${trial.lifetimeDays} days, free. ${trial.terms}`,
      codeBlock(`curl -sS ${trial.endpoint}`, 'the command for a trial key'),
    ]);
  }
  const checkout = credits?.obtain.hosted_checkout ?? null;
  if (checkout !== null) {
    shown.push([
      trial === null ? 'Buy a key' : 'Or buy one with a card',
      'An agent asks for a page, a person pays on it, and the agent fetches the key. Without an agent, buy on the key page.',
      codeBlock(
        `curl -sS -X POST ${checkout.endpoint} -H 'Content-Type: application/json' -d '{"amountUsd":${credits.tiers[0].amountUsd}}'`,
        'the command for a checkout',
      ),
      el('p', {}, el('a', { href: '/keys#buy' }, 'Buy a key with a card')),
    ]);
  }
  if (credits?.firstCall) {
    shown.push([
      'Buy an answer',
      `${credits.firstCall.description} It costs ${formatUsd(String(credits.firstCall.price_usd))}.`,
      codeBlock(credits.firstCall.curl, 'the command for a first call'),
    ]);
  }
  shown.push([
    'Choose what to call next',
    'The catalog carries the price of every service and says whether it is for sale at this moment.',
    codeBlock(`curl -sS ${catalog.catalogUrl}`, 'the command for the catalog'),
  ]);
  byId('trial').replaceChildren(...(trial === null ? [] : [trialKeyOffer(() => {})]));
  return shown.map(([title, text, ...more]) => el('li', {}, el('h3', {}, title), el('p', {}, text), ...more));
}

function featured(catalog) {
  const entries = catalog.services.filter((entry) => entry.featured && entry.available).slice(0, 8);
  return entries.map((entry) =>
    el(
      'li',
      {},
      el(
        'a',
        { href: `/docs/${entry.id}` },
        el('span', { class: 'name' }, entry.name),
        el('span', { class: 'price' }, priceOf(entry)),
        el('span', { class: 'about' }, entry.description),
      ),
    ),
  );
}

try {
  const [catalog, capabilities] = await Promise.all([loadCatalog(), loadCapabilities()]);
  byId('figures').replaceChildren(...figures(catalog));
  byId('steps').replaceChildren(...steps(catalog, capabilities));
  const entries = featured(catalog);
  byId('featured').replaceChildren(...entries);
  byId('featured-section').hidden = entries.length === 0;
} catch {
  byId('figures').replaceChildren(
    notice('bad', 'The catalog could not be loaded. Reload the page to try again.'),
  );
}
