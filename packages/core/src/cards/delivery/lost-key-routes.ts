import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Transaction } from '../../db/connection.ts';
import { readJsonBody } from '../../http/json-body.ts';
import { Problem, unavailable } from '../../http/problem.ts';
import { admit, type RateLimit } from '../../http/rate-limit.ts';
import { microsToUsd } from '../../ledger/money.ts';
import { providerAway } from '../closed.ts';
import type { OrderStore } from '../orders/orders.ts';
import type { Checkout } from '../ways/checkout.ts';
import type { KeyLinks, LinkSent } from './key-links.ts';

const sessionId = z.string().regex(/^cs_\w{8,200}$/, 'begins with cs_');
const ofPage = z.strictObject({ sessionId, proof: z.string().max(100), reveal: z.boolean().default(false) });
const ofMail = z.strictObject({ sessionId });
const ofLink = z.strictObject({
  token: z.string().regex(/^[\w-]{43}$/, 'is what stands behind the # of the link'),
});

/** Routes that the return page and the page of a mailed link ask. Secrets stand in bodies, never in an address. */
export function lostKeyRoutes(
  app: FastifyInstance,
  parts: {
    checkout: Checkout;
    links: KeyLinks;
    accountLimit: RateLimit;
    /** Mails and new keys that one address may ask for. */
    linkLimit: RateLimit;
    addressOf(request: FastifyRequest): string;
  },
): void {
  const { checkout, links, addressOf } = parts;
  const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());

  app.post('/api/m2m/credits/checkout/hand-over', async (request, reply) => {
    admit(parts.accountLimit, addressOf(request), reply);
    const { reveal, ...session } = readJsonBody(request, ofPage);
    const given = reveal ? await checkout.page.reveal(session) : null;
    const standing = await checkout.page.look(session);
    if (standing === null)
      throw new Problem(403, 'INVALID_PROOF', 'There is no such session with this proof.');
    const { state, deliveredAtMs, deliveredTo } = standing;
    return {
      success: true,
      sessionId: session.sessionId,
      state,
      deliveredAt: iso(deliveredAtMs),
      deliveredTo,
      ...(given?.status === 'ready' ? { apiKey: given.apiKey, keyPrefix: given.keyPrefix } : {}),
    };
  });

  app.post('/api/m2m/credits/checkout/mail-key', async (request, reply) => {
    admit(parts.linkLimit, addressOf(request), reply);
    const asked = readJsonBody(request, ofMail);
    const sent = await links.send(asked.sessionId);
    if (sent.status !== 'sent') throw notSent(sent);
    return { success: true, to: hidden(sent.to), expiresAt: iso(sent.expiresAtMs) };
  });

  app.post('/api/m2m/credits/new-key', async (request, reply) => {
    admit(parts.linkLimit, addressOf(request), reply);
    const used = await links.use(readJsonBody(request, ofLink).token);
    switch (used.status) {
      case 'done':
        return {
          success: true,
          apiKey: used.key.apiKey,
          keyPrefix: used.key.prefix,
          creditsBought: Number(microsToUsd(used.creditMicros)),
          message: 'Every other key of this credit has ended. Save this one now.',
        };
      case 'dead':
        throw new Problem(410, 'LINK_ENDED', 'This link was used, was replaced by another, or is too old.');
      case 'reversed':
        throw new Problem(
          409,
          'PAYMENT_REVERSED',
          'The payment was returned or is disputed, so there is no key for it.',
        );
      case 'frozen':
        throw new Problem(
          409,
          'API_KEY_FROZEN',
          'The account is frozen. Ask the operator; the link stays good.',
        );
    }
  });
}

/** Prepares a link, for `Cards.prepareKeyLink`. @throws Problem when no link can be sent */
export async function preparedKeyLink(
  links: KeyLinks,
  orders: Pick<OrderStore, 'find'>,
  orderId: string,
): Promise<(transaction: Transaction) => Promise<void>> {
  const order = await orders.find(orderId);
  if (order === null) throw notSent({ status: 'unknown_order' });
  const to = await links.addressOf(order);
  if (to === undefined) throw notSent({ status: 'provider_away' });
  if (to === null) throw notSent({ status: 'no_address' });
  return async (transaction) => {
    const sent = await links.sendWithin(transaction, order, to);
    if (sent.status !== 'sent') throw notSent(sent);
  };
}

/** Why no link was sent, as an answer. */
function notSent(sent: Exclude<LinkSent, { status: 'sent' }>): Problem {
  switch (sent.status) {
    case 'too_soon':
      return new Problem(
        429,
        'LINK_SENT_BEFORE',
        'A link was sent already. Look into the mailbox, and among its spam.',
        {
          headers: { 'retry-after': String(Math.max(1, Math.ceil(sent.retryAfterMs / 1_000))) },
        },
      );
    case 'provider_away':
      return providerAway(undefined);
    case 'no_mail':
      return unavailable(
        'MAIL_NOT_CONFIGURED',
        'This server sends no mail. Ask the operator for a new key.',
        3_600_000,
      );
    case 'no_address':
      return new Problem(
        409,
        'NO_ADDRESS',
        'No e-mail address was given with this payment. Ask the operator.',
      );
    case 'reversed':
      return new Problem(
        409,
        'PAYMENT_REVERSED',
        'The payment was returned or is disputed, so there is no key for it.',
      );
    case 'no_key':
      return new Problem(
        409,
        'NO_KEY_BOUGHT',
        'This order is not paid, or it bought credit for a key that existed.',
      );
    case 'unknown_order':
      return new Problem(404, 'UNKNOWN_SESSION', 'There is no such session.');
  }
}

/** An address that its owner knows again, and nobody else reads. */
function hidden(address: string): string {
  const at = address.lastIndexOf('@');
  return `${address.slice(0, 1)}…${address.slice(at)}`;
}
