import { z } from 'zod';
import { defineUpstream, type Reply, type UpstreamHttp } from '../define.ts';

export interface ChatRequest {
  model: string;
  system: string | undefined;
  prompt: string;
  maxTokens: number;
  /** 0 to 2. */
  temperature: number;
}

export interface ChatAnswer {
  /** The model that answered, as the backend names it. */
  model: string;
  content: string;
  /** `stop`, `length` (cut at maxTokens), `content_filter`, or null when the backend does not say. */
  finishReason: string | null;
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number } | null;
}

const tokens = z.number().int().min(0);
const usage = z
  .looseObject({ prompt_tokens: tokens, completion_tokens: tokens, total_tokens: tokens })
  .transform(({ prompt_tokens, completion_tokens, total_tokens }) => ({
    prompt_tokens,
    completion_tokens,
    total_tokens,
  }));
const completion = z
  .looseObject({
    model: z.string().min(1),
    choices: z
      .array(
        z.looseObject({
          // Null when the backend refused, or when the model only reasoned and wrote no answer.
          message: z.looseObject({ content: z.string().nullish() }),
          finish_reason: z.string().nullish(),
        }),
      )
      .min(1)
      .max(16),
    usage: usage.nullish(),
  })
  .transform(
    (raw): ChatAnswer => ({
      model: raw.model,
      content: (raw.choices[0]?.message.content ?? '').trim(),
      finishReason: raw.choices[0]?.finish_reason ?? null,
      usage: raw.usage ?? null,
    }),
  );

/** One event of a streamed answer: a delta, the last one with the finish reason, or the token count. */
const chunk = z.looseObject({
  model: z.string().nullish(),
  choices: z
    .array(
      z.looseObject({
        delta: z.looseObject({ content: z.string().nullish() }).nullish(),
        finish_reason: z.string().nullish(),
      }),
    )
    .max(16)
    .nullish(),
  usage: usage.nullish(),
  /** How backends report a failure in a stream with status 200: `{ error }`, or `{ object: "error" }`. */
  error: z.unknown().optional(),
  object: z.string().nullish(),
});
const endOf = (event: z.output<typeof chunk>) => event.choices?.[0]?.finish_reason ?? null;

/** Enough for 4096 tokens, each in its own event, from the most verbose backend. */
const MAX_STREAM_BYTES = 8 * 1024 * 1024;
/** The service has its own deadline; this one is for callers without a deadline. */
const LONGEST_STREAM_MS = 180_000;
const DEFAULT_SILENCE_SECONDS = 30;

/** An answer that is being streamed. */
export interface Telling {
  /** The pieces of the text as they are written. Joined, they are the answer's `content`. */
  pieces: AsyncGenerator<string, void>;
  /** The answer that `complete` would have returned; complete once the pieces have ended. */
  answer: ChatAnswer;
}

interface MappedName {
  /** Lower case. */
  name: string;
  /** Whether every name that begins with it is meant. */
  isStart: boolean;
  model: string;
}

/** What a model costs the operator, in micro-USD for a million tokens. */
export interface ModelCost {
  inputMicros: bigint;
  outputMicros: bigint;
}

const COST = /^(?:([^=,\s]+)=)?(\d{1,6}(?:\.\d{1,6})?)\/(\d{1,6}(?:\.\d{1,6})?)$/;

/** Costs by model, the empty name for all others; null when the text is not such a list. */
function parseCosts(text: string): Map<string, ModelCost> | null {
  const costs = new Map<string, ModelCost>();
  for (const entry of text.split(',').map((each) => each.trim())) {
    const [whole, model = '', input = '', output = ''] = COST.exec(entry) ?? [];
    if (whole === undefined || costs.has(model)) return null;
    costs.set(model, { inputMicros: microsOf(input), outputMicros: microsOf(output) });
  }
  return costs;
}

function microsOf(usd: string): bigint {
  const [whole = '0', part = ''] = usd.split('.');
  return BigInt(whole) * 1_000_000n + BigInt(part.padEnd(6, '0'));
}

/** What an answer has cost, rounded up; null where its tokens were not counted, or a model's price is not known. */
function costIn({ usage: counted }: ChatAnswer, cost: ModelCost | null): bigint | null {
  if (counted === null || cost === null) return null;
  const { prompt_tokens: sent, completion_tokens: written } = counted;
  const millionths = BigInt(sent) * cost.inputMicros + BigInt(written) * cost.outputMicros;
  return (millionths + 999_999n) / 1_000_000n;
}

/** What models cost, as the operator says, and who is told of it. */
function meterOf(http: UpstreamHttp) {
  const costs = parseCosts(http.settings.AI_COST_PER_MTOK ?? '');
  const costOf = (model: string): ModelCost | null => costs?.get(model) ?? costs?.get('') ?? null;
  return {
    costOf,
    noteCost({ model }: ChatRequest, answer: ChatAnswer): void {
      const costMicros = costIn(answer, costOf(model));
      if (costMicros !== null) http.spent(costMicros);
    },
  };
}

/** Null when the text is not such a list. */
function parseModelMap(text: string): MappedName[] | null {
  const entries = text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  const map: MappedName[] = [];
  for (const entry of entries) {
    const [, name, star, model] = /^([^=*,\s]*)(\*?)\s*=\s*([^=*,\s]+)$/.exec(entry) ?? [];
    if (name === undefined || model === undefined || (name === '' && star === '')) return null;
    map.push({ name: name.toLowerCase(), isStart: star === '*', model });
  }
  return map;
}

const models = z
  .looseObject({ data: z.array(z.looseObject({ id: z.string() })).max(5_000) })
  .transform(({ data }) => data.map(({ id }) => id));

/**
 * Any backend that speaks the chat completions protocol: Ollama, llama.cpp, vLLM, or a hosted one. The base address
 * ends in `/v1`. Only the models in `AI_MODEL` are sold, so nobody can make the operator run a dearer one.
 */
export const ai = defineUpstream({
  name: 'ai',
  title: 'Language model',
  baseUrl: null,
  licence: 'The terms of the model that answered apply',
  terms: {
    commercialUse: 'own',
    note: 'The address leads to a model of your choice.',
    attribution: null,
    url: null,
  },
  key: 'optional',
  costsMoney: true,
  settings: {
    AI_MODEL: {
      describe:
        'The model that ai-inference sells, as the backend names it. Several are separated by commas; the first is the default.',
      required: true,
    },
    AI_MODEL_MAP: {
      describe:
        'Which model answers for names that clients send, such as `gpt-4o*=llama3.3,claude-*=llama3.3`: comma-separated, `*` at the end stands for anything, the first that fits counts. What fits none is answered by the default model, unless the caller asks otherwise',
      required: false,
      check: (value) =>
        parseModelMap(value) === null
          ? 'must be names=model, comma-separated, `*` at the end of a name at most'
          : null,
    },
    AI_COST_PER_MTOK: {
      describe:
        'What the models cost you, in USD for a million tokens sent and written, such as `0.5/1.5`, or by model `small=0.1/0.4,large=3/15`. A call that could cost more than its price is refused before it is paid, with the most that it may ask; without this nothing is capped',
      required: false,
      check: (value) =>
        parseCosts(value) === null
          ? 'must be input/output in USD, or model=input/output, comma-separated'
          : null,
    },
    AI_REQUESTS_PER_MINUTE: {
      describe: 'How often the model may be asked in a minute, by all replicas together: 120 unless set',
      required: false,
    },
    AI_SILENCE_SECONDS: {
      describe: `How long, in seconds, the model's server may be silent while it streams, also before the first piece: 1 to 120; ${DEFAULT_SILENCE_SECONDS} unless set. A slow machine with a long prompt needs more`,
      required: false,
      check: (value) =>
        /^[0-9]{1,3}$/.test(value) && Number(value) >= 1 && Number(value) <= 120 ? null : 'must be 1 to 120',
    },
  },
  authorize: (apiKey) => ({ headers: { authorization: `Bearer ${apiKey}` } }),
  requestsPerMinute: 120,
  timeoutMs: 24_000,
  open: (http) => {
    const configured = (http.settings.AI_MODEL ?? '')
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '');
    const map = parseModelMap(http.settings.AI_MODEL_MAP ?? '') ?? [];
    const { costOf, noteCost } = meterOf(http);
    return {
      /** The models that the operator sells, the default first; empty when none is configured. */
      configured: configured as readonly string[],
      /** What a model costs, as the operator says; null where they do not. */
      costOf,
      /** The model that the operator maps a requested name to; null when there is none. */
      standsFor(asked: string): string | null {
        const wanted = asked.toLowerCase();
        const found = map.find(({ name, isStart }) => (isStart ? wanted.startsWith(name) : wanted === name));
        return found?.model ?? null;
      },
      /**
       * Those of the models that the backend has loaded. For a backend that cannot list its models, the operator's word
       * counts.
       */
      async offered(): Promise<readonly string[]> {
        const { value } = await http.find({
          path: '/models',
          schema: models,
          absentOn: [404, 405],
          freshMs: 300_000,
          staleMs: 3_600_000,
          timeoutMs: 5_000,
        });
        if (value === null) return configured;
        // Some backends list `name:latest` for a model that they also accept as `name`.
        return configured.filter((name) => value.includes(name) || value.includes(`${name}:latest`));
      },
      /** One completion. It is neither cached nor repeated, because it costs the operator money. */
      async complete(asked: ChatRequest, signal: AbortSignal) {
        const reply = await http.post({
          path: '/chat/completions',
          body: { ...bodyOf(asked), stream: false },
          schema: completion,
          signal,
        });
        noteCost(asked, reply.value);
        return reply;
      },
      /** The same as a stream. Resolves when the backend has begun to answer. */
      async tell(asked: ChatRequest, signal: AbortSignal): Promise<Reply<Telling>> {
        const silenceSeconds = Number(http.settings.AI_SILENCE_SECONDS ?? DEFAULT_SILENCE_SECONDS);
        const { value, source } = await http.stream({
          path: '/chat/completions',
          body: { ...bodyOf(asked), stream: true, stream_options: { include_usage: true } },
          schema: chunk,
          last: '[DONE]',
          mayEnd: (event) => endOf(event) !== null,
          hasFailed: (event) =>
            (event.error ?? null) !== null || event.object === 'error' || endOf(event) === 'error',
          silenceMs: silenceSeconds * 1_000,
          timeoutMs: LONGEST_STREAM_MS,
          maxBytes: MAX_STREAM_BYTES,
          signal,
        });
        const answer: ChatAnswer = { model: asked.model, content: '', finishReason: null, usage: null };
        const pieces = told(value, answer, () => noteCost(asked, answer));
        return { value: { pieces, answer }, source };
      },
    };
  },
  probe: (api) => api.offered(),
});

function bodyOf(asked: ChatRequest) {
  return {
    model: asked.model,
    messages: [
      ...(asked.system === undefined ? [] : [{ role: 'system', content: asked.system }]),
      { role: 'user', content: asked.prompt },
    ],
    max_tokens: asked.maxTokens,
    temperature: asked.temperature,
  };
}

/** Trims the ends, as in an answer in one piece: space is held back until a word follows, and half a sign until its other half. */
async function* told(
  events: AsyncIterable<z.output<typeof chunk>>,
  answer: ChatAnswer,
  ended: () => void,
): AsyncGenerator<string, void> {
  let space = '';
  for await (const event of events) {
    // Backends that do not name the model write "".
    answer.model = event.model || answer.model;
    answer.finishReason = endOf(event) ?? answer.finishReason;
    answer.usage = event.usage ?? answer.usage;
    const text = space + (event.choices?.[0]?.delta?.content ?? '');
    const begun = answer.content === '' ? text.trimStart() : text;
    const piece = begun.replace(/[\ud800-\udbff]$/, '').trimEnd();
    space = begun.slice(piece.length);
    if (piece === '') continue;
    answer.content += piece;
    yield piece;
  }
  ended();
}
