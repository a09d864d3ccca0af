import assert from 'node:assert/strict';
import { it } from 'node:test';
import { UpstreamUnavailable } from '../../../../core/src/words/failure.ts';
import { connectUpstream } from '../http.ts';
import { againstLocalServer } from '../local-server.fixture.ts';
import { ai } from './ai.ts';

const asked = { model: 'small', system: 'Be brief.', prompt: 'Hi', maxTokens: 50, temperature: 0.2 };
const completion = {
  id: 'c1',
  object: 'chat.completion',
  created: 1794200000,
  model: 'small-2026',
  choices: [{ index: 0, message: { role: 'assistant', content: ' Hello. ' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11, prompt_tokens_details: {} },
};

it('speaks chat completions with the key as bearer, and keeps the key out of the source', () =>
  againstLocalServer(
    ai,
    { apiKey: 'secret-key', settings: { AI_MODEL: 'small' } },
    () => ({ headers: { 'x-farebox-sandbox': '1' }, body: JSON.stringify(completion) }),
    async (api, requests) => {
      const { value, source } = await api.complete(asked, new AbortController().signal);
      assert.deepEqual(value, {
        model: 'small-2026',
        content: 'Hello.',
        finishReason: 'stop',
        usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 },
      });
      assert.equal(source.sandbox, true);
      assert.ok(!JSON.stringify(source).includes('secret-key'));
      assert.equal(requests[0]?.headers.authorization, 'Bearer secret-key');
      assert.equal(requests[0]?.url.pathname, '/base/chat/completions');
      assert.deepEqual(JSON.parse(requests[0]?.body ?? ''), {
        model: 'small',
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Hi' },
        ],
        max_tokens: 50,
        temperature: 0.2,
        stream: false,
      });
    },
  ));

it('reads a model that says nothing as empty, and never asks twice', () =>
  againstLocalServer(
    ai,
    { settings: { AI_MODEL: 'small' } },
    ({ body }) =>
      body.includes('fail')
        ? { status: 500, body: '{"error":{"message":"no memory"}}' }
        : {
            body: JSON.stringify({
              model: 'm',
              choices: [{ message: { content: null }, finish_reason: 'length' }],
            }),
          },
    async (api, requests) => {
      const { value } = await api.complete(asked, new AbortController().signal);
      assert.deepEqual(value, { model: 'm', content: '', finishReason: 'length', usage: null });
      await assert.rejects(
        api.complete({ ...asked, prompt: 'fail' }, new AbortController().signal),
        UpstreamUnavailable,
      );
      assert.equal(requests.length, 2);
    },
  ));

const event = (choices: object[], more: object = {}) =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', model: 'small-2026', choices, ...more })}\n\n`;
const piece = (content: string | null, finish_reason: string | null = null) =>
  event([{ index: 0, delta: { role: 'assistant', content }, finish_reason }]);
const DONE = 'data: [DONE]\n\n';

/** The result of the backend's events: the pieces, and the answer or what went wrong. */
const telling = (body: string, headers: Record<string, string> = { 'content-type': 'text/event-stream' }) =>
  againstLocalServer(
    ai,
    { apiKey: 'secret-key', settings: { AI_MODEL: 'small' } },
    () => ({ headers, body }),
    async (api, requests) => {
      const pieces: string[] = [];
      try {
        const { value } = await api.tell(asked, new AbortController().signal);
        for await (const text of value.pieces) pieces.push(text);
        return { pieces, answer: value.answer, requests };
      } catch (error) {
        assert.ok(error instanceof UpstreamUnavailable, String(error));
        return { pieces, reason: error.reason, requests };
      }
    },
  );

it('streams pieces that together are the answer, and reads the token count from the end', async () => {
  const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };
  const said = [' ', ' Hel', 'lo', ' ', null, ' you. ', ''].map((text) => piece(text)).join('');
  const body = `: keep-alive\r\n\r\n${said}${piece(null, 'stop')}${event([], { usage })}${DONE}`;
  const { pieces, answer, requests } = await telling(body);
  assert.deepEqual(pieces, ['Hel', 'lo', '  you.']);
  assert.deepEqual(answer, { model: 'small-2026', content: 'Hello  you.', finishReason: 'stop', usage });
  assert.equal(requests[0]?.headers.authorization, 'Bearer secret-key');
  const { stream, stream_options, max_tokens } = JSON.parse(requests[0]?.body ?? '');
  assert.deepEqual([stream, stream_options, max_tokens], [true, { include_usage: true }, 50]);
});

it('holds half a sign back until its other half comes, and drops one that stays alone', async () => {
  const said = ['Go \ud83d', '\ude00!', ' \ud83d'].map((text) => piece(text)).join('');
  const { pieces, answer } = await telling(`${said}${piece(null, 'stop')}${DONE}`);
  assert.ok(pieces.every((each) => each.isWellFormed()));
  assert.deepEqual([pieces.join(''), answer?.content], ['Go 😀!', 'Go 😀!']);
});

it('accepts the end of a stream only with a finish reason', async () => {
  const whole = await telling(piece('Hello.') + piece(null, 'stop'));
  assert.deepEqual([whole.answer?.content, whole.answer?.usage], ['Hello.', null]);
  const failing: [string, string][] = [
    [piece('Hel'), 'upstream_down'],
    ['', 'upstream_down'],
    [`${piece('Hel')}data: {"error":{"message":"no memory"}}\n\n${DONE}`, 'upstream_down'],
    [`${piece('Hel')}data: {"object":"error","message":"no memory"}\n\n${DONE}`, 'upstream_down'],
    [piece('Hel') + piece(null, 'error') + DONE, 'upstream_down'],
    [`${piece('Hel')}data: {"choices":[{"del\n\n${DONE}`, 'invalid_reply'],
    [`${piece('Hel')}data: {"choices":"none"}\n\n${DONE}`, 'invalid_reply'],
  ];
  for (const [body, reason] of failing) assert.equal((await telling(body)).reason, reason, body);
  assert.equal((await telling(JSON.stringify(completion), {})).reason, 'invalid_reply');
});

it('offers the models that the operator sells and the backend has, and no others', () =>
  againstLocalServer(
    ai,
    { settings: { AI_MODEL: 'small, local,gone' } },
    () => ({
      body: JSON.stringify({ data: [{ id: 'small' }, { id: 'local:latest' }, { id: 'very-dear' }] }),
    }),
    async (api) => {
      assert.deepEqual(api.configured, ['small', 'local', 'gone']);
      assert.deepEqual(await api.offered(), ['small', 'local']);
    },
  ));

it('maps a name to a model by the first entry that fits', () =>
  againstLocalServer(
    ai,
    { settings: { AI_MODEL: 'small,large', AI_MODEL_MAP: 'gpt-4o = large, gpt-*=small,Claude-*=large' } },
    () => ({ body: '{}' }),
    async (api) => {
      const names = ['gpt-4o', 'GPT-4o', 'gpt-4o-mini', 'claude-sonnet', 'gemini', ''];
      assert.deepEqual(
        names.map((name) => api.standsFor(name)),
        ['large', 'large', 'small', 'large', null, null],
      );
    },
  ));

it('reports at the start what is wrong with the map', () => {
  const check = ai.settings?.AI_MODEL_MAP?.check;
  for (const right of ['a=b', 'a*=b, c=d', '*=b']) assert.equal(check?.(right), null, right);
  for (const wrong of ['a', '=b', 'a=', 'a*b=c', 'a=b=c']) assert.notEqual(check?.(wrong), null, wrong);
});

it('knows what a model costs: its own entry, else the one for all, in micro-USD for a million tokens', async () => {
  const costs = async (AI_COST_PER_MTOK: string) =>
    againstLocalServer(
      ai,
      { settings: { AI_MODEL: 'small,large', AI_COST_PER_MTOK } },
      () => ({ body: '{}' }),
      async (api) => ['small', 'large'].map((model) => api.costOf(model)),
    );
  const [dear, cheap] = [
    { inputMicros: 3_000_000n, outputMicros: 15_000_000n },
    { inputMicros: 50_000n, outputMicros: 400_001n },
  ];
  assert.deepEqual(await costs('3/15'), [dear, dear]);
  assert.deepEqual(await costs('0.05/0.400001, large=3/15'), [cheap, dear]);
  assert.deepEqual(await costs('large=3/15'), [null, dear]);
  const check = ai.settings?.AI_COST_PER_MTOK?.check;
  for (const wrong of ['', '3', '3/', '/3', '-1/2', '1/2,1/2', 'a=1/2,a=3/4', '1/1e9', '1.0000001/2'])
    assert.notEqual(check?.(wrong), null, wrong);
});

it('tells what an answer has cost, whole or in pieces, and nothing where its tokens were not counted', async () => {
  const spent: [string, bigint][] = [];
  const events = [
    { choices: [{ delta: { content: 'Hello.' }, finish_reason: 'stop' }] },
    { choices: [], usage: { prompt_tokens: 1_000, completion_tokens: 1, total_tokens: 1_001 } },
  ];
  await againstLocalServer(
    ai,
    { settings: { AI_MODEL: 'small,large', AI_COST_PER_MTOK: 'small=0.5/1.5' } },
    ({ body }) => {
      const { stream, model, messages } = JSON.parse(body);
      if (!stream)
        return {
          body: JSON.stringify(
            messages[1].content === 'uncounted' ? { ...completion, usage: null } : { ...completion, model },
          ),
        };
      const told = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
      return { headers: { 'content-type': 'text/event-stream' }, body: `${told}data: [DONE]\n\n` };
    },
    async (api) => {
      const { signal } = new AbortController();
      // 9 × 0.5 + 2 × 1.5 micro-USD, rounded up.
      await api.complete(asked, signal);
      assert.deepEqual(spent, [['ai', 8n]]);
      await api.complete({ ...asked, prompt: 'uncounted' }, signal);
      await api.complete({ ...asked, model: 'large' }, signal);
      assert.equal(spent.length, 1);
      const { value } = await api.tell(asked, signal);
      for await (const piece of value.pieces) assert.equal(piece, 'Hello.');
      assert.deepEqual(spent[1], ['ai', 502n]);
    },
    (upstream, costMicros) => spent.push([upstream, costMicros]),
  );
});

it('is not configured without a model', async () => {
  const connection = connectUpstream(
    ai,
    { baseUrl: 'http://127.0.0.1:1/v1' },
    { userAgent: 'test', acceptSandbox: true, nowMs: Date.now },
  );
  assert.equal(connection.health().state, 'not_configured');
  await connection.close();
});
