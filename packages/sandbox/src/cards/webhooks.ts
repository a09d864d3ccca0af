/** Sends events to the endpoints that want them: signed, retried after a failure, in no promised order. */
import { createHmac } from 'node:crypto';
import type { Faults } from './faults.ts';
import type { ApiEvent } from './objects.ts';
import type { Delivery, Endpoint, Records } from './records.ts';

/** Waits before the second and later tries; after the last the event is in the list of events only. */
const RETRY_DELAYS_MS = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000];
const ANSWER_TIMEOUT_MS = 10_000;
const MAX_CONCURRENT = 16;
/** When a held delivery is due: never, until it is released. */
const HELD = Number.MAX_SAFE_INTEGER;

export interface Sender {
  /** Sends what is due. Called again when a delivery has ended or `nextAtMs` has come. */
  pump(): void;
  /** When the next delivery is due; null when none waits. */
  nextAtMs(): number | null;
  /** Sends an event again to every endpoint, whatever became of it before. */
  sendAgain(event: string): boolean;
  /** Sends now what is held or delayed. */
  release(): void;
  counts(): { attempts: number; delivered: number; failed: number };
  stop(): Promise<void>;
}

/** `Stripe-Signature` for a body: the time in seconds, and HMAC-SHA256 over `<time>.<body>`. */
function signatureOf(secret: string, body: string, timestampS: number): string {
  const v1 = createHmac('sha256', secret).update(`${timestampS}.${body}`).digest('hex');
  return `t=${timestampS},v1=${v1}`;
}

/**
 * Opens the sender.
 * @param view an event as it is sent
 * @param changed called when a delivery has ended, to save it and to pump again
 */
export function openSender(
  records: Records,
  faults: Faults,
  view: (event: ApiEvent) => object,
  changed: () => void,
): Sender {
  const stop = new AbortController();
  const running = new Map<string, Promise<void>>();
  /** Faults that have been looked up for a delivery, which is done once. */
  const considered = new Set<string>();
  let held: Delivery[] = [];
  const counts = { attempts: 0, delivered: 0, failed: 0 };

  async function post(endpoint: Endpoint, event: ApiEvent): Promise<boolean> {
    const body = JSON.stringify(view(event), null, 2);
    counts.attempts += 1;
    try {
      const response = await fetch(endpoint.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json; charset=utf-8',
          'user-agent': 'Stripe/1.0 (sandbox card provider)',
          'stripe-signature': signatureOf(endpoint.secret, body, Math.floor(Date.now() / 1_000)),
        },
        body,
        // A redirect is a failure, as it is for the real sender.
        redirect: 'manual',
        signal: AbortSignal.any([stop.signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]),
      });
      await response.body?.cancel();
      return response.ok;
    } catch {
      return false;
    }
  }

  async function deliver(delivery: Delivery): Promise<void> {
    const endpoint = records.endpoints().find(({ id }) => id === delivery.endpoint);
    const event = records.events.get(delivery.event);
    if (endpoint === undefined || event === undefined) {
      delivery.state = 'failed';
      return;
    }
    const ok = await post(endpoint, event);
    // A sender that is stopping has not failed to deliver: the attempt is repeated after the restart.
    if (stop.signal.aborted && !ok) return;
    if (ok) {
      delivery.state = 'delivered';
      counts.delivered += 1;
      return;
    }
    const delay = RETRY_DELAYS_MS[delivery.attempts];
    delivery.attempts += 1;
    if (delay === undefined) {
      delivery.state = 'failed';
      counts.failed += 1;
    } else {
      delivery.nextAtMs = records.nowMs() + delay;
    }
  }

  /** Looks up a fault for a delivery that is about to be tried first. True: it is not sent now. */
  function struck(delivery: Delivery, type: string): boolean {
    if (considered.has(delivery.id) || delivery.attempts > 0) return false;
    considered.add(delivery.id);
    const fault = faults.takeWebhook(type);
    switch (fault?.fault) {
      case undefined:
        return false;
      case 'drop':
        delivery.state = 'dropped';
        return true;
      case 'duplicate':
        again(delivery, delivery.event);
        return false;
      case 'echo': {
        const event = records.events.get(delivery.event);
        if (event === undefined) return false;
        const id = records.newId('evt_');
        records.events.set(id, { ...event, id });
        again(delivery, id);
        return false;
      }
      case 'delay':
        delivery.nextAtMs = records.nowMs() + fault.delayMs;
        return true;
      case 'reorder':
        held.push(delivery);
        delivery.nextAtMs = HELD;
        if (fault.times <= 0) release();
        return true;
    }
  }

  function again(delivery: Delivery, event: string): void {
    const id = records.newId('dlv_');
    considered.add(id);
    const copy: Delivery = { ...delivery, id, event, attempts: 0, nextAtMs: 0, state: 'pending' };
    records.deliveries.set(id, copy);
  }

  /** Held deliveries are sent one after the other, the last first, so that the order is exactly reversed. */
  function release(): void {
    const waiting = held.reverse();
    held = [];
    if (waiting.length === 0) return;
    start(records.newId('held_'), async () => {
      for (const delivery of waiting) await deliver(delivery);
    });
  }

  function start(id: string, work: () => Promise<void>): void {
    const task = work().finally(() => {
      running.delete(id);
      considered.delete(id);
      changed();
    });
    running.set(id, task);
  }

  // The fault that held them is forgotten over a restart, so nothing else would release them.
  for (const delivery of records.deliveries.values()) {
    if (delivery.nextAtMs === HELD) delivery.nextAtMs = 0;
  }
  const waiting = () => [...records.deliveries.values()].filter(({ state }) => state === 'pending');

  return {
    pump() {
      const now = records.nowMs();
      for (const delivery of waiting()) {
        if (stop.signal.aborted || running.size >= MAX_CONCURRENT) return;
        if (running.has(delivery.id) || delivery.nextAtMs > now) continue;
        const event = records.events.get(delivery.event);
        if (struck(delivery, event?.type ?? '')) continue;
        start(delivery.id, () => deliver(delivery));
      }
    },
    nextAtMs() {
      // When all senders are busy, the next delivery that ends calls `pump` again.
      if (running.size >= MAX_CONCURRENT) return null;
      const times = waiting().flatMap(({ id, nextAtMs }) => (running.has(id) ? [] : nextAtMs));
      return times.length === 0 ? null : times.reduce((least, time) => Math.min(least, time));
    },
    sendAgain(id) {
      const event = records.events.get(id);
      if (event === undefined) return false;
      for (const endpoint of records.endpoints()) {
        const delivery = { id: '', event: id, endpoint: endpoint.id, attempts: 0, nextAtMs: 0 };
        again({ ...delivery, state: 'pending' }, id);
      }
      return true;
    },
    release() {
      for (const delivery of waiting()) {
        if (delivery.nextAtMs !== HELD) delivery.nextAtMs = 0;
      }
      release();
    },
    counts: () => ({ ...counts }),
    async stop() {
      stop.abort();
      await Promise.all(running.values());
    },
  };
}
