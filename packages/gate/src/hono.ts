/** `fare('POST /v1/forecast')` for routes of Hono. */
import { Calls, type Fare, type FareAnswer, headersToSet, type OpenCall } from './calls.ts';
import type { GateOptions } from './farebox.ts';

interface Context {
  readonly req: { raw: Request; arrayBuffer(): Promise<ArrayBuffer> };
  res: Response;
  readonly env: unknown;
}

/** A middleware: `app.post('/v1/forecast', fare('POST /v1/forecast'), handler)`. */
export type HonoFare = (context: Context, next: () => Promise<void>) => Promise<Response | undefined>;

export interface HonoGate {
  (route: string): HonoFare;
  /** The paid call of a request, for its handler. */
  of(context: object): Fare | null;
}

/** Opens the gate of a Hono server. @throws Error for options that cannot work */
export function openGate(options: GateOptions): HonoGate {
  const calls = new Calls(options);
  const open = new WeakMap<object, OpenCall>();
  const fare =
    (route: string): HonoFare =>
    async (context, next) => {
      const { raw } = context.req;
      // Whoever read it before has left its bytes with the context.
      const body = raw.bodyUsed ? Buffer.from(await context.req.arrayBuffer()) : await calls.bodyOf(raw.body);
      if ('status' in body) return responseOf(body);
      const url = new URL(raw.url);
      const begun = await calls.begin(route, {
        method: raw.method,
        url: url.pathname + url.search,
        rawHeaders: [...raw.headers].flat(),
        body,
        address: addressOf(context.env),
      });
      if (begun.do === 'answer') return responseOf(begun.answer);
      open.set(context, begun.call);
      context.req.raw = withoutSecrets(raw, begun.call, body);
      await next();
      const made = context.res;
      const { answer, body: own } = await calls.finishWith(begun.call, made.body, (bytes) => ({
        status: made.status,
        rawHeaders: [...made.headers].flat(),
        body: bytes,
        callerLeft: raw.signal.aborted,
      }));
      // Hono adds the headers of an answer to those of the one that it replaces.
      (context as { res: Response | undefined }).res = undefined;
      context.res = responseOf(answer, { headers: made.headers, body: own });
      return undefined;
    };
  return Object.assign(fare, { of: (context: object) => open.get(context)?.fare ?? null });
}

/** The request as its handler gets it. */
function withoutSecrets(raw: Request, { mayPass }: OpenCall, body: Buffer): Request {
  const { url, method, signal } = raw;
  const headers = new Headers([...raw.headers].filter(([name]) => mayPass(name)));
  return new Request(url, {
    method,
    headers,
    signal,
    ...(body.length === 0 ? {} : { body: new Uint8Array(body) }),
  });
}

/** The address of the caller, as the server of Node tells it; null: it does not. */
function addressOf(env: unknown): string | null {
  const { incoming } = (env ?? {}) as { incoming?: { socket?: { remoteAddress?: string } } };
  return incoming?.socket?.remoteAddress ?? null;
}

/** @param own the answer that the handler made, whose body leaves unless the answer of Farebox has one */
function responseOf(answer: FareAnswer, own?: { headers: Headers; body: Buffer }): Response {
  const headers = new Headers(answer.body === null ? own?.headers : undefined);
  headers.delete('content-length');
  for (const [name, value] of headersToSet(answer)) headers.set(name, value);
  const body = answer.body ?? own?.body;
  const hasBody = body !== undefined && body.length > 0 && answer.status !== 204;
  return new Response(hasBody ? new Uint8Array(body) : null, { status: answer.status, headers });
}
