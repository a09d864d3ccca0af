/** Makes a route of one operation of an OpenAPI document. */
import { wrongRequestHeader } from '../header-names.ts';
import { type Method, readRouteKey } from '../route-key.ts';
import type { ConfigInput } from '../schema.ts';
import {
  fieldOf,
  isObject,
  type Json,
  type LeaveOut,
  listOf,
  type OpenApiDocument,
  objectOf,
  textOf,
} from './document.ts';
import { type Sample, sampleOf, standingSchema } from './schemas.ts';

export type WrittenRoute = NonNullable<ConfigInput['routes']>[string];

interface Parameter {
  name: string;
  place: 'path' | 'query' | 'header';
  isRequired: boolean;
  schema: Json | null;
  sample: Sample;
}

export interface Operation {
  readonly method: Method;
  /** The path as the document writes it: `/pets/{id}`. */
  readonly path: string;
  readonly item: Json;
  readonly operation: Json;
}

/** The headers that OpenAPI tells by other means, and those that go on with every call. */
const TOLD_OTHERWISE: ReadonlySet<string> = new Set([
  'accept',
  'content-type',
  'authorization',
  'accept-language',
]);
const isJsonType = (type: string) => /^application\/(json|[\w.+-]+\+json)\s*(;|$)/i.test(type);

/** @returns the route's key and fields; null when it cannot be sold so, which is noted */
export function routeOf(
  document: OpenApiDocument,
  { method, path, item, operation }: Operation,
  sale: { upstream: string; price: string },
  leaveOut: LeaveOut,
): { key: string; route: WrittenRoute } | null {
  const where = `${method} ${path}`;
  const names = pathNames(path);
  if (typeof names === 'string') {
    leaveOut(where, names);
    return null;
  }
  const key = `${method} ${keyPath(path, names)}`;
  const read = readRouteKey(key);
  const parameters = parametersOf(document, item, operation, where, leaveOut);
  const body = bodyOf(document, operation, method, where, leaveOut);
  if ('wrong' in read || parameters === null || body === null) {
    if ('wrong' in read) leaveOut(where, read.wrong);
    return null;
  }
  if (isObject(operation.callbacks) && Object.keys(operation.callbacks).length > 0)
    leaveOut(where, 'its callbacks: the upstream makes those calls, and nobody sells them');
  for (const [name, at] of Object.entries({ operation, path: item }))
    if (at.servers !== undefined) leaveOut(where, `the servers of the ${name}: all routes go to one address`);
  const answer = answerOf(document, operation, where, leaveOut);
  const request = requestOf(parameters, names, body.schema);
  const example = exampleOf(parameters, names, body);
  const headers = parameters.filter(({ place }) => place === 'header').map(({ name }) => name.toLowerCase());
  const summary = summaryOf(operation, item);
  const tags = tagsOf(operation);
  const name = oneLine(textOf(operation.operationId) ?? '', 80);
  return {
    key,
    route: {
      ...sale,
      ...(name === '' ? {} : { name }),
      ...(summary === '' ? {} : { summary }),
      ...(tags.length === 0 ? {} : { tags }),
      ...(headers.length === 0 ? {} : { requestHeaders: [...new Set(headers)] }),
      ...(answer.isStream ? { answer: 'streamed' as const } : {}),
      ...(example === null ? {} : { example }),
      ...(Object.keys(request).length === 0 ? {} : { request }),
      ...(answer.schema === null ? {} : { response: answer.schema }),
    },
  };
}

/** The names of a path's parameters, each with the one that its route has; a text says why the path cannot be a route. */
function pathNames(path: string): Map<string, string> | string {
  const names = new Map<string, string>();
  for (const segment of path.split('/')) {
    const inside = /^\{([^{}]+)\}$/.exec(segment)?.[1];
    if (inside === undefined) {
      if (/[{}]/.test(segment))
        return `a parameter is a whole segment of a path, and ${segment} is more than that`;
      if (segment.startsWith(':')) return `a segment that begins with a colon is a parameter: ${segment}`;
      continue;
    }
    const plain = inside
      .replaceAll(/[^A-Za-z0-9_]/g, '_')
      .replace(/^(?=\d)/, '_')
      .slice(0, 60);
    const isTaken = [...names.values()].includes(plain);
    names.set(inside, isTaken ? `${plain}_${names.size + 1}` : plain);
  }
  return names;
}

function keyPath(path: string, names: ReadonlyMap<string, string>): string {
  return path.replaceAll(/\{([^{}]+)\}/g, (_, name: string) => `:${names.get(name) ?? name}`);
}

/** @returns null when the operation needs a parameter that cannot be sent */
function parametersOf(
  document: OpenApiDocument,
  item: Json,
  operation: Json,
  where: string,
  leaveOut: LeaveOut,
): Parameter[] | null {
  const found = new Map<string, Parameter>();
  for (const written of [...listOf(item.parameters), ...listOf(operation.parameters)]) {
    const parameter = document.resolve(written);
    const name = textOf(parameter?.name);
    const place = textOf(parameter?.in);
    if (parameter === null || name === null || name === '') {
      leaveOut(where, 'a parameter that is not declared in this document');
      continue;
    }
    const isRequired = parameter.required === true;
    const why = unsendable(parameter, name, place);
    if (why !== null) {
      leaveOut(where, isRequired ? `the whole operation, since it needs ${why}` : why);
      if (isRequired) return null;
      continue;
    }
    if (place === 'header' && TOLD_OTHERWISE.has(name.toLowerCase())) continue;
    if (place !== 'path' && place !== 'query' && place !== 'header') continue;
    found.set(
      `${place} ${name}`,
      readParameter(document, parameter, { name, place, isRequired }, where, leaveOut),
    );
  }
  return [...found.values()];
}

/** @returns why a parameter is not taken over; null: it is */
function unsendable(parameter: Json, name: string, place: string | null): string | null {
  if (place === 'cookie') return `the cookie ${name}: cookies are never sent on`;
  if (place === 'header') {
    const header = name.toLowerCase();
    if (TOLD_OTHERWISE.has(header)) return null;
    if (!/^[a-z0-9!#$%&'*+.^_`|~-]{1,100}$/.test(header))
      return `the header ${name}: its name cannot be sent`;
    const wrong = wrongRequestHeader(header);
    return wrong === null ? null : `the header ${name}: ${wrong}`;
  }
  if (place === 'path') return null;
  if (place !== 'query') return `the parameter ${name}, which is in no place that is known`;
  return parameter.style === 'deepObject' ? `the parameter ${name}, which is an object in the address` : null;
}

function readParameter(
  document: OpenApiDocument,
  parameter: Json,
  told: Pick<Parameter, 'name' | 'place' | 'isRequired'>,
  where: string,
  leaveOut: LeaveOut,
): Parameter {
  const standing =
    parameter.schema === undefined
      ? { schema: { type: 'string' } }
      : standingSchema(document, parameter.schema);
  if ('why' in standing) leaveOut(where, `the schema of the parameter ${told.name}: ${standing.why}`);
  const schema = 'schema' in standing ? standing.schema : null;
  const description = oneLine(textOf(parameter.description) ?? '', 500);
  const described = schema === null || description === '' ? schema : { description, ...schema };
  return {
    ...told,
    schema: described,
    sample: exampleIn(document, parameter) ?? (schema === null ? null : sampleOf(schema)),
  };
}

/** The example that a parameter or a media type has itself. */
function exampleIn(document: OpenApiDocument, holder: Json): Sample {
  if (holder.example !== undefined) return { value: holder.example };
  for (const each of Object.values(objectOf(holder.examples))) {
    const example = document.resolve(each);
    if (example?.value !== undefined) return { value: example.value };
  }
  return null;
}

interface Body {
  schema: Json | null;
  sample: Sample;
  isRequired: boolean;
}

/** @returns null when the operation cannot be sold for its body */
function bodyOf(
  document: OpenApiDocument,
  operation: Json,
  method: Method,
  where: string,
  leaveOut: LeaveOut,
): Body | null {
  const none = { schema: null, sample: null, isRequired: false };
  if (operation.requestBody === undefined) return none;
  if (method === 'GET') {
    leaveOut(where, 'the body of a GET, which has no meaning');
    return none;
  }
  const body = document.resolve(operation.requestBody);
  if (body === null) {
    leaveOut(where, 'the schema of its body, which is not in this document');
    return none;
  }
  const types = Object.entries(objectOf(body.content));
  const media = types.find(([type]) => isJsonType(type));
  if (media === undefined) {
    if (types.length > 0 && types.every(([type]) => /^multipart\//i.test(type))) {
      leaveOut(where, 'the whole operation, since its body is in parts (multipart)');
      return null;
    }
    if (types.length > 0)
      leaveOut(where, 'the schema of its body, which is no JSON; it is sent on as it comes');
    return { ...none, isRequired: body.required === true };
  }
  const holder = objectOf(media[1]);
  const standing = holder.schema === undefined ? null : standingSchema(document, holder.schema);
  if (standing !== null && 'why' in standing) leaveOut(where, `the schema of its body: ${standing.why}`);
  const schema = standing !== null && 'schema' in standing ? standing.schema : null;
  const sample = exampleIn(document, holder) ?? (schema === null ? null : sampleOf(schema));
  return { schema, sample, isRequired: body.required === true };
}

function answerOf(
  document: OpenApiDocument,
  operation: Json,
  where: string,
  leaveOut: LeaveOut,
): { schema: Json | null; isStream: boolean } {
  const responses = objectOf(operation.responses);
  const [status] = Object.keys(responses)
    .filter((each) => /^2(\d\d|XX)$/i.test(each))
    .sort();
  const response = status === undefined ? null : document.resolve(responses[status]);
  const content = Object.entries(objectOf(response?.content));
  const isStream = content.length > 0 && content.every(([type]) => /^text\/event-stream\b/i.test(type));
  const media = content.find(([type]) => isJsonType(type));
  const schema = objectOf(media?.[1]).schema;
  if (schema === undefined) return { schema: null, isStream };
  const standing = standingSchema(document, schema);
  if ('schema' in standing) return { schema: standing.schema, isStream };
  leaveOut(where, `the schema of its answer: ${standing.why}`);
  return { schema: null, isStream };
}

function requestOf(
  parameters: readonly Parameter[],
  names: ReadonlyMap<string, string>,
  body: Json | null,
): NonNullable<WrittenRoute['request']> {
  const objectFor = (place: 'path' | 'query') => {
    const placed = parameters.filter((each) => each.place === place && each.schema !== null);
    if (placed.length === 0) return null;
    const nameOf = (name: string) => (place === 'path' ? (names.get(name) ?? name) : name);
    const required = placed.filter(({ isRequired }) => isRequired).map(({ name }) => nameOf(name));
    return {
      type: 'object',
      properties: Object.fromEntries(placed.map(({ name, schema }) => [nameOf(name), schema])),
      ...(required.length === 0 ? {} : { required }),
    };
  };
  const query = objectFor('query');
  const path = objectFor('path');
  return {
    ...(query === null ? {} : { query }),
    ...(path === null ? {} : { path }),
    ...(body === null ? {} : { body }),
  };
}

/** An example that works: nothing in it is made up, so that it is there only if the document shows all that the call needs. */
function exampleOf(
  parameters: readonly Parameter[],
  names: ReadonlyMap<string, string>,
  body: Body,
): NonNullable<WrittenRoute['example']> | null {
  const textsOf = (place: Parameter['place']) =>
    parameters
      .filter((each) => each.place === place)
      .map((each) => ({ ...each, text: sentText(each.sample) }));
  const query = textsOf('query');
  const headers = textsOf('header');
  const params = [...names].map(([name, plain]) => ({
    plain,
    text: textsOf('path').find((each) => each.name === name)?.text ?? null,
  }));
  const isWhole =
    params.every(({ text }) => text !== null) &&
    [...query, ...headers].every(({ isRequired, text }) => !isRequired || text !== null) &&
    (!body.isRequired || body.sample !== null);
  if (!isWhole) return null;
  const shown = <Each extends { text: string | null }>(
    list: readonly Each[],
    nameOf: (each: Each) => string,
  ) => Object.fromEntries(list.flatMap((each) => (each.text === null ? [] : [[nameOf(each), each.text]])));
  const parts = {
    params: shown(params, ({ plain }) => plain),
    query: shown(query, ({ name }) => name),
    headers: shown(headers, ({ name }) => name.toLowerCase()),
  };
  const kept = Object.entries(parts).filter(([, part]) => Object.keys(part).length > 0);
  const example = {
    ...Object.fromEntries(kept),
    ...(body.sample === null ? {} : { body: body.sample.value }),
  };
  return Object.keys(example).length === 0 ? null : example;
}

/** A sample as it stands in an address or a header; null for what has no single text. */
function sentText(sample: Sample): string | null {
  if (sample === null) return null;
  const { value } = sample;
  if (typeof value === 'string') return value === '' ? null : value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : null;
}

function summaryOf(operation: Json, item: Json): string {
  const written = [operation.summary, operation.description, fieldOf(item, 'summary')].map(textOf);
  const text = oneLine(written.find((each) => each !== null && each.trim() !== '') ?? '', 1_000);
  if (text.length <= 200) return text;
  const sentence = /^.{1,199}?[.!?](?=\s)/.exec(text)?.[0];
  return sentence ?? `${text.slice(0, 199).replace(/[\ud800-\udbff]$/, '')}…`;
}

function tagsOf(operation: Json): string[] {
  const tags = listOf(operation.tags).map((each) => oneLine(textOf(each) ?? '', 40));
  return [...new Set(tags.filter((each) => each !== ''))].slice(0, 5);
}

/** Text from outside on one line, without control characters. */
function oneLine(text: string, most: number): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, most)
    .replace(/[\ud800-\udbff]$/, '')
    .trim();
}
