import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { until } from '../../../../apps/shop/test/fire/until.fixture.ts';
import { RpcRefusal, RpcUnreachable } from '../../../core/src/chain-rpc/json-rpc.ts';
import { connectNodes } from './nodes.ts';
import { newWallet, type ScriptedNode, startScriptedNode } from './scripted-node.fixture.ts';

const TIMEOUT_MS = 8_000;
const REST_MS = 30_000;
let nodes: [ScriptedNode, ScriptedNode];
let clockMs = 0;
let client: ReturnType<typeof connectNodes>;

before(async () => {
  nodes = [await startScriptedNode(await newWallet()), await startScriptedNode(await newWallet())];
});
beforeEach(() => {
  for (const { state } of nodes) {
    state.fault = null;
    state.asked.clear();
  }
  client = connectNodes(() => nodes.map(({ url }) => url), { timeoutMs: TIMEOUT_MS, nowMs: () => clockMs });
});
after(() => Promise.all(nodes.map((node) => node.stop())));

const askedOf = (index: 0 | 1) => nodes[index].state.asked.get('getEpochInfo') ?? 0;

test('the second node is asked while the first does not answer, which is asked again once it has rested', async () => {
  await client.call('getEpochInfo', []);
  assert.deepEqual([askedOf(0), askedOf(1)], [1, 0]);
  nodes[0].state.fault = 'cut';
  await client.call('getEpochInfo', []);
  await client.call('getEpochInfo', []);
  assert.deepEqual([askedOf(0), askedOf(1)], [2, 2], 'the one that failed rests');
  nodes[0].state.fault = null;
  clockMs += REST_MS;
  await client.call('getEpochInfo', []);
  assert.deepEqual([askedOf(0), askedOf(1)], [3, 2]);
  await client.close();
});

test('where none answers the error says so, and one that rests is asked before that', async () => {
  nodes[0].state.fault = 'cut';
  nodes[1].state.fault = 'garbage';
  await assert.rejects(client.call('getEpochInfo', []), RpcUnreachable);
  nodes[0].state.fault = null;
  await client.call('getEpochInfo', []);
  await client.close();
});

test('a node of another chain is asked for nothing else, whatever happens to the first', async () => {
  const other = await startScriptedNode(await newWallet());
  other.state.genesisHash = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG';
  const both = connectNodes(() => [nodes[0].url, other.url], { timeoutMs: TIMEOUT_MS, nowMs: () => clockMs });
  nodes[0].state.fault = 'cut';
  await assert.rejects(both.call('getEpochInfo', []), RpcUnreachable);
  assert.deepEqual([...other.state.asked.keys()], ['getGenesisHash']);
  await Promise.all([both.close(), other.stop(), client.close()]);
});

test('what a node says of itself sends the call on, and what it says of the question does not', async () => {
  nodes[0].state.refusal = -32_005;
  await client.call('getEpochInfo', []);
  assert.deepEqual([askedOf(0), askedOf(1)], [0, 1]);
  await client.close();
  const again = connectNodes(() => nodes.map(({ url }) => url), {
    timeoutMs: TIMEOUT_MS,
    nowMs: () => clockMs,
  });
  nodes[0].state.refusal = null;
  await again.call('getEpochInfo', []);
  nodes[0].state.refusal = -32_602;
  await assert.rejects(again.call('getEpochInfo', []), RpcRefusal);
  nodes[0].state.refusal = null;
  assert.equal(askedOf(1), 1);
  await again.close();
});

test('what one node refused is told, rather than the silence of the next', async () => {
  nodes[0].state.refusal = -32_005;
  nodes[1].state.fault = 'cut';
  await assert.rejects(client.call('getEpochInfo', []), RpcRefusal);
  nodes[0].state.refusal = null;
  await client.close();
});

test('other nodes are asked once they are named, and a call that runs at the old one is answered', async () => {
  let urls = [nodes[0].url];
  const named = connectNodes(() => urls, { timeoutMs: TIMEOUT_MS, nowMs: () => clockMs });
  const letGo = nodes[0].hold();
  const running = named.call('getTransaction', ['of nobody']);
  await until('the first node to be asked', () => nodes[0].state.asked.get('getTransaction') === 1);
  urls = [nodes[1].url];
  await named.call('getEpochInfo', []);
  assert.deepEqual([askedOf(0), askedOf(1)], [0, 1]);
  letGo();
  assert.equal(await running, null);
  await named.close();
  await client.close();
});
