/** The first page: for a buyer, a builder and a seller, what is here for each, with one call and its answer beside it. */
import type { Service } from '../service/define.ts';
import { exampleAnswerOf } from '../service/example-answer.ts';
import { trialOf } from './capabilities.ts';
import { type DiscoveryContext, firstService, priceRange } from './context.ts';
import type { Groups } from './groups.ts';
import type { Guides } from './guides.ts';
import { asMarkup } from './page-frame.ts';
import { answersJson } from './read-answer.ts';
import { CATALOG_PAGE, GUIDES_PAGE } from './readable.ts';
import { curlOf } from './recipe.ts';
import { dollars, durationWords, mppWords, percentWords, x402Words } from './shown-words.ts';

const MOST_SHOWN = 6;
/** Lines of an answer that the first screen has room for. */
const MOST_LINES = 7;
/** The guide for somebody who has an API. */
const SELLERS_GUIDE = 'your-own-api';

export const HOME_TITLE = 'Single HTTP calls for software agents';

/** The main part of the page. */
export function homeMain(context: DiscoveryContext, groups: Groups, guides: Guides): string {
  return [
    hero(context),
    doors(context, guides),
    services(context, groups),
    ways(context),
    steps(context),
    PROMISES,
  ].join('\n');
}

function hero(context: DiscoveryContext): string {
  const { shop, trial } = context;
  const shown = shownService(context);
  return `<section class="hero">
<div>
<h1>One call,<br>one fare.</h1>
<p class="lead">${asMarkup(shop.name)} sells single HTTP calls to software agents, paid by key, card or wallet. There is no subscription, and a call that brings no answer costs nothing.</p>
<div class="actions"><a class="button" href="${CATALOG_PAGE}">See the services</a>${trial === null ? '' : '<button type="button" id="get-trial" class="secondary">Get a trial key</button>'}</div>
<div id="trial" aria-live="polite"></div>
</div>
${shown === null ? '' : exampleOf(shown, context)}
${figuresLine(context)}
</section>`;
}

/** The service whose call is shown: one that says what it sells, with an answer that can be read. */
function shownService(context: DiscoveryContext): Service | null {
  const first = firstService(context);
  const fitting = context.services.filter(
    (service) =>
      service.featured &&
      service.effect === 'read' &&
      service.path !== first?.path &&
      answersJson(service) &&
      context.availability(service).available,
  );
  const lines = (service: Service) => JSON.stringify(exampleAnswerOf(service), null, 2).split('\n').length;
  return fitting.toSorted((a, b) => lines(a) - lines(b)).at(Math.floor(fitting.length / 2)) ?? first;
}

function exampleOf(service: Service, context: DiscoveryContext): string {
  const page = `/docs/${asMarkup(service.path)}`;
  const body = answersJson(service)
    ? `<p class="caption">The form of its answer, with placeholders for values</p>\n<pre tabindex="0" aria-label="The form of the answer"><code>${asMarkup(shortened(service))}</code></pre>`
    : '';
  return `<div class="example">
<p class="caption"><a href="${page}">${asMarkup(service.name)}</a><span class="price">${dollars(service.priceUsd)}</span></p>
<div class="code" data-copy="the call"><pre tabindex="0" aria-label="A call"><code>${asMarkup(curlOf(service, context))}</code></pre></div>
${body}
</div>`;
}

function shortened(service: Service): string {
  const lines = JSON.stringify({ success: true, ...exampleAnswerOf(service) }, null, 2).split('\n');
  return lines.length <= MOST_LINES
    ? lines.join('\n')
    : [...lines.slice(0, MOST_LINES - 2), '  …', '}'].join('\n');
}

function figuresLine(context: DiscoveryContext): string {
  const sold = context.services.filter((service) => context.availability(service).available);
  const range = priceRange(sold);
  const day = context.figures.ofAll();
  const figures = [
    `${sold.length} for sale now`,
    ...(range === null ? [] : [`${dollars(range.minUsd)} to ${dollars(range.maxUsd)} a call`]),
    ...(day === null
      ? []
      : [`${durationWords(day.medianMs)} median`, `${percentWords(day)} answered in the last 24 hours`]),
  ];
  return `<p class="counts">${figures.map((each) => `<span>${each}</span>`).join(' ')}</p>`;
}

/** One way in for each who may come. */
function doors(context: DiscoveryContext, { list }: Guides): string {
  const hasGuide = (name: string) => list.some((guide) => guide.name === name);
  const buy = context.cardCheckout
    ? '<a class="button secondary" href="/keys#buy">Buy credit</a>'
    : '<a class="button secondary" href="/pricing">See the prices</a>';
  const door = (title: string, text: string, action: string) =>
    `<li><h2>${title}</h2><p>${text}</p><p class="way">${action}</p></li>`;
  return `<section aria-label="For whom">
<ul class="doors">
${[
  door(
    'Buy a call',
    'Give your agent a key with a few dollars. It buys what it needs, one call at a time, under a cap that you set.',
    buy,
  ),
  door(
    'Build an agent',
    'One POST, JSON in and out. OpenAPI, MCP and llms.txt are rendered from the same list; a wallet can pay without an account.',
    '<a class="button secondary" href="#first-call">First call</a>',
  ),
  ...(hasGuide(SELLERS_GUIDE)
    ? [
        door(
          'Sell your API',
          'Put this fare box before an API of yours, by a file: keys, cards, x402 and MPP, with books that balance. No change to your code.',
          `<a class="button secondary" href="${GUIDES_PAGE}/${SELLERS_GUIDE}">Sell by the call</a>`,
        ),
      ]
    : []),
].join('\n')}
</ul>
</section>`;
}

/** Services of different groups, those that are featured first. */
function services(context: DiscoveryContext, groups: Groups): string {
  const sold = context.services.filter((service) => context.availability(service).available);
  if (sold.length === 0) return '';
  const names = groups.among(sold);
  const ofGroups = names.flatMap((group) => {
    const inGroup = sold.filter((each) => groups.of(each) === group);
    return inGroup.find(({ featured }) => featured) ?? inGroup[0] ?? [];
  });
  const items = ofGroups.slice(0, MOST_SHOWN).map((service) => {
    const day = context.figures.of(service.path);
    const figures = day === null ? '' : ` · ${durationWords(day.medianMs)} · ${percentWords(day)} answered`;
    return `<li><a href="/docs/${asMarkup(service.path)}"><span class="name">${asMarkup(service.name)}</span><span class="price">${dollars(service.priceUsd)}</span><span class="about">${asMarkup(service.summary)}</span><span class="group-name">${asMarkup(groups.of(service))}${figures}</span></a></li>`;
  });
  const pills = names.map(
    (group) =>
      `<a class="pill" href="${CATALOG_PAGE}?group=${encodeURIComponent(group)}">${asMarkup(group)}</a>`,
  );
  return `<section aria-labelledby="services-title">
<h2 id="services-title">Services</h2>
<nav class="pills" aria-label="Groups of services">${pills.join('\n')}</nav>
<ul class="entries">${items.join('\n')}</ul>
<p><a href="${CATALOG_PAGE}">All ${context.services.length} services</a></p>
</section>`;
}

/** The ways to pay that this server knows, beside each other. */
function ways(context: DiscoveryContext): string {
  const [x402, mpp] = [x402Words(context), mppWords(context)];
  const trial = trialOf(context);
  const key = [
    ...(trial === null ? [] : [`a trial of ${dollars(trial.creditsUsd)}`]),
    ...(context.cardCheckout ? ['a card'] : []),
  ];
  const state = (isOn: boolean) =>
    isOn ? '<span class="badge good">on</span>' : '<span class="badge">not offered here</span>';
  const cells = (label: string, ...texts: string[]) =>
    `<tr><th scope="row">${label}</th>${texts.map((text) => `<td>${text}</td>`).join('')}</tr>`;
  return `<section aria-labelledby="ways-title">
<h2 id="ways-title">Three ways to pay</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Ways to pay">
<table class="ways">
<thead><tr><td></td><th scope="col">A key with credit ${state(true)}</th><th scope="col">A wallet, by x402 ${state(x402 !== null)}</th><th scope="col">A wallet, by MPP ${state(mpp !== null)}</th></tr></thead>
<tbody>
${cells('Needs', 'a key in <code>X-API-KEY</code>', 'a wallet that signs the terms of the <code>402</code>', 'a wallet that pays the challenge of the <code>402</code>')}
${cells('Paid with', key.length === 0 ? 'credit from the operator' : `${key.join(' or ')}`, x402 ?? 'USDC', mpp ?? 'a stablecoin')}
${cells('Good for', 'a first try, and people who set a budget', 'agents that hold USDC and want no account', 'agents that speak the Machine Payments Protocol')}
${cells('Where', '<code>/x402/</code>', '<code>/x402/</code>, an open protocol over HTTP', '<code>/mpp/</code>')}
</tbody>
</table>
</div>
</section>`;
}

/** From nothing to an answer, in three commands. */
function steps(context: DiscoveryContext): string {
  const first = firstService(context);
  if (first === null) return '';
  const trial = trialOf(context);
  const { baseUrl, product } = context;
  const get =
    trial === null
      ? context.cardCheckout
        ? `# A person pays on the page of checkoutUrl.\ncurl -sS -X POST ${baseUrl}/api/m2m/credits/checkout/session \\\n  -H 'Content-Type: application/json' -d '${JSON.stringify({ amountUsd: context.tiers[0]?.amountUsd })}'`
        : null
      : `curl -sS ${trial.endpoint}`;
  const code = [
    ...(get === null ? [] : [get]),
    `export ${product.toUpperCase()}_API_KEY=fbx_live_…`,
    curlOf(first, context),
  ].join('\n\n');
  const terms =
    trial === null
      ? ''
      : `The trial key holds ${dollars(trial.creditsUsd)} for ${trial.lifetimeDays} days. ${trial.terms} `;
  return `<section id="first-call" aria-labelledby="steps-title">
<h2 id="steps-title">First call</h2>
<p class="soft">${asMarkup(terms)}${asMarkup(first.summary)} It costs ${dollars(first.priceUsd)}. A wallet needs no key: <a href="/docs/${asMarkup(first.path)}#code">the page of each service</a> has a program that pays from one.</p>
<div class="code" data-copy="the commands"><pre tabindex="0" aria-label="The commands of a first call"><code>${asMarkup(code)}</code></pre></div>
</section>`;
}

const PROMISES = `<section aria-labelledby="promises-title">
<h2 id="promises-title">What you can count on</h2>
<ul class="promises">
<li><h3>No answer, no charge</h3><p>The price is reserved before the call runs, and charged only with a 2xx answer. Any other answer releases it.</p></li>
<li><h3>Nothing is made up</h3><p>Each answer lists its sources, their time and the method. An unknown value is null, with the reason.</p></li>
<li><h3>One price everywhere</h3><p>The catalog, the 402, OpenAPI and these pages read their prices from one list.</p></li>
<li><h3>Down means not for sale</h3><p>When a source fails, its services answer 503 and charge nothing.</p></li>
</ul>
</section>`;
