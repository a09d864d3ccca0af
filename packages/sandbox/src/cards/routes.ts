/** Which call of the card API does what. Each runs in one turn of the event loop, so calls never mix. */
import { invalid, noSuch } from './api-error.ts';
import type { Params } from './form.ts';
import {
  cancelIntent,
  confirmIntent,
  confirmSetup,
  createIntent,
  createSetup,
  intentOf,
  readUrl,
  setupOf,
  updateIntent,
} from './intents.ts';
import { equal, type Filter, listOf } from './list.ts';
import { chargeOf, closeDispute, createRefund, disputeOf, refundOf, updateDispute } from './money.ts';
import type { ApiEvent, WebhookEndpoint } from './objects.ts';
import {
  attach,
  createCustomer,
  createMethod,
  customerOf,
  deleteCustomer,
  deletedCustomer,
  detach,
  methodOf,
  updateCustomer,
  usableMethod,
} from './payment-methods.ts';
import { nowS, type Records } from './records.ts';
import { createSession, expireSession, orderOf, sessionOf } from './sessions.ts';

const MAX_EVENT_TYPES = 100;
const MAX_ENDPOINTS = 16;

export interface Call {
  records: Records;
  /** The `:id` of the path; empty where there is none. */
  id: string;
  params: Params;
  path: string;
}

export interface Route {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  answer(call: Call): object;
}

/** An event as it is shown: with the number of deliveries that are still to succeed. */
export function eventView(records: Records, event: ApiEvent): ApiEvent & { pending_webhooks: number } {
  let pending_webhooks = 0;
  for (const delivery of records.deliveries.values()) {
    if (delivery.event === event.id && delivery.state === 'pending') pending_webhooks += 1;
  }
  return { ...event, pending_webhooks };
}

/** A call whose parameters are all read by what it is given to. */
function bare<T extends object>(read: (call: Call) => T): (call: Call) => T {
  return (call) => {
    call.params.end();
    return read(call);
  };
}

const customers: Route[] = [
  { method: 'POST', path: 'customers', answer: ({ records, params }) => createCustomer(records, params) },
  {
    method: 'GET',
    path: 'customers',
    answer: ({ records, params, path }) =>
      listOf(records.customers.values(), path, params, [
        ({ deleted = false }) => !deleted,
        equal(params, 'email', ({ email }) => email),
      ]),
  },
  {
    method: 'GET',
    path: 'customers/:id',
    answer: bare(({ records, id }) => deletedCustomer(records, id) ?? customerOf(records, id)),
  },
  { method: 'DELETE', path: 'customers/:id', answer: bare(({ records, id }) => deleteCustomer(records, id)) },
  {
    method: 'POST',
    path: 'customers/:id',
    answer: ({ records, id, params }) => updateCustomer(records, customerOf(records, id), params),
  },
  {
    method: 'GET',
    path: 'customers/:id/payment_methods',
    answer: ({ records, id, params, path }) => {
      customerOf(records, id);
      return listOf(records.paymentMethods.values(), path, params, [
        ({ customer }) => customer === id,
        equal(params, 'type', ({ type }) => type),
      ]);
    },
  },
];

const paymentMethods: Route[] = [
  { method: 'POST', path: 'payment_methods', answer: ({ records, params }) => createMethod(records, params) },
  {
    method: 'GET',
    path: 'payment_methods',
    answer: ({ records, params, path }) =>
      listOf(records.paymentMethods.values(), path, params, [
        equal(params, 'customer', ({ customer }) => customer),
        equal(params, 'type', ({ type }) => type),
      ]),
  },
  {
    method: 'GET',
    path: 'payment_methods/:id',
    answer: bare(({ records, id }) => usableMethod(records, id)),
  },
  {
    method: 'POST',
    path: 'payment_methods/:id',
    answer: ({ records, id, params }) => {
      const method = methodOf(records, id);
      const metadata = params.metadata(method.metadata);
      params.end();
      method.metadata = metadata;
      return method;
    },
  },
  {
    method: 'POST',
    path: 'payment_methods/:id/attach',
    answer: ({ records, id, params }) => {
      const customer = params.needed('customer', 100);
      params.end();
      return attach(records, usableMethod(records, id), customerOf(records, customer, 'customer').id);
    },
  },
  {
    method: 'POST',
    path: 'payment_methods/:id/detach',
    answer: bare(({ records, id }) => detach(records, methodOf(records, id))),
  },
];

const sessions: Route[] = [
  {
    method: 'POST',
    path: 'checkout/sessions',
    answer: ({ records, params }) => createSession(records, params),
  },
  {
    method: 'GET',
    path: 'checkout/sessions',
    answer: ({ records, params, path }) =>
      listOf(records.sessions.values(), path, params, [
        equal(params, 'payment_intent', ({ payment_intent }) => payment_intent),
        equal(params, 'customer', ({ customer }) => customer),
        equal(params, 'status', ({ status }) => status),
      ]),
  },
  { method: 'GET', path: 'checkout/sessions/:id', answer: bare(({ records, id }) => sessionOf(records, id)) },
  {
    method: 'POST',
    path: 'checkout/sessions/:id/expire',
    answer: bare(({ records, id }) => expireSession(records, sessionOf(records, id))),
  },
  {
    method: 'GET',
    path: 'checkout/sessions/:id/line_items',
    answer: ({ records, id, params, path }) => {
      const { lines } = orderOf(records, sessionOf(records, id));
      return listOf([...lines].reverse(), path, params, []);
    },
  },
];

const CANCEL_REASONS = ['abandoned', 'duplicate', 'fraudulent', 'requested_by_customer'] as const;

const intents: Route[] = [
  { method: 'POST', path: 'payment_intents', answer: ({ records, params }) => createIntent(records, params) },
  {
    method: 'GET',
    path: 'payment_intents',
    answer: ({ records, params, path }) =>
      listOf(records.paymentIntents.values(), path, params, [
        equal(params, 'customer', ({ customer }) => customer),
      ]),
  },
  { method: 'GET', path: 'payment_intents/:id', answer: bare(({ records, id }) => intentOf(records, id)) },
  {
    method: 'POST',
    path: 'payment_intents/:id',
    answer: ({ records, id, params }) => updateIntent(intentOf(records, id), params),
  },
  {
    method: 'POST',
    path: 'payment_intents/:id/confirm',
    answer: ({ records, id, params }) => confirmIntent(records, intentOf(records, id), params),
  },
  {
    method: 'POST',
    path: 'payment_intents/:id/cancel',
    answer: ({ records, id, params }) => {
      const reason = params.choice('cancellation_reason', CANCEL_REASONS) ?? null;
      params.end();
      return cancelIntent(records, intentOf(records, id), reason);
    },
  },
  { method: 'POST', path: 'setup_intents', answer: ({ records, params }) => createSetup(records, params) },
  { method: 'GET', path: 'setup_intents/:id', answer: bare(({ records, id }) => setupOf(records, id)) },
  {
    method: 'POST',
    path: 'setup_intents/:id/confirm',
    answer: ({ records, id, params }) => confirmSetup(records, setupOf(records, id), params),
  },
];

/** The filters that charges, refunds, disputes and warnings have in common. */
function byPayment<T extends { payment_intent: string }>(
  params: Params,
  charge: (object: T) => string,
): Filter<T>[] {
  return [equal(params, 'payment_intent', (one) => one.payment_intent), equal(params, 'charge', charge)];
}

const money: Route[] = [
  {
    method: 'GET',
    path: 'charges',
    answer: ({ records, params, path }) =>
      listOf(records.charges.values(), path, params, [
        equal(params, 'payment_intent', ({ payment_intent }) => payment_intent),
        equal(params, 'customer', ({ customer }) => customer),
      ]),
  },
  { method: 'GET', path: 'charges/:id', answer: bare(({ records, id }) => chargeOf(records, id)) },
  { method: 'POST', path: 'refunds', answer: ({ records, params }) => createRefund(records, params) },
  {
    method: 'GET',
    path: 'refunds',
    answer: ({ records, params, path }) =>
      listOf(
        records.refunds.values(),
        path,
        params,
        byPayment(params, ({ charge }) => charge),
      ),
  },
  { method: 'GET', path: 'refunds/:id', answer: bare(({ records, id }) => refundOf(records, id)) },
  {
    method: 'GET',
    path: 'disputes',
    answer: ({ records, params, path }) =>
      listOf(
        records.disputes.values(),
        path,
        params,
        byPayment(params, ({ charge }) => charge),
      ),
  },
  { method: 'GET', path: 'disputes/:id', answer: bare(({ records, id }) => disputeOf(records, id)) },
  {
    method: 'POST',
    path: 'disputes/:id',
    answer: ({ records, id, params }) => updateDispute(records, disputeOf(records, id), params),
  },
  {
    method: 'POST',
    path: 'disputes/:id/close',
    answer: bare(({ records, id }) => closeDispute(records, disputeOf(records, id))),
  },
  {
    method: 'GET',
    path: 'radar/early_fraud_warnings',
    answer: ({ records, params, path }) =>
      listOf(
        records.warnings.values(),
        path,
        params,
        byPayment(params, ({ charge }) => charge),
      ),
  },
  {
    method: 'GET',
    path: 'balance_transactions',
    answer: ({ records, params, path }) =>
      listOf(records.balanceTransactions.values(), path, params, [
        equal(params, 'source', ({ source }) => source),
        equal(params, 'type', ({ type }) => type),
      ]),
  },
  {
    method: 'GET',
    path: 'balance_transactions/:id',
    answer: bare(({ records, id }) => {
      const found = records.balanceTransactions.get(id);
      if (found === undefined) throw noSuch('balance transaction', id, 'id');
      return found;
    }),
  },
];

const events: Route[] = [
  {
    method: 'GET',
    path: 'events',
    answer: ({ records, params, path }) => {
      const type = params.text('type', 100);
      const types = params.texts('types', 20);
      const delivered = params.boolean('delivery_success');
      const open = new Set(
        [...records.deliveries.values()].flatMap(({ event, state }) => (state === 'delivered' ? [] : event)),
      );
      const list = listOf(records.events.values(), path, params, [
        (one) => type === undefined || matches(type, one.type),
        (one) => types.length === 0 || types.some((wanted) => matches(wanted, one.type)),
        (one) => delivered === undefined || open.has(one.id) !== delivered,
      ]);
      return { ...list, data: list.data.map((one) => eventView(records, one)) };
    },
  },
  {
    method: 'GET',
    path: 'events/:id',
    answer: bare(({ records, id }) => {
      const found = records.events.get(id);
      if (found === undefined) throw noSuch('event', id, 'id');
      return eventView(records, found);
    }),
  },
  {
    method: 'POST',
    path: 'webhook_endpoints',
    answer: ({ records, params }) => {
      const url = readUrl(params, 'url');
      const types = params.texts('enabled_events', MAX_EVENT_TYPES);
      const endpoint: WebhookEndpoint = {
        id: records.newId('we_'),
        object: 'webhook_endpoint',
        api_version: params.text('api_version', 50) ?? null,
        application: null,
        created: nowS(),
        description: params.text('description') ?? null,
        enabled_events: types,
        livemode: false,
        metadata: params.metadata(),
        status: 'enabled',
        url: url ?? '',
      };
      params.end();
      if (url === null) throw invalid('Missing required param: url.', 'url', 'parameter_missing');
      if (types.length === 0) {
        throw invalid('Missing required param: enabled_events.', 'enabled_events', 'parameter_missing');
      }
      if (records.webhookEndpoints.size >= MAX_ENDPOINTS) {
        throw invalid(`You have reached the maximum of ${MAX_ENDPOINTS} test webhook endpoints.`);
      }
      const secret = records.newId('whsec_');
      records.insert('webhookEndpoints', endpoint);
      records.secrets.set(endpoint.id, secret);
      return { ...endpoint, secret };
    },
  },
  {
    method: 'GET',
    path: 'webhook_endpoints',
    answer: ({ records, params, path }) => listOf(everyEndpoint(records), path, params, []),
  },
  {
    method: 'GET',
    path: 'webhook_endpoints/:id',
    answer: bare(({ records, id }) => endpointOf(records, id)),
  },
  {
    method: 'DELETE',
    path: 'webhook_endpoints/:id',
    answer: bare(({ records, id }) => {
      endpointOf(records, id);
      records.webhookEndpoints.delete(id);
      records.secrets.delete(id);
      return { id, object: 'webhook_endpoint', deleted: true };
    }),
  },
];

/** `charge.*` means all of a kind. */
function matches(wanted: string, type: string): boolean {
  return wanted.endsWith('.*') ? type.startsWith(wanted.slice(0, -1)) : wanted === type;
}

/** The endpoints that were made here, and before them those that this provider was started with. */
function everyEndpoint(records: Records): WebhookEndpoint[] {
  const startedWith = records.endpoints().flatMap(({ id, url, events }): WebhookEndpoint[] =>
    records.webhookEndpoints.has(id)
      ? []
      : [
          {
            id,
            object: 'webhook_endpoint',
            api_version: null,
            application: null,
            created: 0,
            description: null,
            enabled_events: [...(events ?? ['*'])],
            livemode: false,
            metadata: {},
            status: 'enabled',
            url,
          },
        ],
  );
  return [...startedWith, ...records.webhookEndpoints.values()];
}

function endpointOf(records: Records, id: string): WebhookEndpoint {
  const found = records.webhookEndpoints.get(id);
  if (found === undefined) throw noSuch('webhook endpoint', id, 'id');
  return found;
}

/** All of the API below `/v1/`. */
export const ROUTES: readonly Route[] = [
  ...customers,
  ...paymentMethods,
  ...sessions,
  ...intents,
  ...money,
  ...events,
];
