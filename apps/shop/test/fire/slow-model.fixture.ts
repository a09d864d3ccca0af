/** A model's server that answers when the test says so, and tells which requests were broken off. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface SlowModel {
  /** The variables that a server needs to sell it. */
  environment: Record<string, string>;
  /** How many completions were asked for. */
  readonly asked: number;
  /** How many of them were broken off before they were answered. */
  readonly aborted: number;
  /** False: the model answers at once. */
  isSlow: boolean;
  /** Answers everything that waits. */
  answer(): void;
  close(): Promise<void>;
}

export async function startSlowModel(): Promise<SlowModel> {
  const waiting = new Set<ServerResponse>();
  const counts = { asked: 0, aborted: 0 };
  const write = (response: ServerResponse) => {
    waiting.delete(response);
    const choices = [{ message: { content: `Answer ${counts.asked}` }, finish_reason: 'stop' }];
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ model: 'small', choices }));
  };
  const model = {
    environment: {},
    isSlow: true,
    get asked() {
      return counts.asked;
    },
    get aborted() {
      return counts.aborted;
    },
    answer() {
      for (const response of [...waiting]) write(response);
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  const server = createServer((request, response) => {
    request.resume();
    if (!request.url?.endsWith('/chat/completions')) {
      response.statusCode = 404;
      response.end();
      return;
    }
    counts.asked += 1;
    waiting.add(response);
    response.once('close', () => {
      if (waiting.delete(response)) counts.aborted += 1;
    });
    if (!model.isSlow) write(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const environment = {
    AI_BASE_URL: `http://127.0.0.1:${port}/v1`,
    AI_MODEL: 'small',
    AI_REQUESTS_PER_MINUTE: '100000',
  };
  return Object.assign(model, { environment });
}
