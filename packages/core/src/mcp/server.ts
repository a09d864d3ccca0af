/**
 * One MCP server for one request: what is listed, read and called. It keeps nothing, so that any replica answers any
 * request. https://modelcontextprotocol.io/specification/2025-11-25 and /2026-07-28
 */
import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { CallerPresence } from '../http/caller-presence.ts';
import { isDeeperThan } from '../http/json-depth.ts';
import { notSoldHere } from '../http/problem.ts';
import type { PaidAnswer, PaidRequest } from '../paid-call/sale.ts';
import type { Service } from '../service/define.ts';
import { namedCall } from '../service/named-call.ts';
import type { Shelf } from '../service/shelf.ts';
import { CALL_NAME } from './calling.ts';
import { requestIdOf } from './cancelling.ts';
import { type FreeAnswer, type FreeTools, refused } from './free-tools.ts';
import type { Asker } from './inside.ts';
import { credentialHeadersOf } from './payment.ts';
import type { Readings } from './readings.ts';
import { toolResultOf } from './results.ts';
import type { ToolList } from './tools.ts';
import type { Toolset } from './toolsets.ts';

/** Such lists change with the availability of a service. */
const LISTED_MS = 60_000;
/** How often a caller who asked for it is told that its call goes on. */
const PROGRESS_EVERY_MS = 2_000;
const MAX_ARGUMENTS_DEPTH = 64;

/** The caller: the HTTP request that brought the message. */
export interface Caller extends Asker {
  /** The address as it is counted. */
  address: string;
  requestId: string;
  /** The tools that the address which it asked lists. */
  toolset: Toolset;
  gone(): boolean;
  /** Calls back once when the caller has gone. @returns how to stop listening */
  onGone(left: () => void): () => void;
  /** The client's name for itself; null when it does not. */
  client: string | null;
  /** Ends the response without an answer to a call that was cancelled, unless it carries other answers too. */
  withdraw(): void;
  /** Calls back once when the response has been sent whole, or when it never will be. */
  whenSent(told: (isSent: boolean) => void): void;
}

export interface McpParts {
  version: string;
  shopName: string;
  shelf: Pick<Shelf, 'services' | 'soldBefore'>;
  instructions(toolset: Toolset): string;
  /** The methods of MPP that pay here. */
  mppMethods: readonly string[];
  tools: ToolList;
  free: FreeTools;
  readings: Readings;
  /** Where a code of errors is told of; null: nowhere. */
  docUrlOf(code: string): string | null;
  paidCall: { handle(request: PaidRequest): Promise<PaidAnswer> };
}

/** @param caller of the one request that it is made for */
export function createMcpServer(parts: McpParts, caller: Caller): Server {
  const { version, shopName, instructions } = parts;
  const cached = { ttlMs: LISTED_MS, cacheScope: 'public' } as const;
  const server = new Server(
    { name: 'farebox', version, title: shopName },
    {
      capabilities: { tools: {}, resources: {}, prompts: {}, ...payments(parts.mppMethods) },
      instructions: instructions(caller.toolset),
      cacheHints: {
        'tools/list': cached,
        'resources/list': cached,
        'resources/templates/list': cached,
        'prompts/list': cached,
      },
    },
  );

  answerTools(server, parts, caller);
  answerReadings(server, parts, caller);
  return server;
}

function answerTools(server: Server, parts: McpParts, caller: Caller): void {
  const { tools, free } = parts;
  server.setRequestHandler('tools/list', ({ params }) => {
    const page = tools.page(caller.toolset, params?.cursor);
    if (page === null)
      throw invalid('cursor must be the nextCursor of the page before, or be left out for the first page.');
    return page as never;
  });

  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const { name: tool, arguments: given } = params;
    assertShallow(given);
    const service = tools.serviceOf(tool);
    if (service !== null) return (await buy(parts, caller, { service, given }, context)) as never;
    if (tool === CALL_NAME) return (await callNamed(parts, caller, given ?? {}, context)) as never;
    const gone = tools.goneOf(tool);
    if (gone !== null)
      return (await buy(parts, caller, { service: gone, given, isGone: true }, context)) as never;
    const answer = (await free.call(tool, given ?? {}, caller)) ?? leftOut(parts, tool, caller);
    if (answer === null)
      throw invalid(
        `There is no tool ${tool.slice(0, 80)}. tools/list has all of them, search_services finds one.`,
      );
    return (await uncharged(answer)) as never;
  });
}

/** @throws ProtocolError */
function assertShallow(given: Record<string, unknown> | undefined): void {
  if (isDeeperThan(given ?? {}, MAX_ARGUMENTS_DEPTH))
    throw invalid(`arguments may be nested ${MAX_ARGUMENTS_DEPTH} deep at most.`);
}

/** Buys the service that `call_service` names, as the tool of that service would. */
async function callNamed(
  parts: McpParts,
  caller: Caller,
  given: Record<string, unknown>,
  context: ServerContext,
): Promise<CallToolResult> {
  const named = namedCall(given, parts.shelf);
  if ('service' in named) {
    assertShallow(named.input);
    const { service, input, isGone } = named;
    return buy(parts, caller, { service, given: input, isGone }, context);
  }
  if ('fields' in named) return uncharged(refused(CALL_NAME, named.fields));
  const sold = leftOut(parts, named.absent.replaceAll('-', '_'), caller);
  if (sold !== null) return uncharged(sold);
  const message = `There is no service ${named.absent.slice(0, 80)}. search_services finds one.`;
  const body = { error: 'UNKNOWN_SERVICE', message, code: 'UNKNOWN_SERVICE', charged: false };
  return uncharged({ status: 404, body: JSON.stringify({ ...body, services: named.near }) });
}

const uncharged = (answer: FreeAnswer) => toolResultOf({ ...answer, headers: {} }, undefined, null);

/** The answer of HTTP about a service that the operator has left out; null when the tool would be none of one. */
function leftOut({ tools, docUrlOf }: McpParts, tool: string, { requestId }: Caller): FreeAnswer | null {
  const path = tools.leftOutOf(tool);
  if (path === null) return null;
  const problem = notSoldHere(path, { catalog: '/x402/catalog' });
  const docUrl = docUrlOf(problem.code);
  const body = { ...problem.body(requestId), ...(docUrl === null ? {} : { docUrl }) };
  return { status: problem.status, body: JSON.stringify(body) };
}

function answerReadings(server: Server, { readings }: McpParts, caller: Caller): void {
  server.setRequestHandler('resources/list', () => readings.resources() as never);
  server.setRequestHandler('resources/templates/list', () => readings.templates() as never);
  server.setRequestHandler('resources/read', async ({ params }) => {
    const read = await readings.read(params.uri, caller);
    const uri = params.uri.slice(0, 200);
    if (read === null)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no resource ${uri}.`, { uri });
    return read as never;
  });
  server.setRequestHandler('prompts/list', () => readings.prompts() as never);
  server.setRequestHandler('prompts/get', ({ params }) => {
    const prompt = readings.prompt(params.name, params.arguments ?? {});
    if (prompt === null) throw invalid(`There is no prompt ${params.name.slice(0, 80)}.`);
    return prompt as never;
  });
}

/** One paid tool call is one paid call of the house. */
async function buy(
  { paidCall }: McpParts,
  caller: Caller,
  {
    service,
    given,
    isGone = false,
  }: { service: Service; given: Record<string, unknown> | undefined; isGone?: boolean },
  context: ServerContext,
): Promise<CallToolResult> {
  const { _meta: meta, signal, id } = context.mcpReq;
  const { headers, address, requestId, client } = caller;
  const stopTelling = tellProgress(service, context);
  const presence = new CallerPresence(caller);
  try {
    const answer = await paidCall.handle({
      service,
      isGone,
      address,
      requestId,
      headers: await credentialHeadersOf(headers, meta),
      // As over HTTP: a price that was asked for without a body may be paid for with any.
      rawBody: given === undefined ? undefined : Buffer.from(JSON.stringify(given)),
      gone: () => signal.aborted || presence.gone(),
      onGone: presence.onGone,
      delivery: {
        request: { client, requestId: requestIdOf(id) },
        cancelled() {
          presence.leave();
          caller.withdraw();
        },
      },
      assertMayBuy() {},
    });
    if (answer.arrived !== undefined) caller.whenSent(answer.arrived);
    return await toolResultOf(answer, meta, service);
  } finally {
    stopTelling();
    presence.end();
  }
}

/** Tells a caller who asked for it how long its call has been running, so that neither it nor a proxy gives up early. */
function tellProgress(service: Service, { mcpReq }: ServerContext): () => void {
  const token = mcpReq._meta?.progressToken;
  if (token === undefined) return () => {};
  const total = service.timeoutMs / 1_000;
  let progress = 0;
  const timer = setInterval(() => {
    progress += PROGRESS_EVERY_MS / 1_000;
    const params = {
      progressToken: token,
      progress,
      total: Math.max(total, progress),
      message: `${service.name} has been running for ${progress} s.`,
    };
    mcpReq.notify({ method: 'notifications/progress', params }).catch(() => clearInterval(timer));
  }, PROGRESS_EVERY_MS);
  return () => clearInterval(timer);
}

/** How MPP says which of its methods a server takes. */
function payments(methods: readonly string[]) {
  if (methods.length === 0) return {};
  const intents = Object.fromEntries(methods.map((method) => [method, { intents: ['charge'] }]));
  return { experimental: { payment: { methods: intents } } };
}

function invalid(message: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message);
}
