import { z } from 'zod';
import { answer } from '../../words/answer.ts';
import { noAnswer, ServiceFailure } from '../../words/failure.ts';
import { defineService } from '../define.ts';
import { limit, numberBetween, text } from '../fields.ts';

const PROMPT_BYTES = 16_384;
const SYSTEM_BYTES = 8_192;

/** Text bounded by its bytes, since that is what a model is paid for. */
function bytes(maximum: number, description: string) {
  return text(maximum, description).refine((value) => Buffer.byteLength(value) <= maximum, {
    message: `must be at most ${maximum} bytes in UTF-8`,
  });
}

export default defineService({
  path: 'ai-inference',
  name: 'AI Inference',
  tag: 'AI Services',
  priceUsd: '0.05',
  mpp: true,
  featured: true,
  summary:
    'One completion by a language model: send a prompt, get text, the model that wrote it and its token counts.',
  input: z.object({
    prompt: bytes(PROMPT_BYTES, 'What to answer, at most 16 kB'),
    systemPrompt: bytes(SYSTEM_BYTES, 'How to answer, at most 8 kB').optional(),
    maxTokens: limit(1_024, 4_096).describe('Longest answer in tokens: 1 to 4096, 1024 unless given'),
    temperature: numberBetween(0, 2, 'Randomness, 0 to 2; 0.7 unless given').default(0.7),
    model: text(120, 'One of the models on offer here; the default model unless given').optional(),
  }),
  output: z.object({
    content: z.string(),
    model: z.string().describe('The model that answered'),
    usage: z
      .object({
        prompt_tokens: z.number().int(),
        completion_tokens: z.number().int(),
        total_tokens: z.number().int(),
      })
      .nullable(),
    finishReason: z.string().nullable().describe('"stop", or "length" when cut off at maxTokens'),
    serviceVersion: z.string(),
    simulated: z.literal(true).optional().describe('There when a sandbox answered, not a model'),
  }),
  example: { prompt: 'In one sentence: what is a stablecoin?', maxTokens: 100 },
  aliases: { system: 'systemPrompt', max_tokens: 'maxTokens', max_completion_tokens: 'maxTokens' },
  needs: ['ai'],
  timeoutMs: 25_000,
  async run(input, { upstreams, signal, version }) {
    const model = await chosenModel(input.model, upstreams.ai);
    const { value, source } = await upstreams.ai.complete(
      {
        model,
        system: input.systemPrompt,
        prompt: input.prompt,
        maxTokens: input.maxTokens,
        temperature: input.temperature,
      },
      signal,
    );
    if (value.finishReason === 'content_filter') {
      throw noAnswer('CONTENT_FILTERED', 'The model’s content filter withheld the answer.', 'prompt');
    }
    if (value.content === '') {
      throw noAnswer(
        'EMPTY_ANSWER',
        value.finishReason === 'length'
          ? `The model used all ${input.maxTokens} tokens before it wrote anything: allow more.`
          : 'The model answered nothing.',
        value.finishReason === 'length' ? 'maxTokens' : 'prompt',
      );
    }
    const notes: string[] = [];
    if (value.finishReason === 'length') notes.push(`The answer was cut off at ${input.maxTokens} tokens.`);
    if (value.usage === null) notes.push('The backend did not count tokens.');
    return answer(
      {
        content: value.content,
        model: value.model,
        usage: value.usage,
        finishReason: value.finishReason,
        serviceVersion: version,
        ...(source.sandbox ? { simulated: true as const } : {}),
      },
      {
        method: `One chat completion with temperature ${input.temperature} and at most ${input.maxTokens} tokens; not cached.`,
        sources: [source],
        notes,
      },
    );
  },
});

interface Models {
  configured: readonly string[];
  offered(): Promise<readonly string[]>;
}

/** The default model, or the one asked for if it is on offer: nobody gets another model than they asked for. */
async function chosenModel(asked: string | undefined, ai: Models): Promise<string> {
  // Without any configured model the upstream itself says so when it is asked.
  if (asked === undefined) return ai.configured[0] ?? '';
  const offered = await ai.offered();
  if (offered.includes(asked)) return asked;
  throw new ServiceFailure({
    status: 400,
    code: 'UNSUPPORTED_MODEL',
    message: `There is no model "${asked}" here. ${
      offered.length === 0 ? 'None is on offer now' : `On offer: ${offered.join(', ')}`
    }. Leave model out for the default.`,
    field: 'model',
  });
}
