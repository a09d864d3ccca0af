import { usdToMicros } from '@farebox/core/ledger/money';
import { wrongRequestHeader } from './header-names.ts';
import type { FieldPath } from './problem.ts';
import type { MeterRule, PriceRule, PriceSource, Sale } from './proxy-config.ts';
import type { Complain } from './resolve-upstream.ts';
import { parametersOf, type RouteKey } from './route-key.ts';
import type { RouteInput } from './schema.ts';

type PriceByInput = NonNullable<RouteInput['priceBy']>;

const WAYS = ['price', 'priceBy', 'metered', 'free'] as const;
const SOURCES = ['field', 'header', 'query', 'path'] as const;
/** The fields in which a route says its price, and those that have a say in what can be measured. */
type SaleInput = Pick<RouteInput, (typeof WAYS)[number] | 'answer' | 'requestHeaders'>;

/** Resolves what a route costs; `free` stands in where it cannot be told, and is complained about. */
export function resolveSale(key: RouteKey, input: SaleInput, at: FieldPath, complain: Complain): Sale {
  const ways = WAYS.filter((way) => input[way] !== undefined);
  if (ways.length !== 1)
    complain(
      at,
      ways.length === 0
        ? 'has no price: write price: "0.02", or priceBy, or metered, or free: true'
        : `has ${ways.join(' and ')}: keep one of them`,
    );
  if (input.price !== undefined)
    return { kind: 'fixed', priceMicros: paid(input.price, [...at, 'price'], complain) };
  if (input.priceBy !== undefined)
    return { kind: 'by', rule: ruleOf(key, input.priceBy, [...at, 'priceBy'], complain) };
  if (input.metered !== undefined)
    return { kind: 'metered', meter: meterOf(input, input.metered, [...at, 'metered'], complain) };
  return { kind: 'free' };
}

function meterOf(
  { answer, requestHeaders = [] }: SaleInput,
  input: NonNullable<RouteInput['metered']>,
  at: FieldPath,
  complain: Complain,
): MeterRule {
  const { bytes, items, usage, whenUnmeasured } = input;
  const atMostMicros = paid(input.atMost, [...at, 'atMost'], complain);
  const path = items ?? usage;
  if ([bytes, items, usage].filter((each) => each !== undefined).length !== 1)
    complain(at, 'write one of bytes, items, usage: what is counted');
  if (items !== undefined && answer === 'streamed')
    complain([...at, 'items'], 'a list is counted in a whole answer: remove answer: streamed');
  if (path === undefined && whenUnmeasured !== undefined)
    complain([...at, 'whenUnmeasured'], 'bytes are always known: remove this line');
  if (path !== undefined && whenUnmeasured === undefined)
    complain(at, 'write whenUnmeasured: the price of an answer that does not tell the number');
  if (path !== undefined && requestHeaders.includes('range'))
    complain(at, 'a part of an answer tells no number: remove "range" from requestHeaders');
  const whenUnmeasuredMicros = whenUnmeasured === undefined ? atMostMicros : usdToMicros(whenUnmeasured);
  if (whenUnmeasuredMicros > atMostMicros)
    complain([...at, 'whenUnmeasured'], 'must not be above atMost, which is all that is reserved');
  return {
    measure:
      path === undefined
        ? { kind: 'bytes' }
        : { kind: items === undefined ? 'usage' : 'items', path: path === '$' ? [] : path.split('.') },
    priceMicros: paid(input.price, [...at, 'price'], complain),
    per: BigInt(input.per ?? 1),
    atMostMicros,
    whenUnmeasuredMicros,
  };
}

/** An amount above nothing, in micro-USD. */
function paid(usd: string, at: FieldPath, complain: Complain): bigint {
  const micros = usdToMicros(usd);
  if (micros === 0n) complain(at, 'must be above zero; a whole route costs nothing with free: true');
  return micros;
}

function ruleOf(key: RouteKey, input: PriceByInput, at: FieldPath, complain: Complain): PriceRule {
  const source = sourceOf(key, input, at, complain);
  if ((input.prices === undefined) === (input.tiers === undefined))
    complain(at, 'write either "prices", of single values, or "tiers", of whole numbers');
  const prices =
    input.prices === undefined
      ? null
      : new Map(
          Object.entries(input.prices).map(([value, usd]) => {
            const wrong = wrongValue(value, source);
            if (wrong !== null) complain([...at, 'prices', value], wrong);
            return [value, paid(usd, [...at, 'prices', value], complain)];
          }),
        );
  if (prices?.size === 0) complain([...at, 'prices'], 'write at least one value with its price');
  const tiers =
    input.tiers?.map(({ upTo, price }, index) => {
      const before = input.tiers?.[index - 1]?.upTo;
      if (before !== undefined && upTo <= before)
        complain([...at, 'tiers', index, 'upTo'], `must be above ${before}, the end of the tier before it`);
      return { upTo, priceMicros: paid(price, [...at, 'tiers', index, 'price'], complain) };
    }) ?? null;
  const defaultMicros =
    input.default === undefined ? null : paid(input.default, [...at, 'default'], complain);
  if (source.kind === 'path' && input.absent !== undefined)
    complain([...at, 'absent'], 'a parameter of the path is never absent: remove this line');
  const absentMicros =
    input.absent === undefined ? defaultMicros : paid(input.absent, [...at, 'absent'], complain);
  const all = [
    ...(prices?.values() ?? []),
    ...(tiers ?? []).map(({ priceMicros }) => priceMicros),
    ...[defaultMicros, absentMicros].filter((each) => each !== null),
  ];
  const [first = 0n] = all;
  return {
    source,
    prices,
    tiers,
    defaultMicros,
    absentMicros,
    lowestMicros: all.reduce((a, b) => (b < a ? b : a), first),
    highestMicros: all.reduce((a, b) => (b > a ? b : a), first),
  };
}

function sourceOf(key: RouteKey, input: PriceByInput, at: FieldPath, complain: Complain): PriceSource {
  const written = SOURCES.filter((each) => input[each] !== undefined);
  if (written.length !== 1) complain(at, `write one of ${SOURCES.join(', ')}: what decides the price`);
  const { field, header, query, path } = input;
  if (field !== undefined) {
    if (key.method === 'GET') complain([...at, 'field'], 'a GET has no body: use query, header or path');
    return { kind: 'field', names: field.split('.') };
  }
  if (header !== undefined) {
    const wrong = wrongRequestHeader(header);
    if (wrong !== null) complain([...at, 'header'], `cannot decide a price: ${wrong}`);
    return { kind: 'header', name: header };
  }
  if (query !== undefined) return { kind: 'query', name: query };
  const name = path ?? '';
  const names = parametersOf(key.path);
  if (path !== undefined && !names.includes(name))
    complain(
      [...at, 'path'],
      names.length === 0
        ? `the path ${key.path.text} has no parameters`
        : `the path ${key.path.text} has no parameter :${name}, only ${names.map((each) => `:${each}`).join(', ')}`,
    );
  return { kind: 'path', name };
}

/** @returns why a request can never hold this value, as it is compared; null: it can */
function wrongValue(value: string, source: PriceSource): string | null {
  if (source.kind === 'header')
    return /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value) && !value.includes(',')
      ? null
      : 'a header’s value that decides has printable ASCII characters, no comma and no spaces around it';
  return value === '' && source.kind === 'path' ? 'a parameter of the path is never empty' : null;
}
