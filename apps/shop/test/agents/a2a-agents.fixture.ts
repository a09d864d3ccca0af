/** The official clients of A2A 0.3 and 1.0 behind one face, and plain requests for what they would not send. */
import assert from 'node:assert/strict';
import { SendMessageRequest, StreamResponse, Task as Task10 } from '@a2a-js/sdk';
import {
  ClientFactory as Factory10,
  ClientFactoryOptions as Options10,
  DefaultAgentCardResolver as Resolver10,
  RestTransportFactory as Rest10,
  JsonRpcTransportFactory as Transport10,
} from '@a2a-js/sdk/client';
import {
  ClientFactory as Factory03,
  ClientFactoryOptions as Options03,
  DefaultAgentCardResolver as Resolver03,
  RestTransportFactory as Rest03,
  JsonRpcTransportFactory as Transport03,
} from 'a2a-sdk-0.3/client';

// biome-ignore lint/suspicious/noExplicitAny: what a server of anybody's may answer
export type Json = Record<string, any>;

/** A task as either version tells it. */
export interface SeenTask {
  id: string;
  contextId: string;
  state: string;
  text: string;
  /** The content of the status's data part. */
  data: Json | undefined;
  metadata: Json;
  /** The data of the answer. */
  answer: Json | undefined;
}

export interface ToSend {
  messageId: string;
  taskId?: string;
  contextId?: string;
  text?: string;
  data?: unknown;
  metadata?: Json;
}

export interface Agent {
  card: Json;
  send(message: ToSend): Promise<SeenTask>;
  /** The events in order: tasks and statuses by their state, artifacts as such. */
  stream(message: ToSend): Promise<{ events: string[]; statuses: Json[]; last: Json | undefined }>;
  get(id: string): Promise<SeenTask>;
  cancel(id: string): Promise<SeenTask>;
  /** Ids of the tasks of the key; absent where the version has no list. */
  list?(): Promise<string[]>;
}

/** Where requests go, whatever address the card names, and with which headers. */
export type Way = () => { url: string; headers?: Record<string, string> };

const PUBLIC = 'http://farebox.test';

/** Sends what a client sends, which speaks this binding and no other. */
function fetchBy(way: Way, binding: Binding): typeof fetch {
  return (input, init = {}) => {
    const { pathname } = new URL(String(input));
    if (!pathname.startsWith('/.well-known/'))
      assert.equal(pathname.startsWith('/a2a/v1/'), binding === 'HTTP+JSON', pathname);
    const { url, headers = {} } = way();
    const sent = new Headers(init.headers);
    for (const [name, value] of Object.entries(headers)) sent.set(name, value);
    return fetch(String(input).replace(PUBLIC, url), { ...init, headers: sent });
  };
}

export const AGENTS: Readonly<Record<string, (way: Way) => Promise<Agent>>> = {
  'the client of 0.3': (way) => agent03(way, 'JSONRPC'),
  'the client of 1.0': (way) => agent10(way, 'JSONRPC'),
  'the client of 0.3 over HTTP and JSON': (way) => agent03(way, 'HTTP+JSON'),
  'the client of 1.0 over HTTP and JSON': (way) => agent10(way, 'HTTP+JSON'),
};

type Binding = 'JSONRPC' | 'HTTP+JSON';

async function agent03(way: Way, binding: Binding): Promise<Agent> {
  const fetchImpl = fetchBy(way, binding);
  const factory = new Factory03(
    Options03.createFrom(Options03.default, {
      transports: [new Transport03({ fetchImpl }), new Rest03({ fetchImpl })],
      preferredTransports: [binding],
      cardResolver: new Resolver03({ fetchImpl }),
    }),
  );
  const client = await factory.createFromUrl(PUBLIC);
  const messageOf = ({ text, data, ...ids }: ToSend) => ({
    message: {
      kind: 'message',
      role: 'user',
      ...ids,
      parts: [
        ...(text === undefined ? [] : [{ kind: 'text', text }]),
        ...(data === undefined ? [] : [{ kind: 'data', data }]),
      ],
    },
  });
  return {
    card: (await client.getAgentCard()) as Json,
    send: async (message) => seen((await client.sendMessage(messageOf(message) as never)) as Json),
    async stream(message) {
      const events: Json[] = [];
      for await (const event of client.sendMessageStream(messageOf(message) as never)) events.push(event);
      return toldBy(events);
    },
    get: async (id) => seen((await client.getTask({ id })) as Json),
    cancel: async (id) => seen((await client.cancelTask({ id })) as Json),
  };
}

async function agent10(way: Way, binding: Binding): Promise<Agent> {
  const fetchImpl = fetchBy(way, binding);
  const factory = new Factory10(
    Options10.createFrom(Options10.default, {
      transports: [new Transport10({ fetchImpl }), new Rest10({ fetchImpl })],
      preferredTransports: [binding],
      cardResolver: new Resolver10({ fetchImpl }),
    }),
  );
  const client = await factory.createFromUrl(PUBLIC);
  const requestOf = ({ text, data, ...ids }: ToSend) =>
    SendMessageRequest.fromJSON({
      message: {
        role: 'ROLE_USER',
        ...ids,
        parts: [...(text === undefined ? [] : [{ text }]), ...(data === undefined ? [] : [{ data }])],
      },
    });
  return {
    card: (await client.getAgentCard()) as unknown as Json,
    async send(message) {
      return seen(Task10.toJSON((await client.sendMessage(requestOf(message))) as never) as Json);
    },
    async stream(message) {
      const events: Json[] = [];
      for await (const event of client.sendMessageStream(requestOf(message)))
        events.push(StreamResponse.toJSON(event) as Json);
      return toldBy(events);
    },
    get: async (id) => seen(Task10.toJSON(await client.getTask({ tenant: '', id } as never)) as Json),
    cancel: async (id) =>
      seen(Task10.toJSON(await client.cancelTask({ tenant: '', id, metadata: undefined })) as Json),
    async list() {
      const { tasks } = await client.listTasks({
        tenant: '',
        contextId: '',
        status: 0,
        pageToken: '',
      } as never);
      return tasks.map(({ id }) => id);
    },
  };
}

const stateOf = (state: string) =>
  state
    .replace(/^TASK_STATE_/, '')
    .toLowerCase()
    .replaceAll('_', '-');

/** @param task as the wire has it */
export function seen(task: Json): SeenTask {
  const { id, contextId, status, artifacts = [] } = task;
  const parts: Json[] = status.message?.parts ?? [];
  return {
    id,
    contextId,
    state: stateOf(status.state),
    text: parts.find(({ text }) => text !== undefined)?.text ?? '',
    data: parts.find(({ data }) => data !== undefined)?.data,
    metadata: status.message?.metadata ?? {},
    answer: artifacts.at(-1)?.parts[0]?.data,
  };
}

function toldBy(events: readonly Json[]) {
  const statuses: Json[] = [];
  let last: Json | undefined;
  const names = events.map((event) => {
    const task = event.task ?? (event.kind === 'task' ? event : undefined);
    const update = event.statusUpdate ?? (event.kind === 'status-update' ? event : undefined);
    const artifact = event.artifactUpdate ?? (event.kind === 'artifact-update' ? event : undefined);
    const { status } = task ?? update ?? {};
    if (status !== undefined) statuses.push(status.message?.metadata ?? {});
    if (artifact !== undefined) last = artifact.artifact.parts[0].data;
    if (artifact !== undefined) return `artifact ${artifact.artifact.artifactId}`;
    return `${task === undefined ? 'status' : 'task'} ${stateOf(status?.state ?? assert.fail(JSON.stringify(event)))}`;
  });
  return { events: names, statuses, last };
}

/** A request of JSON-RPC as it stands. */
export async function rpc(
  url: string,
  method: string,
  params: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; result?: Json; error?: Json; headers: Headers }> {
  return rpcText(url, JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }), headers);
}

export async function rpcText(url: string, body: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${url}/a2a`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  const said = (await response.json()) as Json;
  return { ...said, status: response.status, headers: response.headers } as {
    status: number;
    result?: Json;
    error?: Json;
    headers: Headers;
  };
}
