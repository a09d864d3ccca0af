import { limit, numberBetween, outsiderLines, outsiderText, text } from '@farebox/core/service/fields';
import { answer, type Source } from '@farebox/core/words/answer';
import { noAnswer, ServiceFailure } from '@farebox/core/words/failure';
import { z } from 'zod';
import type { ChatAnswer, ChatRequest, ModelCost } from '../../upstreams/adapters/ai.ts';
import { defineService } from '../define.ts';

const PRICE_USD = '0.05';
const PRICE_MICROS = 50_000n;
/** Tokens beside the text: roles and marks of the form in which a model is asked. */
const FORM_TOKENS = 32;
const TOKENS_IN_A_MILLION = 1_000_000n;
const PROMPT_BYTES = 16_384;
const SYSTEM_BYTES = 8_192;

/** Text bounded by its size in bytes, because a model is paid by length. */
function bytes(maximum: number, description: string) {
  return text(maximum, description).refine((value) => Buffer.byteLength(value) <= maximum, {
    message: `must be at most ${maximum} bytes in UTF-8`,
  });
}

const input = z.object({
  prompt: bytes(PROMPT_BYTES, 'What to answer, at most 16 kB'),
  systemPrompt: bytes(SYSTEM_BYTES, 'How to answer, at most 8 kB').optional(),
  maxTokens: limit(1_024, 4_096).describe('Longest answer in tokens: 1 to 4096, 1024 unless given'),
  temperature: numberBetween(0, 2, 'Randomness, 0 to 2; 0.7 unless given').default(0.7),
  model: text(
    120,
    'The model wanted. One that is not on offer is answered by the one that stands for it, or by the default; see strictModel',
  ).optional(),
  strictModel: z.boolean().default(false).describe('true: no model but the one wanted may answer'),
  stream: z
    .boolean()
    .default(false)
    .describe(
      'true: server-sent events, `delta` for each piece of the text and `result` with the whole answer',
    ),
});

export default defineService({
  path: 'ai-inference',
  name: 'AI Inference',
  tag: 'AI Services',
  priceUsd: PRICE_USD,
  mpp: true,
  featured: true,
  summary:
    'One completion by a language model: send a prompt, get text, the model that wrote it and its token counts.',
  keywords:
    'ai llm gpt chatgpt language model ask question answer write writing text generate poem story essay email summarize summarise summary translate translation explain code chat prompt rewrite article completion assistant draft',
  input,
  output: z.object({
    content: outsiderLines(1000000).describe('What the model wrote'),
    model: outsiderText(200).describe('The model that answered'),
    requestedModel: z.string().nullable().describe('The model that was wanted; null when none was named'),
    usage: z
      .object({
        prompt_tokens: z.number().int().describe('Tokens of what was sent'),
        completion_tokens: z.number().int().describe('Tokens of what was written'),
        total_tokens: z.number().int().describe('Both together'),
      })
      .nullable()
      .describe('Tokens, as the model’s server counted them'),
    finishReason: outsiderText(60).nullable().describe('"stop", or "length" when cut off at maxTokens'),
    serviceVersion: z.string().describe('Version of this service'),
    simulated: z.literal(true).optional().describe('There when a sandbox answered, not a model'),
  }),
  example: { prompt: 'In one sentence: what is a stablecoin?', maxTokens: 100 },
  aliases: {
    system: 'systemPrompt',
    max_tokens: 'maxTokens',
    max_completion_tokens: 'maxTokens',
    strict_model: 'strictModel',
  },
  needs: ['ai'],
  timeoutMs: 25_000,
  async beforeSettling(input, { upstreams }) {
    await chatOf(input, upstreams.ai);
  },
  async run(input, { upstreams, signal, version }) {
    const asked = await chatOf(input, upstreams.ai);
    const { value, source } = await upstreams.ai.complete(asked, signal);
    return answered(input, asked.model, value, source, version);
  },
  stream: {
    field: 'stream',
    async *run(input, { upstreams, signal, version }) {
      const asked = await chatOf(input, upstreams.ai);
      const { value, source } = await upstreams.ai.tell(asked, signal);
      for await (const content of value.pieces) {
        // The form of chat completions, so that readers of their streams can read these.
        yield { event: 'delta', data: { choices: [{ index: 0, delta: { content } }] } };
      }
      return answered(input, asked.model, value.answer, source, version);
    },
  },
});

type Input = z.output<typeof input>;

/** @throws ServiceFailure 400 for a model that is not on offer, and for what could cost more than it pays */
async function chatOf(input: Input, ai: Models): Promise<ChatRequest> {
  const model = await chosenModel(input.model, input.strictModel, ai);
  const cost = ai.costOf(model);
  if (cost !== null) assertPaidFor(input, model, cost);
  return {
    model,
    system: input.systemPrompt,
    prompt: input.prompt,
    maxTokens: input.maxTokens,
    temperature: input.temperature,
  };
}

/**
 * Refuses what could cost the operator more than its price: each byte sent counts as a token, which it is at most, and each
 * token that the answer may have as written.
 */
function assertPaidFor(input: Input, model: string, cost: ModelCost): void {
  const sent = Buffer.byteLength(input.prompt) + Buffer.byteLength(input.systemPrompt ?? '');
  const budget = PRICE_MICROS * TOKENS_IN_A_MILLION;
  const left = budget - BigInt(sent + FORM_TOKENS) * cost.inputMicros;
  const most = left < 0n ? 0n : cost.outputMicros === 0n ? BigInt(input.maxTokens) : left / cost.outputMicros;
  if (most >= BigInt(input.maxTokens)) return;
  const forOne = budget - cost.outputMicros;
  const mostBytes =
    forOne <= 0n || cost.inputMicros === 0n ? 0n : forOne / cost.inputMicros - BigInt(FORM_TOKENS);
  throw new ServiceFailure({
    status: 400,
    code: 'ABOVE_COST_CAP',
    message:
      most > 0n
        ? `For this price ${model} may write at most ${most} tokens to a prompt of this length: send maxTokens ${most} or less, or a shorter prompt.`
        : `For this price ${model} takes at most ${mostBytes < 0n ? 0n : mostBytes} bytes of prompt and systemPrompt together; these are ${sent}.`,
    field: most > 0n ? 'maxTokens' : 'prompt',
  });
}

/** @throws noAnswer when the model said nothing, or its answer was filtered */
function answered(input: Input, model: string, value: ChatAnswer, source: Source, version: string) {
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
  if (input.model !== undefined && model !== input.model)
    notes.push(
      `${input.model} is not on offer here: ${model} answered. Send strictModel: true to be refused instead.`,
    );
  if (value.finishReason === 'length') notes.push(`The answer was cut off at ${input.maxTokens} tokens.`);
  if (value.usage === null) notes.push('The backend did not count tokens.');
  return answer(
    {
      content: value.content,
      model: value.model,
      requestedModel: input.model ?? null,
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
}

interface Models {
  configured: readonly string[];
  offered(): Promise<readonly string[]>;
  standsFor(asked: string): string | null;
  costOf(model: string): ModelCost | null;
}

/**
 * The requested model if it is on offer; otherwise the one that the operator maps it to, or else the default. A caller
 * that accepts no other model is refused instead.
 */
async function chosenModel(asked: string | undefined, strict: boolean, ai: Models): Promise<string> {
  // Without any configured model the upstream itself reports that when it is asked.
  const usual = ai.configured[0] ?? '';
  if (asked === undefined) return usual;
  const offered = await ai.offered();
  if (offered.includes(asked)) return asked;
  if (!strict) return ai.standsFor(asked) ?? usual;
  throw new ServiceFailure({
    status: 400,
    code: 'UNSUPPORTED_MODEL',
    message: `There is no model "${asked}" here. ${
      offered.length === 0 ? 'None is on offer now' : `On offer: ${offered.join(', ')}`
    }. Leave strictModel out, and another one answers and says so.`,
    field: 'model',
  });
}
