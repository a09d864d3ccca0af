/**
 * What the card provider keeps of an order beside its payment: enough to write the order anew if the database has forgotten
 * it. A note holds digests and no secret, and a proof under our secret: notes of another shop at the same provider, or
 * of people there, count for nothing.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import type { Secret, Secrets } from '../../secrets/secrets.ts';
import type { CardOrder, NewOrder } from './orders.ts';

/** Texts by name, as a provider keeps them with a payment: at most 500 characters each. */
type OrderNote = Readonly<Record<string, string>>;

/** An order as far as its note tells of it. */
export type NotedOrder = Pick<
  NewOrder,
  | 'kind'
  | 'amountMicros'
  | 'creditMicros'
  | 'accountId'
  | 'key'
  | 'tokenDigest'
  | 'requestDigest'
  | 'keyName'
  | 'recharge'
  | 'keySecretId'
> & { pageSeal: Buffer | null };

const PROOF = 'order_proof';
const MOST_CHARACTERS = 500;

const micros = z
  .string()
  .regex(/^\d{1,18}$/)
  .transform((text) => BigInt(text));
const hex = z
  .string()
  .regex(/^(?:[0-9a-f]{2}){1,250}$/)
  .transform((text) => Buffer.from(text, 'hex'));
const noteSchema = z.object({
  order_kind: z.enum(['checkout', 'purchase', 'recharge']),
  order_amount: micros,
  order_credit: micros,
  order_account: micros.optional(),
  order_key: hex.optional(),
  order_prefix: z.string().max(20).optional(),
  order_token: hex.optional(),
  order_request: hex.optional(),
  order_name: z.string().optional(),
  order_threshold: micros.optional(),
  order_top_up: micros.optional(),
  order_secret: z.string().max(64).optional(),
  order_page: hex.optional(),
});

/** The note of an order. The same order has the same note, whoever writes it. */
export function noteOf(orderId: string, order: NotedOrder, secrets: Secrets): OrderNote {
  const note = Object.fromEntries(
    Object.entries(fieldsOf(order)).flatMap(([name, value]) =>
      value === null ? [] : [[name, value.slice(0, MOST_CHARACTERS)]],
    ),
  );
  // Under the secret that its key follows from, so that the note stays the same while secrets change.
  const secret = secrets.all.find(({ id }) => id === order.keySecretId) ?? secrets.current;
  return Object.assign(note, { [PROOF]: proofOf(orderId, note, secret) });
}

function fieldsOf(order: NotedOrder): Record<string, string | null> {
  const text = (value: bigint | undefined | null) =>
    value === undefined || value === null ? null : String(value);
  const inHex = (value: Buffer | undefined | null) => value?.toString('hex') ?? null;
  return {
    order_kind: order.kind,
    order_amount: String(order.amountMicros),
    order_credit: String(order.creditMicros),
    order_account: text(order.accountId),
    order_key: inHex(order.key?.digest),
    order_prefix: order.key?.prefix ?? null,
    order_token: inHex(order.tokenDigest),
    order_request: inHex(order.requestDigest),
    order_name: order.keyName === '' ? null : order.keyName,
    order_threshold: text(order.recharge?.thresholdMicros),
    order_top_up: text(order.recharge?.topUpMicros),
    order_secret: order.keySecretId,
    order_page: inHex(order.pageSeal),
  };
}

/** Reads a note. @returns null when it is none of ours, or not of this order */
export function readNote(
  orderId: string,
  kept: Readonly<Record<string, string>>,
  secrets: Secrets,
): NotedOrder | null {
  const { [PROOF]: proof, ...rest } = kept;
  if (proof === undefined || !secrets.all.some((secret) => isSame(proof, proofOf(orderId, rest, secret))))
    return null;
  const read = noteSchema.safeParse(rest);
  if (!read.success) return null;
  const { data } = read;
  const { order_key: digest, order_prefix: prefix } = data;
  const { order_threshold: thresholdMicros, order_top_up: topUpMicros } = data;
  return {
    kind: data.order_kind,
    amountMicros: data.order_amount,
    creditMicros: data.order_credit,
    accountId: data.order_account ?? null,
    key:
      digest === undefined || prefix === undefined
        ? null
        : { digest, prefix, lookup: digest.readBigInt64BE(0) },
    tokenDigest: data.order_token ?? null,
    requestDigest: data.order_request ?? null,
    keyName: data.order_name ?? null,
    recharge:
      thresholdMicros === undefined || topUpMicros === undefined ? null : { thresholdMicros, topUpMicros },
    keySecretId: data.order_secret ?? null,
    pageSeal: data.order_page ?? null,
  };
}

/** The note of an order that is stored. */
export function noteOfStored(order: CardOrder, secrets: Secrets): OrderNote {
  return noteOf(order.id, order, secrets);
}

function proofOf(orderId: string, note: Readonly<Record<string, string>>, { value }: Secret): string {
  const fields = Object.keys(note)
    .filter((name) => name.startsWith('order_') && name !== PROOF)
    .sort()
    .map((name) => [name, note[name]]);
  return createHmac('sha256', value)
    .update(JSON.stringify(['order note', orderId, fields]))
    .digest('hex');
}

function isSame(given: string, own: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(own)];
  return a.length === b.length && timingSafeEqual(a, b);
}
