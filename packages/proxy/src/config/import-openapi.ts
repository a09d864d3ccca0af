/** Makes a configuration of an OpenAPI document: one route for each operation. Nothing is dropped in silence. */
import { dump } from 'js-yaml';
import { checkConfig } from './load.ts';
import {
  isObject,
  type Json,
  type LeftOut,
  listOf,
  NoOpenApi,
  type OpenApiDocument,
  objectOf,
  readOpenApi,
  textOf,
} from './openapi/document.ts';
import { type Operation, routeOf, type WrittenRoute } from './openapi/operation.ts';
import { credentialsOf, type NeededVariable } from './openapi/security.ts';
import { ConfigError } from './problem.ts';
import { METHODS, readRouteKey, shapeOf } from './route-key.ts';

export { NoOpenApi } from './openapi/document.ts';

export interface ImportOptions {
  /** Price of each route in USD, such as `0.05`. */
  priceUsd: string;
  /** Address of the API; null: the document's first server. */
  url: string | null;
  /** Name of the upstream; null: from the document's title. */
  upstream: string | null;
  /** The address of the schema for editors, for the file's first line; null: without. */
  schema: string | null;
}

export interface ImportedApi {
  /** The text of farebox.config.yaml. */
  text: string;
  routes: number;
  /** Environment variables that must be set before it can be used. */
  variables: readonly NeededVariable[];
  /** Everything that was not taken over. */
  leftOut: readonly LeftOut[];
}

const NOWHERE = 'http://127.0.0.1:9000';
const MOST_ROUTES = 5_000;
/** The longest text that is written; a configuration's reader takes a little more. */
const MOST_CHARACTERS = 3_500_000;

/**
 * Imports a document of OpenAPI 3.0 or 3.1, in JSON or YAML.
 *
 * @throws NoOpenApi when it is none, or when nothing in it can be sold
 */
export function importOpenApi(text: string, options: ImportOptions): ImportedApi {
  const document = readOpenApi(text);
  const leftOut: LeftOut[] = [];
  const leaveOut = (where: string, why: string) => {
    leftOut.push({ where, why });
  };
  const name = upstreamName(options.upstream, document);
  const url = addressOf(document, options.url, leaveOut);
  if (document.root.webhooks !== undefined)
    leaveOut('webhooks', 'the upstream makes those calls, and nobody sells them');
  const operations = operationsOf(document, leaveOut);
  const routes = routesOf(document, operations, { upstream: name, price: options.priceUsd }, leaveOut);
  const prefix = name.toUpperCase().replaceAll('-', '_');
  const credentials = credentialsOf(
    document,
    operations.map(({ operation }) => operation),
    prefix,
    leaveOut,
  );
  const upstream = {
    url,
    prefix: '/',
    ...(Object.keys(credentials.headers).length === 0 ? {} : { headers: credentials.headers }),
    ...(Object.keys(credentials.query).length === 0 ? {} : { query: credentials.query }),
  };
  const upstreams = { [name]: upstream };
  const env = Object.fromEntries(credentials.variables.map((each) => [each.name, 'x']));
  const wrong = problemsOf({ upstreams }, env)[0];
  if (wrong !== undefined) throw new NoOpenApi(`${wrong.path}: ${wrong.message}`);
  const kept = withoutUnfit(routes, upstreams, env, leaveOut);
  if (kept.size === 0) throw new NoOpenApi('no operation of it can be sold');
  const written = textFor({ upstreams, routes: kept }, options.schema, leaveOut);
  return { text: written, routes: kept.size, variables: credentials.variables, leftOut };
}

function upstreamName(given: string | null, { root }: OpenApiDocument): string {
  const title = given ?? textOf(objectOf(root.info).title) ?? '';
  const name = title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(0, 40)
    .replace(/-+$/, '');
  return name === '' ? 'api' : name;
}

function addressOf(
  { root }: OpenApiDocument,
  given: string | null,
  leaveOut: (where: string, why: string) => void,
): string {
  if (given !== null) return given;
  const [first, ...others] = listOf(root.servers).map((each) => textOf(objectOf(each).url) ?? '');
  if (others.length > 0) leaveOut('servers', `${others.length} further servers: all routes go to the first`);
  const say = (why: string) =>
    leaveOut('servers', `${why}: write the address of the API under "url", or give it by --url`);
  if (first === undefined || first === '') say('the document names no server');
  else if (first.includes('{')) say('the address of the server is a template');
  else if (/^https?:\/\//i.test(first) && URL.canParse(first)) {
    const { origin, pathname, search, username } = new URL(first);
    if (search === '' && username === '') return `${origin}${pathname.replace(/\/+$/, '')}`;
    say('the address of the server holds credentials or parameters');
  } else if (first.startsWith('/')) {
    say('the address of the server has no host');
    return `${NOWHERE}${first.replace(/[?#].*$/s, '').replace(/\/+$/, '')}`;
  } else say('the address of the server is neither http nor https');
  return NOWHERE;
}

function operationsOf(
  document: OpenApiDocument,
  leaveOut: (where: string, why: string) => void,
): Operation[] {
  const sold = new Map(METHODS.map((method) => [method.toLowerCase(), method]));
  return Object.entries(objectOf(document.root.paths)).flatMap(([path, written]) => {
    if (path.startsWith('x-')) return [];
    const item = document.resolve(written);
    if (item === null) {
      leaveOut(path, 'this path is not in this document');
      return [];
    }
    return Object.entries(item).flatMap(([name, operation]): Operation[] => {
      const method = sold.get(name);
      if (!isObject(operation)) return [];
      if (method !== undefined) return [{ method, path, item, operation }];
      if (name === 'head' || name === 'options')
        leaveOut(
          `${name.toUpperCase()} ${path}`,
          'the server answers this method by itself, for every route',
        );
      else if (['trace', 'query', 'connect'].includes(name))
        leaveOut(`${name.toUpperCase()} ${path}`, 'this method is not sold');
      return [];
    });
  });
}

type Routes = Map<string, WrittenRoute>;

function routesOf(
  document: OpenApiDocument,
  operations: readonly Operation[],
  sale: { upstream: string; price: string },
  leaveOut: (where: string, why: string) => void,
): Routes {
  const routes: Routes = new Map();
  const shapes = new Map<string, string>();
  for (const operation of operations) {
    const where = `${operation.method} ${operation.path}`;
    if (routes.size >= MOST_ROUTES) {
      leaveOut(where, `a configuration has at most ${MOST_ROUTES} routes`);
      continue;
    }
    const made = routeOf(document, operation, sale, leaveOut);
    const key = made === null ? null : readRouteKey(made.key);
    if (made === null || key === null || 'wrong' in key) continue;
    const shape = `${key.method} ${shapeOf(key.path)}`;
    const twin = shapes.get(shape);
    if (twin !== undefined) {
      leaveOut(where, `it matches the same addresses as ${twin}`);
      continue;
    }
    shapes.set(shape, where);
    routes.set(made.key, made.route);
  }
  return routes;
}

function problemsOf(
  config: unknown,
  env: Readonly<Record<string, string>>,
): readonly { path: string; message: string }[] {
  try {
    checkConfig(config, 'imported', { env, serviceNames: null });
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

/** The fields of a route that it can do without, in the order in which they are given up. */
const SPARE = ['example', 'request', 'response', 'requestHeaders', 'tags', 'name', 'summary'] as const;

/** The routes that a server takes: of one that it refuses, without the fields that it refuses. */
function withoutUnfit(
  routes: Routes,
  upstreams: Json,
  env: Readonly<Record<string, string>>,
  leaveOut: (where: string, why: string) => void,
): Routes {
  const kept: Routes = new Map();
  for (const [key, written] of routes) {
    let route = written;
    for (let turn = 0; turn <= SPARE.length; turn++) {
      const [first] = problemsOf({ upstreams, routes: { [key]: route } }, env);
      if (first === undefined) {
        kept.set(key, route);
        break;
      }
      const field = SPARE.find((each) => first.path.includes(`"].${each}`) && route[each] !== undefined);
      leaveOut(key, `${field === undefined ? 'the whole operation' : `its ${field}`}: ${first.message}`);
      if (field === undefined) break;
      const { [field]: _, ...rest } = route;
      route = rest;
    }
  }
  return kept;
}

/** The text of a configuration, without schemas where it would be too large to be read. */
function textFor(
  { upstreams, routes }: { upstreams: Json; routes: Routes },
  schema: string | null,
  leaveOut: (where: string, why: string) => void,
): string {
  const head = schema === null ? '' : `# yaml-language-server: $schema=${schema}\n`;
  const write = (all: Routes) =>
    head +
    dump(
      { upstreams, routes: Object.fromEntries(all) },
      { lineWidth: -1, noRefs: true, quoteStyle: 'double' },
    );
  const whole = write(routes);
  if (whole.length <= MOST_CHARACTERS) return whole;
  leaveOut('schemas', 'with all schemas the file would be too large');
  return write(
    new Map([...routes].map(([key, { request: _, response: __, example: ___, ...rest }]) => [key, rest])),
  );
}
