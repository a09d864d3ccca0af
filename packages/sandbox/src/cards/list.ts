/** Lists as the card API pages them, and objects put in the place of their ids on request. */
import { invalid } from './api-error.ts';
import type { Params } from './form.ts';
import type { Records } from './records.ts';

const DEFAULT_LIMIT = 10;
const MAX_LIMIT = 100;
const MAX_EXPAND = 20;
const MAX_EXPAND_DEPTH = 4;

/** The fields that hold an id and can hold the object instead. */
const EXPANDABLE = new Set([
  'balance_transaction',
  'charge',
  'customer',
  'default_payment_method',
  'failure_balance_transaction',
  'latest_charge',
  'payment_intent',
  'payment_method',
]);

export interface List<T> {
  object: 'list';
  data: T[];
  has_more: boolean;
  url: string;
}

export type Filter<T> = (object: T) => boolean;

/**
 * Reads `limit`, `starting_after`, `ending_before` and `created`, and cuts that page out: newest first.
 * @param all oldest first
 */
export function listOf<T extends { id: string; created?: number }>(
  all: Iterable<T>,
  url: string,
  params: Params,
  filters: readonly Filter<T>[],
): List<T> {
  const limit = params.integer('limit') ?? DEFAULT_LIMIT;
  const after = params.text('starting_after', 100);
  const before = params.text('ending_before', 100);
  const created = readCreated(params);
  params.end();
  if (limit < 1 || limit > MAX_LIMIT) throw invalid(`limit must be 1 to ${MAX_LIMIT}.`, 'limit');
  if (after !== undefined && before !== undefined) {
    throw invalid('You cannot parameterize both starting_after and ending_before.');
  }
  const everything = [...all].reverse();
  const position = (id: string, param: string) => {
    const index = everything.findIndex((one) => one.id === id);
    if (index < 0) throw invalid(`No such object: '${id}'`, param, 'resource_missing');
    return index;
  };
  const fits = (one: T) => created(one.created ?? 0) && filters.every((filter) => filter(one));
  if (before !== undefined) {
    const newer = everything.slice(0, position(before, 'ending_before')).filter(fits);
    return { object: 'list', data: newer.slice(-limit), has_more: newer.length > limit, url };
  }
  const from = after === undefined ? 0 : position(after, 'starting_after') + 1;
  const rest = everything.slice(from).filter(fits);
  return { object: 'list', data: rest.slice(0, limit), has_more: rest.length > limit, url };
}

/** `created=<unix s>`, or any of `created[gt|gte|lt|lte]`. */
function readCreated(params: Params): (createdS: number) => boolean {
  if (!params.has('created')) return () => true;
  if (!params.isGroup('created')) {
    const exact = params.integer('created');
    return (createdS) => createdS === exact;
  }
  const group = params.group('created');
  const [gt, gte, lt, lte] = ['gt', 'gte', 'lt', 'lte'].map((name) => group?.integer(name));
  return (createdS) =>
    (gt === undefined || createdS > gt) &&
    (gte === undefined || createdS >= gte) &&
    (lt === undefined || createdS < lt) &&
    (lte === undefined || createdS <= lte);
}

/** A filter by a parameter that must equal a field; none when the parameter is absent. */
export function equal<T>(params: Params, name: string, field: (object: T) => unknown): Filter<T> {
  const wanted = params.text(name, 100);
  return wanted === undefined ? () => true : (object) => field(object) === wanted;
}

/** Reads `expand[]`. */
export function readExpand(params: Params): string[][] {
  return params.texts('expand', MAX_EXPAND).map((text) => {
    const path = text.split('.');
    if (path.length > MAX_EXPAND_DEPTH) {
      throw invalid(`You cannot expand more than ${MAX_EXPAND_DEPTH} levels of a property.`, 'expand');
    }
    return path;
  });
}

/**
 * A copy of an object with objects in the place of the ids at these paths; `data.…` goes through a list.
 * @throws ApiError 400 for a property that cannot be expanded
 */
export function expanded(records: Records, object: object, paths: readonly string[][]): unknown {
  const copy = structuredClone(object);
  for (const path of paths) expand(records, copy, path, path);
  return copy;
}

function expand(records: Records, object: unknown, path: readonly string[], whole: readonly string[]): void {
  const [name, ...rest] = path;
  if (name === undefined || typeof object !== 'object' || object === null) return;
  const fields: Record<string, unknown> = object as Record<string, unknown>;
  if (name === 'data' && Array.isArray(fields.data)) {
    for (const one of fields.data) expand(records, one, rest, whole);
    return;
  }
  const included = includable(records, fields, name);
  if (included !== null) fields[name] = included;
  else if (!(name in fields) || (rest.length === 0 && !EXPANDABLE.has(name))) {
    throw invalid(`This property cannot be expanded (${whole.join('.')}).`, 'expand');
  }
  const value = fields[name];
  if (EXPANDABLE.has(name) && typeof value === 'string')
    fields[name] = structuredClone(objectOf(records, value));
  expand(records, fields[name], rest, whole);
}

/** What is left out of an object unless it is asked for. */
function includable(records: Records, fields: Record<string, unknown>, name: string): List<unknown> | null {
  const id = typeof fields.id === 'string' ? fields.id : '';
  if (fields.object === 'checkout.session' && name === 'line_items') {
    const data = structuredClone(records.orders.get(id)?.lines ?? []);
    return { object: 'list', data, has_more: false, url: `/v1/checkout/sessions/${id}/line_items` };
  }
  if (fields.object === 'charge' && name === 'refunds') {
    const all = [...records.refunds.values()].filter(({ charge }) => charge === id).reverse();
    const data = structuredClone(all.slice(0, DEFAULT_LIMIT));
    return { object: 'list', data, has_more: all.length > DEFAULT_LIMIT, url: `/v1/charges/${id}/refunds` };
  }
  return null;
}

function objectOf(records: Records, id: string): unknown {
  return (
    records.customers.get(id) ??
    records.paymentMethods.get(id) ??
    records.paymentIntents.get(id) ??
    records.charges.get(id) ??
    records.balanceTransactions.get(id) ??
    id
  );
}
