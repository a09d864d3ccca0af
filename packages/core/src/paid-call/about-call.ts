/** What HTTP says about an answer in headers, for doors that carry it in messages instead. */
import type { PaidAnswer } from './sale.ts';

/** The headers that tell about the call and its money, and the field names that messages use for them. */
const TOLD: Readonly<Record<string, string>> = {
  'x-call-id': 'callId',
  'x-payment-method': 'paidBy',
  'x-credits-used': 'creditsUsedUsd',
  'x-credits-remaining': 'creditsRemainingUsd',
  'x-payment-transaction': 'transaction',
  'idempotent-replayed': 'replayed',
  'x-answered-at': 'answeredAt',
  'retry-after': 'retryAfterSeconds',
};

/** A JSON answer as the object that a message must hold: a list or a bare value of a seller's API stands in its `answer`. */
export function asObject(value: unknown): Record<string, unknown> {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as Record<string, unknown>) : { answer: value };
}

/** The status, call, money and sources of an answer, as fields of a message. */
export function aboutCall({ status, headers }: PaidAnswer): Record<string, unknown> {
  const told: Record<string, unknown> = { status };
  for (const [header, name] of Object.entries(TOLD)) {
    if (headers[header] !== undefined) told[name] = headers[header];
  }
  const provenance = headers['x-provenance'];
  return provenance === undefined ? told : { ...told, provenance: JSON.parse(provenance) };
}

/** The settlement of an x402 payment, as its receipt header states it; null when nothing was settled. */
export function x402ReceiptOf(headers: Readonly<Record<string, string>>): Record<string, unknown> | null {
  const receipt = headers['payment-response'] ?? headers['x-payment-response'];
  return receipt === undefined ? null : JSON.parse(Buffer.from(receipt, 'base64').toString('utf8'));
}
