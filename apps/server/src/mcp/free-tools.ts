/** Tools that cost nothing: each asks an address of this server that is free over HTTP too, so that both say the same. */
import { z } from 'zod';
import type { CatalogLine } from '../services/define.ts';
import { fittingBest } from '../services/fitting.ts';
import { toolNameOf } from '../services/tool-name.ts';
import type { Asker, AskInside, InsideAnswer } from './inside.ts';
import type { Tool } from './tools.ts';

const MAX_FOUND = 20;
const DEFAULT_FOUND = 8;

interface FreeTool {
  name: string;
  title: string;
  description: string;
  input: z.ZodObject;
  /** What is asked for these arguments, by GET. */
  address(input: Record<string, unknown>): string;
  /** False where it gives something away. */
  readOnly?: boolean;
}

const ASKED: readonly FreeTool[] = [
  {
    name: 'catalog',
    title: 'Catalog',
    description: 'All services with their prices, whether each is for sale now, and how to pay. Free.',
    input: z.object({}),
    address: () => '/x402/catalog',
  },
  {
    name: 'service_recipe',
    title: 'How to buy a service',
    description:
      'All that is needed to buy one service: its input and its answer, its price, its sources, how to pay, what is charged when. Free.',
    input: z.object({
      service: z
        .string()
        .regex(/^[a-z0-9]+([-_][a-z0-9]+)*$/)
        .max(80)
        .describe('The path of the service, such as `ping`, or the name of its tool'),
    }),
    address: ({ service }) => `/x402/recipes/${(service as string).replaceAll('_', '-')}`,
  },
  {
    name: 'credit_balance',
    title: 'Credit of the API key',
    description:
      'Balance, caps and state of the API key in the header X-API-KEY (or Authorization: Bearer) of this connection. Free.',
    input: z.object({}),
    address: () => '/api/keys/me',
  },
  {
    name: 'get_trial_key',
    title: 'Get a free API key',
    description:
      'An API key with free credit for a few days, one for an address. Send it in the header X-API-KEY of this connection from then on. Free.',
    input: z.object({}),
    address: () => '/api/m2m/credits/trial',
    readOnly: false,
  },
];

const search = z.object({
  query: z.string().min(1).max(200).describe('Words to look for, such as `soil moisture` or `token price`'),
  maxPriceUsd: z.number().positive().optional().describe('The highest price of a call in USD'),
  limit: z.int().min(1).max(MAX_FOUND).default(DEFAULT_FOUND).describe('How many services at most'),
});
const SEARCH = {
  name: 'search_services',
  title: 'Search services',
  description:
    'The services whose name or description fits some words best, with their tools and prices. Free.',
  input: search,
};

type FreeAnswer = Pick<InsideAnswer, 'status' | 'body'>;

export interface FreeTools {
  tools: readonly Tool[];
  /** @returns what HTTP would answer; null when no free tool has this name */
  call(name: string, input: Record<string, unknown>, asker: Asker): Promise<FreeAnswer | null>;
}

export function createFreeTools(
  ask: AskInside,
  catalog: () => readonly CatalogLine[],
  baseUrl: string,
): FreeTools {
  return {
    tools: [SEARCH, ...ASKED].map(toolOf),
    async call(name, input, asker) {
      if (name === SEARCH.name) return found(input, catalog(), baseUrl);
      const tool = ASKED.find((each) => each.name === name);
      if (tool === undefined) return null;
      const parsed = tool.input.safeParse(input);
      if (!parsed.success) return unfit(name, parsed.error);
      return ask(tool.address(parsed.data), asker);
    },
  };
}

function toolOf({ name, title, description, input, readOnly = true }: Omit<FreeTool, 'address'>): Tool {
  const {
    $schema: _dialect,
    additionalProperties: _open,
    ...schema
  } = z.toJSONSchema(input, { io: 'input' });
  return {
    name,
    title,
    description,
    inputSchema: { ...schema, type: 'object' },
    annotations: { title, readOnlyHint: readOnly, destructiveHint: false, openWorldHint: false },
    _meta: { 'farebox/price': { amountUsd: '0.00', currency: 'USD' } },
  };
}

function found(input: Record<string, unknown>, catalog: readonly CatalogLine[], baseUrl: string): FreeAnswer {
  const parsed = search.safeParse(input);
  if (!parsed.success) return unfit(SEARCH.name, parsed.error);
  const { query, maxPriceUsd = Number.POSITIVE_INFINITY, limit } = parsed.data;
  const affordable = catalog.filter(({ priceUsd }) => Number(priceUsd) <= maxPriceUsd);
  const services = fittingBest(query, affordable, limit).map((line) => ({
    tool: toolNameOf(line),
    service: line.path,
    name: line.name,
    tag: line.tag,
    summary: line.summary,
    priceUsd: line.priceUsd,
    available: line.available,
    recipe: `${baseUrl}/x402/recipes/${line.path}`,
  }));
  return { status: 200, body: JSON.stringify({ query, found: services.length, services }) };
}

function unfit(tool: string, { issues }: z.ZodError): FreeAnswer {
  const fields = issues.map(({ path, message }) => ({ field: path.join('.'), message }));
  const [first] = fields;
  const message = `The arguments do not fit ${tool}: ${first?.field ?? ''}: ${first?.message ?? 'invalid'}.`;
  return {
    status: 400,
    body: JSON.stringify({
      error: 'INVALID_REQUEST',
      message,
      code: 'INVALID_REQUEST',
      fields,
      charged: false,
    }),
  };
}
