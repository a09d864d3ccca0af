import type { FastifyInstance, FastifyRequest } from 'fastify';
import { idempotencyKeyOf } from '../http/idempotency-key.ts';
import { digestOf } from './digest.ts';
import { ruleOf } from './roles.ts';
import { namedIn, type Operator, type Trail } from './trail.ts';

const ANY_KEY = { least: 1, most: 200 };

/**
 * Writes the trail for every route whose rule says so: what is asked before it is done, and whose data is shown before the answer
 * leaves. What cannot be written down is not done and not shown.
 */
export function keepTrail(
  admin: FastifyInstance,
  parts: {
    trail: Trail;
    operatorOf(request: FastifyRequest): Operator;
    addressOf(request: FastifyRequest): string;
  },
): void {
  const { trail, operatorOf, addressOf } = parts;
  const routeOf = (request: FastifyRequest) => {
    const { method, url = '' } = request.routeOptions;
    const name = [method].flat()[0] ?? '';
    const path = url.slice('/admin/api'.length);
    return { name: `${name} ${path}`, kind: ruleOf(name, path)?.trail ?? null };
  };

  admin.addHook('preHandler', async (request) => {
    const { name, kind } = routeOf(request);
    if (kind !== 'asked' && kind !== 'export') return;
    const key = idempotencyKeyOf(request.headers, ANY_KEY);
    const about = {
      route: name,
      ...(kind === 'asked' ? { of: plainParameters(request.params) } : { query: request.query }),
      // The act that follows has the same digest of its key.
      ...(key === null || key === 'unfit' ? {} : { keySha256: digestOf([key.key]).toString('hex') }),
    };
    await trail.note(kind, operatorOf(request), { address: addressOf(request), about });
  });

  admin.addHook('preSerialization', async (request, reply, answer) => {
    const { name, kind } = routeOf(request);
    if (kind !== 'shown' || reply.statusCode !== 200) return answer;
    const about = { route: name, ...namedIn(answer) };
    await trail.note('shown', operatorOf(request), { address: addressOf(request), about });
    return answer;
  });
}

/** The numbers, ids and names in an address. Anything else is no such thing, and may be somebody's data. */
function plainParameters(params: unknown): Record<string, string> {
  return Object.fromEntries(
    Object.entries(params ?? {}).map(([name, value]) => [
      name,
      typeof value === 'string' && /^[a-z0-9-]{1,100}$/i.test(value) ? value : 'unfit',
    ]),
  );
}
