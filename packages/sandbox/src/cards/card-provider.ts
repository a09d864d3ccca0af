/**
 * The sandbox's card provider: a server with the real one's wire contract, so that the official library works with it
 * when only the address is changed. It has a payment page for a person, and a control surface for what banks and
 * networks do.
 */
import { timingSafeEqual } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { ApiError, type ErrorBody } from './api-error.ts';
import {
  authenticatedPage,
  authenticationPage,
  checkoutPage,
  closedPage,
  readTyped,
  receiptPage,
} from './checkout-page.ts';
import { serveControl } from './control.ts';
import { type ApiFault, openCardFaults } from './faults.ts';
import { type Params, parseForm } from './form.ts';
import { type Answer, digestOf, openIdempotency } from './idempotency.ts';
import { expanded, readExpand } from './list.ts';
import { chargeOf, failRefund, openDispute, settleRefund, warn } from './money.ts';
import type { CheckoutSession } from './objects.ts';
import type { Page } from './page.ts';
import { API_VERSION, type DueAct, openRecords } from './records.ts';
import { openRequests } from './requests.ts';
import { eventView, ROUTES, type Route } from './routes.ts';
import { authenticateFor, expireSession, orderOf, pageUrl, pay, sessionOf, successUrl } from './sessions.ts';
import { openSender } from './webhooks.ts';

/** Every reply carries this header, so that sandbox replies can always be recognized. */
const SANDBOX_HEADER = 'x-farebox-sandbox';
const SANDBOX_PART = 'card provider';
const HOST = '127.0.0.1';
const MAX_BODY_BYTES = 64 * 1024;
const MAX_CONCURRENT = 256;
const REQUEST_TIMEOUT_MS = 10_000;
/** A timer never sleeps longer than this; then it checks again. */
const MAX_SLEEP_MS = 60_000;

export interface CardProviderOptions {
  /** Where the state is kept; null: nowhere, for tests. */
  stateDir: string | null;
  /** Absent or 0: the system chooses. */
  port?: number;
  /** Endpoints that are there from the start; `events` absent: every type. */
  webhooks: readonly { url: string; secret: string; events?: readonly string[] }[];
  /** The one key that opens the API: `sk_test_…`. */
  secretKey: string;
}

export interface CardProvider {
  url: string;
  /** Ends waiting faults and deliveries, and saves. The next start retries deliveries that did not succeed. */
  stop(): Promise<void>;
}

/**
 * Starts the card provider on 127.0.0.1.
 * @throws Error when the key does not begin with sk_test_, or the saved state cannot be read
 */
export async function startCardProvider(options: CardProviderOptions): Promise<CardProvider> {
  const { secretKey } = options;
  if (!/^sk_test_\w{1,200}$/.test(secretKey)) throw new Error('the secret key must begin with sk_test_');
  const records = openRecords(options.stateDir, options.webhooks);
  const stopping = new AbortController();
  const faults = openCardFaults();
  const requests = openRequests();
  const once = openIdempotency(records);
  const sender = openSender(
    records,
    faults,
    (event) => eventView(records, event),
    () => {
      // A delivery that is not saved as done is made again after a crash; receivers must cope with that anyway.
      records.save().catch(complain);
      wake();
    },
  );
  let timer: NodeJS.Timeout | undefined;
  let working = 0;

  /** Does what is due and sets the clock for what comes next. */
  function wake(): void {
    clearTimeout(timer);
    if (stopping.signal.aborted) return;
    const due = records.takeDue();
    records.request = { id: null, idempotency_key: null };
    for (const act of due) perform(act);
    if (due.length > 0) records.save().catch(complain);
    sender.pump();
    const now = records.nowMs();
    let next = sender.nextAtMs() ?? now + MAX_SLEEP_MS;
    for (const { atMs } of records.appointments.values()) next = Math.min(next, atMs);
    timer = setTimeout(wake, Math.min(Math.max(next - now, 0), MAX_SLEEP_MS));
  }

  function perform(act: DueAct): void {
    try {
      if (act.kind === 'expire-session') {
        const session = sessionOf(records, act.session);
        if (session.status === 'open') expireSession(records, session);
      } else if (act.kind === 'dispute') {
        openDispute(records, chargeOf(records, act.charge), act.reason, act.inquiry);
      } else if (act.kind === 'early-warning') warn(records, chargeOf(records, act.charge));
      else if (act.kind === 'fail-refund') failRefund(records, act.refund);
      else settleRefund(records, act.refund);
    } catch (error) {
      // The situation has changed: for example, the charge that was to be disputed has been refunded.
      if (!(error instanceof ApiError)) throw error;
    }
  }

  /** Saves before anything is answered or sent, so that nothing that was said outside is ever forgotten. */
  async function settle(): Promise<void> {
    await records.save();
    wake();
  }

  /** Answers a call of the API, with the fault that is on order for it, if any. */
  async function serve(route: Route, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const path = pathOf(request);
    const header = request.headers['idempotency-key'];
    const key = route.method === 'POST' && typeof header === 'string' && header !== '' ? header : null;
    const seen = { method: route.method, path, keyDigest: key === null ? null : digestOf(key) };
    const done = (status: number | null, replayed = false) => requests.add({ ...seen, status, replayed });
    if (!isKey(request, secretKey)) {
      done(401);
      return reply.code(401).send({
        error: {
          type: 'invalid_request_error',
          message: 'Invalid API Key provided. The sandbox takes its own sk_test_ key.',
        },
      });
    }
    const fault = faults.takeApi(route.method, path);
    if (working >= MAX_CONCURRENT || fault?.fault === 'rate-limit') {
      done(429);
      return send(
        reply,
        plain(429, { type: 'invalid_request_error', code: 'rate_limit', message: 'Too many requests.' }),
      );
    }
    if (fault?.fault === 'drop-before') {
      done(null);
      return drop(request, reply);
    }
    if (fault?.fault === 'never-before') {
      done(null);
      return reply.hijack();
    }
    if (fault?.fault === 'garbage') {
      done(200);
      return reply.type('text/html').send('<!doctype html><title>Just a moment</title>');
    }
    working += 1;
    try {
      const answer = await answerTo(route, request, key, fault);
      if (fault?.fault === 'drop-after' || fault?.fault === 'never-after') {
        done(null);
        return fault.fault === 'drop-after' ? drop(request, reply) : reply.hijack();
      }
      done(answer.status, answer.replayOf !== null);
      if (key !== null) reply.header('idempotency-key', key);
      return send(reply, answer);
    } finally {
      working -= 1;
    }
  }

  async function answerTo(
    route: Route,
    request: FastifyRequest,
    key: string | null,
    fault: ApiFault | null,
  ): Promise<Answer> {
    try {
      const query = (request.raw.url ?? '').split('?')[1] ?? '';
      const params = parseForm(
        route.method === 'POST' && typeof request.body === 'string' ? request.body : query,
      );
      const work = async (keep: (answer: Answer) => void): Promise<Answer> => {
        if (fault?.fault === 'late') {
          await sleep(fault.delayMs, undefined, { signal: stopping.signal }).catch(() => undefined);
        }
        if (fault?.fault === 'error-before') return plain(500, SOMETHING_WENT_WRONG);
        const answer = execute(route, request, params, key);
        const told =
          fault?.fault === 'error-after'
            ? { ...plain(500, SOMETHING_WENT_WRONG), kept: true }
            : fault?.fault === 'refuse-after'
              ? { ...plain(400, REFUSED_AFTER), kept: true }
              : answer;
        keep(told);
        await settle();
        return told;
      };
      if (key === null) return await work(() => undefined);
      const endpoint = `${route.method} ${pathOf(request)}`;
      return await once({ key, endpoint, params: params.canonical() }, work);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return plain(error.status, error.body);
    }
  }

  /** Does a call, in one turn of the event loop. */
  function execute(route: Route, request: FastifyRequest, params: Params, key: string | null): Answer {
    const requestId = records.newId('req_');
    records.request = { id: requestId, idempotency_key: key };
    try {
      const paths = readExpand(params);
      const fields: unknown = request.params;
      const id = typeof fields === 'object' && fields !== null && 'id' in fields ? String(fields.id) : '';
      const object = route.answer({ records, params, id, path: pathOf(request) });
      const body = JSON.stringify(expanded(records, object, paths), null, 2);
      return { status: 200, body, kept: true, requestId, replayOf: null };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return { ...plain(error.status, error.body), kept: error.kept, requestId };
    } finally {
      records.request = { id: null, idempotency_key: null };
    }
  }

  function plain(status: number, error: ErrorBody): Answer {
    const body = JSON.stringify({ error }, null, 2);
    return { status, body, kept: false, requestId: records.newId('req_'), replayOf: null };
  }

  function send(reply: FastifyReply, answer: Answer): FastifyReply {
    reply.code(answer.status).type('application/json').header('request-id', answer.requestId);
    if (answer.replayOf !== null) {
      reply.header('idempotent-replayed', 'true').header('original-request', answer.replayOf);
    }
    return reply.send(answer.body);
  }

  const app = Fastify({
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    requestTimeout: REQUEST_TIMEOUT_MS,
    routerOptions: { maxParamLength: 200 },
  });
  app.addHook('onRequest', async (_request, reply) => {
    reply.header(SANDBOX_HEADER, SANDBOX_PART);
  });

  await app.register(async (api) => {
    readForms(api);
    api.addHook('onRequest', async (_request, reply) => {
      reply.header('stripe-version', API_VERSION);
    });
    api.setErrorHandler<Error & { statusCode?: number }>((error, _request, reply) => {
      const status = error.statusCode ?? 500;
      if (status >= 500) complain(error);
      return send(
        reply,
        status >= 500
          ? plain(500, SOMETHING_WENT_WRONG)
          : plain(status, { type: 'invalid_request_error', message: 'The request cannot be read.' }),
      );
    });
    for (const route of ROUTES) {
      api.route({
        method: route.method,
        url: `/v1/${route.path}`,
        handler: (request, reply) => serve(route, request, reply),
      });
    }
    api.all('/v1/*', (request, reply) =>
      send(
        reply,
        plain(404, {
          type: 'invalid_request_error',
          message: `Unrecognized request URL (${request.method}: ${pathOf(request).slice(0, 200)}). The sandbox has no such call.`,
        }),
      ),
    );
  });

  await app.register(async (pages) => {
    readForms(pages);
    const show = (reply: FastifyReply, { html, headers }: Page, status = 200) =>
      reply.code(status).headers(headers).send(html);
    type Named = { Params: { id: string } };

    pages.get<Named>('/c/pay/:id', ({ params: { id } }, reply) => {
      const session = records.sessions.get(id);
      if (session === undefined) return show(reply, closedPage(null), 404);
      if (session.status === 'complete') return reply.redirect(successUrl(session), 303);
      if (session.status === 'expired') return show(reply, closedPage(session));
      const message = lastDecline(session);
      const email = session.customer_details?.email ?? '';
      const trouble = message === null ? null : { email, message, wrong: {} };
      return show(reply, checkoutPage(session, orderOf(records, session), emailOf(session), trouble));
    });

    pages.post<Named>('/c/pay/:id', async (request, reply) => {
      const session = records.sessions.get(request.params.id);
      if (session === undefined) return show(reply, closedPage(null), 404);
      const known = emailOf(session);
      const typed = readTyped(bodyOf(request), known);
      const again = (message: string | null) => {
        const trouble = { email: typed.email, message, wrong: typed.wrong };
        return show(reply, checkoutPage(session, orderOf(records, session), known, trouble));
      };
      if (session.status === 'open' && Object.keys(typed.wrong).length > 0) return again(null);
      const { email, number, expMonth, expYear, cvc } = typed;
      const result = pay(records, session, { email, card: { number, expMonth, expYear, cvc } });
      await settle();
      if (result.kind === 'paid') return reply.redirect(successUrl(session), 303);
      if (result.kind === 'authenticate') return reply.redirect(result.url, 303);
      if (result.kind === 'closed') return show(reply, closedPage(session));
      // Shown by the page itself if possible, so that reloading or going back does not send the card again.
      if (lastDecline(session) === result.message) return reply.redirect(pageUrl(records, session.id), 303);
      return again(result.message);
    });

    type Asked = { Params: { id: string; nonce: string } };
    const asked = ({ id, nonce }: Asked['Params']) => {
      const challenge = records.challenges.get(id);
      return challenge?.nonce === nonce ? challenge : null;
    };
    const TOO_LATE = 'This question has been answered, or another payment took its place.';

    pages.get<Asked>('/authenticate/:id/:nonce', ({ params }, reply) => {
      const challenge = asked(params);
      const intent = records.paymentIntents.get(params.id) ?? records.setupIntents.get(params.id);
      if (challenge === null || intent === undefined) return show(reply, authenticatedPage(TOO_LATE), 404);
      const session = records.sessions.get(challenge.session ?? '');
      const targets = [challenge.returnUrl ?? '', session?.success_url ?? ''];
      return show(reply, authenticationPage(intent, `/authenticate/${params.id}/${params.nonce}`, targets));
    });

    pages.post<Asked>('/authenticate/:id/:nonce', async (request, reply) => {
      const challenge = asked(request.params);
      if (challenge === null) return show(reply, authenticatedPage(TOO_LATE), 404);
      const approve = bodyOf(request).text('decision', 20) === 'approve';
      const ended = authenticateFor(records, request.params.id, request.params.nonce, approve);
      await settle();
      const session = records.sessions.get(challenge.session ?? '');
      if (session !== undefined) {
        // The page shows why when it did not end well, and passes on who has paid.
        return reply.redirect(
          session.status === 'complete' ? successUrl(session) : pageUrl(records, session.id),
          303,
        );
      }
      if (challenge.returnUrl === null) {
        return show(reply, authenticatedPage(ended ? 'Approved.' : 'Not approved.'));
      }
      return reply.redirect(challenge.returnUrl, 303);
    });

    pages.get<Named>('/receipts/:id', ({ params: { id } }, reply) => {
      const charge = records.charges.get(id);
      return charge?.paid === true ? show(reply, receiptPage(charge)) : show(reply, closedPage(null), 404);
    });
  });

  function lastDecline(session: CheckoutSession): string | null {
    const intent = records.paymentIntents.get(session.payment_intent ?? '');
    return intent?.last_payment_error?.message ?? null;
  }

  /** The address that a session knows before anybody types: its own, or that of the customer it was made for. */
  function emailOf(session: CheckoutSession): string | null {
    if (session.customer_email !== null) return session.customer_email;
    const given = session.customer_creation === null ? session.customer : null;
    return records.customers.get(given ?? '')?.email ?? null;
  }

  serveControl(app, { records, faults, sender, requests, settle });
  records.baseUrl = await app.listen({ host: HOST, port: options.port ?? 0 });
  for (const session of records.sessions.values()) {
    // The port may be another than before.
    if (session.status === 'open') session.url = pageUrl(records, session.id);
  }
  wake();
  return {
    url: records.baseUrl,
    async stop() {
      stopping.abort();
      clearTimeout(timer);
      await app.close();
      await sender.stop();
      await records.save();
    },
  };
}

const REFUSED_AFTER: ErrorBody = {
  type: 'invalid_request_error',
  code: 'parameter_invalid_string',
  message: 'The sandbox did it and says no, as ordered.',
};
const SOMETHING_WENT_WRONG: ErrorBody = {
  type: 'api_error',
  message: 'An unknown error occurred. (This is the sandbox.)',
};

/** Bodies are taken as text whatever they are called, and read as forms; the limit is the server's. */
function readForms(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    (_request, body, done) => done(null, body),
  );
}

function bodyOf(request: FastifyRequest): Params {
  try {
    return parseForm(typeof request.body === 'string' ? request.body : '');
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return parseForm('');
  }
}

function pathOf(request: FastifyRequest): string {
  return (request.raw.url ?? '').split('?')[0] ?? '';
}

/** `Bearer <key>`, or the key as the user of basic authentication. */
function isKey(request: FastifyRequest, secretKey: string): boolean {
  const [scheme = '', credential = ''] = (request.headers.authorization ?? '').split(' ');
  const basic = Buffer.from(credential, 'base64').toString().split(':')[0] ?? '';
  const given = Buffer.from(digestOf(scheme.toLowerCase() === 'basic' ? basic : credential));
  return timingSafeEqual(given, Buffer.from(digestOf(secretKey)));
}

function drop(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  request.raw.socket.destroy();
  return reply.hijack();
}

/** Says on the error stream that something is broken; there is no request data in these. */
function complain(error: unknown): void {
  process.stderr.write(
    `sandbox card provider: ${error instanceof Error ? error.message : 'unknown error'}\n`,
  );
}
