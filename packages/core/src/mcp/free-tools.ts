/** Tools that cost nothing: each asks an address of this server that is free over HTTP too, so that both say the same. */
import { z } from 'zod';
import type { CatalogLine, Service } from '../service/define.ts';
import { fittingBest } from '../service/fitting.ts';
import type { Shelf } from '../service/shelf.ts';
import { toolNameOf } from '../service/tool-name.ts';
import { toolSchemaOf } from '../service/tool-schema.ts';
import type { Asker, AskInside, InsideAnswer } from './inside.ts';
import type { Tool } from './tools.ts';
import { toolsetName } from './toolsets.ts';

const MAX_FOUND = 20;
/** Each with the schema of its input. */
const DEFAULT_FOUND = 5;
/** The longest text about a service in a line of the catalog. */
const LINE_CHARACTERS = 64;

interface FreeTool {
  name: string;
  title: string;
  description: string;
  input: z.ZodObject;
  /** The address that is asked for these arguments, by GET. */
  address(input: Record<string, unknown>): string;
  /** False where it gives something away. */
  readOnly?: boolean;
}

const ASKED: readonly FreeTool[] = [
  {
    name: 'service_recipe',
    title: 'How to buy a service',
    description: 'All about one service: input, answer, price, sources, how to pay. Free.',
    input: z.object({
      service: z
        .string()
        .regex(/^[a-z0-9]+([-_][a-z0-9]+)*$/)
        .max(80)
        .describe('Its name, such as `ping`'),
    }),
    address: ({ service }) => `/x402/recipes/${(service as string).replaceAll('_', '-')}`,
  },
  {
    name: 'credit_balance',
    title: 'Credit of the API key',
    description: 'Balance, caps and state of the API key of this connection. Free.',
    input: z.object({}),
    address: () => '/api/keys/me',
  },
  {
    name: 'get_trial_key',
    title: 'Get a free API key',
    description: 'An API key with free credit, one for an address, for the header X-API-KEY. Free.',
    input: z.object({}),
    address: () => '/api/m2m/credits/trial',
    readOnly: false,
  },
];

const CATALOG = {
  name: 'catalog',
  title: 'Catalog',
  description: 'All services by toolset, each with its price in USD. Free.',
  input: z.object({}),
};

const search = z.object({
  query: z.string().min(1).max(200).describe('What is wanted, in plain words'),
  maxPriceUsd: z.number().positive().optional().describe('Most that a call may cost'),
  limit: z.int().min(1).max(MAX_FOUND).default(DEFAULT_FOUND).describe('How many at most'),
});
const SEARCH = {
  name: 'search_services',
  title: 'Search services',
  description: 'Finds services by words or a question: their names, prices and inputSchema. Free.',
  input: search,
};

export type FreeAnswer = Pick<InsideAnswer, 'status' | 'body'>;

export interface FreeTools {
  tools: readonly Tool[];
  /** @returns what HTTP would answer; null when no free tool has this name */
  call(name: string, input: Record<string, unknown>, asker: Asker): Promise<FreeAnswer | null>;
}

export function createFreeTools(
  ask: AskInside,
  shelf: Pick<Shelf, 'services'>,
  catalog: () => readonly CatalogLine[],
  baseUrl: string,
): FreeTools {
  return {
    tools: [SEARCH, CATALOG, ...ASKED].map(toolOf),
    async call(name, given, asker) {
      // Strict function calling writes null for a field that is left out. None of these takes one.
      const input = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
      if (name === SEARCH.name) return found(input, shelf.services, catalog(), baseUrl);
      if (name === CATALOG.name) return linesOf(catalog());
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

function found(
  input: Record<string, unknown>,
  services: readonly Service[],
  catalog: readonly CatalogLine[],
  baseUrl: string,
): FreeAnswer {
  const parsed = search.safeParse(input);
  if (!parsed.success) return unfit(SEARCH.name, parsed.error);
  const { query, maxPriceUsd = Number.POSITIVE_INFINITY, limit } = parsed.data;
  const fitting = fittingBest(query, services, limit, ({ priceUsd }) => Number(priceUsd) <= maxPriceUsd);
  const lines = new Map(catalog.map((line) => [line.path, line]));
  const shown = fitting.map((service) => ({
    tool: toolNameOf(service),
    service: service.path,
    name: service.name,
    tag: service.tag,
    summary: service.summary,
    priceUsd: service.priceUsd,
    available: lines.get(service.path)?.available === true,
    inputSchema: toolSchemaOf(service),
    example: service.example,
    recipe: `${baseUrl}/x402/recipes/${service.path}`,
  }));
  return { status: 200, body: JSON.stringify({ query, found: shown.length, services: shown }) };
}

/** All services in so few words that a model can be handed them. */
function linesOf(catalog: readonly CatalogLine[]): FreeAnswer {
  const toolsets: Record<string, string[]> = {};
  for (const { path, tag, priceUsd, summary, available } of catalog) {
    const line = `${path} ${priceUsd} ${available ? '' : '(not for sale now) '}${shortened(summary)}`;
    const name = toolsetName(tag);
    toolsets[name] = [...(toolsets[name] ?? []), line];
  }
  const more = 'search_services tells price and input, service_recipe the rest.';
  return { status: 200, body: JSON.stringify({ currency: 'USD', services: catalog.length, more, toolsets }) };
}

/** The beginning of a sentence, up to a word. */
function shortened(sentence: string): string {
  if (sentence.length <= LINE_CHARACTERS) return sentence;
  return sentence.slice(0, LINE_CHARACTERS).replace(/[\s,;:.]+\S*$/, '');
}

function unfit(tool: string, { issues }: z.ZodError): FreeAnswer {
  return refused(
    tool,
    issues.map(({ path, message }) => ({ field: path.join('.'), message })),
  );
}

/** Arguments that do not fit, as HTTP would answer them: nothing is charged. */
export function refused(tool: string, fields: readonly { field: string; message: string }[]): FreeAnswer {
  const [first] = fields;
  const message = `The arguments do not fit ${tool}: ${first?.field ?? ''}: ${first?.message ?? 'invalid'}.`;
  const code = 'INVALID_REQUEST';
  return { status: 400, body: JSON.stringify({ error: code, message, code, fields, charged: false }) };
}
