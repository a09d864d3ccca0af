/** The operators: their sessions, their roles, the tokens, and the trail of it all. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { readJsonBody } from '../http/json-body.ts';
import { readParameters } from '../http/parameters.ts';
import { Problem } from '../http/problem.ts';
import { reason, uuid } from './act-routes.ts';
import { id } from './address-fields.ts';
import { ROLES } from './roles.ts';
import type { operatorCookies } from './sign-in/cookies.ts';
import type { People } from './sign-in/people.ts';
import { type Operator, TRAIL_A_PAGE, type Trail, trailAsJson } from './trail.ts';

const roleChange = z.strictObject({ reason, role: z.enum([...ROLES, 'none']).nullable() });
const tokenChange = z.strictObject({ reason, enabled: z.boolean() });
const trailQuery = z.object({ after: id.optional() });

interface PeopleRouteParts {
  people: People;
  trail: Trail;
  cookies: ReturnType<typeof operatorCookies>;
  operatorOf(request: FastifyRequest): Operator;
  addressOf(request: FastifyRequest): string;
  /** Whether there are tokens at all. */
  hasTokens(): boolean;
}

/** `/admin/api/operators`, `/admin/api/sessions`, `/admin/api/tokens`, `/admin/api/sign-out` and `/admin/api/trail`. */
export function peopleRoutes(admin: FastifyInstance, parts: PeopleRouteParts): void {
  const { people, trail, cookies, operatorOf, addressOf } = parts;

  admin.post('/sign-out', async (request, reply) => {
    const operator = operatorOf(request);
    if (operator.person !== null)
      await people.end(operator.person.sessionId, 'signed_out', operator, addressOf(request));
    reply.header('set-cookie', cookies.noSession());
    return { success: true };
  });

  admin.get('/operators', async () => ({
    operators: await people.list(),
    tokens: { configured: parts.hasTokens(), on: parts.hasTokens() && !(await people.tokensAreOff()) },
  }));

  admin.post<{ Params: { operator: string } }>('/operators/:operator/role', async (request) => {
    const personId = BigInt(readParameters(id, request.params.operator));
    await people.setRole(
      personId,
      readJsonBody(request, roleChange),
      operatorOf(request),
      addressOf(request),
    );
    return { success: true, operators: await people.list() };
  });

  admin.post<{ Params: { session: string } }>('/sessions/:session/end', async (request) => {
    const sessionId = readParameters(uuid, request.params.session);
    if (!(await people.end(sessionId, 'by_admin', operatorOf(request), addressOf(request))))
      throw new Problem(404, 'NO_SUCH_SESSION', 'There is no such session, or it is over.');
    return { success: true };
  });

  admin.post('/tokens', async (request) => {
    await people.setTokens(readJsonBody(request, tokenChange), operatorOf(request), addressOf(request));
    return { success: true, on: parts.hasTokens() && !(await people.tokensAreOff()) };
  });

  admin.get('/trail', async (request) => {
    const { after } = readParameters(trailQuery, request.query);
    const rows = await trail.list(after ?? null);
    const last = rows.length === TRAIL_A_PAGE ? rows.at(-1) : undefined;
    return { trail: rows.map(trailAsJson), after: last === undefined ? null : String(last.number) };
  });
}
