import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  type Address,
  decodeFunctionData,
  encodeAbiParameters,
  encodeEventTopics,
  getAddress,
  type Hex,
  keccak256,
  type Log,
  toHex,
} from 'viem';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { ownerOf } from '../custody/owner.ts';
import type { Identities } from '../service/define.ts';
import { ServiceFailure } from '../words/failure.ts';
import { createRegistrar, type TransactionSender } from './registrar.ts';
import { ERC8004_IDENTITY_REGISTRY, registryAbi } from './registry-abi.ts';

const REGISTRAR: Address = getAddress('0x976ea74026e726554db657fa54763abd0c3a0aa9');
const WALLET: Address = getAddress('0x70997970c51812dc3a010c7d01b50e0d17dc79c8');
const ALICE = ownerOf({ by: 'account', accountId: 1_000n });
const BOB = ownerOf({ by: 'signature', network: 'eip155:8453', address: WALLET });

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database.close());

interface Mined {
  hash: Hex;
  status: 'success' | 'reverted';
  logs: Log[];
}

/** The registry as far as a registrar sees it, behind a sender that knows a transaction by its id. */
function fakeChain() {
  const mined = new Map<string, Mined>();
  const holders: { uri: string; holder: Address }[] = [];
  const faults: ((id: string) => 'before' | 'after' | 'revert' | undefined)[] = [];

  function mine(id: string, data: Hex): Mined {
    const call = decodeFunctionData({ abi: registryAbi, data });
    const logs: Log[] = [];
    if (call.functionName === 'register') {
      const tokenId = BigInt(holders.length);
      holders.push({ uri: call.args[0], holder: REGISTRAR });
      logs.push(registeredLog(tokenId, call.args[0]));
    } else {
      const [from, to, tokenId] = call.args;
      const token = holders[Number(tokenId)];
      assert.equal(token?.holder, from);
      if (token !== undefined) token.holder = to;
    }
    return { hash: keccak256(toHex(id)), status: 'success', logs };
  }

  const sender: TransactionSender = {
    address: REGISTRAR,
    async send({ id, to, data }) {
      assert.equal(to, ERC8004_IDENTITY_REGISTRY);
      const fault = faults.map((next) => next(id)).find((found) => found !== undefined);
      if (fault === 'before') throw new Error('the node is down');
      let done = mined.get(id);
      if (done === undefined) {
        done =
          fault === 'revert' ? { hash: keccak256(toHex(id)), status: 'reverted', logs: [] } : mine(id, data);
        mined.set(id, done);
      }
      if (fault === 'after') throw new Error('the node went down');
      return done;
    },
  };
  return { sender, holders, mined, faults };
}

function registeredLog(tokenId: bigint, uri: string): Log {
  return {
    address: ERC8004_IDENTITY_REGISTRY,
    topics: encodeEventTopics({
      abi: registryAbi,
      eventName: 'Registered',
      args: { agentId: tokenId, owner: REGISTRAR },
    }) as [Hex, ...Hex[]],
    data: encodeAbiParameters([{ type: 'string' }], [uri]),
    blockHash: keccak256('0x01'),
    blockNumber: 1n,
    blockTimestamp: 0n,
    logIndex: 0,
    transactionHash: keccak256('0x02'),
    transactionIndex: 0,
    removed: false,
  };
}

function registrarOn(sender: TransactionSender, nowMs: () => number = Date.now) {
  const registry = ERC8004_IDENTITY_REGISTRY;
  return createRegistrar({ sql: database.sql, sender, chainId: 8453, registry, nowMs });
}

/** The failure's code. */
async function codeOf(failing: Promise<unknown>): Promise<string> {
  let code = 'none: it did not fail';
  await failing.catch((error: unknown) => {
    if (!(error instanceof ServiceFailure)) throw error;
    code = error.code;
  });
  return code;
}

let agents = 0;
const asked = (callId: string, agentId = `agent-${agents++}`, owner: Address | null = WALLET) => ({
  callId,
  agentId,
  agentUri: `data:,${agentId}`,
  owner,
});

test('the registry’s interface is the standard’s', () => {
  const [topic] = encodeEventTopics({ abi: registryAbi, eventName: 'Registered' });
  assert.equal(topic, '0xca52e62c367d81bb2e328eb795f7c7ba24afb478408a26c0e201d155c449bc4a');
});

describe('registering', () => {
  test('makes one identity and hands it over', async () => {
    const chain = fakeChain();
    const done = await registrarOn(chain.sender).paidBy(ALICE).register(asked('call-1', 'one'));
    assert.deepEqual(chain.holders, [{ uri: 'data:,one', holder: WALLET }]);
    assert.deepEqual([...chain.mined.keys()], ['call-1:register', 'call-1:transfer']);
    assert.deepEqual(done, {
      tokenId: 0n,
      owner: WALLET,
      agentUri: 'data:,one',
      registerTransaction: keccak256(toHex('call-1:register')),
      transferTransaction: keccak256(toHex('call-1:transfer')),
    });
  });

  test('without an owner the registrar keeps it', async () => {
    const chain = fakeChain();
    const done = await registrarOn(chain.sender)
      .paidBy(ALICE)
      .register(asked('call-2', 'kept', null));
    assert.deepEqual([done.owner, done.transferTransaction], [REGISTRAR, null]);
    assert.equal(chain.mined.size, 1);
  });

  test('the same call again finds what it did', async () => {
    const chain = fakeChain();
    const request = asked('call-3');
    const first = await registrarOn(chain.sender).paidBy(ALICE).register(request);
    const again = await registrarOn(chain.sender).paidBy(ALICE).register(request);
    assert.deepEqual(again, first);
    assert.equal(chain.holders.length, 1);
  });

  test('another call for the same agentId is refused and told which identity there is; another payer’s is not', async () => {
    const chain = fakeChain();
    const identities = registrarOn(chain.sender);
    const done = await identities.paidBy(ALICE).register(asked('call-4', 'taken'));
    await assert.rejects(identities.paidBy(ALICE).register(asked('call-5', 'taken')), (error: unknown) => {
      assert(error instanceof ServiceFailure);
      assert.deepEqual([error.status, error.code, error.field], [422, 'IDENTITY_EXISTS', 'agentId']);
      assert(error.message.includes(`token ${done.tokenId} `));
      return error.message.includes(done.registerTransaction);
    });
    await identities.paidBy(BOB).register(asked('call-6', 'taken'));
    assert.equal(chain.holders.length, 2);
  });

  test('ten calls at once make one identity', async () => {
    const chain = fakeChain();
    const identities = registrarOn(chain.sender).paidBy(ALICE);
    const codes = await Promise.all(
      Array.from({ length: 10 }, (_, index) => codeOf(identities.register(asked(`race-${index}`, 'raced')))),
    );
    assert.equal(chain.holders.length, 1);
    assert.equal(codes.filter((code) => code.startsWith('none')).length, 1);
    for (const code of codes) assert.match(code, /^(none.*|IDENTITY_EXISTS|IDENTITY_IN_PROGRESS)$/);
  });
});

describe('an agentId that is kept for a payment', () => {
  const claim = (identities: Identities, callId: string, agentId: string) =>
    identities.claim({ callId, agentId }).then(
      () => 'kept',
      (error: unknown) => (error instanceof ServiceFailure ? error.code : String(error)),
    );

  test('is kept for one call for a minute, registers nothing, and is not kept once it is registered', async () => {
    const chain = fakeChain();
    const startedAtMs = Date.now();
    const at = (nowMs: number) => registrarOn(chain.sender, () => nowMs).paidBy(ALICE);
    assert.equal(await claim(at(startedAtMs), 'first', 'Paid'), 'kept');
    assert.equal(await claim(at(startedAtMs), 'first', 'paid'), 'kept');
    assert.equal(await claim(at(startedAtMs + 59_999), 'second', 'PAID'), 'IDENTITY_IN_PROGRESS');
    assert.equal(await claim(at(startedAtMs + 60_000), 'second', 'PAID'), 'kept');
    assert.equal(chain.holders.length, 0);
    await at(startedAtMs).register(asked('second', 'PAID'));
    assert.equal(await claim(at(startedAtMs), 'second', 'paid'), 'kept');
    assert.equal(await claim(at(startedAtMs + 200_000), 'third', 'paid'), 'IDENTITY_EXISTS');
  });

  test('is not kept while another call registers it', async () => {
    const chain = fakeChain();
    const identities = registrarOn(chain.sender).paidBy(ALICE);
    await database.sql`
      insert into agent_identities (owner, agent_id, agent_uri, holder, transaction_key, claimed_by, claimed_at)
      values (${ALICE}, 'Busy', 'data:,busy', ${WALLET}, 'busy', 'busy', ${new Date().toISOString()})`;
    assert.equal(await claim(identities, 'next', 'busy'), 'IDENTITY_IN_PROGRESS');
    assert.equal(await claim(identities, 'busy', 'busy'), 'kept');
  });
});

describe('a call that breaks off', () => {
  for (const step of ['register', 'transfer'] as const) {
    for (const when of ['before', 'after'] as const) {
      test(`${when} its ${step} was sent is finished by the next, and there is one identity`, async () => {
        const chain = fakeChain();
        const identities = registrarOn(chain.sender).paidBy(ALICE);
        let broken = false;
        chain.faults.push((id) => {
          if (broken || !id.endsWith(step)) return undefined;
          broken = true;
          return when;
        });
        const agentId = `${when}-${step}`;
        await assert.rejects(identities.register(asked('first', agentId)), /the node/);
        const done = await identities.register(asked('second', agentId));
        assert.deepEqual(chain.holders, [{ uri: `data:,${agentId}`, holder: WALLET }]);
        assert.equal(done.registerTransaction, keccak256(toHex('first:register')));
        assert.equal(await codeOf(identities.register(asked('third', agentId))), 'IDENTITY_EXISTS');
      });
    }
  }

  test('and is followed by one with other contents: it is finished as it was asked for, and that one is refused', async () => {
    const chain = fakeChain();
    const identities = registrarOn(chain.sender).paidBy(ALICE);
    chain.faults.push((id) => (id === 'other-1:register' && chain.mined.size === 0 ? 'after' : undefined));
    await assert.rejects(identities.register(asked('other-1', 'other')));
    const changed = { ...asked('other-2', 'other'), agentUri: 'data:,changed' };
    assert.equal(await codeOf(identities.register(changed)), 'IDENTITY_EXISTS');
    assert.equal(await codeOf(identities.register(changed)), 'IDENTITY_EXISTS');
    assert.deepEqual(chain.holders, [{ uri: 'data:,other', holder: WALLET }]);
  });

  test('without a word keeps the agentId for a minute, and no longer', async () => {
    const chain = fakeChain();
    const startedAt = Date.now();
    const request = asked('dead', 'silent');
    await database.sql`
      insert into agent_identities (owner, agent_id, agent_uri, holder, transaction_key, claimed_by, claimed_at)
      values (${ALICE}, ${request.agentId}, ${request.agentUri}, ${WALLET}, 'dead', 'dead',
              ${new Date(startedAt).toISOString()})`;
    const at = (nowMs: number) => registrarOn(chain.sender, () => nowMs).paidBy(ALICE);
    const next = asked('alive', 'silent');
    assert.equal(await codeOf(at(startedAt + 59_000).register(next)), 'IDENTITY_IN_PROGRESS');
    assert.equal(chain.holders.length, 0);
    await at(startedAt + 60_000).register(next);
    assert.deepEqual([...chain.mined.keys()], ['dead:register', 'dead:transfer']);
  });
});

test('a registration that the registry refuses leaves the agentId free', async () => {
  const chain = fakeChain();
  const identities = registrarOn(chain.sender).paidBy(ALICE);
  chain.faults.push((id) => (id === 'refused:register' ? 'revert' : undefined));
  assert.equal(await codeOf(identities.register(asked('refused', 'free'))), 'REGISTRY_REFUSED');
  const done = await identities.register(asked('retried', 'free'));
  assert.equal(done.registerTransaction, keccak256(toHex('retried:register')));
});
