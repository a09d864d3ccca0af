/** A running Farebox as its guest asks it: signed messages out, signed answers in. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { HEADERS, isSignedBy, LEAST_SECRET_CHARACTERS, signatureOf } from './signature.ts';

export interface GateOptions {
  /** The address of the running Farebox, such as `http://127.0.0.1:8402`. */
  readonly farebox: string;
  /** The name of this server under `gates` in the configuration of Farebox. */
  readonly name: string;
  /** The secret that both have, at least 32 characters. */
  readonly secret: string;
  /** The largest body of a request that is read, in bytes; 1 MiB unless given. Farebox has a bound for each route, too. */
  readonly maxRequestBytes?: number;
  /** The largest answer that is read, in bytes; 1400000 unless given, the most that Farebox keeps. */
  readonly maxAnswerBytes?: number;
}

export type Verb = 'begin' | 'finish' | 'release';

/** Farebox did not answer a message, or not in a way that proves that it was Farebox. */
class NoAnswer extends Error {
  /** Whether the same may be said again: the message may not have arrived. */
  readonly mayRepeat: boolean;
  constructor(message: string, mayRepeat: boolean, cause?: unknown) {
    super(message, { cause });
    this.mayRepeat = mayRepeat;
  }
}

const LONGEST_ANSWER_MS = 60_000;
/** Room for an answer of Farebox: the largest that it keeps, in base64, and headers. */
const MOST_ANSWER_BYTES = 4_194_304;
/** The waits between the attempts to say the same. */
const AGAIN_AFTER_MS: readonly number[] = [100, 300, 1_000, 2_000, 4_000];

/** The connection to a Farebox. */
export class Farebox {
  readonly #options: GateOptions;
  readonly #address: string;

  /** @throws Error for options that cannot work */
  constructor(options: GateOptions) {
    if (!URL.canParse(options.farebox)) throw new Error('farebox: write the address of your Farebox');
    if (options.secret.length < LEAST_SECRET_CHARACTERS)
      throw new Error(
        `secret: it has at least ${LEAST_SECRET_CHARACTERS} characters, such as from: openssl rand -hex 32`,
      );
    this.#options = options;
    this.#address = options.farebox.replace(/\/+$/, '');
  }

  /** Says something once. @throws NoAnswer */
  async say(verb: Verb, message: object): Promise<Record<string, unknown>> {
    const { name: guest, secret } = this.#options;
    const body = Buffer.from(JSON.stringify(message));
    const timestamp = String(Math.floor(Date.now() / 1_000));
    const parts = {
      to: `POST /gate/${verb}`,
      guest,
      timestamp,
      nonce: randomBytes(18).toString('base64url'),
    };
    let response: Response;
    let answer: Buffer;
    try {
      response = await fetch(`${this.#address}/gate/${verb}`, {
        method: 'POST',
        redirect: 'manual',
        headers: {
          'content-type': 'application/json',
          [HEADERS.guest]: guest,
          [HEADERS.timestamp]: timestamp,
          [HEADERS.nonce]: parts.nonce,
          [HEADERS.signature]: signatureOf(secret, { ...parts, kind: 'message', body }),
        },
        body,
        signal: AbortSignal.timeout(LONGEST_ANSWER_MS),
      });
      answer = await bytesWithin(response.body, MOST_ANSWER_BYTES);
    } catch (error) {
      throw new NoAnswer('Farebox does not answer.', true, error);
    }
    const signature = response.headers.get(HEADERS.signature) ?? '';
    if (!isSignedBy(secret, { ...parts, kind: 'answer', body: answer }, signature))
      throw new NoAnswer(refusalOf(response.status, answer), response.status >= 500);
    return JSON.parse(answer.toString('utf8'));
  }

  /** Says the same again until it is answered, within bounds: for what changes nothing when it is said twice. @throws NoAnswer */
  async sayUntilAnswered(verb: Verb, message: object): Promise<Record<string, unknown>> {
    for (const waitMs of AGAIN_AFTER_MS) {
      try {
        return await this.say(verb, message);
      } catch (error) {
        if (!(error instanceof NoAnswer && error.mayRepeat)) throw error;
        await sleep(waitMs);
      }
    }
    return this.say(verb, message);
  }
}

/** The text of an answer that Farebox did not sign. Nothing is believed of it; whoever runs the guest reads it. */
function refusalOf(status: number, answer: Buffer): string {
  return `Farebox did not accept the message: status ${status}, ${answer.toString('utf8').slice(0, 500)}`;
}

/** Reads a body. @throws RangeError when it is longer */
export async function bytesWithin(body: AsyncIterable<unknown> | null, most: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of body ?? []) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : Buffer.from(piece as Uint8Array);
    length += bytes.length;
    if (length > most) throw new RangeError(`more than ${most} bytes`);
    pieces.push(bytes);
  }
  return Buffer.concat(pieces);
}
