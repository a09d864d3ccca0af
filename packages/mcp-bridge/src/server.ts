/** The MCP server that a desktop agent starts: it shows what the Farebox shows, and pays for what is called. */
import {
  CLIENT_CAPABILITIES_META_KEY,
  inputRequired,
  inputResponse,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { AnswerLost, inUsd, type Payer, Refused } from 'farebox/buying';
import { type Buyer, type Confirm, type Limits, refusal } from './purchase.ts';
import type { Upstream, UpstreamResult } from './upstream.ts';

const READ_TIMEOUT_MS = 20_000;
/** How long a person may think. */
const PERSON_TIMEOUT_MS = 300_000;
/** At most so many calls at once: a person's agent makes a few. */
const MAX_CALLS = 20;
/** After that long a list is asked for again: which tools are free may change with the server. */
const LIST_KEPT_MS = 60_000;
const MAX_PAGES = 50;
/** The methods that are passed on to the server as they are. */
const READ = [
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'prompts/list',
  'prompts/get',
] as const;
/** With one of these in `_meta` a caller pays by itself. */
const PAYMENTS = ['x402/payment', 'org.paymentauth/credential'];

export interface BridgeParts {
  upstream: Upstream;
  /** Null when the bridge was given nothing to pay with. */
  payer: Payer | null;
  /** Null with the payer. */
  buyer: Buyer | null;
  limits: Limits;
  version: string;
  nowMs: () => number;
  log(line: string): void;
}

/** One server for the one client of this process. */
export function createBridgeServer(parts: BridgeParts): Server {
  const { version, upstream } = parts;
  const server = new Server(
    { name: 'farebox', version, title: 'Farebox' },
    {
      capabilities: { tools: {}, resources: {}, prompts: {} },
      instructions: instructionsOf(parts),
      inputRequired: { roundTimeoutMs: PERSON_TIMEOUT_MS },
    },
  );
  const isFree = knowFreeTools(parts);
  let calls = 0;

  for (const method of ['tools/list', ...READ] as const)
    server.setRequestHandler(
      method,
      ({ params }, { mcpReq }) =>
        answered(() =>
          upstream.ask(method, {
            params: paramsOf(params),
            timeoutMs: READ_TIMEOUT_MS,
            signal: mcpReq.signal,
          }),
        ) as never,
    );

  server.setRequestHandler('tools/call', async ({ params }, context) => {
    if (calls >= MAX_CALLS)
      return refusal('BUSY', `${MAX_CALLS} calls are running. Wait for one of them.`) as never;
    calls += 1;
    try {
      return (await answered(() => call(parts, server, isFree, paramsOf(params), context))) as never;
    } finally {
      calls -= 1;
    }
  });
  return server;
}

async function call(
  { upstream, payer, buyer, log }: BridgeParts,
  server: Server,
  isFree: (tool: string, signal: AbortSignal) => Promise<boolean>,
  params: Record<string, unknown>,
  context: ServerContext,
): Promise<unknown> {
  const { signal, _meta: meta } = context.mcpReq;
  const name = typeof params.name === 'string' ? params.name : '';
  const input = (params.arguments ?? {}) as Record<string, unknown>;
  const onProgress = teller(context);
  const paysItself = PAYMENTS.some((key) => meta?.[key] !== undefined);
  if (payer === null || buyer === null || paysItself || (await isFree(name, signal))) {
    const kept = Object.fromEntries(Object.entries(meta ?? {}).filter(([key]) => key !== 'progressToken'));
    const asked = { name, arguments: input, _meta: kept };
    const apiKey = paysItself ? null : (payer?.apiKey ?? null);
    return upstream.ask('tools/call', { params: asked, apiKey, timeoutMs: 120_000, signal, onProgress });
  }
  const named = meta?.['farebox/idempotencyKey'];
  let asked: Question | null = null;
  const confirm: Confirm = (question, micros, name) => {
    const view = inputResponse(context.mcpReq.inputResponses, name);
    if (view.kind === 'elicit') return view.action === 'accept' && view.content?.buy === true ? 'yes' : 'no';
    if (!canAsk(server, context)) return 'cannot';
    asked = { question, micros, name };
    return 'pending';
  };
  try {
    const result = await buyer.buy({
      name,
      arguments: input,
      signal,
      onProgress,
      confirm,
      named: typeof named === 'string' ? named : null,
    });
    return result ?? questionOf(asked);
  } catch (error) {
    if (error instanceof Refused || error instanceof AnswerLost || signal.aborted) throw error;
    const reason = error instanceof Error ? error.message : 'it failed';
    log(`cannot buy ${name}: ${reason}`);
    return refusal('CANNOT_BUY', `The bridge could not buy ${name}: ${reason}. Nothing new was paid.`);
  }
}

interface Question {
  question: string;
  micros: bigint;
  /** Under which its answer comes back. */
  name: string;
}

function questionOf(asked: Question | null): unknown {
  if (asked === null) throw new Error('nobody was asked');
  const { question, micros, name } = asked;
  const buy = { type: 'boolean', title: `Buy it for ${inUsd(micros)} USD`, default: false } as const;
  return inputRequired({
    inputRequests: {
      [name]: inputRequired.elicit({
        message: question,
        requestedSchema: { type: 'object', properties: { buy }, required: ['buy'] },
      }),
    },
  });
}

/** Whether the client shows forms to a person. One that says no more than that it asks at all, asks by forms. */
function canAsk(server: Server, { mcpReq }: ServerContext): boolean {
  const envelope: Readonly<Record<string, unknown>> = mcpReq.envelope ?? {};
  const told = envelope[CLIENT_CAPABILITIES_META_KEY] ?? server.getClientCapabilities();
  const { elicitation } = (told ?? {}) as { elicitation?: { form?: object; url?: object } };
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
}

/** Passes on what the server tells of a long call, to a caller that has asked for it. */
function teller({ mcpReq }: ServerContext): (told: Record<string, unknown>) => void {
  const token = mcpReq._meta?.progressToken;
  if (token === undefined) return () => {};
  return (told) => {
    const params = { ...told, progressToken: token } as never;
    mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined);
  };
}

/** Which tools the server lists as free. One that it does not list is none of them. */
function knowFreeTools({ upstream, nowMs }: BridgeParts) {
  let known: { free: ReadonlySet<string>; atMs: number } | null = null;
  return async (tool: string, signal: AbortSignal): Promise<boolean> => {
    if (known === null || nowMs() - known.atMs > LIST_KEPT_MS)
      known = { free: await freeTools(upstream, signal), atMs: nowMs() };
    return known.free.has(tool);
  };
}

async function freeTools(upstream: Upstream, signal: AbortSignal): Promise<Set<string>> {
  const free = new Set<string>();
  let cursor: unknown;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const listed = await upstream.ask('tools/list', { params, timeoutMs: READ_TIMEOUT_MS, signal });
    const tools = listed.tools as { name?: string; _meta?: Record<string, { amountUsd?: string }> }[];
    for (const { name, _meta } of Array.isArray(tools) ? tools : [])
      if (name !== undefined && _meta?.['farebox/price']?.amountUsd === '0.00') free.add(name);
    cursor = listed.nextCursor;
    if (cursor === undefined) break;
  }
  return free;
}

/** @throws ProtocolError with words for the person in front of the client */
async function answered(work: () => Promise<unknown>): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Refused)
      throw new ProtocolError(
        error.code < 0 ? error.code : ProtocolErrorCode.InternalError,
        error.message.replace(/^MCP error -?\d+: /, ''),
      );
    if (error instanceof AnswerLost)
      throw new ProtocolError(
        ProtocolErrorCode.InternalError,
        `The Farebox does not answer: ${error.message}. Is it running, and is FAREBOX_URL its address?`,
      );
    throw error;
  }
}

/** The parameters of a request, without what belongs to this connection. */
function paramsOf(params: unknown): UpstreamResult {
  const { _meta, ...kept } = (params ?? {}) as Record<string, unknown>;
  return kept;
}

function instructionsOf({ payer, limits }: BridgeParts): string {
  const free = 'search_services finds a service, service_recipe describes it; these are free.';
  if (payer === null)
    return `Each tool costs what its description says. ${free} Nothing was given to this bridge to pay with: calls answer their price.`;
  return [
    `Each tool costs what its description says, and is paid for by this bridge, only with an answer. ${free}`,
    `A call above ${inUsd(limits.maxCallMicros)} USD, or above ${inUsd(limits.maxDayMicros)} USD for all calls of a day, is bought only when the person agrees.`,
    'When an answer does not arrive, call the same tool with the same arguments: it is not paid twice.',
  ].join('\n');
}
