/** The HTTP+JSON binding of A2A, asked as it stands: what its clients do not send, and what they do not show of an answer. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { countingServices } from '../fire/counting-services.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';
import { type Json, rpc, seen } from './a2a-agents.fixture.ts';

const EXTENSION = 'https://github.com/google-a2a/a2a-x402/v0.1';
const script = { runs: 0, during: async (_run: number): Promise<void> => {} };
const services = countingServices(script, { nickel: '0.05', deed: '0.05' }, 20_000);
let database: TestDatabase;
let server: TestServer;
let key: string;
before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({ pools: database, services });
});
after(async () => {
  await server?.close();
  await database?.close();
});
beforeEach(async () => {
  script.runs = 0;
  script.during = async () => {};
  key = await server.key('1');
});

const IN_10 = { 'a2a-version': '1.0' };
const VERSIONS: readonly Record<string, string>[] = [IN_10, {}];

async function ask(method: string, path: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${server.url}/a2a/v1${path}`, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) as Json };
}

/** The one message in the words of either version. */
function message(headers: Record<string, string>, skill = 'nickel', more: Json = {}): Json {
  const data = { skill, input: { name: 'over HTTP' } };
  const parts = headers === IN_10 ? { parts: [{ data }] } : { content: [{ data: { data } }] };
  return { message: { messageId: randomUUID(), role: 'ROLE_USER', ...parts }, ...more };
}

async function balance(): Promise<number> {
  const response = await fetch(`${server.url}/api/keys/me`, { headers: { 'x-api-key': key } });
  return Number(((await response.json()) as Json).balanceUsd);
}

test('a message buys once, over either binding, and its answer is of the media type of its version', async () => {
  for (const version of VERSIONS) {
    const sent = message(version);
    const headers = { ...version, 'x-api-key': key };
    const first = await ask('POST', '/message:send', sent, headers);
    assert.equal(first.status, 200, first.text);
    const type = version === IN_10 ? /^application\/a2a\+json/ : /^application\/json/;
    assert.match(first.headers.get('content-type') ?? '', type);
    const { task } = first.json();
    assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
    assert.deepEqual((await ask('POST', '/message:send', sent, headers)).json().task.id, task.id);
    const { result } = await rpc(server.url, 'GetTask', { id: task.id }, headers);
    assert.equal(seen(result ?? {}).answer?.name, 'over HTTP');
  }
  // The message of one binding is that of the other.
  const sent = message(IN_10);
  const headers = { ...IN_10, 'x-api-key': key };
  const { result } = await rpc(server.url, 'SendMessage', sent, headers);
  assert.equal((await ask('POST', '/message:send', sent, headers)).json().task.id, result?.task.id);
  assert.deepEqual([await balance(), script.runs], [0.85, 3]);
});

test('the extension is named in the answer when the caller activates it, in a stream too', async () => {
  for (const version of VERSIONS)
    for (const path of ['/message:send', '/message:stream'])
      for (const name of ['a2a-extensions', 'x-a2a-extensions']) {
        const headers = { ...version, [name]: `https://example.org/other, ${EXTENSION}` };
        const answered = await ask('POST', path, message(version), headers);
        assert.equal(answered.headers.get(name), EXTENSION, `${path} ${name}`);
      }
});

test('a caller of 0.3 waits as its protocol buffers say: not, where a configuration does not say so', async () => {
  const hold = Promise.withResolvers<void>();
  script.during = () => hold.promise;
  const headers = { 'x-api-key': key };
  const { task } = (
    await ask('POST', '/message:send', message({}, 'nickel', { configuration: {} }), headers)
  ).json();
  assert.equal(task.status.state, 'TASK_STATE_WORKING');
  // The answer begins once the server has looked the task up; had it ended before, the stream would hold the task alone.
  const subscribed = await fetch(`${server.url}/a2a/v1/tasks/${task.id}:subscribe`, {
    method: 'POST',
    headers,
  });
  hold.resolve();
  const events = (await subscribed.text())
    .split('\n')
    .flatMap((line) => (line.startsWith('data: ') ? [JSON.parse(line.slice(6))] : []));
  assert.equal(events.at(-1)?.statusUpdate.final, true);
  assert.equal(events.at(-1)?.statusUpdate.status.state, 'TASK_STATE_COMPLETED');
});

test('a key that has been forgotten sees no task, where it is still known', async () => {
  const forgotten = await server.key('1');
  const headers = { ...IN_10, 'x-api-key': forgotten };
  const { task } = (await ask('POST', '/message:send', message(IN_10), headers)).json();
  const listed = async () => (await ask('GET', '/tasks', undefined, headers)).json();
  assert.equal((await listed()).totalSize, 1);
  await database.sql`delete from api_keys where digest = sha256(convert_to(${forgotten}, 'UTF8'))`;
  assert.notEqual((await listed()).totalSize, 1);
  assert.equal((await ask('GET', `/tasks/${task.id}`, undefined, headers)).status, 404);
});

test('tasks are got, listed and canceled, in the words of their version', async () => {
  const headers = { ...IN_10, 'x-api-key': key };
  const { task: paid } = (await ask('POST', '/message:send', message(IN_10), headers)).json();
  const hold = Promise.withResolvers<void>();
  script.during = () => hold.promise;
  const later = message(IN_10, 'nickel', { configuration: { returnImmediately: true } });
  const { task: running } = (await ask('POST', '/message:send', later, headers)).json();
  await until('the service to run', () => script.runs === 2);
  const listed = (
    await ask(
      'GET',
      '/tasks?pageSize=1&status=TASK_STATE_COMPLETED&includeArtifacts=true',
      undefined,
      headers,
    )
  ).json();
  assert.deepEqual([listed.totalSize, listed.tasks[0].id], [1, paid.id]);
  assert.equal(listed.tasks[0].artifacts[0].parts[0].data.name, 'over HTTP');
  assert.equal(
    (await ask('GET', '/tasks?includeArtifacts=false', undefined, headers)).json().tasks.length,
    2,
  );
  for (const [query, field] of [
    ['pageSize=1e1', 'pageSize'],
    ['includeArtifacts=maybe', 'includeArtifacts'],
    ['pageSize=1&pageSize=2', 'pageSize'],
    ['pageSize=0', 'pageSize'],
    ['pageSize=-1', 'pageSize'],
    ['pageSize=101', 'pageSize'],
    ['status=NONSENSE', 'status'],
    ['historyLength=-1', 'historyLength'],
    ['historyLength=', 'historyLength'],
    ['statusTimestampAfter=-1', 'statusTimestampAfter'],
    ['pageToken=nowhere', undefined],
  ] as const) {
    const refused = await ask('GET', `/tasks?${query}`, undefined, headers);
    assert.equal(refused.status, 400, refused.text);
    assert.equal(refused.json().error.details[1].value.fields?.[0].field, field);
  }
  assert.equal((await ask('GET', '/tasks?historyLength=0&pageSize=2', undefined, headers)).status, 200);
  for (const version of VERSIONS) {
    const got = (length: string) =>
      ask('GET', `/tasks/${paid.id}?historyLength=${length}`, undefined, { ...version, 'x-api-key': key });
    assert.deepEqual(
      [(await got('-1')).status, (await got('x')).status, (await got('3')).status],
      [400, 400, 200],
    );
    const sent = message(version, 'nickel', { configuration: { historyLength: -1 } });
    for (const path of ['/message:send', '/message:stream'])
      assert.equal((await ask('POST', path, sent, { ...version, 'x-api-key': key })).status, 400, path);
  }
  const older = { 'x-api-key': key };
  assert.equal((await ask('GET', '/tasks', undefined, older)).status, 404, '0.3 has no list');
  const canceled = await ask('POST', `/tasks/${running.id}:cancel`, undefined, older);
  assert.equal(canceled.json().status.state, 'TASK_STATE_CANCELLED');
  for (const { id } of [paid, running]) {
    const late = await ask('POST', `/tasks/${id}:cancel`, undefined, headers);
    assert.equal(late.status, 409);
    const { status, details } = late.json().error;
    assert.deepEqual([status, details[0].reason], ['FAILED_PRECONDITION', 'TASK_NOT_CANCELABLE']);
  }
  hold.resolve();
  const got = (await ask('GET', `/tasks/${running.id}`, undefined, headers)).json();
  assert.equal(got.status.state, 'TASK_STATE_CANCELED');
  await until('the price to come back', async () => (await balance()) === 0.95);
});

test('what is wrong is said in the form of the binding, with the error of the house, uncharged', async () => {
  const headers = { ...IN_10, 'x-api-key': key };
  const text = { role: 'ROLE_USER', parts: [{ text: 'a' }] };
  const deep = `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`;
  const wrong: readonly (readonly [string, string, unknown, number, string])[] = [
    ['POST', '/message:send', '{', 400, 'PARSE_ERROR'],
    ['POST', '/message:send', undefined, 400, 'INVALID_PARAMS'],
    ['POST', '/message:send', '[]', 400, 'INVALID_PARAMS'],
    ['POST', '/message:stream', { message: { ...text, messageId: '' } }, 400, 'INVALID_PARAMS'],
    [
      'POST',
      '/message:send',
      `{"message":{"messageId":"a","role":"ROLE_USER","parts":[{"data":${deep}}]}}`,
      400,
      'INVALID_PARAMS',
    ],
    [
      'POST',
      '/message:send',
      { message: { ...text, messageId: 'a', parts: [{ raw: 'AAAA' }] } },
      415,
      'CONTENT_TYPE_NOT_SUPPORTED',
    ],
    [
      'POST',
      '/message:send',
      { message: { ...text, messageId: 'a', taskId: 'none' } },
      404,
      'TASK_NOT_FOUND',
    ],
    ['GET', `/tasks/${randomUUID()}`, undefined, 404, 'TASK_NOT_FOUND'],
    ['GET', `/tasks/${'x'.repeat(500)}`, undefined, 400, 'INVALID_PARAMS'],
    ['POST', `/tasks/${randomUUID()}:cancel`, undefined, 404, 'TASK_NOT_FOUND'],
    ['GET', '/tasks/a/pushNotificationConfigs', undefined, 400, 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
    ['GET', '/extendedAgentCard', undefined, 400, 'UNSUPPORTED_OPERATION'],
    ['GET', '/card', undefined, 404, 'METHOD_NOT_FOUND'],
    ['POST', '/message:sen', {}, 404, 'METHOD_NOT_FOUND'],
    ['GET', '/message:send', undefined, 405, 'METHOD_NOT_ALLOWED'],
    ['DELETE', '/tasks', undefined, 405, 'METHOD_NOT_ALLOWED'],
    ['GET', '', undefined, 405, 'METHOD_NOT_ALLOWED'],
  ];
  for (const [method, path, body, status, reason] of wrong) {
    const told = `${method} ${path.slice(0, 60)}`;
    const answered = await ask(method, path, body, headers);
    assert.equal(answered.status, status, `${told}: ${answered.text}`);
    const { error } = answered.json();
    assert.deepEqual(
      [error.code, error.details[0].reason, error.details[0].metadata.charged],
      [status, reason, 'false'],
      told,
    );
    assert.match(error.details[0]['@type'], /google\.rpc\.ErrorInfo$/);
    const { code, message: words, requestId, charged } = error.details[1].value;
    assert.deepEqual([code, words, charged], [reason, error.message, false], told);
    assert.equal(requestId, answered.headers.get('x-request-id'));
    assert.ok(!error.message.includes('params'), error.message);
  }
  for (const [path, body, status, code] of [
    ['/message:send', '{', 400, -32700],
    ['/message:send', { message: { ...text, messageId: 'a', content: [{ file: {} }] } }, 415, -32005],
    ['/tasks/none:cancel', undefined, 404, -32001],
    ['/nothing', undefined, 404, -32601],
  ] as const) {
    const answered = await ask('POST', path, body, { 'x-api-key': key });
    assert.deepEqual(
      [answered.status, answered.json().code, answered.json().data.charged],
      [status, code, false],
    );
  }
  const version = await ask('POST', '/message:send', message(IN_10), { 'a2a-version': '2.0' });
  assert.equal(version.json().error.details[0].reason, 'VERSION_NOT_SUPPORTED');
  for (const origin of ['https://evil.test', 'null'])
    assert.equal((await ask('GET', '/tasks', undefined, { ...headers, origin })).status, 403);
  assert.deepEqual([await balance(), script.runs], [1, 0]);
});

test('an error that comes within a stream ends it in the form of the binding', async () => {
  const headers = { ...IN_10, 'x-api-key': key };
  const { task } = (await ask('POST', '/message:send', message(IN_10), headers)).json();
  // One that has ended takes no message, and says so before a stream begins.
  const again = message(IN_10);
  again.message.taskId = task.id;
  const refused = await ask('POST', '/message:stream', again, headers);
  assert.deepEqual([refused.status, refused.json().error.status], [400, 'FAILED_PRECONDITION']);
  const hold = Promise.withResolvers<void>();
  script.during = () => hold.promise;
  const later = message(IN_10, 'nickel', { configuration: { returnImmediately: true } });
  const { task: running } = (await ask('POST', '/message:send', later, headers)).json();
  await until('the service to run', () => script.runs === 2);
  const response = await fetch(`${server.url}/a2a/v1/tasks/${running.id}:subscribe`, {
    method: 'POST',
    headers,
  });
  assert.equal(response.status, 200);
  await database.sql`delete from a2a_tasks where id = ${running.id}`;
  const text = await response.text();
  hold.resolve();
  const [, data] = /event: error\ndata: (.*)\n/.exec(text) ?? [];
  assert.equal(JSON.parse(data ?? assert.fail(text)).error.details[0].reason, 'TASK_NOT_FOUND');
});
