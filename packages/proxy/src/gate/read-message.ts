/** A message of a guest, before anything of it is believed: who signed it, when, and whether it came before. */

import { isIP } from 'node:net';
import { Problem } from '@farebox/core/http/problem';
import { HEADERS, isSignedBy, signatureOf } from '@farebox/gate/signature';
import { z } from 'zod';
import type { OpenGate } from '../sell/open-routes.ts';
import type { GateMessages } from './gate-store.ts';

/** How far the clocks of a guest and this server may be apart. */
const CLOCKS_APART_MS = 120_000;
const MOST_HEADER_CHARACTERS = 65_536;
const MOST_HEADERS = 400;

const base64 = z
  .string()
  .regex(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/)
  .transform((text) => Buffer.from(text, 'base64'))
  .nullable();

const headers = z
  .array(z.string())
  .max(MOST_HEADERS)
  .refine((flat) => flat.length % 2 === 0, 'names and values in turn')
  .refine(
    (flat) => flat.join('').length <= MOST_HEADER_CHARACTERS,
    `at most ${MOST_HEADER_CHARACTERS} characters`,
  );

const call = z.uuid();

/** The messages of a guest. Unknown fields mean nothing: a price among them, too. */
export const MESSAGES = {
  begin: z.object({
    route: z.string().max(500),
    method: z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']),
    url: z.string().min(1).max(16_384).startsWith('/'),
    headers,
    body: base64,
    address: z
      .string()
      .max(100)
      .nullable()
      .transform((text) =>
        text !== null && isIP(text) !== 0 ? text.replace(/^::ffff:(?=\d+\.)/i, '') : null,
      ),
  }),
  finish: z.object({
    call,
    status: z.int().min(100).max(599),
    headers,
    body: base64,
    callerLeft: z.boolean(),
  }),
  release: z.object({ call, why: z.string().max(200) }),
};

export type Verb = keyof typeof MESSAGES;
export type BeginMessage = z.output<typeof MESSAGES.begin>;

/** A message whose sender is known. */
export interface SignedMessage {
  readonly open: OpenGate;
  /** The headers of an answer, which show that it is this server's and answers this message. */
  sign(answer: Buffer): Record<string, string>;
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/**
 * Reads who sent a message.
 *
 * @throws Problem 401 unless a gate's own secret signed it now, 409 when it came before
 */
export async function readMessage(
  verb: Verb,
  { headers: sent, body }: { headers: Headers; body: Buffer },
  { gates, messages, nowMs }: { gates: readonly OpenGate[]; messages: GateMessages; nowMs(): number },
): Promise<SignedMessage> {
  const [guest, timestamp, nonce, signature] = [
    HEADERS.guest,
    HEADERS.timestamp,
    HEADERS.nonce,
    HEADERS.signature,
  ].map((name) => textOf(sent[name]));
  const open = gates.find(({ gate }) => gate.name === guest);
  if (open === undefined || guest === undefined || timestamp === undefined || nonce === undefined)
    throw unsigned();
  const { name, secret } = open.gate;
  const parts = { to: `POST /gate/${verb}`, guest: name, timestamp, nonce };
  if (!isSignedBy(secret.reveal(), { ...parts, kind: 'message', body }, signature ?? '')) throw unsigned();
  if (!/^\d{1,12}$/.test(timestamp) || !/^[\w-]{16,64}$/.test(nonce)) throw unsigned();
  const sentAtMs = Number(timestamp) * 1_000;
  if (Math.abs(nowMs() - sentAtMs) > CLOCKS_APART_MS)
    throw refused(
      401,
      'GATE_MESSAGE_STALE',
      'The message was signed at another time than now: set the clock right.',
    );
  if (!(await messages.isNew(name, nonce, sentAtMs + 2 * CLOCKS_APART_MS)))
    throw refused(409, 'GATE_MESSAGE_REPEATED', 'This message came before. Sign a new one.');
  return {
    open,
    sign: (answer) => ({
      [HEADERS.signature]: signatureOf(secret.reveal(), { ...parts, kind: 'answer', body: answer }),
    }),
  };
}

function textOf(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' && header !== '' ? header : undefined;
}

const unsigned = () =>
  refused(401, 'GATE_SIGNATURE_INVALID', 'No gate of this server has signed this message.');

export function refused(status: number, code: string, message: string): Problem {
  return new Problem(status, code, message, { details: { charged: false } });
}

/** Reads what a signed message says. @throws Problem 400 */
export function contentOf<Name extends Verb>(verb: Name, body: Buffer): z.output<(typeof MESSAGES)[Name]> {
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    throw refused(400, 'GATE_MESSAGE_INVALID', 'A message is JSON.');
  }
  const read = MESSAGES[verb].safeParse(value);
  if (read.success) return read.data as z.output<(typeof MESSAGES)[Name]>;
  const [first] = read.error.issues;
  throw refused(
    400,
    'GATE_MESSAGE_INVALID',
    `${first?.path.join('.') || 'message'}: ${first?.message ?? 'invalid'}.`,
  );
}
