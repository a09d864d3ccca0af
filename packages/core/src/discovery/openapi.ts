import { CORE_TAG, type Described, REFUSED } from '../http/operation.ts';
import { SANDBOX_NOTICE } from '../http/sandbox-notice.ts';
import { boundsWords } from '../service/bounds-words.ts';
import type { Service } from '../service/define.ts';
import { exampleAnswerOf } from '../service/example-answer.ts';
import { inputSchemaOf, type JsonSchema, outputSchemaOf } from '../service/json-schema.ts';
import { dashedTag } from '../service/tag-words.ts';
import { legalUrlOf } from '../words/legal.ts';
import { CALL_ERRORS, CHARGING_RULE, DRY_RUN_RULE, PROBLEM_RULE, REPEAT_RULE } from './call-errors.ts';
import { asTemplate, type DiscoveryContext, priceRange, serves, type X402Offer } from './context.ts';
import { type SharedFields, schemaNamed, sharedFields, usedComponents } from './openapi-components.ts';
import { calledAt } from './own-address.ts';
import { mppOffersOf, SAME_CREDENTIAL_RULE, soldByMpp } from './pay-by-mpp.ts';
import { networksFor, SAME_HEADER_RULE } from './pay-by-wallet.ts';
import { answersJson } from './read-answer.ts';

/**
 * `/openapi.json` (3.1): one operation for each service, and the free operations that the app serves. What several
 * operations say is said once, in `components`: errors, fields that many bodies and answers have, and what MPP sells too. The schema of an answer is whole.
 * Prices stand in `x-price-usd` and in `x-payment-info`, whose `protocols` and `offers` name only what can be paid with
 * now; the chains that x402 is paid on stand once, in `x-x402`. What is sold by MPP stands a second time at its address
 * below `/mpp/`, with the `offers` of the challenges there; the two share schema and answer by reference.
 */
export function openapiDocument(context: DiscoveryContext) {
  const described = context.described();
  const schemas = componentsOf(described, 'schemas');
  const shared = sharedFields(context.services, Object.keys({ ...SHARED_SCHEMAS, ...schemas }));
  const paths: Record<string, Record<string, unknown>> = {};
  addOperations(paths, operationsOfParts(context));
  for (const service of context.services) {
    paths[`/x402/${service.path}`] = { post: paidOperation(service, context, shared) };
    addOperations(paths, routeOperation(service, context, shared));
  }
  addOperations(paths, operationsOfRoutes(context));
  const twice = soldByMpp(context);
  for (const service of twice) paths[`/mpp/${service.path}`] = { post: mppOperation(service, context) };
  const tags = tagsOnSale(context);
  const document = {
    openapi: '3.1.0',
    info: infoOf(context),
    servers: [{ url: context.baseUrl }],
    security: byKeyOr(context.rails.x402 !== null),
    'x-service-info': {
      categories: tags.slice(0, 5),
      docs: {
        homepage: `${context.baseUrl}/`,
        apiReference: `${context.baseUrl}/docs`,
        llms: `${context.baseUrl}/llms.txt`,
        openapiByTag: `${context.baseUrl}/openapi/{tag}.json`,
      },
    },
    ...(context.rails.x402 === null ? {} : { 'x-x402': termsOf(context.rails.x402) }),
    tags: tagsOf(context, [
      ...tagsBesideServices(context),
      ...tags,
      ...(twice.length === 0 ? [] : [MPP_TAG]),
    ]),
    paths,
  };
  const components = {
    securitySchemes: {
      ApiKeyHeader: { type: 'apiKey', in: 'header', name: 'X-API-KEY' },
      BearerKey: { type: 'http', scheme: 'bearer' },
      ...componentsOf(described, 'securitySchemes'),
    },
    schemas: {
      ...SHARED_SCHEMAS,
      ...schemas,
      ...shared.components,
      ...Object.fromEntries(
        twice.map((service) => [inputNameOf(service), shared.apply(inputSchemaOf(service))]),
      ),
    },
    parameters: { DryRun: DRY_RUN_PARAMETER },
    responses: {
      ...componentsOf(described, 'responses'),
      ...errorResponses(context),
      ...Object.fromEntries(twice.map((service) => [answerNameOf(service), answerOf(service, shared)])),
    },
  };
  return { ...document, components: usedComponents(components, document) };
}

function infoOf(context: DiscoveryContext) {
  const { name, contactEmail, logoUrl, legal } = context.shop;
  const termsOfService = legal === undefined ? null : legalUrlOf(legal, 'terms', context.baseUrl);
  return {
    title: name,
    version: INTERFACE_VERSION,
    'x-server-version': context.version,
    description: `${context.sandbox ? `${SANDBOX_NOTICE} ` : ''}Single HTTP calls for software agents, paid one by one. ${CHARGING_RULE}`,
    ...(context.sandbox ? { 'x-sandbox': true } : {}),
    ...(termsOfService === null ? {} : { termsOfService }),
    contact: { name, url: `${context.baseUrl}/`, ...(contactEmail === null ? {} : { email: contactEmail }) },
    license: LICENCE,
    ...(logoUrl === null ? {} : { 'x-logo': { url: logoUrl, altText: name } }),
    'x-guidance': guidance(context),
  };
}

/** The tags of what is sold, in the order of the catalog. */
function tagsOnSale({ tags, services }: DiscoveryContext): string[] {
  const sold = new Set(services.map(({ tag }) => tag));
  return [...new Set([...Object.keys(tags), ...sold])].filter((tag) => sold.has(tag));
}

/** Describes what each tag holds, as those who have it say. */
function tagsOf(context: DiscoveryContext, names: readonly string[]) {
  const ofParts = Object.assign({}, ...context.described().map(({ tags }) => tags ?? {}));
  const about: Readonly<Record<string, string>> = { ...ofParts, ...context.tags, [MPP_TAG]: ABOUT_MPP };
  return names.map((name) => ({ name, ...(about[name] === undefined ? {} : { description: about[name] }) }));
}

/**
 * The parts of the document that can be had by themselves: a word for the address, and the tag that it stands for. First those
 * that hold no service: what is free, credit, and each family of addresses that has a tag of its own.
 */
export function openapiParts(context: DiscoveryContext): ReadonlyMap<string, string> {
  const tags = tagsOnSale(context);
  return new Map([...tagsBesideServices(context), ...tags].map((tag) => [dashedTag(tag), tag]));
}

/**
 * `/openapi/{part}.json`: the same document with the operations of one tag, for readers who have little room. It is whole in
 * itself.
 *
 * @param tag one of `openapiParts`
 */
export function openapiPart(context: DiscoveryContext, tag: string) {
  const services = context.services.filter((service) => service.tag === tag);
  // Nothing but what is sold: no other route is described here.
  if (services.length > 0) return openapiDocument({ ...context, services, described: () => [], routes: [] });
  return openapiDocument({
    ...context,
    services,
    described: () =>
      context.described().map((each) => ({
        ...each,
        operations: each.operations.filter(({ operation }) => isOf(tag, operation)),
      })),
    routes: context.routes.map(({ method, path, operation }) => {
      const described = operation?.(method) ?? null;
      const isOfTag = described !== null && isOf(tag, described);
      return { method, path, ...(isOfTag && operation !== undefined ? { operation } : {}) };
    }),
  });
}

/** The tags of what is no service: what is free, and then the others in the order of their operations. */
function tagsBesideServices(context: DiscoveryContext): readonly string[] {
  const operations = [...operationsOfParts(context), ...operationsOfRoutes(context)];
  const tags = [...new Set(operations.map(({ operation }) => tagOf(operation)))];
  return [...tags.filter((tag) => tag === FREE_TAG), ...tags.filter((tag) => tag !== FREE_TAG)];
}

/** Each operation has one tag; without one it is free. */
function tagOf({ tags }: Operations[number]['operation']): string {
  const [tag]: unknown[] = Array.isArray(tags) ? tags : [];
  return typeof tag === 'string' ? tag : FREE_TAG;
}

/** The part for hosts of models that take few operations: what is needed to buy anything. */
export const CORE_PART = `/openapi/${dashedTag(CORE_TAG)}.json`;

/** Whether any service can be bought by its name at one address. */
export function sellsByName(context: DiscoveryContext): boolean {
  return serves(context, 'POST', '/api/call');
}

/** The free operations that are needed before a call can be bought by the name of its service: to find it, and to have a key. */
const CORE_TOO = ['getCatalog', 'getRecipe', 'getTrialKey', 'getKey'];

/** Whether an operation stands in the part of a tag. The core has some that are in another part too. */
function isOf(tag: string, operation: Operations[number]['operation']): boolean {
  return (
    tagOf(operation) === tag || (tag === CORE_TAG && CORE_TOO.some((name) => name === operation.operationId))
  );
}

/** The components that the operations of all parts refer to. */
function componentsOf(described: readonly Described[], kind: 'schemas' | 'responses' | 'securitySchemes') {
  return Object.assign({}, ...described.map((each) => each[kind] ?? {})) as Record<string, object>;
}

type Operations = readonly { method: string; path: string; operation: Readonly<Record<string, unknown>> }[];

/** The operations that the parts describe and serve, and that can be used now. */
function operationsOfParts(context: DiscoveryContext): Operations {
  return context
    .described()
    .flatMap((each) => (each.offered?.() === false ? [] : each.operations))
    .filter(({ method, path }) => serves(context, method, path));
}

/** The operations of routes that say themselves how they are described. */
function operationsOfRoutes({ routes }: DiscoveryContext): Operations {
  return routes.flatMap(({ method, path, operation }) => {
    const described = method === 'HEAD' ? null : (operation?.(method) ?? null);
    return described === null ? [] : [{ method, path: asTemplate(path), operation: described }];
  });
}

function addOperations(paths: Record<string, Record<string, unknown>>, operations: Operations): void {
  for (const { method, path, operation } of operations)
    paths[path] = { ...paths[path], [method.toLowerCase()]: refusable(operation) };
}

/** Adds the refusal of an unreadable request, which every route makes, to an operation that describes no refusal because it takes nothing. */
function refusable(operation: Operations[number]['operation']) {
  const responses = Object(operation.responses) as Record<string, unknown>;
  if (Object.keys(responses).some((status) => status.startsWith('4'))) return operation;
  return { ...operation, responses: { ...responses, '4XX': REFUSED } };
}

/** The service's id in camel case; `first-call` keeps the name that clients know. */
export function operationIdOf(path: string): string {
  return path === 'first-call' ? path : camelCased(path);
}

function camelCased(path: string): string {
  return path.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** The version of the described interface, which is not that of the server that serves it. */
const INTERFACE_VERSION = '3.0.0';
/** The licence of this description; what an answer says is under the licence of its sources. */
const LICENCE = {
  name: 'Apache-2.0 for this description. Each answer names the licences of its sources.',
  url: 'https://www.apache.org/licenses/LICENSE-2.0',
};
const MPP_TAG = 'MPP';
const ABOUT_MPP = 'Services at their addresses below /mpp/, which the Machine Payments Protocol pays too.';
const FREE_TAG = 'Free';
const inputNameOf = ({ path }: Service) => `${camelCased(path)}Input`;
const answerNameOf = ({ path }: Service) => `${camelCased(path)}Answer`;
const isTwice = (service: Service, context: DiscoveryContext) => soldByMpp(context).includes(service);

function paidOperation(service: Service, context: DiscoveryContext, shared: SharedFields) {
  const { available, reason } = context.availability(service);
  const networks = networksFor(service, context);
  const byWallet = networks.length > 0;
  const twice = isTwice(service, context);
  return {
    operationId: operationIdOf(service.path),
    tags: [service.tag],
    summary: service.name,
    description: `${service.summary}${boundsWords(service)}`,
    'x-price-usd': Number(service.priceUsd),
    'x-payment-info': { price: priceOf(service), protocols: byWallet ? [{ x402: {} }] : [] },
    ...(service.metered === null ? {} : { 'x-metered': service.metered }),
    // Said only where it is not every network of `x-x402`.
    ...(byWallet && networks.length !== context.rails.x402?.networks.length
      ? { 'x-x402-networks': networks.map(({ network }) => network) }
      : {}),
    ...(available ? {} : { 'x-availability': reason }),
    // Said only where it is not what the document says for all.
    ...(byWallet === (context.rails.x402 !== null) ? {} : { security: byKeyOr(byWallet) }),
    parameters: DRY_RUN,
    requestBody: requestBodyOf(
      service,
      twice ? schemaNamed(inputNameOf(service)) : shared.apply(inputSchemaOf(service)),
    ),
    responses: {
      200: twice ? { $ref: `#/components/responses/${answerNameOf(service)}` } : answerOf(service, shared),
      ...FAILURES,
    },
  };
}

/** The same service at its own address, if it has one. */
function routeOperation(service: Service, context: DiscoveryContext, shared: SharedFields): Operations {
  const { route } = service;
  if (route === null) return [];
  const { path, answered, parameters, requestBody } = calledAt(route, service.mediaType);
  const { requestBody: _, ...common } = paidOperation(service, context, shared);
  const body = requestBody === undefined ? {} : { requestBody };
  const operationId = camelCased(`direct-${service.path}`);
  const responses = { 200: answered, ...FAILURES };
  return [
    { method: route.method, path, operation: { ...common, operationId, parameters, ...body, responses } },
  ];
}

/** The same service at its address below `/mpp/`, where a key and x402 pay too. */
function mppOperation(service: Service, context: DiscoveryContext) {
  const { available, reason } = context.availability(service);
  const offers = mppOffersOf(service, context);
  return {
    operationId: camelCased(`mpp-${service.path}`),
    tags: [MPP_TAG],
    summary: service.name,
    'x-price-usd': Number(service.priceUsd),
    'x-payment-info': {
      price: priceOf(service),
      protocols: [
        // The first alone: `offers` has all of them.
        ...offers.slice(0, 1).map(({ method, intent }) => ({ mpp: { method, intent, currency: 'USD' } })),
        ...(networksFor(service, context).length > 0 ? [{ x402: {} }] : []),
      ],
      offers,
    },
    ...(available ? {} : { 'x-availability': reason }),
    ...(context.rails.x402 === null ? { security: byKeyOr(true) } : {}),
    requestBody: requestBodyOf(service, schemaNamed(inputNameOf(service))),
    responses: { 200: { $ref: `#/components/responses/${answerNameOf(service)}` }, ...FAILURES },
  };
}

// Named at each service's first address alone: the document is to fit into a reader's memory.
const DRY_RUN = [{ $ref: '#/components/parameters/DryRun' }];
const FAILURES = {
  402: { $ref: '#/components/responses/402' },
  default: { $ref: '#/components/responses/Failed' },
};

const DRY_RUN_PARAMETER = {
  name: 'dryRun',
  in: 'query',
  description: DRY_RUN_RULE,
  schema: { type: 'integer', enum: [1] },
};

function priceOf({ priceUsd, route }: Service) {
  const prices = route?.shown.prices ?? null;
  if (prices !== null)
    return { mode: 'dynamic', currency: 'USD', min: prices.lowestUsd, max: prices.highestUsd };
  return { mode: 'fixed', currency: 'USD', amount: priceUsd };
}

/** The empty requirement says that a call may come without a key, paid on chain. */
function byKeyOr(payment: boolean) {
  return [{ ApiKeyHeader: [] }, { BearerKey: [] }, ...(payment ? [{}] : [])];
}

function requestBodyOf(service: Service, schema: JsonSchema) {
  return {
    ...(inputSchemaOf(service).required === undefined ? {} : { required: true }),
    content: { 'application/json': { schema, example: service.example } },
  };
}

function answerOf(service: Service, shared: SharedFields) {
  if (!answersJson(service)) {
    return {
      description: 'OK',
      headers: { 'X-Provenance': { schema: { type: 'string' }, description: PROVENANCE_HEADER } },
      content: { [service.mediaType]: {} },
    };
  }
  const schema = { allOf: [schemaNamed('Answer'), shared.apply(outputSchemaOf(service))] };
  const stream = service.stream?.form === 'events' ? service.stream : null;
  const inPieces = { 'text/event-stream': { schema: { type: 'string', description: EVENTS } } };
  return {
    description: stream === null ? 'OK' : `OK; events where \`${stream.field}\` is true`,
    content: {
      'application/json': { schema, example: exampleOf(service) },
      ...(stream === null ? {} : inPieces),
    },
  };
}

/**
 * The whole body: what every answer has, and the service's own fields. The picture beside an answer about a place is the
 * same in many, and null in some answers of each: it is shown in recipes alone.
 */
function exampleOf(service: Service) {
  const own = JSON.stringify(exampleAnswerOf(service), (name, value) => (name === 'image' ? null : value));
  return {
    success: true,
    service: service.path,
    ...(JSON.parse(own) as Record<string, unknown>),
    provenance: { mode: 'computed', method: '…', sources: [], notes: [] },
  };
}

const EVENTS = 'Server-sent events. The last is `result` with the whole answer, or `error`';
const PROVENANCE_HEADER = 'The sources of the answer, their time and the method, as JSON.';

/** The terms that all x402 offers share: the chains, and what is paid in there. To whom is in the 402 and in the manifest. */
function termsOf({ facilitatorUrl, networks }: X402Offer) {
  return {
    x402Version: 2,
    scheme: 'exact',
    facilitator: facilitatorUrl,
    networks: networks.map(({ network, asset }) => ({ network, asset: asset.address })),
  };
}

function guidance(context: DiscoveryContext): string {
  const range = priceRange(context.services);
  return [
    'Every operation below /x402/ is one paid call: POST a JSON body with a key in X-API-KEY.',
    context.trial === null
      ? null
      : `GET /api/m2m/credits/trial gives a free key with ${context.trial.creditsUsd} USD.`,
    context.rails.x402 === null
      ? null
      : `Without a key the answer is 402 with x402 terms in PAYMENT-REQUIRED: sign them and send the call again with PAYMENT-SIGNATURE; x-x402 has the chains. Clients refuse above 1 USD (first generation: 0.10) until their cap is raised. ${SAME_HEADER_RULE}`,
    context.rails.mpp === null
      ? null
      : `Below /mpp/ MPP pays too: answer a challenge of the 402 and send the call again with Authorization: Payment. ${context.rails.x402 === null ? SAME_CREDENTIAL_RULE : 'The same credential again, too, until the end is known.'}`,
    range === null ? null : `Prices are ${range.minUsd} to ${range.maxUsd} USD.`,
    sellsByName(context)
      ? 'POST /api/call {service, input} buys any service by its name; /openapi/core.json has that and what is needed before, for hosts that take few operations.'
      : null,
    REPEAT_RULE,
    PROBLEM_RULE,
    'What is not for sale now has x-availability. GET /x402/recipes/{service} has a call ready to paste and the full schema of its answer.',
  ]
    .filter((line) => line !== null)
    .join(' ');
}

const SHARED_SCHEMAS = {
  Answer: {
    type: 'object',
    description: 'What every answer has',
    properties: {
      success: { const: true },
      service: { type: 'string' },
      timestamp: { type: 'string', format: 'date-time' },
      provenance: { $ref: '#/components/schemas/Provenance' },
    },
    required: ['success', 'provenance'],
  },
  Provenance: {
    type: 'object',
    description: 'Where the answer comes from. An unknown value is null, and a note says why.',
    properties: {
      mode: { enum: ['live', 'cached', 'sandbox', 'computed'] },
      method: { type: 'string' },
      sources: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            name: { type: 'string' },
            url: { type: 'string' },
            asOf: { type: ['string', 'null'], description: 'When the value is true, by the source' },
            retrievedAt: { type: 'string', format: 'date-time' },
            cached: { type: 'boolean' },
            sandbox: { type: 'boolean', description: 'True: made up' },
            licence: { type: 'string' },
          },
        },
      },
      notes: { type: 'array', items: { type: 'string' } },
    },
    required: ['mode', 'method', 'sources', 'notes'],
  },
  Error: {
    type: 'object',
    properties: {
      error: { type: 'string' },
      message: { type: 'string' },
      code: { type: 'string', description: 'For programs' },
      requestId: { type: 'string' },
      docUrl: { type: 'string', format: 'uri', description: 'A page about the code.' },
      charged: { type: ['boolean', 'null'], description: 'Null: a chain has still to say' },
    },
    required: ['error', 'message'],
  },
} as const;

/** How a paid call can fail, once for all of them: for want of payment, and in every other way. */
function errorResponses(context: DiscoveryContext) {
  const unpaid = CALL_ERRORS.find(({ status }) => status === 402);
  const failures = CALL_ERRORS.filter(({ status }) => status !== 402)
    .map(({ status, codes }) => `${status} ${codes.length === 0 ? "the service's own" : codes.join(', ')}`)
    .join('; ');
  const content = { 'application/json': { schema: schemaNamed('Error') } };
  const retryAfter = { 'Retry-After': { description: 'Seconds', schema: { type: 'integer' } } };
  const terms = {
    ...(context.rails.x402 === null
      ? {}
      : {
          'PAYMENT-REQUIRED': {
            description: 'Base64 of JSON: the x402 version 2 terms, in `accepts`',
            schema: { type: 'string', contentEncoding: 'base64' },
          },
        }),
    ...(context.rails.mpp === null
      ? {}
      : {
          'WWW-Authenticate': {
            description: 'Below /mpp/: a `Payment` challenge for each method of MPP',
            schema: { type: 'string' },
          },
        }),
  };
  return {
    402: {
      description: unpaid?.meaning ?? 'Payment required',
      ...(Object.keys(terms).length === 0 ? {} : { headers: terms }),
      content,
    },
    Failed: {
      description: `By status and code: ${failures}. A recipe says what each means.`,
      headers: retryAfter,
      content,
    },
  };
}
