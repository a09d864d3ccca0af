/** An OpenAI-compatible chat API whose answers come from the extractive engine. Paths here are those below /v1. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { answerTo } from './extractive.ts';
import { withStreamFault } from './faults.ts';
import type { World } from './world.ts';

const MODEL = 'sandbox-extractive-1';
const MAX_MESSAGES = 200;
const MAX_PROMPT_CHARACTERS = 64 * 1024;
const DEFAULT_TOKENS = 4_096;
const MODEL_RECORD = { id: MODEL, object: 'model', created: 1_790_000_000, owned_by: 'farebox-sandbox' };

interface Message {
  role: string;
  content: string;
}

interface ChatRequest {
  messages: Message[];
  maxTokens: number;
  stream: boolean;
  /** Whether a stream ends with an event that holds the counts of tokens. */
  countsTokens: boolean;
}

/** The refusal of a request: the HTTP status and the fields of the API's error object. */
class Refusal extends Error {
  readonly status: number;
  readonly param: string | null;
  readonly code: string | null;
  constructor(status: number, message: string, param: string | null, code: string | null) {
    super(message);
    this.status = status;
    this.param = param;
    this.code = code;
  }
}

export function ai(app: FastifyInstance, { nowMs }: World): void {
  app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => {
    if (error instanceof Refusal) return refuse(reply, error);
    const status = error.statusCode ?? 500;
    return refuse(reply, new Refusal(status, error.message, null, null));
  });
  app.addHook('onRequest', async ({ headers }) => {
    if (headers.authorization !== undefined && !/^Bearer \S+$/.test(headers.authorization)) {
      throw new Refusal(401, 'Incorrect API key provided.', null, 'invalid_api_key');
    }
  });

  app.get('/models', () => ({ object: 'list', data: [MODEL_RECORD] }));

  app.get<{ Params: { model: string } }>('/models/:model', ({ params }) => {
    if (params.model !== MODEL) throw unknownModel(params.model);
    return MODEL_RECORD;
  });

  app.post<{ Body: unknown }>('/chat/completions', (asked, reply) => {
    const request = read(asked.body);
    const prompt = request.messages.findLast(({ role }) => role === 'user')?.content ?? '';
    const { text, tokens, cut } = limited(answerTo(prompt), request.maxTokens);
    const promptTokens = request.messages.reduce((sum, { content }) => sum + tokensOf(content).length, 0);
    const head = {
      id: `chatcmpl-${createHash('sha256').update(JSON.stringify(request)).digest('hex').slice(0, 24)}`,
      created: Math.floor(nowMs() / 1000),
      model: MODEL,
    };
    const finish = cut ? 'length' : 'stop';
    const usage = {
      prompt_tokens: promptTokens,
      completion_tokens: tokens,
      total_tokens: promptTokens + tokens,
    };
    if (request.stream) {
      const events = chunksOf(head, text, finish, request.countsTokens ? usage : null);
      return reply.type('text/event-stream').send(Readable.from(withStreamFault(asked, events)));
    }
    return {
      ...head,
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: finish }],
      usage,
    };
  });
}

/**
 * The events of a streamed answer. The first names the role, then each holds one token. After them come the reason why the
 * answer ends, the counts of tokens unless `usage` is null, and the mark of the end.
 */
function* chunksOf(head: object, text: string, finish: string, usage: object | null): Generator<string> {
  const chunk = (choices: object[], more: object = {}) =>
    `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices, ...more })}\n\n`;
  const choice = (delta: object, finish_reason: string | null) => [{ index: 0, delta, finish_reason }];
  yield chunk(choice({ role: 'assistant', content: '' }, null));
  for (const content of tokensOf(text)) yield chunk(choice({ content }, null));
  yield chunk(choice({}, finish));
  if (usage !== null) yield chunk([], { usage });
  yield 'data: [DONE]\n\n';
}

function read(body: unknown): ChatRequest {
  if (!isRecord(body))
    throw new Refusal(400, 'We could not parse the JSON body of your request.', null, null);
  if (typeof body.model !== 'string')
    throw new Refusal(400, 'you must provide a model parameter', 'model', null);
  if (body.model !== MODEL) throw unknownModel(body.model);
  if (!Array.isArray(body.messages) || body.messages.length === 0 || body.messages.length > MAX_MESSAGES) {
    throw new Refusal(400, `'messages' must be an array of 1 to ${MAX_MESSAGES} messages`, 'messages', null);
  }
  const messages = body.messages.map((message: unknown, at): Message => {
    const content = isRecord(message) ? contentOf(message.content) : null;
    if (!isRecord(message) || typeof message.role !== 'string' || content === null) {
      throw new Refusal(400, `Invalid value for 'messages[${at}]'`, `messages[${at}]`, 'invalid_value');
    }
    return { role: message.role, content };
  });
  if (messages.reduce((sum, { content }) => sum + content.length, 0) > MAX_PROMPT_CHARACTERS) {
    throw new Refusal(
      400,
      "This model's maximum context length is exceeded.",
      'messages',
      'context_length_exceeded',
    );
  }
  const asked = body.max_completion_tokens ?? body.max_tokens ?? DEFAULT_TOKENS;
  if (typeof asked !== 'number' || !Number.isInteger(asked) || asked < 1) {
    throw new Refusal(
      400,
      "Invalid 'max_tokens': integer below minimum value.",
      'max_tokens',
      'integer_below_min_value',
    );
  }
  const options = isRecord(body.stream_options) ? body.stream_options : {};
  return {
    messages,
    maxTokens: asked,
    stream: body.stream === true,
    countsTokens: options.include_usage === true,
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The text of a message: the string itself, or the texts of a list of parts joined by line breaks. Null if it is neither. */
function contentOf(content: unknown): string | null {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return null;
  const parts = content.map((part: unknown) =>
    isRecord(part) && typeof part.text === 'string' ? part.text : null,
  );
  return parts.includes(null) ? null : parts.join('\n');
}

/** Splits a text into tokens. A token here is a word or a punctuation mark, with the white space before it. */
function tokensOf(text: string): string[] {
  return text.match(/\s*[\p{L}\p{N}]+|\s*[^\s\p{L}\p{N}]/gu) ?? [];
}

function limited(text: string, maxTokens: number): { text: string; tokens: number; cut: boolean } {
  const tokens = tokensOf(text);
  if (tokens.length <= maxTokens) return { text, tokens: tokens.length, cut: false };
  return { text: tokens.slice(0, maxTokens).join(''), tokens: maxTokens, cut: true };
}

function unknownModel(model: string): Refusal {
  return new Refusal(
    404,
    `The model \`${model}\` does not exist or you do not have access to it.`,
    null,
    'model_not_found',
  );
}

function refuse(reply: FastifyReply, { status, message, param, code }: Refusal) {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error';
  return reply.code(status).send({ error: { message, type, param, code } });
}
