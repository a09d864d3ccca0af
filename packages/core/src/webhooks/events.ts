/** The events that owners of keys are told of, and their form. An event says no more than its owner can read with the key. */

/** Each type, and when it is told. */
const EVENTS = {
  'balance.low':
    'The balance has fallen below the threshold of the webhook. Told again once it was above it.',
  'recharge.succeeded': 'The kept card was charged, and the credit is there.',
  'recharge.failed': 'The kept card was not charged.',
  'refund.made': 'The price of a call, or a payment by card, was given back.',
  'dispute.changed': 'A payment by card is disputed, or a dispute of it has moved on.',
  'key.new_address':
    'A key of the account paid for a call, or asked for webhooks, from an address that it was not used from before.',
  'answer.ready':
    'A call with an Idempotency-Key that took longer than five seconds was charged, and its answer is kept.',
} as const;

export type EventType = keyof typeof EVENTS;
export const EVENT_TYPES = Object.keys(EVENTS) as [EventType, ...EventType[]];
/** Sent when its owner asks for it, whatever the webhook is registered for. */
export const TEST_EVENT = 'webhook.test';

/** The body of a test message. Messages of events have the same form, and `eventId` beside it. */
export function testMessage(atMs: number): string {
  const data = { note: 'Sent because its owner asked for it.' };
  return JSON.stringify({ type: TEST_EVENT, timestamp: new Date(atMs).toISOString(), data });
}
