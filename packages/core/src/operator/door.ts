/** The door below `/admin/api`: by a token in a header, or by a session in a cookie. */
import type { FastifyRequest } from 'fastify';
import { Problem } from '../http/problem.ts';
import { type RateLimit, rateExceeded } from '../http/rate-limit.ts';
import type { Operators } from './credentials.ts';
import type { operatorCookies } from './sign-in/cookies.ts';
import type { People } from './sign-in/people.ts';
import type { Operator } from './trail.ts';

/** The header that the page sends with each request. Another origin may not send it: no preflight of its is allowed here. */
const PAGE_HEADER = 'x-operator-page';

interface DoorParts {
  operators: Operators;
  people: Pick<People, 'find' | 'tokensAreOff'>;
  cookies: Pick<ReturnType<typeof operatorCookies>, 'sessionOf'>;
  refusalLimit: RateLimit;
  baseUrl: string;
  addressOf(request: FastifyRequest): string;
}

/**
 * Recognizes the operator who asks. A token that is sent counts alone, whatever cookie comes with it.
 *
 * @throws Problem 401 OPERATOR_TOKEN_INVALID, SESSION_ENDED; 403 TOKENS_OFF, CROSS_SITE_REQUEST; 429
 */
export async function letIn(request: FastifyRequest, parts: DoorParts): Promise<Operator> {
  const { operators, people, cookies, addressOf } = parts;
  const { authorization, cookie } = request.headers;
  const session = cookies.sessionOf(cookie);
  if (authorization === undefined && session !== null) {
    refuseForged(request, parts.baseUrl);
    const operator = await people.find(session, addressOf(request));
    if (operator !== null) return operator;
    const verdict = parts.refusalLimit.take(addressOf(request));
    if (!verdict.allowed) throw rateExceeded(verdict);
    throw new Problem(401, 'SESSION_ENDED', 'This session is over. Sign in again.');
  }
  const actor = operators.admit(authorization, addressOf(request));
  if (await people.tokensAreOff())
    throw new Problem(
      403,
      'TOKENS_OFF',
      'Tokens are turned off. Sign in at the provider, or turn them on where the server runs: npm run operators -- tokens on',
    );
  return { actor, role: 'admin', person: null };
}

/**
 * Refuses what another site made an operator's browser send. `SameSite` keeps the cookie from other sites; this keeps it from other
 * hosts of the same site, and from browsers that do not know `SameSite`.
 *
 * @throws Problem 403 CROSS_SITE_REQUEST
 */
function refuseForged({ headers }: FastifyRequest, baseUrl: string): void {
  const site = headers['sec-fetch-site'];
  const { origin, host } = headers;
  const isOwn = origin === undefined || origin === new URL(baseUrl).origin || hostOf(origin) === host;
  if (headers[PAGE_HEADER] !== undefined && (site === undefined || site === 'same-origin') && isOwn) return;
  throw new Problem(
    403,
    'CROSS_SITE_REQUEST',
    `A session opens this address only for the page /admin itself, which sends the header ${PAGE_HEADER}. Programs send a token.`,
  );
}

function hostOf(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null;
}
