/** Services as tools of a model, for three libraries, which are given as arguments: the client depends on none of them. */
import type { Farebox, ServiceTypes } from './client.ts';
import { FareboxError } from './errors.ts';
import { isRecord, recordOf, textOf } from './json.ts';
import { shownText } from './shown-text.ts';

const MAX_SERVICES = 100;
const MAX_DESCRIPTION_CHARACTERS = 2_000;
const MAX_SCHEMA_CHARACTERS = 100_000;

/** A service as a tool: its name has the characters that every library takes. */
export interface ServiceTool {
  service: string;
  name: string;
  description: string;
  /** JSON Schema of the input. */
  schema: Record<string, unknown>;
}

/** Any client: which services it knows by type does not matter here. */
export type AnyFarebox = Pick<Farebox<ServiceTypes>, 'buy' | 'read'>;

/**
 * Reads what services take and cost from their server.
 *
 * @throws FareboxError when one is not there
 */
export async function serviceTools(farebox: AnyFarebox, services: readonly string[]): Promise<ServiceTool[]> {
  if (services.length > MAX_SERVICES) throw new TypeError(`at most ${MAX_SERVICES} services`);
  // Two names of services may be one name of a tool, and only one of them would be sold.
  if (new Set(services.map((each) => each.replaceAll('-', '_'))).size < services.length)
    throw new TypeError('two services would be tools of one name');
  return Promise.all(
    services.map(async (service) => {
      const recipe = recordOf(await farebox.read(`/x402/recipes/${encodeURIComponent(service)}`));
      const schema = { type: 'object', ...recordOf(recipe.inputSchema) };
      if (JSON.stringify(schema).length > MAX_SCHEMA_CHARACTERS)
        throw new TypeError(`the schema of ${service} is too long for a tool`);
      return {
        service,
        name: service.replaceAll('-', '_'),
        description: `${shownLine(recipe.description, MAX_DESCRIPTION_CHARACTERS)} Costs ${shownLine(recipe.priceUsd, 20)} USD, only with an answer.`,
        schema: shownDeep(schema),
      };
    }),
  );
}

/** A line of a server's, as a person would see it: a model reads what stands in it, and nothing that is hidden there. */
const shownLine = (value: unknown, most: number): string =>
  shownText(textOf(value)).replaceAll(/\s+/g, ' ').slice(0, most);

function shownDeep(value: Record<string, unknown>): Record<string, unknown> {
  return recordOf(
    JSON.parse(JSON.stringify(value), (_, each) => (typeof each === 'string' ? shownText(each) : each)),
  );
}

/** Buys for a model: an error is an answer that it can read. */
async function bought(farebox: AnyFarebox, service: string, input: unknown, id: string | undefined) {
  try {
    const call = id === undefined || !/^[\x21-\x7e]{1,255}$/.test(id) ? {} : { id };
    return await farebox.buy(service, withoutNulls(input), call);
  } catch (error) {
    if (!(error instanceof FareboxError)) throw error;
    const { code, message, charged, fields } = error;
    return { output: { error: code, message, charged, fields }, receipt: null };
  }
}

/** Some libraries make optional fields required, and null where there is nothing to say. */
const withoutNulls = (input: unknown): Record<string, unknown> =>
  Object.fromEntries(Object.entries(recordOf(input)).filter(([, value]) => value !== null));

/** The parts of the AI SDK (`ai`) that are used. */
export interface AiSdk<Tool> {
  // biome-ignore lint/suspicious/noExplicitAny: the library's own types, whichever version it has
  tool(definition: any): Tool;
  jsonSchema(schema: Record<string, unknown>): unknown;
}

/**
 * Makes tools of the AI SDK: `aiTools(farebox, ['token-price'], { tool, jsonSchema })`. The id of a tool call names its purchase.
 *
 * @returns by the names of the tools
 */
export async function aiTools<Tool>(
  farebox: AnyFarebox,
  services: readonly string[],
  { tool, jsonSchema }: AiSdk<Tool>,
): Promise<Record<string, Tool>> {
  const made = (await serviceTools(farebox, services)).map(({ service, name, description, schema }) => {
    const execute = async (input: unknown, call: { toolCallId?: string } = {}) =>
      (await bought(farebox, service, input, call.toolCallId)).output;
    return [name, tool({ description, inputSchema: jsonSchema(schema), execute })] as const;
  });
  return Object.fromEntries(made);
}

/** The part of LangChain (`@langchain/core/tools`) that is used. */
// biome-ignore lint/suspicious/noExplicitAny: the library's own types, whichever version it has
export type LangChainTool<Tool> = (run: any, definition: any) => Tool;

/** Makes tools of LangChain: `langChainTools(farebox, ['token-price'], tool)`. The receipt is the artifact of a message. */
export async function langChainTools<Tool>(
  farebox: AnyFarebox,
  services: readonly string[],
  tool: LangChainTool<Tool>,
): Promise<Tool[]> {
  return (await serviceTools(farebox, services)).map(({ service, name, description, schema }) =>
    tool(
      async (input: unknown, config?: { toolCall?: { id?: string } }) => {
        const { output, receipt } = await bought(farebox, service, input, config?.toolCall?.id);
        return [JSON.stringify(output), receipt];
      },
      { name, description, schema, responseFormat: 'content_and_artifact' },
    ),
  );
}

/** A tool call of a model of OpenAI, of either of its two forms of answers. */
export interface OpenAiCall {
  call_id?: string;
  id?: string;
  name?: string;
  arguments?: string;
  function?: { name?: string; arguments?: string };
}

/**
 * Makes tools for OpenAI.
 *
 * @param form `responses`: as the Responses API takes them; `chat`: as chat completions do
 * @returns them, and what runs a call of one and makes the message with its answer
 */
export async function openAiTools(
  farebox: AnyFarebox,
  services: readonly string[],
  form: 'responses' | 'chat' = 'responses',
) {
  const known = await serviceTools(farebox, services);
  const tools = known.map(({ name, description, schema: parameters }) => {
    const definition = { name, description, parameters, strict: false };
    return form === 'chat'
      ? { type: 'function' as const, function: definition }
      : { type: 'function' as const, ...definition };
  });
  const run = async (call: OpenAiCall) => {
    const { name, arguments: text = '{}' } = call.function ?? call;
    const id = call.call_id ?? call.id ?? '';
    const chosen = known.find((each) => each.name === name);
    const input: unknown = inputIn(text);
    const output =
      chosen === undefined || !isRecord(input)
        ? {
            error: 'INVALID_REQUEST',
            message: 'there is no such tool, or its arguments are no object of JSON',
          }
        : (await bought(farebox, chosen.service, input, id === '' ? undefined : id)).output;
    const content = JSON.stringify(output);
    return form === 'chat'
      ? { role: 'tool' as const, tool_call_id: id, content }
      : { type: 'function_call_output' as const, call_id: id, output: content };
  };
  return { tools, run };
}

function inputIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
