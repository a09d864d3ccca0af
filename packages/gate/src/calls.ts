/** One call of a guest's route, whichever framework serves it: begun with Farebox, answered by the guest, finished with Farebox. */
import { bytesWithin, Farebox, type GateOptions } from './farebox.ts';

/** A request as it came to the guest. */
export interface GuestRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** Names and values in turn. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** The caller's address, as far as the guest knows it. */
  readonly address: string | null;
}

/** An answer to the caller. */
export interface FareAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Null: the bytes that the guest made. */
  readonly body: Buffer | null;
}

/** A guest's answer, before it is paid. */
export interface MadeAnswer {
  readonly status: number;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** Whether the caller has left already. */
  readonly callerLeft: boolean;
}

/** A paid call, as its handler may know it. */
export interface Fare {
  readonly callId: string;
  /** A digest of whoever pays: the same for the same key or wallet at this guest, and another one at another guest. */
  readonly caller: string;
  readonly priceUsd: string;
  /** Names the order: the same however often the same payment sends the same request. */
  readonly idempotencyKey: string;
}

export type Begun =
  | { readonly do: 'answer'; readonly answer: FareAnswer }
  | { readonly do: 'run'; readonly call: OpenCall };

export interface OpenCall {
  readonly fare: Fare;
  /** Whether a header of the request may reach the handler. */
  mayPass(name: string): boolean;
  /** Has the answer paid and kept. It never rejects. */
  finish(made: MadeAnswer): Promise<FareAnswer>;
  /** Gives the call up: nothing is charged. It never rejects. */
  release(why: string): Promise<FareAnswer>;
}

const DEFAULT_REQUEST_BYTES = 1_048_576;
const DEFAULT_ANSWER_BYTES = 1_400_000;
/** A caller's key or payment, and what is said about it. */
const OF_MONEY =
  /^(?:authorization|accept-payment|x-api-key|payment|(?:x-)?payment-.*|x-payment.*|x-x402.*|x402-.*|(?:x-)?idempotency-key|(?:x-)?farebox-.*|x-wallet-.*|x-retrieval-token)$/;
/** Headers that would have the guest send less than the whole answer, or in another form. A route names what may come in. */
const OF_PARTS =
  /^(?:range|if-range|if-match|if-none-match|if-modified-since|if-unmodified-since|accept-encoding)$/;
/** Headers that Farebox needs no copy of. */
const NOT_SENT =
  /^(?:cookie2?|host|connection|keep-alive|transfer-encoding|content-length|expect|upgrade|te)$/;

/** The calls of a guest. */
export class Calls {
  readonly mostRequestBytes: number;
  readonly mostAnswerBytes: number;
  readonly #farebox: Farebox;

  /** @throws Error for options that cannot work */
  constructor(options: GateOptions) {
    this.#farebox = new Farebox(options);
    this.mostRequestBytes = options.maxRequestBytes ?? DEFAULT_REQUEST_BYTES;
    this.mostAnswerBytes = options.maxAnswerBytes ?? DEFAULT_ANSWER_BYTES;
  }

  /** Asks Farebox whether a request may be answered. While it does not say so, none is. It never rejects. */
  async begin(route: string, { method, url, rawHeaders, body, address }: GuestRequest): Promise<Begun> {
    const headers = rawHeaders.filter((_, index) => !NOT_SENT.test(nameAt(rawHeaders, index)));
    const message = { route, method, url, headers, body: base64(body), address };
    try {
      const said = await this.#farebox.say('begin', message);
      if (said.do !== 'run') return { do: 'answer', answer: answerOf(said) };
      return { do: 'run', call: this.#open(said) };
    } catch (error) {
      return { do: 'answer', answer: closed(error) };
    }
  }

  /** Reads the body of a request. @returns the answer for one that is too long, or breaks off */
  async bodyOf(stream: AsyncIterable<unknown> | null): Promise<Buffer | FareAnswer> {
    try {
      return await bytesWithin(stream, this.mostRequestBytes);
    } catch (error) {
      if (error instanceof RangeError)
        return problem(413, 'BODY_TOO_LARGE', `The body has at most ${this.mostRequestBytes} bytes.`);
      return problem(400, 'INVALID_REQUEST', 'The body broke off.');
    }
  }

  /** Finishes a call with an answer that is still to be read; releases it if that breaks off, or is too long to be kept. */
  async finishWith(
    call: OpenCall,
    body: AsyncIterable<unknown> | null,
    made: (body: Buffer) => MadeAnswer,
  ): Promise<{ answer: FareAnswer; body: Buffer }> {
    let bytes: Buffer;
    try {
      bytes = await bytesWithin(body, this.mostAnswerBytes);
    } catch (error) {
      const why = error instanceof RangeError ? `the answer has ${error.message}` : 'the answer broke off';
      return { answer: await call.release(why), body: Buffer.alloc(0) };
    }
    return { answer: await call.finish(made(bytes)), body: bytes };
  }

  #open(said: Record<string, unknown>): OpenCall {
    const { call, callId, caller, price, idempotencyKey, passes } = said as Record<string, string> & {
      passes: readonly string[];
    };
    const fare = {
      callId: String(callId),
      caller: String(caller),
      priceUsd: String(price),
      idempotencyKey: String(idempotencyKey),
    };
    const end = async (verb: 'finish' | 'release', message: object) => {
      try {
        return answerOf(await this.#farebox.sayUntilAnswered(verb, { call, ...message }));
      } catch (error) {
        return unknown(error);
      }
    };
    return {
      fare,
      mayPass: (name) => !OF_MONEY.test(name) && (!OF_PARTS.test(name) || passes.includes(name)),
      finish: ({ status, rawHeaders, body, callerLeft }) =>
        end('finish', { status, headers: rawHeaders, body: base64(body), callerLeft }),
      release: (why) => end('release', { why: why.slice(0, 200) }),
    };
  }
}

/** The name of the header whose name or value stands at this place, in lower case. */
function nameAt(flat: readonly string[], index: number): string {
  return (flat[index - (index % 2)] ?? '').toLowerCase();
}

const base64 = (body: Buffer) => (body.length === 0 ? null : body.toString('base64'));

function answerOf(said: Record<string, unknown>): FareAnswer {
  const { status, headers, body } = said as {
    status: number;
    headers: Record<string, string>;
    body: string | null;
  };
  return { status, headers, body: body === null ? null : Buffer.from(body, 'base64') };
}

function problem(
  status: number,
  code: string,
  message: string,
  more: object = { charged: false },
): FareAnswer {
  const body = Buffer.from(JSON.stringify({ error: code, message, code, ...more }));
  return {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' },
    body,
  };
}

/** Farebox cannot be asked, so nobody is served. */
function closed(error: unknown): FareAnswer {
  warn(error);
  return problem(503, 'FAREBOX_UNAVAILABLE', 'Nothing can be bought here at this moment. Try again later.');
}

/** Farebox cannot be told of the answer. Whoever repeats the same request learns what became of it. */
function unknown(error: unknown): FareAnswer {
  warn(error);
  return problem(
    503,
    'OUTCOME_UNKNOWN',
    'It is not known yet whether this call was charged. Repeat the same request with the same Idempotency-Key or payment.',
    { retryAfter: 5 },
  );
}

/** The reason is for whoever runs the guest; the caller is not told. */
function warn(error: unknown): void {
  const text = error instanceof Error ? error.message : 'failed';
  process.emitWarning(text, { type: 'FareboxGate' });
}

/** The headers of an answer without those of its framing and of what is left of another body. */
export function headersToSet({ headers }: FareAnswer): [name: string, value: string][] {
  return Object.entries(headers).filter(
    ([name]) => !/^(?:content-length|transfer-encoding|connection)$/.test(name),
  );
}
