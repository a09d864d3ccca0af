/** Which of several hosts is connected to, as each of them tells what it is. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { until } from '../../../../apps/shop/test/fire/until.fixture.ts';
import { anyHost, createPrimaryFinder, type Host } from './primary.ts';

/** A host that says what the test sets: a timeline, `standby`, or nothing. */
function hostAt(port: number, says: number | 'standby' | 'nothing') {
  const host = {
    endpoint: { host: '127.0.0.1', port },
    says: says as number | 'standby' | 'nothing',
    asked: 0,
    isConnected: false,
    async ask() {
      host.asked += 1;
      host.isConnected = true;
      if (host.says === 'nothing') throw new Error('ECONNREFUSED');
      return { timeline: host.says === 'standby' ? null : host.says };
    },
    hangUp() {
      host.isConnected = false;
    },
  };
  return host satisfies Host;
}

/** Opens a connection as a pool does, and notes how it ends. */
async function connect(finder: ReturnType<typeof createPrimaryFinder>) {
  const endpoint = await finder.next();
  assert('port' in endpoint);
  const connection = { port: endpoint.port, dropped: null as Error | null, close: () => {} };
  connection.close = finder.opened(endpoint, (why) => {
    connection.dropped = why;
    connection.close();
  });
  return connection;
}

describe('of several hosts', { concurrency: true }, () => {
  test('the one that takes writes is connected to, wherever it stands', async () => {
    const [standby, primary] = [hostAt(1, 'standby'), hostAt(2, 1)];
    const finder = createPrimaryFinder([standby, hostAt(3, 'nothing'), primary], 1_000);
    const connections = await Promise.all([connect(finder), connect(finder)]);
    assert.deepEqual(
      connections.map(({ port }) => port),
      [2, 2],
    );
    for (const { close } of connections) close();
  });

  test('a promoted one gets the connections of the one before, which are broken off', async () => {
    const [first, second] = [hostAt(1, 1), hostAt(2, 'standby')];
    const finder = createPrimaryFinder([first, second], 1_000);
    const before = await connect(finder);
    assert.equal(before.port, 1);
    // The network to the first is cut: it still believes that it is the primary.
    second.says = 2;
    await until('the connection to be broken off', () => before.dropped !== null);
    assert.match(before.dropped?.message ?? '', /another host/);
    const after = await connect(finder);
    assert.equal(after.port, 2);
    after.close();
  });

  test('one that was replaced is not gone back to, though it is the only one that answers', async () => {
    const [first, second] = [hostAt(1, 1), hostAt(2, 2)];
    const finder = createPrimaryFinder([first, second], 500);
    const connection = await connect(finder);
    assert.equal(connection.port, 2);
    second.says = 'nothing';
    connection.close();
    await assert.rejects(finder.next(), { code: 'ECONNREFUSED', message: /takes writes/ });
    second.says = 3;
    const again = await connect(finder);
    assert.equal(again.port, 2);
    again.close();
  });

  test('whoever waits while nobody takes writes gets the first that does', async () => {
    const [first, second] = [hostAt(1, 'standby'), hostAt(2, 'nothing')];
    const finder = createPrimaryFinder([first, second], 10_000);
    const waiting = connect(finder);
    await until('both to be asked', () => first.asked > 1 && second.asked > 1);
    first.says = 2;
    const connection = await waiting;
    assert.equal(connection.port, 1);
    connection.close();
  });

  test('of two names of one server the first stays, and of equals the one in use', async () => {
    const [first, second] = [hostAt(1, 'nothing'), hostAt(2, 4)];
    const finder = createPrimaryFinder([first, second], 1_000);
    const connection = await connect(finder);
    assert.equal(connection.port, 2);
    first.says = 4;
    const askedBefore = first.asked;
    await until('the first to have been asked', () => first.asked > askedBefore + 1);
    assert.equal(connection.dropped, null);
    connection.close();
  });

  test('a lost connection makes its host be asked before the next leads there', async () => {
    const [first, second] = [hostAt(1, 1), hostAt(2, 'standby')];
    const finder = createPrimaryFinder([first, second], 10_000);
    const [lost, other] = [await connect(finder), await connect(finder)];
    first.says = 'nothing';
    second.says = 2;
    lost.close();
    assert.equal((await connect(finder)).port, 2);
    await until('the other to be broken off', () => other.dropped !== null);
  });

  test('while nobody is connected nobody is asked, and nothing stays open', async () => {
    const [first, second] = [hostAt(1, 1), hostAt(2, 'standby')];
    const finder = createPrimaryFinder([first, second], 1_000);
    const connection = await connect(finder);
    await until('both to be asked', () => second.isConnected && first.asked > 1);
    connection.close();
    await until('both to be hung up', () => !first.isConnected && !second.isConnected);
    const again = await connect(finder);
    assert.equal(again.port, 1);
    again.close();
  });
});

test('of hosts of which any will do each connection leads to the next, so one that is away is passed by', async () => {
  const endpoints = [1, 2, 3].map((port) => ({ host: '127.0.0.1', port }));
  const any = anyHost(endpoints);
  const led = [];
  for (let nth = 0; nth < 6; nth++) led.push(await any.next());
  assert.deepEqual(new Set(led.slice(0, 3)), new Set(endpoints));
  assert.deepEqual(led.slice(3), led.slice(0, 3));
});
