/**
 * `POST /api/call {service, input}`: buys any service by its name, for hosts of models that take few operations. It is the call
 * at the service's own address: payment, replay and price are those of the service that is named.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isDeeperThan } from '../../http/json-depth.ts';
import { CORE_TAG, type Described, KEYED, refused } from '../../http/operation.ts';
import { invalidRequest, notSoldHere, Problem } from '../../http/problem.ts';
import type { House } from '../../part.ts';
import { namedCall } from '../../service/named-call.ts';
import type { Shelf } from '../../service/shelf.ts';
import { answerOverHttp } from '../http-door.ts';
import type { PaidCall } from '../paid-call.ts';
import { bodyObject } from '../request-body.ts';

const CALL_PATH = '/api/call';
const CATALOG_PATH = '/x402/catalog';
/** Of the input: it is written anew as the body of the call, which what is deeper could not be. */
const MAX_DEPTH = 64;

export interface NamedCallRouteParts {
  shelf: Shelf;
  /** The paid call of the door whose addresses the services have. */
  paidCall: PaidCall;
  addressOf(request: FastifyRequest): string;
}

/** The address where a body names the service that it buys. */
export function namedCallRoute(
  app: FastifyInstance,
  { shelf, paidCall, addressOf }: NamedCallRouteParts,
): void {
  app.post(CALL_PATH, async (request: FastifyRequest, reply: FastifyReply) => {
    const given = bodyObject(request.body instanceof Buffer ? request.body : undefined);
    const { service, input, isGone } = named(given, shelf);
    if (isDeeperThan(input, MAX_DEPTH))
      throw invalidRequest(`input may be nested ${MAX_DEPTH} deep at most.`, [
        { field: 'input', message: 'is nested too deep' },
      ]);
    // As at the service's own address: a price that is asked for without an input may be paid for with any.
    const rawBody = input === undefined ? undefined : Buffer.from(JSON.stringify(input));
    const address = addressOf(request);
    await answerOverHttp(paidCall, request, reply, { service, address, rawBody, isGone });
  });
}

/** @throws Problem 400 for what names no call, 404 with near names for a service that is not there */
function named(given: Record<string, unknown>, shelf: Shelf) {
  const found = namedCall(given, shelf);
  if ('service' in found) return found;
  if ('fields' in found) {
    const [first] = found.fields;
    throw invalidRequest(
      `The body must be {"service": …, "input": {…}} and no more: ${first?.field || 'body'}: ${first?.message ?? 'invalid'}.`,
      [...found.fields],
      { catalog: CATALOG_PATH },
    );
  }
  if (shelf.leftOut.includes(found.absent)) throw notSoldHere(found.absent, { catalog: CATALOG_PATH });
  throw new Problem(404, 'UNKNOWN_SERVICE', `There is no service ${found.absent.slice(0, 80)}.`, {
    details: { services: found.near, catalog: `${CATALOG_PATH}?q=`, charged: false },
  });
}

/** @param first the call that it is shown by */
export function namedCallOperations(first: House['firstCall']): Described {
  return {
    tags: { [CORE_TAG]: 'One address that buys any service by its name, and what is needed before.' },
    operations: [{ method: 'POST', path: CALL_PATH, operation: namedCallOperation(first) }],
  };
}

function namedCallOperation({ path, body }: House['firstCall']) {
  // Some hosts refuse an object that lists no properties.
  const anyFields = { type: 'object', properties: {}, additionalProperties: true };
  const schema = {
    type: 'object',
    properties: {
      service: { type: 'string', description: 'Its id, as the catalog has it' },
      input: { ...anyFields, description: 'Fits the `inputSchema` that `getCatalog` with `q` answers' },
    },
    required: ['service', 'input'],
  };
  return {
    operationId: 'callService',
    tags: [CORE_TAG],
    summary: 'Buys one call of any service, at its price',
    description:
      'Find the service with `getCatalog` and `q`, which has its price and schema. Charged only for an answer. The call at the service’s own address is the same: it has the same price, answer and payment.',
    'x-openai-isConsequential': true,
    security: KEYED,
    parameters: [{ $ref: '#/components/parameters/DryRun' }],
    requestBody: {
      required: true,
      content: { 'application/json': { schema, example: { service: path, input: body } } },
    },
    responses: {
      200: {
        description: 'The answer of the service',
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Answer' } } },
      },
      402: { $ref: '#/components/responses/402' },
      404: refused('There is no such service: `services` has those that may be meant.'),
      default: { $ref: '#/components/responses/Failed' },
    },
  };
}
