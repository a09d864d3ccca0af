import type { ServerResponse } from 'node:http';
import { until } from '../fire/until.fixture.ts';
import { type OwnApi, startOwnApi } from './own-api.fixture.ts';

/** An answer that a seller's API gives as the test goes on, from its head to its end. */
export interface Flow {
  /** The address at which it is asked for. */
  path: string;
  /** Resolves with the reply once it was asked for; the next time with that of the next request. */
  asked(): Promise<ServerResponse>;
  /** How often it was asked for. */
  readonly times: number;
}

/** A seller's API whose answers are up to the test. */
export async function startFlowingApi(): Promise<OwnApi & { flow(route: string): Flow }> {
  const replies = new Map<string, ServerResponse[]>();
  const api = await startOwnApi((got, reply) => {
    replies.get(got.url)?.push(reply);
  });
  let count = 0;
  return {
    ...api,
    flow(route) {
      count += 1;
      const path = `${route}/${count}`;
      const got: ServerResponse[] = [];
      replies.set(path, got);
      let seen = 0;
      return {
        path,
        async asked() {
          const index = seen;
          seen += 1;
          await until(`${path} is asked for`, () => got.length > index);
          const reply = got[index];
          if (reply === undefined) throw new Error('it was not asked for');
          return reply;
        },
        get times() {
          return got.length;
        },
      };
    },
  };
}

/** Reads a body piece by piece. */
export function bytesOf(response: Response) {
  const reader = response.body?.getReader();
  if (reader === undefined) throw new Error('there is no body');
  const pieces: Buffer[] = [];
  return {
    get text(): string {
      return Buffer.concat(pieces).toString();
    },
    /** Reads on until so much has come. */
    async until(text: string): Promise<void> {
      while (this.text.length < text.length) {
        const { value, done } = await reader.read();
        if (done) return;
        pieces.push(Buffer.from(value));
      }
    },
    /** Reads on to the end. @throws when it is not whole */
    async rest(): Promise<string> {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return this.text;
        pieces.push(Buffer.from(value));
      }
    },
  };
}
