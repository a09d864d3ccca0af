/** The legacy family in OpenAPI: the inputs and answers of its endpoints, as the services behind them describe them. */
import { answered, KEYED, REFUSED } from '../http/operation.ts';
import type { Service } from '../service/define.ts';
import { inputSchemaOf, type JsonSchema, propertiesOf, withoutProse } from '../service/json-schema.ts';
import type { OpenEndpoint } from './endpoints.ts';

export type Operation = Readonly<Record<string, unknown>>;

const TAG = 'Legacy';
/** The parts that all operations of the family share. */
export const LEGACY_DESCRIBED = {
  tags: { [TAG]: 'Services under the names of the older family, for keys alone.' },
  responses: {
    KeyPays: {
      description: 'A key with credit pays here, and nothing else.',
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
    },
  },
} as const;

/** The description of an endpoint, by method; null when no service stands behind it here. */
export async function operationsOf({
  endpoint,
  sold,
  twin,
}: OpenEndpoint): Promise<(method: string) => Operation | null> {
  if (sold === null || twin === null) return () => null;
  const { priceUsd, path } = endpoint;
  const answer = {
    success: true,
    service: sold.path,
    ...(await endpoint.exampleAnswer(twin)),
    provenance: { mode: 'computed', method: '…', sources: [], notes: [] },
  };
  const common = {
    tags: [TAG],
    summary: `${twin.name}, under its older name`,
    ...(priceUsd === null ? {} : { 'x-price-usd': Number(priceUsd) }),
    security: priceUsd === null ? [] : KEYED,
  };
  const failures = {
    400: REFUSED,
    ...(priceUsd === null ? {} : { 402: { $ref: '#/components/responses/KeyPays' } }),
    503: REFUSED,
  };
  const isJson = twin.mediaType === 'application/json';
  const found = isJson ? answered('OK', answer) : { description: 'OK', content: { [twin.mediaType]: {} } };
  const responses = { 200: found, ...failures };
  return (method) => {
    if (method === 'GET')
      return { operationId: idOf('get', path), ...common, parameters: parametersOf(sold), responses };
    if (method !== 'POST') return null;
    const schema = withoutProse(inputSchemaOf(sold));
    const requestBody = { content: { 'application/json': { schema, example: twin.example } } };
    return { operationId: idOf('post', path), ...common, requestBody, responses };
  };
}

/** An operation of the family without a service behind it. */
export function legacyOperation(
  operationId: string,
  summary: string,
  operation: { responses: object; parameters?: readonly object[]; requestBody?: object },
): () => Operation {
  return () => ({ operationId, tags: [TAG], summary, security: [], ...operation });
}

function idOf(method: string, path: string): string {
  return `${method}Gpt${path.replace(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase())}`;
}

/** The meaning of each is described by the service's own operation. */
function parametersOf(sold: Service): object[] {
  const { required } = inputSchemaOf(sold);
  const fields = propertiesOf(withoutProse(inputSchemaOf(sold)) as JsonSchema);
  return Object.entries(fields).map(([name, schema]) => ({
    name,
    in: 'query',
    schema,
    ...(Array.isArray(required) && required.includes(name) ? { required: true } : {}),
  }));
}
