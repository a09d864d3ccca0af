/** That a node is asked each method that the portal needs, before somebody relies on it. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { SEED } from '../../../../packages/sandbox/src/accounts.fixture.ts';
import { startSolana } from '../../../../packages/sandbox/src/solana/solana.ts';
import { probeNode } from '../../../../packages/yield/src/solana/probe.ts';
import { newWallet, startScriptedNode } from '../../../../packages/yield/src/solana/scripted-node.fixture.ts';

const NODE = join(import.meta.dirname, '../../../../packages/yield/src/solana/node.ts');

test('each method that the portal calls is asked', async () => {
  const called = (await readFile(NODE, 'utf8')).matchAll(/ask\([^']*?'((?:get|simulate)\w+)'/g);
  const needed = [...new Set([...called].map(([, method]) => method))].sort();
  assert(needed.length >= 12, needed.join());
  const chain = await startSolana({ stateDir: null, seed: SEED });
  try {
    const found = await probeNode(chain.url, Date.now);
    assert.deepEqual(found.map(({ method }) => method).sort(), needed);
    const wrong = found.filter((each) => each.wrong !== null);
    assert.deepEqual(
      wrong.filter(({ wrong: why }) => !/not asked|says nothing/.test(why ?? '')),
      [],
    );
  } finally {
    await chain.stop();
  }
});

test('a node that does not know the reserve, or answers nothing that is read, is said to be wrong', async () => {
  const node = await startScriptedNode(await newWallet());
  try {
    const of = async () =>
      new Map((await probeNode(node.url, Date.now)).map(({ method, wrong }) => [method, wrong]));
    const without = await of();
    assert.match(without.get('getMultipleAccounts') ?? '', /neither the reserve/);
    assert.equal(without.get('getGenesisHash'), null);
    assert.notEqual(without.get('simulateTransaction'), null);
    node.state.fault = 'cut';
    assert([...(await of()).values()].every((wrong) => wrong !== null));
  } finally {
    await node.stop();
  }
});
