import { nearest } from '@farebox/core/words/nearest';
import type { FieldPath } from './problem.ts';
import type { Gate, Upstream } from './proxy-config.ts';
import { addressOf, type Complain, credentialsOf, type Environment } from './resolve-upstream.ts';
import type { GateInput, RouteInput } from './schema.ts';

/** A shorter one could be found by trying. The guest's package has the same bound. */
const LEAST_SECRET_CHARACTERS = 32;

/** Resolves one gate; what is wrong with it is complained about, and the rest still looked at. */
export function resolveGate(name: string, input: GateInput, env: Environment, complain: Complain): Gate {
  const at: FieldPath = ['gates', name];
  const { origin, basePath } = addressOf(input.url, [...at, 'url'], complain);
  const [secret] = credentialsOf('header', { secret: input.secret }, at, env, complain);
  if (secret === undefined) throw new Error(`${name} has no secret`);
  const { length } = secret.reveal();
  if (length > 0 && length < LEAST_SECRET_CHARACTERS)
    complain(
      [...at, 'secret'],
      `the environment variable ${secret.variable} has ${length} characters: a secret has at least ${LEAST_SECRET_CHARACTERS}, such as from "openssl rand -hex 32"`,
    );
  return { name, url: origin + basePath, secret };
}

type Answerers = { upstreams: ReadonlyMap<string, Upstream>; gates: ReadonlyMap<string, Gate> };

/** Finds who answers a route: one upstream, or one gate. @returns null when nobody does, which is complained about */
export function answererOf(
  input: RouteInput,
  { upstreams, gates }: Answerers,
  at: FieldPath,
  complain: Complain,
): { upstream: Upstream; gate: Gate | null } | null {
  const { upstream: ofUpstream, gate: ofGate } = input;
  if ((ofUpstream === undefined) === (ofGate === undefined)) {
    complain(at, 'write either an upstream or a gate: one of them answers');
    return null;
  }
  if (ofGate !== undefined) {
    const gate = gates.get(ofGate);
    if (gate !== undefined) return { upstream: upstreamOfGate(gate), gate };
    complain([...at, 'gate'], unknown('gate', ofGate, [...gates.keys()]));
    return null;
  }
  const upstream = upstreams.get(ofUpstream ?? '');
  if (upstream !== undefined) return { upstream, gate: null };
  complain([...at, 'upstream'], unknown('upstream', ofUpstream ?? '', [...upstreams.keys()]));
  return null;
}

function unknown(kind: 'gate' | 'upstream', name: string, names: readonly string[]): string {
  const [best] = nearest(name, names, 1);
  return best === undefined
    ? `there are no ${kind}s: name one under "${kind}s"`
    : `there is no ${kind} ${JSON.stringify(name)}; did you mean "${best}"?`;
}

/** The fields of a route that would do nothing behind a gate, and why. */
export function wrongBehindGate(input: RouteInput): [field: string, wrong: string][] {
  const wrong: [string, string][] = [];
  if (input.free === true)
    wrong.push(['free', 'what costs nothing needs no gate: leave the route to its own server']);
  if (input.answer === 'streamed')
    wrong.push(['answer', 'the answer of a gate is kept before it is paid: it cannot leave as a stream']);
  if (input.upstreamKnowsIdempotencyKey === true)
    wrong.push(['upstreamKnowsIdempotencyKey', 'nothing is sent to a gate, so nothing is sent again']);
  return wrong;
}

/** A gate in the place of an upstream: it has a name and an address, and is never asked. */
function upstreamOfGate({ name, url }: Gate): Upstream {
  return {
    name,
    origin: url,
    basePath: '',
    prefix: '',
    credentials: [],
    fixedHeaders: [],
    timeouts: { headersMs: 20_000, idleMs: 20_000, wholeMs: 20_000 },
    concurrency: 64,
    keepAlive: false,
    breaker: null,
  };
}
