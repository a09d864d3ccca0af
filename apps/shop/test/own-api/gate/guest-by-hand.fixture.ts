/** A guest that writes its messages by hand, and can write them wrong. */
import { randomBytes } from 'node:crypto';
import { HEADERS, isSignedBy, signatureOf } from '../../../../../packages/gate/src/signature.ts';
import { secretOf } from './guests.fixture.ts';

type Verb = 'begin' | 'finish' | 'release';

export interface Told {
  status: number;
  /** The JSON of a signed answer, or of an error. */
  // biome-ignore lint/suspicious/noExplicitAny: the boundary at which tests look at whatever came
  said: any;
  isSigned: boolean;
  text: string;
}

export interface Wrong {
  secret?: string;
  name?: string;
  nonce?: string;
  /** Seconds since 1970. */
  timestamp?: number;
  /** The parts that are signed in place of what is sent. */
  signed?: { to?: string; body?: Buffer; kind?: 'message' | 'answer'; name?: string };
  /** Left out or changed before it is sent. */
  headers?: Record<string, string | undefined>;
}

/** A signed message, ready to be sent once or twice. */
export function messageOf(verb: Verb, message: unknown, wrong: Wrong = {}) {
  const name = wrong.name ?? 'fastify';
  const secret = wrong.secret ?? secretOf(name);
  const timestamp = String(wrong.timestamp ?? Math.floor(Date.now() / 1_000));
  const nonce = wrong.nonce ?? randomBytes(18).toString('base64url');
  const body = Buffer.from(typeof message === 'string' ? message : JSON.stringify(message));
  const to = `POST /gate/${verb}`;
  const { signed = {} } = wrong;
  const signature = signatureOf(secret, {
    kind: signed.kind ?? 'message',
    to: signed.to ?? to,
    guest: signed.name ?? name,
    timestamp,
    nonce,
    body: signed.body ?? body,
  });
  const all: Record<string, string | undefined> = {
    'content-type': 'application/json',
    [HEADERS.guest]: name,
    [HEADERS.timestamp]: timestamp,
    [HEADERS.nonce]: nonce,
    [HEADERS.signature]: signature,
    ...wrong.headers,
  };
  const headers = Object.fromEntries(
    Object.entries(all).flatMap(([header, value]) => (value === undefined ? [] : [[header, value]])),
  );
  return {
    async sendTo(url: string, signal: AbortSignal | null = null): Promise<Told> {
      const response = await fetch(`${url}/gate/${verb}`, { method: 'POST', headers, body, signal });
      const bytes = Buffer.from(await response.arrayBuffer());
      const parts = { kind: 'answer', to, guest: name, timestamp, nonce, body: bytes } as const;
      return {
        status: response.status,
        said: JSON.parse(bytes.toString()),
        isSigned: isSignedBy(secret, parts, response.headers.get(HEADERS.signature) ?? ''),
        text: bytes.toString(),
      };
    },
  };
}

export const say = (url: string, verb: Verb, message: unknown, wrong: Wrong = {}) =>
  messageOf(verb, message, wrong).sendTo(url);

const base64 = (text: string) => Buffer.from(text).toString('base64');

/** A begin of the forecast of the gate `fastify`. */
export function beginOf(
  key: string,
  {
    idempotencyKey,
    place = 'here',
    ...more
  }: { idempotencyKey?: string; place?: string; [field: string]: unknown } = {},
) {
  return {
    route: 'POST /fastify/v1/forecast',
    method: 'POST',
    url: '/fastify/v1/forecast',
    headers: [
      ...['x-api-key', key, 'content-type', 'application/json'],
      ...(idempotencyKey === undefined ? [] : ['idempotency-key', idempotencyKey]),
    ],
    body: base64(JSON.stringify({ place })),
    address: '203.0.113.7',
    ...more,
  };
}

export const finishOf = (call: string, body = '{"celsius":12.5}', more: object = {}) => ({
  call,
  status: 200,
  headers: ['content-type', 'application/json'],
  body: base64(body),
  callerLeft: false,
  ...more,
});

/** The body of an answer that a guest is told to give, as JSON. */
// biome-ignore lint/suspicious/noExplicitAny: the boundary at which tests look at whatever came
export const bodyOf = ({ said }: Told): any => JSON.parse(Buffer.from(said.body, 'base64').toString());
