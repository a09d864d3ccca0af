/** A client that is typed by a server's OpenAPI document, for any Farebox and the routes that it sells of its own. */
import { type CallOptions, createFarebox, type FareboxOptions, type Purchased } from './client.ts';

/** The body, the answer and the parameters of an operation, as `openapi-typescript` writes them. */
type BodyOf<Operation> = Operation extends { requestBody?: { content: { 'application/json': infer Body } } }
  ? Body
  : Record<string, unknown>;
type AnswerOf<Operation> = Operation extends {
  responses: { 200: { content: { 'application/json': infer Answer } } };
}
  ? Answer
  : unknown;
type PathsWith<Paths, Method extends string> = {
  [Path in keyof Paths]: Paths[Path] extends { [M in Method]: { responses: unknown } } ? Path : never;
}[keyof Paths] &
  string;
type OperationOf<Paths, Path extends keyof Paths, Method extends string> = Paths[Path] extends {
  [M in Method]: infer Operation;
}
  ? Operation
  : never;

export interface RouteOptions extends CallOptions {
  /** The values of `{name}` in the path. */
  path?: Record<string, string | number>;
  query?: Record<string, string | number | boolean | undefined>;
}

export interface OpenApiClient<Paths> {
  post<Path extends PathsWith<Paths, 'post'>>(
    path: Path,
    body: BodyOf<OperationOf<Paths, Path, 'post'>>,
    options?: RouteOptions,
  ): Promise<Purchased<AnswerOf<OperationOf<Paths, Path, 'post'>>>>;
  get<Path extends PathsWith<Paths, 'get'>>(
    path: Path,
    options?: RouteOptions,
  ): Promise<Purchased<AnswerOf<OperationOf<Paths, Path, 'get'>>>>;
}

/**
 * Opens a client of a server by the types of its paths: `fromOpenApi<paths>(url, options)`, where `paths` is what `openapi-typescript`
 * makes of the server's `/openapi.json`. It buys as `createFarebox` does.
 */
export function fromOpenApi<Paths>(
  url: string,
  options: Omit<FareboxOptions, 'url'> = {},
): OpenApiClient<Paths> {
  const farebox = createFarebox({ ...options, url });
  const send = (method: string, path: string, body: Record<string, unknown>, route: RouteOptions = {}) =>
    farebox.request({ method, path: filled(path, route) }, body, route);
  return {
    post: (path, body, route) => send('POST', path, body as Record<string, unknown>, route) as never,
    get: (path, route) => send('GET', path, {}, route) as never,
  };
}

/** @throws TypeError when a value of the path is missing */
function filled(template: string, { path = {}, query = {} }: RouteOptions): string {
  const written = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = path[name];
    if (value === undefined || /^\.{0,2}$/.test(String(value))) throw new TypeError(`the path needs ${name}`);
    return encodeURIComponent(value);
  });
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  const text = new URLSearchParams(given as [string, string][]).toString();
  return text === '' ? written : `${written}?${text}`;
}
