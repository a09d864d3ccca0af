import { formatMicros, formatUsd } from './amount.js';
import { loadCapabilities, loadCatalog, priceOf } from './catalog.js';
import { byId, codeBlock, el, failed } from './dom.js';
import { trialKeyOffer } from './trial-key.js';
import { offerWebTools } from './web-tools.js';

/** Puts a command into the place that the page keeps for it. */
function showCode(name, text, label) {
  const place = document.querySelector(`[data-code="${name}"]`);
  place.replaceChildren(...codeBlock(text, label).childNodes);
}

function showFigures(catalog) {
  const prices = catalog.services.map((entry) => BigInt(entry.priceMicro)).sort((a, b) => (a < b ? -1 : 1));
  const range = prices.length === 0 ? '—' : `${formatMicros(prices[0])} – ${formatMicros(prices.at(-1))}`;
  byId('total').textContent = String(catalog.totalServices);
  byId('available').textContent = String(catalog.availableServices);
  byId('range').textContent = range;
  byId('figures').removeAttribute('aria-busy');
}

/** Says of each way to pay whether this server offers it, and where. */
function showWays({ authModes }) {
  const wayOf = (name) => authModes.find(({ mode }) => mode === name);
  const listed = (names) => [...new Set(names)].join(', ');
  const x402 = wayOf('x402_onchain');
  const mpp = wayOf('mpp');
  const ways = {
    'by-key': 'Offered here',
    'by-x402': x402 && `Offered here: USDC on ${listed(x402.networks.map(({ name }) => name))}`,
    'by-mpp':
      mpp &&
      `Offered here: ${listed(mpp.methods.map(({ method, symbol }) => (symbol ? `${symbol} by ${method}` : method)))}`,
  };
  for (const [id, text] of Object.entries(ways)) {
    byId(id).textContent = text ?? 'Not offered here';
    byId(id).classList.toggle('off', text === undefined);
  }
  byId('by-wallet').hidden = x402 === undefined && mpp === undefined;
}

function showSteps(catalog, { authModes }) {
  const credits = authModes.find(({ mode }) => mode === 'api_key');
  const trial = credits?.obtain.free_trial ?? null;
  const checkout = credits?.obtain.hosted_checkout ?? null;
  byId('step-key').hidden = trial === null && checkout === null;
  byId('or').hidden = trial === null || checkout === null;
  byId('option-trial').hidden = trial === null;
  byId('option-card').hidden = checkout === null;
  showCode('export', 'export FAREBOX_API_KEY=fbx_live_…', 'the command that sets the key');
  if (trial !== null) {
    byId('trial-terms').textContent =
      `${formatUsd(trial.creditsUsd)} of credit for ${trial.lifetimeDays} days. ${trial.terms}`;
    showCode('trial', `curl -sS ${trial.endpoint}`, 'the command for a trial key');
    byId('trial').replaceChildren(
      trialKeyOffer((key) => {
        showCode('export', `export FAREBOX_API_KEY=${key}`, 'the command that sets the key');
      }),
    );
  }
  if (checkout !== null) {
    byId('card-terms').textContent = credits.obtain.direct_card?.newCustomers.rule ?? '';
    const body = JSON.stringify({ amountUsd: credits.tiers[0].amountUsd });
    const lines = [
      `curl -sS -X POST ${checkout.endpoint}`,
      `  -H 'Content-Type: application/json'`,
      `  -d '${body}'`,
    ];
    showCode('checkout', lines.join(' \\\n'), 'the command for a payment page');
  }
  byId('step-call').hidden = !credits?.firstCall;
  if (credits?.firstCall) {
    const { description, price_usd: priceUsd, curl } = credits.firstCall;
    byId('call-text').textContent = `${description} It costs ${formatUsd(String(priceUsd))}.`;
    showCode('call', curl, 'the command for a first call');
  }
  if (catalog.quickStart !== null) byId('service-page').href = `/docs/${catalog.quickStart.service}`;
  showCode('catalog', `curl -sS ${catalog.catalogUrl}`, 'the command for the catalog');
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

async function show() {
  try {
    const [catalog, capabilities] = await Promise.all([loadCatalog(), loadCapabilities()]);
    showFigures(catalog);
    showWays(capabilities);
    showSteps(catalog, capabilities);
    const entries = featured(catalog);
    byId('featured').replaceChildren(...entries);
    byId('featured-section').hidden = entries.length === 0;
    byId('problem').replaceChildren();
  } catch {
    byId('problem').replaceChildren(failed('The prices and commands could not be loaded.', show));
  }
}

await show();
void offerWebTools();
