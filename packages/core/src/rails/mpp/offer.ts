/** Challenges, made and checked by the reference library: what a 402 says, and whether a credential answers it. */
import { createHash, randomUUID } from 'node:crypto';
import { createClient, defineChain, http } from 'viem';
import { unavailable } from '../../http/problem.ts';
import { microsToUsd } from '../../ledger/money.ts';
import type { Quote, Headers as RequestHeaders } from '../../paid-call/rail.ts';
import { onceLoaded } from '../../relayer/once-loaded.ts';
import { type ChallengeTemplate, templateOf } from './challenge-template.ts';
import { mppLibrary } from './library.ts';
import { DECIMALS, type Methods, type OfferedMethod, RPC_TIMEOUT_MS, TEMPO_CHAIN_ID } from './methods.ts';
import { AGAIN, isMadeWith, type MppCredential, metaOf, refuse } from './wire.ts';

/** The 402 of a service that none of these methods can pay now; other rails may be able to. */
const UNPAID = {
  type: 'https://paymentauth.org/problems/payment-required',
  title: 'Payment Required',
  status: 402,
  detail: 'Payment is required, and no MPP method can serve this service here.',
};

/** The part of the library that we use. Its own types depend on the list of methods. */
interface MppxServer {
  compose(
    ...offers: (readonly [
      method: string,
      options: { amount: string; description: string; scope: string; meta: Record<string, string> },
    ])[]
  ): (request: Request) => Promise<{ status: number; challenge: Response }>;
  validateCredential(
    credential: MppCredential,
    options: {
      scope: string;
      meta: Record<string, string>;
      request: { amount: string };
      capturedRequest: { headers: Headers; hasBody: boolean; method: string; url: URL };
    },
  ): Promise<unknown>;
}

export interface Challenges {
  /** A fresh 402 in the standard's form, for these methods. */
  make(
    quote: Quote,
    request: { headers: RequestHeaders; rawBody: Buffer | undefined },
    methods: readonly OfferedMethod[],
  ): Promise<{ headers: Record<string, string>; body: Record<string, unknown> }>;
  /** Whether one of our secrets made this challenge. */
  isOurs(challenge: MppCredential['challenge']): Promise<boolean>;
  /**
   * The library's own checks: expiry, the binding of the payment to the challenge, and on Tempo a simulation of the
   * transaction.
   *
   * @throws PaymentRefused when the credential does not pay; Problem (503) when the chain does not say
   */
  validate(credential: MppCredential, quote: Quote): Promise<void>;
}

const pathOf = (quote: Quote) => new URL(quote.resourceUrl).pathname;
/** The scope that a challenge is bound to. */
export const scopeOf = (quote: Quote) => `POST ${pathOf(quote)}`;
const amountOf = (quote: Quote) => microsToUsd(quote.priceMicros, DECIMALS);

/** The digest of a request's body; null when it has no body. */
export function digestOf(rawBody: Buffer | undefined): string | null {
  return rawBody === undefined || rawBody.length === 0
    ? null
    : createHash('sha256').update(rawBody).digest('base64url');
}

/** @param options.secretKeys the first makes challenges; all of them recognize challenges. Others may be in force at any time */
export function openChallenges(
  methods: Methods,
  options: {
    realm: string;
    secretKeys(): readonly string[];
    sandbox: boolean;
    nowMs(): number;
  },
): Challenges {
  const { realm, secretKeys, sandbox, nowMs } = options;
  const offered = onceLoaded(() => libraryMethods(methods));
  const signedWith = (keys: readonly string[]) => challengesOf(keys, { realm, sandbox, offered });
  let known = signedWith(secretKeys());
  /** The secrets in force, with what was made of them. */
  const signing = () => {
    const keys = secretKeys();
    if (keys !== known.keys) known = signedWith(keys);
    return known;
  };
  /** The secret that made a challenge; undefined for a challenge that is not ours. */
  const secretOf = async (challenge: MppCredential['challenge']) => {
    const library = await mppLibrary();
    return signing().keys.find((secretKey) => isMadeWith(library, secretKey, challenge));
  };

  return {
    isOurs: async (challenge) => (await secretOf(challenge)) !== undefined,
    async make(quote, { headers, rawBody }, taken) {
      if (taken.length === 0) return { headers: {}, body: { ...UNPAID } };
      const { keys, libraryOf, patternOf } = signing();
      const digest = digestOf(rawBody);
      // Without a nonce two challenges of the same millisecond would be equal.
      const opaque = { n: randomUUID(), ...(digest === null ? {} : { b: digest }) };
      const accepted = headers['accept-payment'];
      // When the caller names methods, the library decides by its own rules which of them to offer.
      if (typeof accepted === 'string')
        return madeByLibrary(await libraryOf(keys[0]), quote, taken, { sandbox, opaque, accepted });
      const pattern = await patternOf(quote, taken);
      const { header, ids } = pattern.template.fresh({ _mppx_scope: scopeOf(quote), ...opaque }, nowMs());
      return {
        headers: { ...pattern.headers, 'www-authenticate': header },
        body: { ...pattern.body, challengeId: ids[pattern.first] },
      };
    },
    async validate(credential, quote) {
      const { _mppx_scope: scope = '', ...meta } = metaOf(credential);
      const secretKey = await secretOf(credential.challenge);
      const library = await signing().libraryOf(secretKey);
      const url = new URL(pathOf(quote), `https://${realm}`);
      const capturedRequest = { headers: new Headers(), hasBody: true, method: 'POST', url };
      const request = { amount: amountOf(quote) };
      try {
        await library.validateCredential(credential, { scope, meta, request, capturedRequest });
      } catch (error) {
        throw asRefusal(error);
      }
    },
  };
}

/** The library for each of some secrets. @param keys the first makes challenges */
function challengesOf(
  keys: readonly string[],
  about: { realm: string; sandbox: boolean; offered(): Promise<unknown[]> },
) {
  const { realm, sandbox, offered } = about;
  const libraries = onceLoaded(async () => {
    const methods = (await offered()) as never;
    const { Mppx } = await import('mppx/server/core');
    return keys.map((secretKey) => Mppx.create({ realm, secretKey, methods }) as unknown as MppxServer);
  });
  /** The library of a secret; that of the first one for a secret that is none of these. */
  const libraryOf = async (secretKey: string | undefined) => {
    const opened = await libraries();
    const found = opened[Math.max(0, keys.indexOf(secretKey ?? ''))];
    if (found === undefined) throw new Error('challenges need a secret');
    return found;
  };
  const [current = ''] = keys;
  return { keys, libraryOf, patternOf: patternsOf(() => libraryOf(current), current, sandbox) };
}

/** Keeps one 402 of the library for each quote and the methods that can pay it now. */
function patternsOf(library: () => Promise<MppxServer>, secretKey: string, sandbox: boolean) {
  const patterns = new WeakMap<Quote, Map<string, Promise<Pattern>>>();
  return (quote: Quote, taken: readonly OfferedMethod[]): Promise<Pattern> => {
    const names = taken.map(({ method }) => method).join();
    const ofQuote = patterns.get(quote) ?? new Map<string, Promise<Pattern>>();
    patterns.set(quote, ofQuote);
    let made = ofQuote.get(names);
    if (made === undefined) {
      made = library()
        .then((payments) => madeByLibrary(payments, quote, taken, { sandbox, opaque: {} }))
        .then(async ({ headers, body }) => {
          const reference = await mppLibrary();
          const { 'www-authenticate': header = '', ...others } = headers;
          const { challengeId, ...problem } = body;
          const template = templateOf(reference, header, secretKey);
          const first = reference.Challenge.deserializeList(header).findIndex(({ id }) => id === challengeId);
          return { template, headers: others, body: problem, first };
        });
      made.catch(() => ofQuote.delete(names));
      ofQuote.set(names, made);
    }
    return made;
  };
}

/** A 402 that the library made, as a template for fresh ones. */
interface Pattern {
  template: ChallengeTemplate;
  headers: Record<string, string>;
  body: Record<string, unknown>;
  /** The index of the challenge that the body names. */
  first: number;
}

/** @param asked.accepted the methods that the caller accepts, as its header names them */
async function madeByLibrary(
  library: MppxServer,
  quote: Quote,
  methods: readonly OfferedMethod[],
  asked: { sandbox: boolean; opaque: Record<string, string>; accepted?: string },
): Promise<{ headers: Record<string, string>; body: Record<string, unknown> }> {
  const { sandbox, opaque, accepted } = asked;
  const options = {
    amount: amountOf(quote),
    description: sandbox ? `${quote.service.name} (sandbox: no real money)` : quote.service.name,
    scope: scopeOf(quote),
    meta: opaque,
  };
  const answered = await library.compose(
    ...methods.map(({ method }) => [`${method}/charge`, options] as const),
  )(
    new Request(quote.resourceUrl, {
      method: 'POST',
      headers: accepted === undefined ? {} : { 'accept-payment': accepted },
    }),
  );
  const headers = Object.fromEntries(answered.challenge.headers);
  // The library's own x402 offer is dropped, because the x402 rail makes a fuller one and settles what it brings.
  delete headers['payment-required'];
  // The library's hint says that a wallet is needed, and where one is advertised.
  const { hint: _, ...body } = (await answered.challenge.json()) as Record<string, unknown>;
  return { headers, body };
}

/** The methods in the form that the library wants. */
async function libraryMethods({ names, tempo: onTempo, evm: settler }: Methods): Promise<unknown[]> {
  const methods = names.map(async (name): Promise<unknown[]> => {
    if (name === 'tempo') return onTempo === null ? [] : [await tempoMethod(onTempo)];
    if (settler === null) return [];
    const { evm } = await import('mppx/evm/server');
    return [
      evm.charge({
        currency: settler.asset,
        chainId: settler.chainId,
        decimals: DECIMALS,
        authorization: settler.domain,
        recipient: settler.payTo,
        settle: () => Promise.reject(new Error('payments are settled by the paid call')),
      }),
    ];
  });
  return (await Promise.all(methods)).flat();
}

async function tempoMethod({ rpcUrl, recipient, currency }: NonNullable<Methods['tempo']>): Promise<unknown> {
  // Loaded when it is first offered: it takes 66 MB of memory, and more than half a second of processor time.
  const { Store, tempo } = await import('mppx/server');
  const chain = defineChain({
    id: TEMPO_CHAIN_ID,
    name: 'Tempo',
    nativeCurrency: { name: 'USD', symbol: 'USD', decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
  });
  const client = createClient({ chain, transport: http(rpcUrl, { timeout: RPC_TIMEOUT_MS }) });
  return tempo.charge({
    currency,
    recipient,
    decimals: DECIMALS,
    getClient: () => client,
    // Only pull credentials are taken: they cost the payer nothing until we send them. A credential that was paid
    // before it came could not be refused.
    supportedModes: ['pull'],
    // Claims are stored in `calls`. The library only validates here, which needs no storage.
    store: Store.memory(),
  });
}

/** The library's error about a credential, in our own words. */
function asRefusal(error: unknown): Error {
  const { status, type } = error as { status?: number; type?: string };
  const problem =
    String(type ?? '')
      .split('/')
      .at(-1) ?? '';
  if (status === 402 && /^[a-z-]{1,40}$/.test(problem)) {
    return refuse(
      problem,
      problem === 'payment-expired'
        ? 'The challenge has expired.'
        : 'The payment does not fit its challenge, or would fail.',
      AGAIN,
    );
  }
  if (isRefusedByNode(error))
    return refuse(
      'payment-insufficient',
      'The chain would refuse this payment.',
      'Fund the wallet, and answer a fresh challenge.',
    );
  return unavailable('CHAIN_UNAVAILABLE', 'The chain does not answer.', 5_000, {}, error);
}

/** Whether a node answered, and said that it would not take the transaction. */
function isRefusedByNode(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { name, code } = cause as { name: string; code?: number };
    if (name === 'RpcRequestError') return code === 3 || code === -32000 || code === -32003;
  }
  return false;
}
