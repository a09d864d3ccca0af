import { Problem } from '@farebox/core/http/problem';
import { wrongJson, wrongSchema } from './bounded-json.ts';
import { RANGE_HEADERS, wrongAnswerHeader, wrongRequestHeader } from './header-names.ts';
import { priceOfExample } from './price-of-request.ts';
import type { FieldPath } from './problem.ts';
import type { Gate, Route, RouteExample, Sale, SuccessRule, Upstream } from './proxy-config.ts';
import { answererOf, wrongBehindGate } from './resolve-gate.ts';
import { resolveSale } from './resolve-sale.ts';
import { type Plans, resolveTerms } from './resolve-terms.ts';
import type { Complain } from './resolve-upstream.ts';
import { parametersOf, type RouteKey, readRouteKey } from './route-key.ts';
import { LONGEST_KEPT_MS, MOST_KEPT_BYTES, type RouteInput } from './schema.ts';

const MiB = 1_048_576;
/** All statuses of 2xx but 206, which is an answer only to a request for a range. */
const ANY_SUCCESS = Array.from({ length: 100 }, (_, index) => 200 + index).filter((status) => status !== 206);

/** Resolves one route. @returns null when it has no key or no upstream, which is complained about */
export function resolveRoute(
  written: string,
  input: RouteInput,
  {
    plans,
    ...answerers
  }: { upstreams: ReadonlyMap<string, Upstream>; gates: ReadonlyMap<string, Gate>; plans: Plans },
  complain: Complain,
): Route | null {
  const at: FieldPath = ['routes', written];
  const key = readRouteKey(written);
  if ('wrong' in key) complain(at, key.wrong);
  const answerer = answererOf(input, answerers, at, complain);
  if ('wrong' in key || answerer === null) return null;
  const { upstream, gate } = answerer;
  if (!isBelow(key.path.text, upstream.prefix))
    complain(
      at,
      `the paths of the upstream ${upstream.name} begin with ${upstream.prefix}: write ${upstream.prefix}${key.path.text}, or set the upstream's prefix to "/"`,
    );
  const sale = resolveSale(key, input, at, complain);
  refuseIdleFields(input, at, complain);
  if (gate !== null) for (const [field, wrong] of wrongBehindGate(input)) complain([...at, field], wrong);
  const answer = input.answer ?? 'kept';
  const requestHeaders = requestHeadersOf(input, sale, at, complain);
  const stream = { maxOpen: input.stream?.maxOpen ?? 100, maxMs: input.stream?.maxMs ?? 120_000 };
  const example = exampleOf(key, input, at, complain);
  refuseUnpricedExample(sale, example, [...at, 'example'], complain);
  return {
    key: written,
    method: key.method,
    path: key.path,
    upstream,
    gate,
    sale,
    ...resolveTerms({ key, input, sale }, plans, at, complain),
    effect: input.effect ?? (key.method === 'GET' ? 'read' : 'write'),
    upstreamKnowsIdempotencyKey: input.upstreamKnowsIdempotencyKey ?? false,
    success: successOf(input, requestHeaders, at, complain),
    requestHeaders,
    answerHeaders: headersOf('answerHeaders', input.answerHeaders, wrongAnswerHeader, at, complain),
    answer,
    stream,
    maxRequestBytes: input.maxRequestBytes ?? MiB / 4,
    maxAnswerBytes: input.maxAnswerBytes ?? (answer === 'kept' ? 1_000_000 : 256 * MiB),
    timeoutMs:
      answer === 'kept'
        ? Math.min(input.timeoutMs ?? upstream.timeouts.wholeMs, LONGEST_KEPT_MS)
        : stream.maxMs,
    name: input.name ?? written,
    summary: input.summary ?? null,
    tags: input.tags ?? [],
    example,
    request: requestOf(key, input, at, complain),
    response: schemaOf(input.response, [...at, 'response'], false, complain),
  };
}

function isBelow(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}

/** Complains about fields that would do nothing beside the others. */
function refuseIdleFields(input: RouteInput, at: FieldPath, complain: Complain): void {
  const isStreamed = input.answer === 'streamed';
  if (!isStreamed && input.stream !== undefined)
    complain([...at, 'stream'], 'the answer is kept and no stream: add answer: streamed, or remove this');
  if (isStreamed && input.timeoutMs !== undefined)
    complain([...at, 'timeoutMs'], 'a streamed answer has its bound in stream.maxMs: write it there');
  if (!isStreamed && (input.maxAnswerBytes ?? 0) > MOST_KEPT_BYTES)
    complain(
      [...at, 'maxAnswerBytes'],
      `an answer that is kept has at most ${MOST_KEPT_BYTES} bytes: write less, or add answer: streamed`,
    );
}

function requestHeadersOf(input: RouteInput, sale: Sale, at: FieldPath, complain: Complain): string[] {
  const named = headersOf('requestHeaders', input.requestHeaders, wrongRequestHeader, at, complain);
  const deciding = sale.kind === 'by' && sale.rule.source.kind === 'header' ? [sale.rule.source.name] : [];
  return [...new Set([...named, ...deciding])];
}

function headersOf(
  field: 'requestHeaders' | 'answerHeaders',
  names: readonly string[] = [],
  wrong: (name: string) => string | null,
  at: FieldPath,
  complain: Complain,
): string[] {
  for (const [index, name] of names.entries()) {
    const refused = wrong(name);
    if (refused !== null) complain([...at, field, index], refused);
  }
  return [...new Set(names)];
}

function successOf(
  input: RouteInput,
  requestHeaders: readonly string[],
  at: FieldPath,
  complain: Complain,
): SuccessRule {
  const { status, contentType, has = [], hasNot = [], equals = {}, ...rest } = input.success ?? {};
  const asksRanges = requestHeaders.some((name) => RANGE_HEADERS.includes(name));
  const here = [...at, 'success'];
  if (status?.includes(206) === true && !asksRanges)
    complain([...here, 'status'], '206 answers a range: name "range" under requestHeaders, or remove it');
  const readsJson = has.length > 0 || hasNot.length > 0 || Object.keys(equals).length > 0;
  if (readsJson && input.answer === 'streamed')
    complain(
      here,
      'fields can be read only of a whole answer: remove has, hasNot and equals, or answer: streamed',
    );
  if (readsJson && contentType !== undefined && !contentType.some((type) => /json$|\*$/.test(type)))
    complain([...here, 'contentType'], 'has, hasNot and equals read JSON: add "application/json"');
  if (rest.lastEvent !== undefined && input.answer !== 'streamed')
    complain([...here, 'lastEvent'], 'only a stream has a last event: add answer: streamed');
  return {
    status: status ?? [...ANY_SUCCESS, ...(asksRanges ? [206] : [])],
    contentType: contentType ?? null,
    has: has.map((each) => each.split('.')),
    hasNot: hasNot.map((each) => each.split('.')),
    equals: Object.entries(equals).map(([path, value]) => ({ path: path.split('.'), value })),
    lastEvent: rest.lastEvent ?? null,
    mayEndByClose: rest.mayEndByClose ?? false,
    minBytes: rest.minBytes ?? 0,
  };
}

function exampleOf(key: RouteKey, input: RouteInput, at: FieldPath, complain: Complain): RouteExample | null {
  if (input.example === undefined) return null;
  const here = [...at, 'example'];
  const { params = {}, query = {}, headers = {}, body } = input.example;
  const names = parametersOf(key.path);
  for (const name of Object.keys(params))
    if (!names.includes(name)) complain([...here, 'params', name], `the path has no parameter :${name}`);
  for (const name of names)
    if (!Object.hasOwn(params, name)) complain(here, `write params: a value for :${name} of the path`);
  if (body !== undefined) {
    if (key.method === 'GET') complain([...here, 'body'], 'a GET has no body: remove it');
    const wrong = wrongJson(body);
    if (wrong !== null) complain([...here, 'body'], wrong);
  }
  return { params, query, headers, body };
}

/** Complains about an example that would be refused: every document shows it with its price. */
function refuseUnpricedExample(
  sale: Sale,
  example: RouteExample | null,
  at: FieldPath,
  complain: Complain,
): void {
  if (example === null) return;
  try {
    priceOfExample(sale, example);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    complain(at, `would be refused: ${error.message}`);
  }
}

function requestOf(key: RouteKey, input: RouteInput, at: FieldPath, complain: Complain): Route['request'] {
  const here = [...at, 'request'];
  const { query, path, body } = input.request ?? {};
  if (body !== undefined && key.method === 'GET') complain([...here, 'body'], 'a GET has no body: remove it');
  return {
    query: schemaOf(query, [...here, 'query'], true, complain),
    path: schemaOf(path, [...here, 'path'], true, complain),
    body: schemaOf(body, [...here, 'body'], false, complain),
  };
}

function schemaOf(
  schema: Record<string, unknown> | undefined,
  at: FieldPath,
  mustBeObject: boolean,
  complain: Complain,
): Record<string, unknown> | null {
  if (schema === undefined) return null;
  const wrong = wrongSchema(schema, mustBeObject);
  if (wrong !== null) complain(at, wrong);
  return schema;
}
