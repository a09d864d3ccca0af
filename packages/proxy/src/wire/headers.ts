/** Which headers of a caller go on to an upstream, and which of an upstream's come back. All that nobody names stay behind. */

/** Headers of one connection, which end at it (RFC 9110, section 7.6.1), and those that say how a message is framed. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
  ...['content-length', 'expect', 'host', 'http2-settings'],
]);

/** Headers that belong to a caller's identity, to money, or to this server. They pass in neither direction. */
const OURS =
  /^(?:authorization|authentication-info|(?:www|proxy)-.*|x-api-key|payment|(?:x-)?payment-.*|x-payment.*|x-x402.*|x402-.*|x-credits-.*|(?:x-)?idempotency-key|idempotent-.*|(?:x-)?farebox-.*|x-wallet-.*|x-retrieval-token|x-agent-tip|x-price-.*|x-call-id|x-provenance|x-availability|x-answered-at|x-recharge-url|x-transaction|x-request-id|(?:set-)?cookie2?)$/;

/** Headers by which a caller could pretend an address, or have the upstream read another method or path than was priced. */
const PRETENDED =
  /^(?:forwarded|via|x-forwarded.*|x-real-ip|(?:x-|true-|fastly-)?client-ip|(?:x-)?cluster-client-ip|cf-connecting-.*|x-(?:http-)?method(?:-override)?|x-original-.*|x-rewrite-.*|x-middleware-.*|sec-websocket-.*)$/;

/** Headers that speak for the whole address of this server, or that it decides by itself. */
const OF_THE_SERVER =
  /^(?:access-control-.*|alt-svc|cache-control|expires|pragma|age|vary|clear-site-data|content-security-policy.*|cross-origin-.*|nel|permissions-policy|refresh|report-to|reporting-endpoints|service-worker-allowed|sourcemap|strict-transport-security|x-content-type-options|x-frame-options|x-accel-.*|x-sendfile|content-encoding|content-range)$/;

const NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
/** Field values as RFC 9110, section 5.5, has them: no CR, LF or NUL, and nothing beyond one byte a character. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** The most characters of all headers of a request together. */
const MOST_CHARACTERS = 16_384;

/** Tells whether a caller's header of this name may be sent on by a route that names it. @param name in lower case */
export function mayGoOn(name: string): boolean {
  return NAME.test(name) && !OF_THE_CONNECTION.has(name) && !OURS.test(name) && !PRETENDED.test(name);
}

/** Tells whether an upstream's header of this name may come back by a route that names it. @param name in lower case */
export function mayComeBack(name: string): boolean {
  return mayGoOn(name) && !OF_THE_SERVER.test(name);
}

/** Names and values in turn, each value as it came. */
export type FlatHeaders = readonly string[];

export interface HeadersRefused {
  readonly refused: string;
}

/** All that decides about the headers of one request. */
export interface RequestHeaderParts {
  /** The caller's, as node:http has them in `rawHeaders`. */
  readonly received: FlatHeaders;
  /** The names that the route lets through, in lower case. */
  readonly named: ReadonlySet<string>;
  /** Whether there is a body to be sent. */
  readonly hasBody: boolean;
  /** Whether the answer is read on the way, by a rule or a measure: it then may not be compressed. */
  readonly isAnswerRead: boolean;
  /** The names of the upstream's credentials and fixed headers, in lower case. None of the caller's takes their place. */
  readonly own: ReadonlySet<string>;
  readonly userAgent: string;
}

/**
 * Makes the headers of a request before it is paid: those that the route names, `accept`, `content-type`, and our own without a secret.
 *
 * @returns a refusal for the caller (400) if a header cannot be sent on as it is
 */
export function headersForUpstream(parts: RequestHeaderParts): FlatHeaders | HeadersRefused {
  const { received, named, hasBody, own } = parts;
  const ofConnection = connectionNames(pairsOf(received));
  const set = new Map<string, string[]>();
  for (const [name, value] of pairsOf(received)) {
    if (name === 'content-encoding' && hasBody && !named.has(name))
      return { refused: 'The body of a request may not be compressed here: leave out Content-Encoding.' };
    const isWanted = name === 'accept' || (name === 'content-type' && hasBody) || named.has(name);
    if (!isWanted || !mayGoOn(name) || own.has(name)) continue;
    if (ofConnection.has(name))
      return { refused: `The header ${name} is part of the request: do not name it in Connection.` };
    if (!VALUE.test(value)) return { refused: `The value of the header ${name} cannot be sent on.` };
    set.set(name, [...(set.get(name) ?? []), value]);
  }
  if ((set.get('content-type')?.length ?? 0) > 1) return { refused: 'A request has one Content-Type.' };
  if (parts.isAnswerRead) set.delete('accept-encoding');
  for (const [name, value] of [
    ['accept', '*/*'],
    ['accept-encoding', 'identity'],
    ['user-agent', parts.userAgent],
  ] as const)
    if (!set.has(name) && !own.has(name)) set.set(name, [value]);
  const flat = [...set].flatMap(([name, values]) => values.flatMap((value) => [name, value]));
  const characters = flat.reduce((sum, text) => sum + text.length, 0);
  return characters > MOST_CHARACTERS
    ? { refused: `The headers that are sent on have at most ${MOST_CHARACTERS} characters.` }
    : flat;
}

/**
 * Adds what only the upstream sees to the headers of a request.
 *
 * @param own the upstream's credentials and fixed headers, by names in lower case
 * @param idempotencyKey names the call to the upstream, the same whenever the call is sent again; null: none is sent
 */
export function withOwnHeaders(
  headers: FlatHeaders,
  own: Readonly<Record<string, string>>,
  idempotencyKey: string | null,
): string[] {
  const added = Object.entries(own).flat();
  return [...headers, ...added, ...(idempotencyKey === null ? [] : ['idempotency-key', idempotencyKey])];
}

/**
 * Checks the headers that the configuration gives an upstream: what stands in a secret is not known before the start.
 *
 * @throws without the value, which may be a secret
 */
export function checkOwnHeaders(own: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(own)) {
    if (!NAME.test(name) || OF_THE_CONNECTION.has(name))
      throw new Error(`No upstream can have a header ${name}`);
    if (value === '' || !VALUE.test(value))
      throw new Error(`The value of the header ${name} is empty, or has characters that no header can have`);
  }
}

/** Headers of an upstream's answer, as undici has them: names in lower case. */
export type ReceivedHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Said to browsers and caches with each answer of an upstream, whatever the upstream would say. */
const DECIDED: Readonly<Record<string, string>> = {
  'cache-control': 'private, no-store',
  // What an upstream answers stands under this server's address, and is no page of it.
  'content-security-policy': 'sandbox',
  'x-content-type-options': 'nosniff',
};

/**
 * Makes the headers that a caller gets with an upstream's answer: of what kind it is, those that the route names, and what we say about
 * caches. The length is not among them.
 */
export function headersForCaller(
  received: ReceivedHeaders,
  { named, status }: { named: ReadonlySet<string>; status: number },
): Record<string, string> {
  const ofConnection = connectionNames(
    Object.entries(received).map(([name, value]) => [name, textOf(value)]),
  );
  const set: [string, string][] = [];
  for (const [name, value] of Object.entries(received)) {
    if (value === undefined || ofConnection.has(name)) continue;
    const isOfItsKind =
      name === 'content-language' ||
      name === 'content-disposition' ||
      // Asked for by the caller, where the route lets it ask.
      name === 'content-encoding' ||
      (name === 'content-range' && status === 206);
    if (!isOfItsKind && !(named.has(name) && mayComeBack(name))) continue;
    const text = textOf(value);
    if (VALUE.test(text)) set.push([name, text]);
  }
  return {
    'content-type': singleValue(received['content-type']) ?? 'application/octet-stream',
    ...Object.fromEntries(set.filter(([name]) => name !== 'content-type')),
    ...DECIDED,
  };
}

/** A header's value if it came once and can be sent. */
export function singleValue(value: string | readonly string[] | undefined): string | null {
  const text = typeof value === 'string' ? value : value?.length === 1 ? (value[0] ?? null) : null;
  return text !== null && text.trim() !== '' && VALUE.test(text) ? text : null;
}

const textOf = (value: string | readonly string[] | undefined): string =>
  typeof value === 'string' ? value : (value?.join(', ') ?? '');

/** The headers that a message's own `Connection` says to be of the connection. */
function connectionNames(pairs: Iterable<readonly [string, string]>): Set<string> {
  const names = new Set<string>();
  for (const [name, value] of pairs) {
    if (name !== 'connection') continue;
    for (const each of value.split(',')) names.add(each.trim().toLowerCase());
  }
  return names;
}

/** Pairs of a name in lower case and a value. */
function* pairsOf(flat: FlatHeaders): Generator<readonly [string, string]> {
  for (let index = 0; index + 1 < flat.length; index += 2)
    yield [(flat[index] ?? '').toLowerCase(), flat[index + 1] ?? ''];
}
