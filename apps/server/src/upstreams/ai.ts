import { z } from 'zod';
import { defineUpstream } from './define.ts';

export interface ChatRequest {
  model: string;
  system: string | undefined;
  prompt: string;
  maxTokens: number;
  /** 0 to 2. */
  temperature: number;
}

export interface ChatAnswer {
  /** The model that answered, by the backend's own word. */
  model: string;
  content: string;
  /** `stop`, `length` (cut at maxTokens), `content_filter`, or null where the backend does not say. */
  finishReason: string | null;
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number } | null;
}

const tokens = z.number().int().min(0);
const completion = z
  .looseObject({
    model: z.string().min(1),
    choices: z
      .array(
        z.looseObject({
          // Null when the backend refused, or when the model only thought and did not speak.
          message: z.looseObject({ content: z.string().nullish() }),
          finish_reason: z.string().nullish(),
        }),
      )
      .min(1)
      .max(16),
    usage: z
      .looseObject({ prompt_tokens: tokens, completion_tokens: tokens, total_tokens: tokens })
      .transform(({ prompt_tokens, completion_tokens, total_tokens }) => ({
        prompt_tokens,
        completion_tokens,
        total_tokens,
      }))
      .nullish(),
  })
  .transform(
    (raw): ChatAnswer => ({
      model: raw.model,
      content: (raw.choices[0]?.message.content ?? '').trim(),
      finishReason: raw.choices[0]?.finish_reason ?? null,
      usage: raw.usage ?? null,
    }),
  );

interface MappedName {
  /** Lower case. */
  name: string;
  /** Whether any name that begins so is meant. */
  isStart: boolean;
  model: string;
}

/** Null when it is not such a list. */
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
 * ends in `/v1`. `AI_MODEL` is what the operator sells: nobody can make it run a dearer model.
 */
export const ai = defineUpstream({
  name: 'ai',
  title: 'Language model',
  baseUrl: null,
  licence: 'The terms of the model that answered apply',
  key: 'optional',
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
    return {
      /** The models that the operator sells, the default first; empty when not configured. */
      configured: configured as readonly string[],
      /** The model that the operator names for what a client asked for; null where none is. */
      standsFor(asked: string): string | null {
        const wanted = asked.toLowerCase();
        const found = map.find(({ name, isStart }) => (isStart ? wanted.startsWith(name) : wanted === name));
        return found?.model ?? null;
      },
      /** Those of them that the backend has loaded. A backend that cannot list is taken at the operator's word. */
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
        // Some backends list `name:latest` for what they answer to as `name`.
        return configured.filter((name) => value.includes(name) || value.includes(`${name}:latest`));
      },
      /** One completion. Neither cached nor repeated: it costs the operator money. */
      complete: (asked: ChatRequest, signal: AbortSignal) =>
        http.post({
          path: '/chat/completions',
          body: {
            model: asked.model,
            messages: [
              ...(asked.system === undefined ? [] : [{ role: 'system', content: asked.system }]),
              { role: 'user', content: asked.prompt },
            ],
            max_tokens: asked.maxTokens,
            temperature: asked.temperature,
            stream: false,
          },
          schema: completion,
          signal,
        }),
    };
  },
  probe: (api) => api.offered(),
});
