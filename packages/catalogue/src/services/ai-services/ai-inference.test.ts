import assert from 'node:assert/strict';
import { it } from 'node:test';
import { ServiceFailure } from '../../../../core/src/words/failure.ts';
import type { ChatAnswer, ChatRequest, ModelCost } from '../../upstreams/adapters/ai.ts';
import { reply, runContext } from '../run-context.fixture.ts';
import inference from './ai-inference.ts';

const said: ChatAnswer = {
  model: 'small-2026',
  content: 'Hello.',
  finishReason: 'stop',
  usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 },
};

function backend(value: Partial<ChatAnswer> = {}, sandbox = false, cost: ModelCost | null = null) {
  const asked: ChatRequest[] = [];
  const signals: AbortSignal[] = [];
  const context = runContext({
    ai: {
      configured: ['small', 'large'],
      offered: async () => ['small', 'large'],
      standsFor: (name) => (name === 'gpt-4o' ? 'large' : null),
      costOf: () => cost,
      tell: async () => assert.fail('nobody asked for pieces'),
      complete: async (request, signal) => {
        asked.push(request);
        signals.push(signal);
        const made = reply('ai', { ...said, ...value });
        return { ...made, source: { ...made.source, sandbox } };
      },
    },
  });
  return { asked, signals, context };
}

const failsWith = (status: number, code: string, field: string) => (error: unknown) => {
  assert.ok(error instanceof ServiceFailure, String(error));
  assert.deepEqual([error.status, error.code, error.field], [status, code, field]);
  return true;
};

it('answers with the model that wrote it, and hands the deadline on', async () => {
  const { asked, signals, context } = backend();
  const { fields } = await inference.run(inference.input.parse({ prompt: ' Hi ' }), context);
  assert.deepEqual(inference.output.parse(fields), {
    content: 'Hello.',
    model: 'small-2026',
    requestedModel: null,
    usage: said.usage,
    finishReason: 'stop',
    serviceVersion: '0',
  });
  assert.deepEqual(asked, [
    { model: 'small', system: undefined, prompt: 'Hi', maxTokens: 1024, temperature: 0.7 },
  ]);
  assert.equal(signals[0], context.signal);
});

it('says so when a sandbox answered', async () => {
  const { context } = backend({}, true);
  const { fields } = await inference.run(inference.input.parse({ prompt: 'Hi' }), context);
  assert.equal(fields.simulated, true);
});

it('answers for a model that is not on offer with the mapped one, else with the default, and says so', async () => {
  for (const [wanted, answers] of [
    ['large', 'large'],
    ['gpt-4o', 'large'],
    ['somebody-elses', 'small'],
  ]) {
    const { asked, context } = backend();
    const { fields, notes } = await inference.run(
      inference.input.parse({ prompt: 'Hi', model: wanted }),
      context,
    );
    assert.equal(asked[0]?.model, answers);
    assert.equal(fields.requestedModel, wanted);
    assert.equal(
      notes.some((note) => note.includes(`${answers} answered`)),
      wanted !== answers,
      wanted,
    );
  }
});

it('refuses a caller that accepts no other model, without asking the backend', async () => {
  const { asked, context } = backend();
  const strictModel = true;
  await inference.run(inference.input.parse({ prompt: 'Hi', model: 'large', strictModel }), context);
  assert.equal(asked[0]?.model, 'large');
  await assert.rejects(
    inference.run(inference.input.parse({ prompt: 'Hi', model: 'gpt-4o', strictModel }), context),
    (error: unknown) => {
      assert.ok(error instanceof ServiceFailure);
      assert.match(error.message, /small, large/);
      return failsWith(400, 'UNSUPPORTED_MODEL', 'model')(error);
    },
  );
  assert.equal(asked.length, 1);
});

it('has no answer when the model said nothing or was filtered', async () => {
  const input = inference.input.parse({ prompt: 'Hi' });
  for (const [answer, code, field] of [
    [{ content: '' }, 'EMPTY_ANSWER', 'prompt'],
    [{ content: '', finishReason: 'length' }, 'EMPTY_ANSWER', 'maxTokens'],
    [{ content: 'I', finishReason: 'content_filter' }, 'CONTENT_FILTERED', 'prompt'],
  ] as const) {
    await assert.rejects(inference.run(input, backend(answer).context), failsWith(422, code, field));
  }
});

it('says when an answer was cut off', async () => {
  const { notes } = await inference.run(
    inference.input.parse({ prompt: 'Hi', maxTokens: '5' }),
    backend({ finishReason: 'length', usage: null }).context,
  );
  assert.equal(notes.length, 2);
});

it('bounds what it takes, in bytes', () => {
  const fits = (body: Record<string, unknown>) =>
    inference.input.safeParse({ prompt: 'Hi', ...body }).success;
  assert.equal(fits({ prompt: 'a'.repeat(16_384) }), true);
  assert.equal(fits({ prompt: 'é'.repeat(8_193) }), false);
  for (const wrong of [
    { prompt: ' ' },
    { maxTokens: 0 },
    { maxTokens: 4_097 },
    { maxTokens: 1.5 },
    { temperature: 2.1 },
  ]) {
    assert.equal(fits(wrong), false, JSON.stringify(wrong));
  }
});

it('refuses what could cost more than it pays, before anything is asked or settled, and says the most', async () => {
  // 15 USD for a million tokens written, 3 for a million sent: 0.05 USD are 3,333 tokens less a fifth of what is sent.
  const dear = { inputMicros: 3_000_000n, outputMicros: 15_000_000n };
  const most = Math.floor((50_000 - (2 + 32) * 3) / 15);
  const ask = (maxTokens: number, prompt = 'Hi') => inference.input.parse({ prompt, maxTokens });
  const { asked, context } = backend({}, false, dear);
  await inference.run(ask(most), context);
  assert.equal(asked[0]?.maxTokens, most);
  await inference.beforeSettling?.(ask(most), context);
  for (const attempt of [
    () => inference.run(ask(most + 1), context),
    () => inference.beforeSettling?.(ask(most + 1), context) ?? Promise.resolve(),
  ])
    await assert.rejects(attempt, (error: unknown) => {
      assert.ok(error instanceof ServiceFailure);
      assert.match(error.message, new RegExp(`at most ${most} tokens`));
      return failsWith(400, 'ABOVE_COST_CAP', 'maxTokens')(error);
    });
  // A prompt that costs more by itself, counted in bytes and not in letters.
  await assert.rejects(
    inference.run(
      ask(1, '\u{6f22}'.repeat(5_400)),
      backend({}, false, { ...dear, inputMicros: 4_000_000n }).context,
    ),
    failsWith(400, 'ABOVE_COST_CAP', 'prompt'),
  );
  await assert.rejects(
    inference.run(ask(1), backend({}, false, { inputMicros: 0n, outputMicros: 50_001_000_000n }).context),
    failsWith(400, 'ABOVE_COST_CAP', 'prompt'),
  );
  assert.equal(asked.length, 1);
  // What costs nothing is not capped.
  await inference.run(
    ask(4_096, 'a'.repeat(16_384)),
    backend({}, false, { inputMicros: 0n, outputMicros: 0n }).context,
  );
});
