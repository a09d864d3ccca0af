/** The server's `/mcp`, asked by plain HTTP: one message there, one answer back, and everything bounded. */
import { AnswerLost, Refused } from 'farebox/buying';
import { z } from 'zod';

/** An answer has 1 MB at most, and as text beside its JSON some four times that. */
const MAX_ANSWER_BYTES = 32_000_000;
const PROTOCOL_VERSION = '2025-11-25';
const MAX_WORDS = 400;

const message = z.looseObject({
  id: z.union([z.string(), z.number()]).nullish(),
  method: z.string().optional(),
  params: z.looseObject({}).optional(),
  result: z.looseObject({}).optional(),
  error: z.object({ code: z.number(), message: z.string() }).optional(),
});
type Message = z.infer<typeof message>;
export type UpstreamResult = Record<string, unknown>;

export interface Asking {
  params: Record<string, unknown>;
  apiKey?: string | null;
  /** How long all of it may take. */
  timeoutMs: number;
  signal: AbortSignal;
  /** Receives what the server tells while it works. */
  onProgress?(told: Record<string, unknown>): void;
}

export interface Upstream {
  /**
   * @returns the result as it came
   * @throws AnswerLost Refused
   */
  ask(method: string, asking: Asking): Promise<UpstreamResult>;
}

/** @param silenceMs how long the server may send nothing */
export function createUpstream(url: URL, silenceMs: number): Upstream {
  let asked = 0;
  return {
    async ask(method, { params, apiKey = null, timeoutMs, signal, onProgress }) {
      asked += 1;
      const id = asked;
      // A server that works on a long call tells so every two seconds to whoever gives a token: silence is a fault then.
      const meta = { ...(params._meta as object | undefined), progressToken: id };
      const silence = watchSilence(silenceMs);
      try {
        const response = await fetch(url, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            'mcp-protocol-version': PROTOCOL_VERSION,
            ...(apiKey === null ? {} : { 'x-api-key': apiKey }),
          },
          body: JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: meta } }),
          // A key is sent to this address and to no other.
          redirect: 'error',
          signal: AbortSignal.any([signal, silence.signal, AbortSignal.timeout(timeoutMs)]),
        });
        for await (const each of messagesOf(response, silence.heard)) {
          if (each.method === 'notifications/progress' && each.params?.progressToken === id)
            onProgress?.(each.params);
          if (each.id !== id) continue;
          if (each.error !== undefined) throw new Refused(each.error.code, each.error.message);
          if (each.result !== undefined) return each.result;
        }
        throw new AnswerLost('the answer ended before it was whole');
      } catch (error) {
        if (error instanceof Refused || error instanceof AnswerLost) throw error;
        throw new AnswerLost(silence.signal.aborted ? 'it said nothing for too long' : reasonOf(error));
      } finally {
        silence.stop();
      }
    },
  };
}

/** @throws Refused when HTTP itself says no; AnswerLost when nobody can read it */
async function* messagesOf(response: Response, heard: () => void): AsyncGenerator<Message> {
  if (!response.ok) {
    const words = wordsOf(await wholeOf(response, heard), response.status);
    // A proxy in between may say 5xx for a server that has done what was asked.
    if (response.status >= 500) throw new AnswerLost(words);
    const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
    throw new Refused(response.status, words, Number.isFinite(seconds) ? seconds * 1_000 : null);
  }
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
    yield readMessage(await wholeOf(response, heard));
    return;
  }
  // One line may come in thousands of pieces: it is put together once. A return before its end is white space of JSON.
  let pieces: string[] = [];
  for await (const text of textOf(response, heard)) {
    const [end = '', ...lines] = text.split('\n');
    pieces.push(end);
    for (const next of lines) {
      const line = pieces.join('');
      pieces = [next];
      if (line.startsWith('data:')) yield readMessage(line.slice(5));
    }
  }
}

async function* textOf({ body }: Response, heard: () => void): AsyncGenerator<string> {
  if (body === null) return;
  const decoder = new TextDecoder();
  let bytes = 0;
  for await (const chunk of body) {
    heard();
    bytes += chunk.byteLength;
    if (bytes > MAX_ANSWER_BYTES) throw new AnswerLost('the answer is too large');
    yield decoder.decode(chunk, { stream: true });
  }
}

async function wholeOf(response: Response, heard: () => void): Promise<string> {
  let whole = '';
  for await (const text of textOf(response, heard)) whole += text;
  return whole;
}

function readMessage(text: string): Message {
  try {
    return message.parse(JSON.parse(text));
  } catch {
    throw new AnswerLost('the answer is no message of MCP');
  }
}

function wordsOf(body: string, status: number): string {
  try {
    const said = z.object({ message: z.string() }).parse(JSON.parse(body));
    return said.message;
  } catch {
    return `it answered ${status}`;
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'it failed';
  if (error.name === 'TimeoutError') return 'it took too long';
  const code = (error.cause as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : error.message.slice(0, MAX_WORDS);
}

function watchSilence(silenceMs: number) {
  const fell = new AbortController();
  const timer = setTimeout(() => fell.abort(), silenceMs);
  return { signal: fell.signal, heard: () => timer.refresh(), stop: () => clearTimeout(timer) };
}
