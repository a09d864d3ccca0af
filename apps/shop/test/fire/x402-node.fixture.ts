/** A wire to a chain's node that a test can cut, slow down, or make lose one request or one reply. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * `request lost`: the node never sees it. `reply lost`: the node did it, and the connection breaks. `no answer`: the
 * node never sees it and the connection stays open. `reply held`: the node did it, and the connection stays open.
 * A number: so many milliseconds late. `says`: what it answers, whether it `did` it or not.
 */
export type NodeFault =
  | 'request lost'
  | 'reply lost'
  | 'no answer'
  | 'reply held'
  | number
  | { did: boolean; says: { error: { code: number; message: string } } | { result: unknown } };

export interface NodeWire {
  url: string;
  /** The next request of this method meets this; the next so many of them. */
  next(method: string, fault: NodeFault, times?: number): void;
  /** This is done before the next request of this method reaches the node. */
  before(method: string, act: () => Promise<void>): void;
  /** Every request is refused a connection from now on, until `mend`. */
  cut(): void;
  /** Another node, such as one that is behind, answers what it answers from now on; null: the real one again. */
  answerWith(node: ((method: string, params: unknown[]) => unknown) | null): void;
  mend(): void;
  /** How often each method was asked for. */
  readonly asked: ReadonlyMap<string, number>;
  close(): Promise<void>;
}

interface Call {
  id: number;
  method: string;
  params: unknown[];
}

export async function startNodeWire(nodeUrl: string): Promise<NodeWire> {
  let isCut = false;
  let planned: { method: string; fault: NodeFault }[] = [];
  let other: ((method: string, params: unknown[]) => unknown) | null = null;
  let act: { method: string; run: () => Promise<void> } | null = null;
  const asked = new Map<string, number>();

  async function carry(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    if (isCut) return void request.socket.destroy();
    // A batch is known by its first call.
    const calls: Call[] = [JSON.parse(body)].flat();
    const [call] = calls;
    if (call === undefined) return void request.socket.destroy();
    const { id, method } = call;
    asked.set(method, (asked.get(method) ?? 0) + 1);
    if (act?.method === method) {
      const { run } = act;
      act = null;
      await run();
    }
    const plan = planned.find((each) => each.method === method);
    if (plan !== undefined) planned = planned.filter((each) => each !== plan);
    const fault = plan?.fault;
    if (fault === 'request lost') return void request.socket.destroy();
    if (fault === 'no answer') return;
    if (typeof fault === 'number') await sleep(fault);
    const told = typeof fault === 'object' ? fault : null;
    if (told?.did === false) return void response.end(JSON.stringify({ jsonrpc: '2.0', id, ...told.says }));
    const reply = JSON.stringify(await answered(body, calls));
    if (fault === 'reply lost') return void request.socket.destroy();
    if (fault === 'reply held') return;
    response
      .setHeader('content-type', 'application/json')
      .end(told === null ? reply : JSON.stringify({ jsonrpc: '2.0', id, ...told.says }));
  }

  /** Answers by the other node, where it can; else by the real one. */
  async function answered(body: string, calls: readonly Call[]): Promise<unknown> {
    const said = new Map(calls.map(({ id, method, params }) => [id, other?.(method, params)]));
    const from = ({ id }: Call) => ({ jsonrpc: '2.0', id, result: said.get(id) });
    const isBatch = body.trimStart().startsWith('[');
    const [first] = calls;
    if (!isBatch && first !== undefined && said.get(first.id) !== undefined) return from(first);
    const headers = { 'content-type': 'application/json' };
    const real: unknown = await (await fetch(nodeUrl, { method: 'POST', headers, body })).json();
    if (!Array.isArray(real)) return real;
    return real.map((each: Call) => (said.get(each.id) === undefined ? each : from(each)));
  }

  const server = createServer((request, response) => {
    carry(request, response).catch(() => request.socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the wire has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    next(method, fault, times = 1) {
      for (let i = 0; i < times; i++) planned.push({ method, fault });
    },
    before(method, run) {
      act = { method, run };
    },
    cut() {
      isCut = true;
      server.closeAllConnections();
    },
    answerWith(node) {
      other = node;
    },
    mend() {
      isCut = false;
      other = null;
      planned = [];
      act = null;
    },
    asked,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
