/** The addresses at which an operator signs in: there is no operator yet who asks. */
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { wantsPage } from '../../http/accept.ts';
import { readParameters } from '../../http/parameters.ts';
import { Problem } from '../../http/problem.ts';
import { type RateLimit, rateExceeded } from '../../http/rate-limit.ts';
import type { operatorCookies } from './cookies.ts';
import type { People } from './people.ts';
import type { SignInAttempt, SignInProvider } from './provider.ts';

/** Sign-ins that begin or end in a minute, by address. */
export const SIGN_INS_PER_MINUTE = 20;
/** A person has so long to sign in at the provider. */
const ATTEMPT_LASTS_S = 600;
export const SIGNED_IN_PATH = '/admin/signed-in';

/** Sentences that the page says of a sign-in that came to nothing; the same sentences are in docs/errors.md. */
const SENTENCES: Readonly<Record<string, string>> = {
  SIGN_IN_UNAVAILABLE:
    'The provider at which operators sign in gives no answer that can be used. Sign in later, or by a token.',
  SIGN_IN_FAILED: 'The sign-in did not hold. Sign in again.',
  SIGN_IN_DECLINED: 'The provider did not let this sign-in happen. Sign in again.',
  SIGN_IN_REFUSED:
    'You are signed in at the provider, and no role here belongs to you. Ask an operator with the role admin.',
  SIGN_IN_USED: 'This sign-in has begun a session already. Sign in again.',
  TOO_MANY_OPERATORS: 'There are too many operators already.',
  RATE_LIMIT_EXCEEDED: 'Too many sign-ins came from your address. Wait for a minute.',
};

interface SignInRouteParts {
  /** Null: none is configured. */
  provider: SignInProvider | null;
  people: People;
  cookies: ReturnType<typeof operatorCookies>;
  /** How long a session lasts at most. */
  longestMs: number;
  /** Whether a token may be given instead. */
  takesTokens(): Promise<boolean>;
  limit: RateLimit;
  addressOf(request: FastifyRequest): string;
  logger: Pick<FastifyBaseLogger, 'info' | 'warn'>;
}

const waysQuery = z.object({ problem: z.string().max(40).optional() });
const returned = z.object({ state: z.string().min(16).max(200) });

/** `/admin/ways`, `/admin/sign-in` and `/admin/signed-in`. They take no address to go to: a sign-in ends at `/admin`. */
export function signInRoutes(admin: FastifyInstance, parts: SignInRouteParts): void {
  const { provider, cookies, addressOf, logger } = parts;

  admin.get('/ways', async (request) => {
    const { problem } = readParameters(waysQuery, request.query);
    const known = problem !== undefined && Object.hasOwn(SENTENCES, problem) ? SENTENCES[problem] : null;
    return {
      provider: provider?.host ?? null,
      token: await parts.takesTokens(),
      // Whether there is anything to ask about: a page cannot see the cookie.
      session: cookies.sessionOf(request.headers.cookie) !== null,
      problem: known ?? null,
    };
  });
  if (provider === null) return;

  const bounded = (request: FastifyRequest) => {
    const verdict = parts.limit.take(addressOf(request));
    if (!verdict.allowed) throw rateExceeded(verdict);
  };

  admin.get('/sign-in', (request, reply) =>
    toldTo(request, reply, async () => {
      bounded(request);
      const { url, ...attempt } = await provider.begin();
      const value = Buffer.from(JSON.stringify(attempt)).toString('base64url');
      return reply
        .header('set-cookie', cookies.attempt(attempt.state, value, ATTEMPT_LASTS_S))
        .redirect(url.href, 303);
    }),
  );

  admin.get('/signed-in', (request, reply) =>
    toldTo(request, reply, async () => {
      bounded(request);
      return finished(request, reply, { ...parts, provider });
    }),
  );

  /** A browser is shown on the page what went wrong; a program gets it as any other problem. */
  async function toldTo(
    request: FastifyRequest,
    reply: FastifyReply,
    answer: () => Promise<FastifyReply>,
  ): Promise<FastifyReply> {
    try {
      return await answer();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      // The reason alone: the rest of the library's error holds what the provider sent.
      const why = error.cause instanceof Error ? error.cause.message : error.message;
      if (error.code.startsWith('SIGN_IN'))
        logger.warn({ address: addressOf(request), code: error.code, why }, 'sign-in failed');
      if (!wantsPage(request.headers.accept)) throw error;
      return reply.redirect(`/admin#sign-in-${error.code}`, 303);
    }
  }
}

/** Ends a sign-in: the browser has a session, or is told why not. */
async function finished(
  request: FastifyRequest,
  reply: FastifyReply,
  {
    provider,
    people,
    cookies,
    longestMs,
    addressOf,
    logger,
  }: SignInRouteParts & { provider: SignInProvider },
): Promise<FastifyReply> {
  const { state } = readParameters(returned, request.query);
  const attempt = attemptOf(cookies.attemptOf(request.headers.cookie, state));
  // Without the cookie this browser did not begin the sign-in: somebody else would be signed in here under their own name.
  if (attempt === null || attempt.state !== state)
    throw new Problem(
      400,
      'SIGN_IN_FAILED',
      'This browser did not begin this sign-in, or began it more than ten minutes ago. Sign in again.',
    );
  reply.header('set-cookie', cookies.noAttempt(state));
  const person = await provider.finish(request.url.slice(request.url.indexOf('?')), attempt);
  const address = addressOf(request);
  const from = { state, address, agent: request.headers['user-agent'] };
  const { cookie, operator } = await people.begin(person, from).catch((error: unknown) => {
    const { issuer, subject } = person;
    if (error instanceof Problem)
      logger.warn({ issuer, subject, address, code: error.code }, 'operator refused');
    throw error;
  });
  logger.info({ actor: operator.actor, role: operator.role, address }, 'operator signed in');
  return reply
    .header('set-cookie', cookies.session(cookie, Math.floor(longestMs / 1_000)))
    .redirect('/admin', 303);
}

const keptAttempt = z.object({
  state: z.string().max(200),
  nonce: z.string().max(200),
  verifier: z.string().max(200),
});

/** Reads the state that a browser kept of its sign-in; null when it kept something else. */
function attemptOf(cookie: string | null): SignInAttempt | null {
  if (cookie === null) return null;
  try {
    return keptAttempt.parse(JSON.parse(Buffer.from(cookie, 'base64url').toString()));
  } catch {
    return null;
  }
}
