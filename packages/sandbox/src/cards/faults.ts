/** How tests make the card provider fail. */
import { fieldsOf, isIntegerIn, openFaults } from '../faults.ts';

const MAX_TIMES = 100_000;
const MAX_DELAY_MS = 600_000;
const MAX_TEXT_CHARACTERS = 200;

const API_FAULTS = [
  'error-before',
  'error-after',
  'refuse-after',
  'drop-before',
  'drop-after',
  'never-before',
  'never-after',
  'late',
  'rate-limit',
  'garbage',
] as const;
const WEBHOOK_FAULTS = ['drop', 'duplicate', 'echo', 'delay', 'reorder'] as const;

/** A fault that strikes requests of the API. */
export interface ApiFault {
  on: 'api';
  /**
   * - error-before: status 500, nothing done, nothing kept.
   * - error-after: does its work, then status 500, which the idempotency key gets again.
   * - refuse-after: does its work, then status 400 as for a wrong request, which the idempotency key gets again.
   * - drop-before, drop-after: the connection is torn down before or after the work; a repeat gets the true answer.
   * - never-before, never-after: no answer, without or with the work done.
   * - late: does its work after `delayMs`, then answers.
   * - rate-limit: status 429, nothing done.
   * - garbage: status 200 with a text that is no JSON, nothing done.
   */
  fault: (typeof API_FAULTS)[number];
  /** How many more requests it strikes. */
  times: number;
  /** GET, POST, DELETE, or empty for any. */
  method: string;
  /** What a path must begin with, such as /v1/payment_intents. */
  path: string;
  delayMs: number;
}

/** A fault that strikes deliveries of webhooks. */
export interface WebhookFault {
  on: 'webhook';
  /**
   * - drop: never sent; the event is in the provider's list only.
   * - duplicate: sent twice.
   * - echo: the same fact a second time as an event with another id.
   * - delay: sent after `delayMs`.
   * - reorder: held until `times` deliveries are held, then all are sent one by one in reverse order.
   */
  fault: (typeof WEBHOOK_FAULTS)[number];
  times: number;
  /** What an event's type must begin with; empty: any. */
  type: string;
  delayMs: number;
}

export type Fault = ApiFault | WebhookFault;

export type Faults = ReturnType<typeof openCardFaults>;

export function openCardFaults() {
  const { take, ...faults } = openFaults('times', read);
  return {
    ...faults,
    takeApi: (method: string, path: string): ApiFault | null =>
      take(
        (one) =>
          one.on === 'api' && (one.method === '' || one.method === method) && path.startsWith(one.path),
      ) as ApiFault | null,
    takeWebhook: (type: string): WebhookFault | null =>
      take((one) => one.on === 'webhook' && type.startsWith(one.type)) as WebhookFault | null,
  };
}

function read(body: unknown): Fault | string {
  if (typeof body !== 'object' || body === null) return 'a JSON object is needed';
  const fields = fieldsOf(body);
  const known = ['on', 'fault', 'times', 'delayMs', 'method', 'path', 'type'];
  const stranger = Object.keys(fields).find((name) => !known.includes(name));
  if (stranger !== undefined) return `unknown field ${stranger.slice(0, 50)}`;
  const times = fields.times ?? 1;
  const delayMs = fields.delayMs ?? 1_000;
  if (!isIntegerIn(times, 1, MAX_TIMES)) return `times must be 1 to ${MAX_TIMES}`;
  if (!isIntegerIn(delayMs, 0, MAX_DELAY_MS)) return `delayMs must be 0 to ${MAX_DELAY_MS}`;
  const [method, path, type] = ['method', 'path', 'type'].map((name) => fields[name] ?? '');
  if (!isText(method) || !isText(path) || !isText(type)) return 'method, path and type must be short texts';
  const name = fields.fault;
  if (fields.on === 'api') {
    const fault = API_FAULTS.find((one) => one === name);
    if (fault === undefined) return `fault must be one of ${API_FAULTS.join(', ')}`;
    return { on: 'api', fault, times, method, path, delayMs };
  }
  if (fields.on === 'webhook') {
    const fault = WEBHOOK_FAULTS.find((one) => one === name);
    if (fault === undefined) return `fault must be one of ${WEBHOOK_FAULTS.join(', ')}`;
    return { on: 'webhook', fault, times, type, delayMs };
  }
  return 'on must be api or webhook';
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_TEXT_CHARACTERS;
}
