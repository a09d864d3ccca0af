/**
 * The price of one request, from what came: nothing is parsed and written anew, so that the bytes that were priced are the bytes that are
 * sent. What decides occurs once and in plain form; everything else is a 400 before any price is named.
 */
import { type DecidingValue, decidingField } from './deciding-field.ts';
import { likeness, priceRefused } from './price-refused.ts';
import type { PriceRule, PriceSource, RouteExample, Sale } from './proxy-config.ts';

/** A request as it came. */
export interface PricedRequest {
  /** The decoded parameters of the path. */
  readonly parameters: Readonly<Record<string, string>>;
  /** The query as it came, with or without its question mark; empty for none. */
  readonly query: string;
  /** Names and values in turn, as `rawHeaders` of node:http has them. */
  readonly rawHeaders: readonly string[];
  /** Empty for none. */
  readonly body: Uint8Array;
}

/**
 * Says what a request costs, in micro-USD: the most, where its answer will tell.
 *
 * @throws Problem 400 `PRICE_DECIDED_TWICE`, `PRICE_NOT_PLAIN` or `PRICE_UNKNOWN`, with the field
 */
export function priceOfRequest(sale: Sale, request: PricedRequest): bigint {
  if (sale.kind === 'free') return 0n;
  if (sale.kind === 'fixed') return sale.priceMicros;
  if (sale.kind === 'metered') return sale.meter.atMostMicros;
  const { rule } = sale;
  return priceOf(rule, decidingValue(rule.source, request), nameOf(rule.source));
}

/**
 * Says what a route's example costs, in micro-USD.
 *
 * @throws Problem as for a request
 */
export function priceOfExample(sale: Sale, { params, query, headers, body }: RouteExample): bigint {
  const isEmpty = body === undefined;
  return priceOfRequest(sale, {
    parameters: params,
    query: Object.entries(query)
      .map((pair) => pair.map(encodeURIComponent).join('='))
      .join('&'),
    rawHeaders: [...(isEmpty ? [] : ['content-type', 'application/json']), ...Object.entries(headers).flat()],
    body: isEmpty ? new Uint8Array() : Buffer.from(JSON.stringify(body)),
  });
}

/** The part of a request that decides, as an error names it. */
function nameOf(source: PriceSource): string {
  if (source.kind === 'field') return source.names.join('.');
  if (source.kind === 'query') return `?${source.name}`;
  return source.kind === 'path' ? `:${source.name}` : source.name;
}

function decidingValue(source: PriceSource, request: PricedRequest): DecidingValue {
  if (source.kind === 'field') {
    refuseUnreadable(request);
    // Some frameworks join the parameters of the address and the fields of the body.
    const [outermost = ''] = source.names;
    if (inQuery(outermost, request.query).kind !== 'absent') throw twice(outermost);
    return decidingField(request.body, source.names);
  }
  if (source.kind === 'header') return inHeaders(source.name, request.rawHeaders);
  if (source.kind === 'query') {
    if (inBody(source.name, request).kind !== 'absent') throw twice(`?${source.name}`);
    return inQuery(source.name, request.query);
  }
  const text = Object.hasOwn(request.parameters, source.name) ? request.parameters[source.name] : undefined;
  if (text === undefined || text === '') return { kind: 'absent' };
  // For servers that know parameters of segments, what follows a semicolon is none of the value.
  if (text.includes(';')) throw notPlain(`:${source.name}`, 'decides the price and has no semicolon');
  return { kind: 'text', text };
}

function priceOf(rule: PriceRule, value: DecidingValue, field: string): bigint {
  if (value.kind === 'absent') {
    if (rule.absentMicros !== null) return rule.absentMicros;
    throw priceRefused(
      'PRICE_UNKNOWN',
      field,
      `decides the price and is missing${listed(rule)}`,
      choicesOf(rule),
    );
  }
  const micros = rule.prices === null ? inTiers(rule, value.text, field) : rule.prices.get(value.text);
  if (micros !== undefined) return micros;
  // A server that is not strict would answer it as what it looks like, at another price.
  const meant = [...(rule.prices?.keys() ?? [])].find((each) => couldMean(value.text, each));
  if (meant !== undefined) throw notPlain(field, `decides the price: write it exactly as "${meant}"`);
  if (rule.defaultMicros !== null) return rule.defaultMicros;
  throw priceRefused('PRICE_UNKNOWN', field, `has no price with this value${listed(rule)}`, choicesOf(rule));
}

function inTiers({ tiers }: PriceRule, text: string, field: string): bigint | undefined {
  if (!/^(0|-?[1-9]\d{0,14})$/.test(text))
    throw notPlain(field, 'decides the price and must be a whole number in its shortest form');
  const count = Number(text);
  return tiers?.find(({ upTo }) => count <= upTo)?.priceMicros;
}

/** Whether a lenient server could take a text for a value that has a price. */
function couldMean(text: string, value: string): boolean {
  if (likeness(text) === likeness(value)) return true;
  if (value === 'true' && /^(1|t|y|yes|on)$/i.test(text)) return true;
  if (value === 'false' && /^(0|f|n|no|off)$/i.test(text)) return true;
  return text.trim() !== '' && value.trim() !== '' && Number(text) === Number(value);
}

const MOST_LISTED = 20;

function choicesOf(rule: PriceRule): Record<string, unknown> {
  if (rule.prices !== null) return { choices: [...rule.prices.keys()].slice(0, MOST_LISTED) };
  return { largest: rule.tiers?.at(-1)?.upTo };
}

function listed(rule: PriceRule): string {
  const names = [...(rule.prices?.keys() ?? [])];
  if (rule.prices === null) return `: write a whole number of at most ${rule.tiers?.at(-1)?.upTo}`;
  const more = names.length > MOST_LISTED ? `, or ${names.length - MOST_LISTED} more` : '';
  return `: write one of ${names
    .slice(0, MOST_LISTED)
    .map((each) => JSON.stringify(each))
    .join(', ')}${more}`;
}

const notPlain = (field: string, message: string) => priceRefused('PRICE_NOT_PLAIN', field, message);
const twice = (field: string) =>
  priceRefused('PRICE_DECIDED_TWICE', field, 'decides the price and stands in the request twice');

/** The values of all headers that some program could take for this one: CGI reads `_` as `-`. */
function valuesOf(name: string, rawHeaders: readonly string[]): { isExact: boolean; value: string }[] {
  const found: { isExact: boolean; value: string }[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const written = (rawHeaders[index] ?? '').toLowerCase();
    if (written.replaceAll('_', '-') === name.replaceAll('_', '-'))
      found.push({ isExact: written === name, value: rawHeaders[index + 1] ?? '' });
  }
  return found;
}

function inHeaders(name: string, rawHeaders: readonly string[]): DecidingValue {
  const [found, another] = valuesOf(name, rawHeaders);
  if (found === undefined) return { kind: 'absent' };
  if (another !== undefined) throw twice(name);
  if (!found.isExact) throw notPlain(name, 'decides the price: write its name exactly so');
  const text = found.value.replace(/^[ \t]+|[ \t]+$/g, '');
  if (text === '') return { kind: 'absent' };
  if (!/^[\x20-\x7e]+$/.test(text) || text.includes(','))
    throw notPlain(name, 'decides the price: one value in printable ASCII characters, without a comma');
  return { kind: 'text', text };
}

/** The likeness of a parameter's name. PHP reads a dot as `_`, and a list or an object in `name[…]`. */
const queryLikeness = (name: string): string => likeness((name.split('[', 1)[0] ?? '').replaceAll('.', '_'));

function inQuery(name: string, query: string): DecidingValue {
  const field = `?${name}`;
  const written = query.startsWith('?') ? query.slice(1) : query;
  const alike = queryLikeness(name);
  const values: string[] = [];
  for (const part of written.split('&')) {
    // Older servers part parameters by semicolons too.
    const [pair = '', ...behind] = part.split(';');
    const [rawName = '', ...value] = pair.split('=');
    const isExact = rawName === name && behind.length === 0;
    if (isExact) values.push(value.join('='));
    else if (
      [pair, ...behind].some((each) => queryLikeness(decodedName(each.split('=', 1)[0] ?? '')) === alike)
    )
      throw notPlain(field, 'decides the price: write its name exactly so, once and without semicolons');
  }
  const [value, another] = values;
  if (another !== undefined) throw twice(field);
  if (value === undefined || value === '') return { kind: 'absent' };
  return { kind: 'text', text: plainParameter(value, field) };
}

/** A parameter of the address as the body may have it too, in JSON or as a form. */
function inBody(name: string, { rawHeaders, body }: PricedRequest): DecidingValue {
  const type = valuesOf('content-type', rawHeaders)
    .map(({ value }) => value.toLowerCase())
    .join();
  if (type.includes('x-www-form-urlencoded')) return inQuery(name, Buffer.from(body).toString('latin1'));
  return type.includes('json') ? decidingField(body, [name]) : { kind: 'absent' };
}

/** A name as a lenient server would decode it: more than once, and byte by byte where it is no UTF-8. */
function decodedName(raw: string): string {
  let name = raw.replaceAll('+', ' ');
  for (let turn = 0; turn < 3 && name.includes('%'); turn++) {
    try {
      name = decodeURIComponent(name);
    } catch {
      name = name.replaceAll(/%([\da-f]{2})/gi, (_, hex: string) =>
        String.fromCharCode(Number.parseInt(hex, 16)),
      );
    }
  }
  return name;
}

function plainParameter(raw: string, field: string): string {
  // A character that needs no encoding and is encoded is a way around a comparison, and nothing else.
  for (const [, hex = ''] of raw.matchAll(/%([\da-f]{2})/gi))
    if (/[A-Za-z0-9._~-]/.test(String.fromCharCode(Number.parseInt(hex, 16))))
      throw notPlain(field, 'decides the price: encode only what must be encoded');
  let text: string;
  try {
    text = decodeURIComponent(raw.replaceAll('+', ' '));
  } catch {
    throw notPlain(field, 'decides the price and must be percent-encoded UTF-8');
  }
  if (/\p{Cc}|%[\da-f]{2}/iu.test(text))
    throw notPlain(field, 'decides the price: no control characters, and encoded once');
  return text;
}

/** Refuses a body of which the bytes are not the JSON that the upstream reads. */
function refuseUnreadable({ rawHeaders, body }: PricedRequest): void {
  const encodings = valuesOf('content-encoding', rawHeaders);
  if (encodings.some(({ value }) => value.trim().toLowerCase() !== 'identity' && value.trim() !== ''))
    throw notPlain('content-encoding', 'must be left out: the body decides the price');
  const [type, another] = valuesOf('content-type', rawHeaders);
  if (another !== undefined) throw twice('content-type');
  if (type === undefined && body.length === 0) return;
  const [media = '', ...parameters] = (type?.value ?? '')
    .toLowerCase()
    .split(';')
    .map((each) => each.trim());
  if (type?.isExact !== true || !/^application\/(json|[a-z0-9!#$&^_.-]+\+json)$/.test(media))
    throw notPlain('content-type', 'must be application/json: the body decides the price');
  const charsets = parameters.filter((each) => /charset/.test(each));
  if (charsets.length > 1 || charsets.some((each) => !/^charset=("utf-8"|utf-8|utf8)$/.test(each)))
    throw notPlain('content-type', 'must have charset=utf-8, or none');
}
