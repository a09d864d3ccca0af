/** The catalog as a page: every service with its price and its last day, chosen by what stands in the address. */
import type { Service } from '../service/define.ts';
import type { DiscoveryContext } from './context.ts';
import type { Groups } from './groups.ts';
import { priceWords } from './own-address.ts';
import { asMarkup } from './page-frame.ts';
import { CATALOG_PAGE, type CatalogView, inView, waysToPay } from './readable.ts';
import { durationWords, percentWords } from './shown-words.ts';

const MOST_WORDS_CHARACTERS = 200;
const WAYS = ['key', 'x402', 'MPP'];
const EXAMPLES = ['price', 'weather', 'wallet'];
const SORTS = ['price', 'median', 'answered'] as const;
const WHOLE: CatalogView = { words: '', group: '', pays: '', sort: '', all: false };

/** The services, and the groups that they stand in. */
export interface Catalog {
  context: DiscoveryContext;
  groups: Groups;
}

/** The view that a query asks for. What it does not know counts as nothing. */
export function readCatalogView(query: unknown, { context, groups }: Catalog): CatalogView {
  const textOf = (value: unknown) => (typeof value === 'string' ? value : '');
  const { q, group, pays, sort, all } = Object(query) as Record<string, unknown>;
  const asked = textOf(group);
  const isKnown = context.services.some((each) => groups.of(each) === asked || each.tag === asked);
  return {
    words: textOf(q).trim().slice(0, MOST_WORDS_CHARACTERS),
    group: isKnown ? asked : '',
    pays: WAYS.find((way) => way === pays) ?? '',
    sort: SORTS.find((each) => each === sort) ?? '',
    all: all === '1',
  };
}

/** The address of a view. */
function addressOf({ words, group, pays, sort, all }: CatalogView): string {
  const query = new URLSearchParams();
  if (words !== '') query.set('q', words);
  if (group !== '') query.set('group', group);
  if (pays !== '') query.set('pays', pays);
  if (sort !== '') query.set('sort', sort);
  if (all) query.set('all', '1');
  return query.size === 0 ? CATALOG_PAGE : `${CATALOG_PAGE}?${query}`;
}

/** The main part of the page. */
export function catalogMain(catalog: Catalog, view: CatalogView): string {
  const shown = sorted(inView(catalog, view), catalog, view);
  const resting = inView(catalog, { ...view, all: true }).length - shown.length;
  return [
    '<h1>Services</h1>',
    '<p class="lead">Each is one HTTP call with its price. A call that brings no answer costs nothing.</p>',
    searchForm(view),
    pills(catalog, view),
    `<p class="faint" role="status">${shown.length === 1 ? '1 service' : `${shown.length} services`}${view.words === '' ? '' : ` for “${asMarkup(view.words)}”`}</p>`,
    shown.length === 0 ? nothingFound(view) : tableOf(shown, catalog, view),
    resting === 0
      ? ''
      : `<p><a href="${asMarkup(addressOf({ ...view, all: true }))}">Show ${resting} more that cannot be sold now</a></p>`,
  ].join('\n');
}

/** The services in the order that the address asks for; else the best first, or by groups. */
function sorted(
  services: readonly Service[],
  { context, groups }: Catalog,
  { sort, words }: CatalogView,
): readonly Service[] {
  const figuresOf = ({ path }: Service) => context.figures.of(path);
  const last = Number.POSITIVE_INFINITY;
  const rankings: Readonly<Record<string, (service: Service) => number>> = {
    price: ({ priceUsd }) => Number(priceUsd),
    median: (service) => figuresOf(service)?.medianMs ?? last,
    answered: (service) => -(figuresOf(service)?.answeredPercent ?? -1),
  };
  const order = groups.among(services);
  const ranking = rankings[sort] ?? (words === '' ? (each: Service) => order.indexOf(groups.of(each)) : null);
  return ranking === null ? services : services.toSorted((a, b) => byRank(ranking(a), ranking(b)));
}

function byRank(a: number, b: number): number {
  return a === b ? 0 : a - b;
}

/** Sent by a script alone, as every form is: without one there are the links below it. */
function searchForm({ words }: CatalogView): string {
  return `<form id="search" class="catalog-search" role="search"><label for="q">Find a service</label><div class="row"><input id="q" name="q" type="search" autocomplete="off" maxlength="${MOST_WORDS_CHARACTERS}" placeholder="price, weather, wallet …" value="${asMarkup(words)}"><button type="submit">Find</button></div></form>`;
}

function pills({ context, groups }: Catalog, view: CatalogView): string {
  const pill = (label: string, to: CatalogView, isCurrent: boolean) =>
    `<a class="pill" href="${asMarkup(addressOf(to))}"${isCurrent ? ' aria-current="true"' : ''}>${label}</a>`;
  const { services } = context;
  const countOf = (group: string) =>
    services.filter((each) => groups.of(each) === group && (view.all || context.availability(each).available))
      .length;
  const named = groups.among(services).filter((group) => countOf(group) > 0 || group === view.group);
  const ways = WAYS.filter((way) => services.some((each) => waysToPay(each, context).includes(way)));
  return [
    '<nav class="pills" aria-label="Groups">',
    pill('All', { ...view, group: '' }, view.group === ''),
    ...named.map((group) =>
      pill(
        `${asMarkup(group)} <span class="faint">${countOf(group)}</span>`,
        { ...view, group },
        view.group === group,
      ),
    ),
    '</nav>',
    '<nav class="pills" aria-label="Ways to pay">',
    pill('Any way to pay', { ...view, pays: '' }, view.pays === ''),
    ...ways.map((pays) => pill(pays, { ...view, pays }, view.pays === pays)),
    '</nav>',
  ].join('\n');
}

function tableOf(services: readonly Service[], catalog: Catalog, view: CatalogView): string {
  const { context } = catalog;
  const measured = services.some(({ path }) => context.figures.of(path) !== null);
  const rows = services.map((service) => rowOf(service, context, measured));
  const head = (label: string, sort: CatalogView['sort'], kind = 'number') => {
    const isCurrent = view.sort === sort;
    const to = asMarkup(addressOf({ ...view, sort: isCurrent ? '' : sort }));
    return `<th scope="col" class="${kind}"${isCurrent ? ` aria-sort="${sort === 'answered' ? 'descending' : 'ascending'}"` : ''}><a href="${to}">${label}</a></th>`;
  };
  const figures = measured
    ? head('Median', 'median', 'number figure') + head('Answered', 'answered', 'number figure')
    : '';
  return [
    `<table class="catalog"><thead><tr><th scope="col">Service</th>${head('Price', 'price')}${figures}<th scope="col" class="pays">Paid by</th></tr></thead><tbody>`,
    ...rows,
    '</tbody></table>',
    measured
      ? '<p class="faint">Median and answered are of the last 24 hours. A call that failed by its buyer’s own fault is not counted; “new” had fewer than 20 calls.</p>'
      : '',
  ].join('\n');
}

function rowOf(service: Service, context: DiscoveryContext, measured: boolean): string {
  const { available } = context.availability(service);
  const state = available ? '' : ' <span class="badge warn">not for sale now</span>';
  const figures = context.figures.of(service.path);
  const [median, answered] =
    figures === null
      ? ['<span class="faint">new</span>', '']
      : [durationWords(figures.medianMs), percentWords(figures)];
  const columns = measured
    ? `<td class="number figure">${median}</td><td class="number figure">${answered}</td>`
    : '';
  const onPhone = figures === null ? '' : `<p class="day">${median} · ${answered}</p>`;
  return `<tr><th scope="row"><a href="/docs/${asMarkup(service.path)}">${asMarkup(service.name)}</a>${state}<p class="about">${asMarkup(service.summary)}</p>${onPhone}</th><td class="number price">$${asMarkup(priceWords(service))}</td>${columns}<td class="pays">${waysToPay(service, context).join(', ')}</td></tr>`;
}

function nothingFound(view: CatalogView): string {
  const links = EXAMPLES.map((words) => `<a href="${addressOf({ ...WHOLE, words })}">${words}</a>`);
  const what = view.words === '' ? 'No service matches.' : `No service matches “${asMarkup(view.words)}”.`;
  return `<p>${what} Try ${links.join(', ')}, or <a href="${CATALOG_PAGE}">see all</a>.</p>`;
}
