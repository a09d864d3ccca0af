/** Faults on order: how tests make the card provider fail. There is nothing like it outside the sandbox. */

const MAX_FAULTS = 100;
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

export interface Faults {
  /** Orders a fault, or says what is wrong with the order. */
  order(body: unknown): Fault | string;
  list(): Fault[];
  clear(): void;
  takeApi(method: string, path: string): ApiFault | null;
  takeWebhook(type: string): WebhookFault | null;
}

/** Opens an empty list of faults; faults are not kept over a restart. */
export function openFaults(): Faults {
  let faults: Fault[] = [];

  function strike<T extends Fault>(fault: T | undefined): T | null {
    if (fault === undefined) return null;
    fault.times -= 1;
    if (fault.times <= 0) faults = faults.filter((one) => one !== fault);
    return fault;
  }

  return {
    order(body) {
      const fault = read(body);
      if (typeof fault === 'string') return fault;
      if (faults.length >= MAX_FAULTS) return `at most ${MAX_FAULTS} faults`;
      faults.push(fault);
      return fault;
    },
    list: () => [...faults],
    clear() {
      faults = [];
    },
    takeApi: (method, path) =>
      strike(
        faults.find(
          (one): one is ApiFault =>
            one.on === 'api' && (one.method === '' || one.method === method) && path.startsWith(one.path),
        ),
      ),
    takeWebhook: (type) =>
      strike(faults.find((one): one is WebhookFault => one.on === 'webhook' && type.startsWith(one.type))),
  };
}

function read(body: unknown): Fault | string {
  if (typeof body !== 'object' || body === null) return 'a JSON object is needed';
  const fields = new Map<string, unknown>(Object.entries(body));
  const known = ['on', 'fault', 'times', 'delayMs', 'method', 'path', 'type'];
  const stranger = [...fields.keys()].find((name) => !known.includes(name));
  if (stranger !== undefined) return `unknown field ${stranger.slice(0, 50)}`;
  const times = fields.get('times') ?? 1;
  const delayMs = fields.get('delayMs') ?? 1_000;
  if (!isWithin(times, 1, MAX_TIMES)) return `times must be 1 to ${MAX_TIMES}`;
  if (!isWithin(delayMs, 0, MAX_DELAY_MS)) return `delayMs must be 0 to ${MAX_DELAY_MS}`;
  const [method, path, type] = ['method', 'path', 'type'].map((name) => fields.get(name) ?? '');
  if (!isText(method) || !isText(path) || !isText(type)) return 'method, path and type must be short texts';
  const name = fields.get('fault');
  if (fields.get('on') === 'api') {
    const fault = API_FAULTS.find((one) => one === name);
    if (fault === undefined) return `fault must be one of ${API_FAULTS.join(', ')}`;
    return { on: 'api', fault, times, method, path, delayMs };
  }
  if (fields.get('on') === 'webhook') {
    const fault = WEBHOOK_FAULTS.find((one) => one === name);
    if (fault === undefined) return `fault must be one of ${WEBHOOK_FAULTS.join(', ')}`;
    return { on: 'webhook', fault, times, type, delayMs };
  }
  return 'on must be api or webhook';
}

function isWithin(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_TEXT_CHARACTERS;
}
