/** Asks from inside what this server answers over HTTP: by whoever asks, counted as theirs, without a connection. */
import type { FastifyInstance } from 'fastify';
import type { Headers } from '../paid-call/rail.ts';

/** The asker of a question. */
export interface Asker {
  /** The headers of the HTTP request that brought it. */
  headers: Headers;
  /** The peer's address, as the socket has it. */
  remoteAddress: string | undefined;
}

export interface InsideAnswer {
  status: number;
  body: string;
  contentType: string;
}

/** Asks an address of ours by GET. */
export type AskInside = (address: string, asker: Asker) => Promise<InsideAnswer>;

/** Describes the body and the connection of the request that brought the question, and so nothing of ours. */
const OF_ITS_OWN_REQUEST =
  /^(content-.*|transfer-encoding|connection|accept.*|expect|upgrade|mcp-.*|if-.*|range)$/;

/** @param http once the server is put together */
export function askInside(http: () => FastifyInstance): AskInside {
  return async (url, { headers, remoteAddress }) => {
    const kept: Record<string, string | string[]> = { accept: 'application/json' };
    for (const [name, value] of Object.entries(headers))
      if (value !== undefined && !OF_ITS_OWN_REQUEST.test(name)) kept[name] = value;
    const answer = await http().inject({
      method: 'GET',
      url,
      headers: kept,
      ...(remoteAddress === undefined ? {} : { remoteAddress }),
    });
    const contentType = String(answer.headers['content-type'] ?? 'application/json');
    return { status: answer.statusCode, body: answer.body, contentType };
  };
}
