/** The catalog as a page: every service with its price, chosen by what stands in the address. */
import type { Service } from '../service/define.ts';
import type { DiscoveryContext } from './context.ts';
import { priceWords } from './own-address.ts';
import { asMarkup } from './page-frame.ts';
import { CATALOG_PAGE, type CatalogView, inView, waysToPay } from './readable.ts';

const MOST_WORDS_CHARACTERS = 200;
const WAYS = ['key', 'x402', 'MPP'];
const EXAMPLES = ['price', 'weather', 'wallet'];

/** The view that a query asks for. What it does not know counts as nothing. */
export function readCatalogView(query: unknown, { services }: DiscoveryContext): CatalogView {
  const textOf = (value: unknown) => (typeof value === 'string' ? value : '');
  const { q, group, pays, all } = Object(query) as Record<string, unknown>;
  const tag = textOf(group);
  return {
    words: textOf(q).trim().slice(0, MOST_WORDS_CHARACTERS),
    group: services.some((service) => service.tag === tag) ? tag : '',
    pays: WAYS.find((way) => way === pays) ?? '',
    all: all === '1',
  };
}

/** The address of a view. */
function addressOf({ words, group, pays, all }: CatalogView): string {
  const query = new URLSearchParams();
  if (words !== '') query.set('q', words);
  if (group !== '') query.set('group', group);
  if (pays !== '') query.set('pays', pays);
  if (all) query.set('all', '1');
  return query.size === 0 ? CATALOG_PAGE : `${CATALOG_PAGE}?${query}`;
}

/** The main part of the page. */
export function catalogMain(context: DiscoveryContext, view: CatalogView): string {
  const shown = inView(context, view);
  const resting = inView(context, { ...view, all: true }).length - shown.length;
  return [
    '<h1>Services</h1>',
    '<p class="lead">Each is one HTTP call with its price. A call that brings no answer costs nothing.</p>',
    searchForm(view),
    pills(context, view),
    `<p class="faint" role="status">${shown.length === 1 ? '1 service' : `${shown.length} services`}${view.words === '' ? '' : ` for “${asMarkup(view.words)}”`}</p>`,
    shown.length === 0 ? nothingFound(view) : tableOf(shown, context),
    resting === 0
      ? ''
      : `<p><a href="${asMarkup(addressOf({ ...view, all: true }))}">Show ${resting} more that cannot be sold now</a></p>`,
  ].join('\n');
}

/** Sent by a script alone, as every form is: without one there are the links below it. */
function searchForm({ words }: CatalogView): string {
  return `<form id="search" class="catalog-search" role="search" hidden><label for="q">Find a service</label><div class="row"><input id="q" name="q" type="search" autocomplete="off" maxlength="${MOST_WORDS_CHARACTERS}" placeholder="price, weather, wallet …" value="${asMarkup(words)}"><button type="submit">Find</button></div></form>`;
}

function pills(context: DiscoveryContext, view: CatalogView): string {
  const pill = (label: string, to: CatalogView, isCurrent: boolean) =>
    `<a class="pill" href="${asMarkup(addressOf(to))}"${isCurrent ? ' aria-current="true"' : ''}>${label}</a>`;
  const groups = [...new Set(context.services.map(({ tag }) => tag))];
  const ways = WAYS.filter((way) => context.services.some((each) => waysToPay(each, context).includes(way)));
  return [
    '<nav class="pills" aria-label="Groups">',
    pill('All', { ...view, group: '' }, view.group === ''),
    ...groups.map((group) => pill(asMarkup(group), { ...view, group }, view.group === group)),
    '</nav>',
    '<nav class="pills" aria-label="Ways to pay">',
    pill('Any way to pay', { ...view, pays: '' }, view.pays === ''),
    ...ways.map((pays) => pill(pays, { ...view, pays }, view.pays === pays)),
    '</nav>',
  ].join('\n');
}

function tableOf(services: readonly Service[], context: DiscoveryContext): string {
  const rows = services.map((service) => {
    const { available } = context.availability(service);
    const state = available ? '' : ' <span class="badge warn">not for sale now</span>';
    return `<tr><th scope="row"><a href="/docs/${asMarkup(service.path)}">${asMarkup(service.name)}</a>${state}<p class="about">${asMarkup(service.summary)}</p></th><td class="number price">$${asMarkup(priceWords(service))}</td><td class="pays">${waysToPay(service, context).join(', ')}</td></tr>`;
  });
  return `<table class="catalog"><thead><tr><th scope="col">Service</th><th scope="col" class="number">Price</th><th scope="col" class="pays">Paid by</th></tr></thead><tbody>\n${rows.join('\n')}\n</tbody></table>`;
}

function nothingFound(view: CatalogView): string {
  const none = { words: '', group: '', pays: '', all: false };
  const links = EXAMPLES.map((words) => `<a href="${addressOf({ ...none, words })}">${words}</a>`);
  const what = view.words === '' ? 'No service matches.' : `No service matches “${asMarkup(view.words)}”.`;
  return `<p>${what} Try ${links.join(', ')}, or <a href="${CATALOG_PAGE}">see all</a>.</p>`;
}
