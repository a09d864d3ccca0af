/**
 * Everything that can be read without a script, as Markdown: the catalog, a service, the guides, a code of errors. Programs get it as it is,
 * and people as a page.
 */

import { countedOf } from '../service/counted.ts';
import type { Service } from '../service/define.ts';
import { exampleAnswerOf } from '../service/example-answer.ts';
import { fittingBest } from '../service/fitting.ts';
import { inputSchemaOf, type JsonSchema, outputSchemaOf, propertiesOf } from '../service/json-schema.ts';
import { CALL_ERRORS, CHARGING_RULE, DRY_RUN_RULE, PROBLEM_RULE, REPEAT_RULE } from './call-errors.ts';
import type { DiscoveryContext } from './context.ts';
import type { Groups } from './groups.ts';
import { ERRORS_GUIDE, type ErrorCode, type Guide, type Guides } from './guides.ts';
import { fenced, inMarkdown, row } from './markdown.ts';
import { formAtRoute, priceWords } from './own-address.ts';
import { mppEndpointOf } from './pay-by-mpp.ts';
import { networksFor } from './pay-by-wallet.ts';
import { answersJson } from './read-answer.ts';
import { recipeDocument } from './recipe.ts';

/** A document for people and programs. */
export interface Readable {
  /** Its address, without a trailing slash. */
  path: string;
  title: string;
  /** In one sentence, as text. */
  description: string;
  markdown: string;
}

export const CATALOG_PAGE = '/services';
export const GUIDES_PAGE = '/docs/guides';
export const ERRORS_PAGE = '/docs/errors';

const MOST_FOUND = 20;

/** A reader's choice from the catalog. */
export interface CatalogView {
  /** Words to search for; empty: all. */
  words: string;
  /** A group of the catalog, or a tag; empty: all. */
  group: string;
  /** A way to pay; empty: any. */
  pays: string;
  /** The column by which rows are sorted; empty: best first where words are searched for, else by groups. */
  sort: '' | 'price' | 'median' | 'answered';
  /** Services that cannot be sold now too. */
  all: boolean;
}

/** The services that a view of the catalog shows, the best first where words are searched for. */
export function inView(
  { context, groups }: { context: DiscoveryContext; groups: Groups },
  view: CatalogView,
): readonly Service[] {
  const found = view.words === '' ? context.services : fittingBest(view.words, context.services, MOST_FOUND);
  return found.filter(
    (service) =>
      (view.group === '' || groups.of(service) === view.group || service.tag === view.group) &&
      (view.pays === '' || waysToPay(service, context).includes(view.pays)) &&
      (view.all || context.availability(service).available),
  );
}

/** The ways to pay for a service now. */
export function waysToPay(service: Service, context: DiscoveryContext): readonly string[] {
  return [
    'key',
    ...(networksFor(service, context).length === 0 ? [] : ['x402']),
    ...(mppEndpointOf(service, context) === null ? [] : ['MPP']),
  ];
}

/** The whole catalog, what cannot be sold now too. */
export function catalogText(context: DiscoveryContext, groups: Groups): Readable {
  const inGroup = Map.groupBy(context.services, groups.of);
  const lines = groups
    .among(context.services)
    .flatMap((group) => [
      `## ${inMarkdown(group)}`,
      '',
      row('Service', 'Price', 'Paid by', 'What it sells'),
      row('---', '---', '---', '---'),
      ...(inGroup.get(group) ?? []).map((service) =>
        row(
          `[${inMarkdown(service.name)}](/docs/${service.path})`,
          `$${priceWords(service)}`,
          waysToPay(service, context).join(', '),
          `${context.availability(service).available ? '' : '**Not for sale now.** '}${inMarkdown(service.summary)}`,
        ),
      ),
      '',
    ]);
  return {
    path: CATALOG_PAGE,
    title: 'Services',
    description: `${countedOf(context.services).length} services for software agents, each with its price a call.`,
    markdown: ['# Services', '', CHARGING_RULE, '', ...lines].join('\n'),
  };
}

/** How a call works. */
export function overviewText(context: DiscoveryContext, { list }: Guides): Readable {
  const lines = [
    '# How a call works',
    '',
    `Every service is one POST with a JSON body. The call carries a key in \`X-API-KEY\`; without one the answer is 402, with the price and the ways to pay that work now. ${CHARGING_RULE}`,
    '',
    REPEAT_RULE,
    '',
    DRY_RUN_RULE,
    '',
    PROBLEM_RULE,
    '',
    `- [Services](${CATALOG_PAGE}): ${countedOf(context.services).length}, each with its price`,
    ...(list.length === 0 ? [] : [...partsOf(list), `- [Error codes](${ERRORS_PAGE})`]),
    '- [OpenAPI](/openapi.json)',
    '',
  ];
  const description = 'How a call works, and every service with what it takes and answers.';
  return { path: '/docs', title: 'Docs', description, markdown: lines.join('\n') };
}

/** The guides, by a line for each of their parts. */
function partsOf(list: Guides['list']): string[] {
  const parts = [...Map.groupBy(list, ({ part }) => part)];
  return parts.map(([part, guides]) =>
    part === null
      ? `- [Guides](${GUIDES_PAGE})`
      : `- [${part}](${GUIDES_PAGE}#${part.toLowerCase()}): ${guides.map(({ title }) => inMarkdown(title)).join(', ')}`,
  );
}

/** One service. */
export function serviceText(service: Service, context: DiscoveryContext, guides: Guides): Readable {
  const recipe = recipeDocument(service, context);
  const path = `/docs/${service.path}`;
  const price = `$${priceWords(service)}`;
  const state = recipe.available
    ? 'For sale now'
    : inMarkdown(recipe.unavailableMessage ?? 'Not for sale now');
  const answer = answersJson(service)
    ? [
        ...fieldTable(outputSchemaOf(service)),
        '### An example of an answer',
        '',
        'The values are placeholders.',
        '',
        fenced('json', JSON.stringify(exampleAnswerOf(service), null, 2)),
      ]
    : [`Media type \`${service.mediaType}\`.`];
  const markdown = [
    `# ${inMarkdown(service.name)}`,
    '',
    inMarkdown(service.summary),
    '',
    `**${price} a call**${decidedBy(service)} · ${state} · ${inCode(addressOf(service, context))} · paid by ${waysToPay(service, context).join(', ')}`,
    '',
    '## What you send',
    '',
    ...(service.route === null ? fieldTable(inputSchemaOf(service)) : routeTable(service)),
    '## A call',
    '',
    fenced('sh', recipe.curl),
    '',
    '## What you get',
    '',
    inMarkdown(recipe.answer.description),
    '',
    ...answer,
    '',
    '## When it fails',
    '',
    inMarkdown(recipe.charged),
    '',
    ...errorTable(guides),
    '',
  ];
  const description = `${service.summary} ${price} a call.`;
  return { path, title: `${service.name}, ${price} a call`, description, markdown: markdown.join('\n') };
}

/** Method and address of a call: those of its own, where it has them. */
function addressOf({ path, route }: Service, { baseUrl }: DiscoveryContext): string {
  return route === null ? `POST ${baseUrl}/x402/${path}` : `${route.method} ${baseUrl}${route.address}`;
}

/** What the price depends on; empty where all calls cost the same. */
function decidedBy({ route }: Service): string {
  const prices = route?.shown.prices ?? null;
  return prices === null ? '' : `, decided by ${inMarkdown(prices.decidedBy)}`;
}

const PLACES = { path: 'path', query: 'query', header: 'header', body: 'JSON body' } as const;

/** The values of a call at a service's own address, and its other address. */
function routeTable(service: Service): string[] {
  const { form } = formAtRoute(service);
  const fields = form?.fields ?? [];
  const rows = fields.map(({ in: place, name, schema, required }) =>
    row(
      `${inCode(name)}${required ? '' : ' optional'}`,
      PLACES[place],
      inCode(typeInWords(schema)),
      meaningOf(schema),
    ),
  );
  return [
    ...(rows.length === 0
      ? []
      : [row('Value', 'In', 'Type', 'Meaning'), row('---', '---', '---', '---'), ...rows, '']),
    ...(form?.body === 'whole' ? ['A body, as its API takes it.', ''] : []),
    ...(fields.length === 0 && form?.body !== 'whole' ? ['Nothing but the address.', ''] : []),
    `Programs that send every call as a JSON object find it at ${inCode(`POST /x402/${service.path}`)} too.`,
    '',
  ];
}

const DEEPEST = 4;

function fieldTable(schema: JsonSchema): string[] {
  const rows = fieldRows(schema, '', 0);
  if (rows.length === 0) return ['None. Send an empty object.', ''];
  return [row('Field', 'Type', 'Meaning'), row('---', '---', '---'), ...rows, ''];
}

function fieldRows(schema: JsonSchema, within: string, depth: number): string[] {
  if (depth > DEEPEST) return [];
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(propertiesOf(schema)).flatMap(([name, field]) => {
    const full = within === '' ? name : `${within}.${name}`;
    const optional = required.includes(name) ? '' : ' optional';
    const inner = objectIn(field);
    return [
      row(`${inCode(full)}${optional}`, inCode(typeInWords(field)), meaningOf(field)),
      ...(inner === null ? [] : fieldRows(inner, field.items === undefined ? full : `${full}[]`, depth + 1)),
    ];
  });
}

const inCode = (text: string) => inMarkdown(`\`${text.replaceAll('`', "'")}\``);

function meaningOf(field: JsonSchema): string {
  const items = (field.items ?? {}) as JsonSchema;
  const said = [field.description, items.description].find((each) => typeof each === 'string') ?? '';
  const byDefault = field.default === undefined ? '' : ` Default ${inCode(JSON.stringify(field.default))}.`;
  return `${inMarkdown(String(said))}${byDefault}`;
}

function typeInWords(schema: JsonSchema): string {
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => JSON.stringify(value)).join(' or ');
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (Array.isArray(schema.anyOf)) return (schema.anyOf as JsonSchema[]).map(typeInWords).join(' or ');
  if (schema.type === 'array') return `array of ${typeInWords((schema.items ?? {}) as JsonSchema)}`;
  return [schema.type ?? 'any'].flat().join(' or ');
}

/** The object whose fields are worth rows of their own: the field itself, its items, or the one that may be null. */
function objectIn(field: JsonSchema): JsonSchema | null {
  if (field.properties !== undefined) return field;
  if (field.items !== undefined) return objectIn(field.items as JsonSchema);
  for (const choice of Array.isArray(field.anyOf) ? (field.anyOf as JsonSchema[]) : []) {
    const found = objectIn(choice);
    if (found !== null) return found;
  }
  return null;
}

/** How a call can fail, whichever service it is of. */
function errorTable({ errors }: Guides): string[] {
  const shown = (code: string) =>
    errors.has(code) ? `[\`${code}\`](${ERRORS_PAGE}/${code})` : `\`${code}\``;
  return [
    row('Status', 'Meaning', 'What to do', 'Codes'),
    row('---', '---', '---', '---'),
    ...CALL_ERRORS.map(({ status, meaning, remedy, codes }) =>
      row(`\`${status}\``, inMarkdown(meaning), inMarkdown(remedy), codes.map(shown).join(', ')),
    ),
  ];
}

/** The list of guides. */
export function guidesText({ list }: Guides): Readable {
  const lines = [...Map.groupBy(list, ({ part }) => part)].flatMap(([part, guides]) => [
    ...(part === null ? [] : ['', `## ${part}`, '']),
    ...guides.map(({ name, title, about }) => `- [${title}](${pathOfGuide(name)}): ${inMarkdown(about)}`),
  ]);
  return {
    path: GUIDES_PAGE,
    title: 'Guides',
    description: 'How calls are bought, sold and run.',
    markdown: ['# Guides', '', ...lines, ''].join('\n'),
  };
}

function pathOfGuide(name: string): string {
  return name === ERRORS_GUIDE ? ERRORS_PAGE : `${GUIDES_PAGE}/${name}`;
}

export function guideText({ name, title, about, markdown }: Guide): Readable {
  return { path: pathOfGuide(name), title, description: about.replaceAll('`', ''), markdown };
}

/** One code of errors, and the guides that tell more of it. */
export function errorText(error: ErrorCode, { list }: Guides): Readable {
  const { code, status, meaning, section } = error;
  const more = list.filter(({ name, markdown }) => name !== ERRORS_GUIDE && markdown.includes(`\`${code}\``));
  const told = more.map(({ name, title }) => `[${title}](${pathOfGuide(name)})`).join(', ');
  const lines = [
    `# ${code}`,
    '',
    `**Status ${status}** · ${section}`,
    '',
    meaning,
    '',
    ...(told === '' ? [] : [`More of it: ${told}.`, '']),
    `[All codes](${ERRORS_PAGE})`,
    '',
  ];
  return {
    path: `${ERRORS_PAGE}/${code}`,
    title: code,
    description: meaning.replaceAll('`', ''),
    markdown: lines.join('\n'),
  };
}

/** Where a link of a guide leads on this server: to another guide or a picture; null where that is not served. */
export function linkOfGuide(href: string, { list, pictures }: Guides): string | null {
  if (href.startsWith('#') || href.startsWith('/')) return href;
  const [, name, anchor = ''] = /^([\w-]+)\.md(#.*)?$/.exec(href) ?? [];
  if (name !== undefined && list.some((guide) => guide.name === name)) return pathOfGuide(name) + anchor;
  const [, picture] = /^images\/([\w.-]+)$/.exec(href) ?? [];
  return picture !== undefined && pictures.has(picture) ? `/docs/images/${picture}` : null;
}
