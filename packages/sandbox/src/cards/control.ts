/**
 * The control surface, which makes events at banks and on the network happen now. JSON below /__control, a page at /.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { ApiError } from './api-error.ts';
import { amountOf } from './checkout-page.ts';
import type { Faults } from './faults.ts';
import {
  chargeOf,
  DISPUTE_REASONS,
  DISPUTE_STATUSES,
  disputeOf,
  failRefund,
  openDispute,
  refund,
  turnDispute,
  warn,
} from './money.ts';
import { escapeHtml, type Page, page } from './page.ts';
import type { Records } from './records.ts';
import type { SeenRequest } from './requests.ts';
import { authenticateFor } from './sessions.ts';
import type { Sender } from './webhooks.ts';

const MAX_ADVANCE_S = 400 * 86_400;
const SHOWN = 25;

export interface ControlParts {
  records: Records;
  faults: Faults;
  sender: Sender;
  /** The newest requests of the API, oldest first. */
  requests: { all(): readonly SeenRequest[]; clear(): void; total(): number };
  /** Saves what has changed and does what is due. */
  settle(): Promise<void>;
}

type Fields = ReadonlyMap<string, unknown>;

/** Serves `/__control/...` and the page. */
export function serveControl(app: FastifyInstance, parts: ControlParts): void {
  const { records, faults, sender, requests } = parts;

  /** A control that changes something: it answers once the change is saved. */
  function act(path: string, work: (fields: Fields, id: string) => unknown): void {
    app.post<{ Params: { id?: string } }>(path, async (request, reply) => {
      const { body } = request;
      const fields = new Map<string, unknown>(
        typeof body === 'object' && body !== null ? Object.entries(body) : [],
      );
      try {
        const result = structuredClone(work(fields, request.params.id ?? ''));
        await parts.settle();
        return result;
      } catch (error) {
        return refuse(reply, error);
      }
    });
  }

  app.get('/__control', () => summary(parts));
  app.get('/__control/health', () => ({ status: 'ok' }));
  app.get('/__control/faults', () => ({ faults: faults.list() }));
  app.post('/__control/faults', ({ body }, reply) => {
    const fault = faults.order(body);
    if (typeof fault === 'string') return reply.code(400).send({ error: fault });
    return reply.code(201).send({ faults: faults.list() });
  });
  app.delete('/__control/faults', () => {
    faults.clear();
    return { faults: [] };
  });
  app.get('/__control/requests', () => ({ total: requests.total(), requests: requests.all() }));
  app.delete('/__control/requests', () => {
    requests.clear();
    return { total: 0, requests: [] };
  });
  act('/__control/disputes', (fields) => {
    const reason = DISPUTE_REASONS.find((one) => one === (fields.get('reason') ?? 'fraudulent'));
    if (reason === undefined) throw new WrongField(`reason must be one of ${DISPUTE_REASONS.join(', ')}`);
    return openDispute(records, chargeNamed(records, fields), reason, fields.get('inquiry') === true);
  });
  act('/__control/disputes/:id', (fields, id) => {
    const status = textField(fields, 'status');
    if (!DISPUTE_STATUSES.includes(status)) {
      throw new WrongField(`status must be one of ${DISPUTE_STATUSES.join(', ')}`);
    }
    return turnDispute(records, disputeOf(records, id), status);
  });
  act('/__control/refunds', (fields) => {
    const cents = fields.get('amountCents') ?? null;
    if (cents !== null && (typeof cents !== 'number' || !Number.isInteger(cents) || cents < 1)) {
      throw new WrongField('amountCents must be a whole number of cents');
    }
    return refund(records, chargeNamed(records, fields), cents, 'requested_by_customer', {});
  });
  act('/__control/refunds/:id/fail', (_fields, id) => failRefund(records, id));
  act('/__control/early-fraud-warnings', (fields) => warn(records, chargeNamed(records, fields)));
  act('/__control/intents/:id/authenticate', (fields, id) => ({
    succeeded: authenticateFor(records, id, null, fields.get('approve') === true),
  }));
  act('/__control/events/:id/send', (_fields, id) => {
    if (!sender.sendAgain(id)) throw new WrongField(`no event ${id}`);
    return { sent: id };
  });
  act('/__control/webhooks/release', () => {
    sender.release();
    return { released: true };
  });
  act('/__control/clock', (fields) => {
    const seconds = fields.get('advanceSeconds');
    if (typeof seconds !== 'number' || !(seconds >= 0) || seconds > MAX_ADVANCE_S) {
      throw new WrongField(`advanceSeconds must be 0 to ${MAX_ADVANCE_S}`);
    }
    records.clockAheadMs += Math.floor(seconds * 1_000);
    return { clockAheadSeconds: records.clockAheadMs / 1_000 };
  });
  app.get('/', (_request, reply) => {
    const { html, headers } = controlPage(parts);
    return reply.headers(headers).send(html);
  });
}

class WrongField extends Error {}

function refuse(reply: FastifyReply, error: unknown): FastifyReply {
  if (error instanceof WrongField) return reply.code(400).send({ error: error.message });
  if (error instanceof ApiError) return reply.code(error.status).send({ error: error.message });
  throw error;
}

function textField(fields: Fields, name: string): string {
  const value = fields.get(name);
  if (typeof value !== 'string' || value.length > 200) throw new WrongField(`${name} is needed`);
  return value;
}

/** The charge that `charge` or `paymentIntent` names. */
function chargeNamed(records: Records, fields: Fields) {
  if (fields.has('charge')) return chargeOf(records, textField(fields, 'charge'));
  const intent = records.paymentIntents.get(textField(fields, 'paymentIntent'));
  return chargeOf(records, intent?.latest_charge ?? '');
}

/** How things stand; `netCents` is what charges, refunds and disputes come to, without fees. */
function summary({ records, faults, sender, requests }: ControlParts) {
  const totals = { chargedCents: 0, refundedCents: 0, disputedCents: 0, netCents: 0 };
  for (const { amount, type } of records.balanceTransactions.values()) {
    if (type === 'charge') totals.chargedCents += amount;
    else if (type === 'adjustment') totals.disputedCents -= amount;
    else totals.refundedCents -= amount;
    totals.netCents += amount;
  }
  const deliveries = { pending: 0, delivered: 0, failed: 0, dropped: 0 };
  for (const { state } of records.deliveries.values()) deliveries[state] += 1;
  return {
    totals,
    deliveries,
    // Of what the provider does later by itself; a page that nobody pays on ends when its day is over.
    appointments: [...records.appointments.values()].filter(({ act }) => act.kind !== 'expire-session')
      .length,
    webhookAttempts: sender.counts().attempts,
    requests: requests.total(),
    faults: faults.list(),
    clockAheadSeconds: records.clockAheadMs / 1_000,
  };
}

const SCRIPT = `
document.addEventListener('click', async (click) => {
  const button = click.target.closest('button[data-path]');
  if (!button) return;
  button.disabled = true;
  const reply = await fetch(button.dataset.path, {
    method: button.dataset.method || 'POST',
    ...(button.dataset.method ? {} : { headers: { 'content-type': 'application/json' }, body: button.dataset.body || '{}' }),
  });
  if (reply.ok) { location.reload(); return; }
  const { error } = await reply.json();
  document.getElementById('said').textContent = error;
  button.disabled = false;
});`;

function controlPage(parts: ControlParts): Page {
  const { records, faults } = parts;
  const { totals, deliveries } = summary(parts);
  const button = (label: string, path: string, body: object = {}) =>
    `<button class="plain" data-path="${escapeHtml(path)}" data-body="${escapeHtml(JSON.stringify(body))}">${escapeHtml(label)}</button>`;
  const newest = <T>(map: ReadonlyMap<string, T>) => [...map.values()].reverse().slice(0, SHOWN);
  const table = (caption: string, heads: string[], rows: string[][]) =>
    `<h2>${caption}</h2>${
      rows.length === 0
        ? '<p class="soft">None yet.</p>'
        : `<div class="table" tabindex="0" role="region" aria-label="${caption}"><table><thead><tr>${heads
            .map((head) => `<th scope="col">${head}</th>`)
            .join('')}</tr></thead><tbody>${rows
            .map((cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`)
            .join('')}</tbody></table></div>`
    }`;
  const charges = newest(records.charges).map((one) => [
    `<code>${one.id}</code>`,
    amountOf(one.amount, one.currency),
    one.payment_method_details.card.last4,
    one.disputed ? 'disputed' : one.refunded ? 'refunded' : one.status,
    one.paid
      ? button('Refund', '/__control/refunds', { charge: one.id }) +
        button('Dispute', '/__control/disputes', { charge: one.id }) +
        button('Inquiry', '/__control/disputes', { charge: one.id, inquiry: true }) +
        button('Fraud warning', '/__control/early-fraud-warnings', { charge: one.id })
      : escapeHtml(one.outcome.reason ?? ''),
  ]);
  const disputes = newest(records.disputes).map((one) => [
    `<code>${one.id}</code>`,
    amountOf(one.amount, one.currency),
    `${escapeHtml(one.reason)}, ${one.status}`,
    ['won', 'lost', 'warning_closed', 'needs_response']
      .map((status) => button(status, `/__control/disputes/${one.id}`, { status }))
      .join(''),
  ]);
  const refunds = newest(records.refunds).map((one) => [
    `<code>${one.id}</code>`,
    amountOf(one.amount, one.currency),
    one.status,
    button('Let it fail', `/__control/refunds/${one.id}/fail`),
  ]);
  const events = newest(records.events).map((one) => [
    `<code>${one.id}</code>`,
    escapeHtml(one.type),
    button('Send again', `/__control/events/${one.id}/send`),
  ]);
  const order = (label: string, body: object) => button(label, '/__control/faults', body);
  const body =
    '<h1>Sandbox card provider</h1>' +
    '<p>Here you are the bank, the card’s owner and the network in between.</p>' +
    `<p>Charged ${amountOf(totals.chargedCents, 'usd')}, refunded ${amountOf(totals.refundedCents, 'usd')}, ` +
    `disputed ${amountOf(totals.disputedCents, 'usd')}, net ${amountOf(totals.netCents, 'usd')}. ` +
    `Webhooks: ${deliveries.delivered} delivered, ${deliveries.pending} under way, ${deliveries.failed} failed, ${deliveries.dropped} dropped.</p>` +
    '<p id="said" role="alert"></p>' +
    '<h2>The next webhook</h2><div class="row">' +
    order('Drop', { on: 'webhook', fault: 'drop' }) +
    order('Duplicate', { on: 'webhook', fault: 'duplicate' }) +
    order('Echo under another id', { on: 'webhook', fault: 'echo' }) +
    order('Delay 30 s', { on: 'webhook', fault: 'delay', delayMs: 30_000 }) +
    order('Send three in reverse', { on: 'webhook', fault: 'reorder', times: 3 }) +
    button('Release what is held', '/__control/webhooks/release') +
    '</div><h2>The next request that changes something</h2><div class="row">' +
    order('Error 500', { on: 'api', fault: 'error-before', method: 'POST' }) +
    order('Done, but error 500', { on: 'api', fault: 'error-after', method: 'POST' }) +
    order('Done, but the reply is lost', { on: 'api', fault: 'drop-after', method: 'POST' }) +
    order('Never answered', { on: 'api', fault: 'never-before', method: 'POST' }) +
    order('Too many requests', { on: 'api', fault: 'rate-limit', method: 'POST' }) +
    '</div>' +
    `<p>Faults on order: ${escapeHtml(
      faults
        .list()
        .map((one) => `${one.on} ${one.fault} × ${one.times}`)
        .join(', ') || 'none',
    )} <button class="plain" data-path="/__control/faults" data-method="DELETE">Forget them</button></p>` +
    table('Charges', ['Charge', 'Amount', 'Card', 'State', 'Do'], charges) +
    table('Disputes', ['Dispute', 'Amount', 'State', 'Turn into'], disputes) +
    table('Refunds', ['Refund', 'Amount', 'State', 'Do'], refunds) +
    table('Events', ['Event', 'Type', 'Do'], events);
  return page({ title: 'Control', body, script: SCRIPT, wide: true });
}
