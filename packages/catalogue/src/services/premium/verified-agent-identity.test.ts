/** Identities are registered on the sandbox's chain, and looked at there past everything that registered them. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Address, erc721Abi, getAddress, type Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../../../../../apps/shop/test/database.fixture.ts';
import { ownerOf } from '../../../../core/src/custody/owner.ts';
import {
  createRegistrar,
  type Registrar,
  type TransactionSender,
} from '../../../../core/src/identity/registrar.ts';
import { ERC8004_IDENTITY_REGISTRY } from '../../../../core/src/identity/registry-abi.ts';
import { readInput } from '../../../../core/src/paid-call/request-body.ts';
import { ServiceFailure } from '../../../../core/src/words/failure.ts';
import { runContext } from '../run-context.fixture.ts';
import verifiedAgentIdentity from './verified-agent-identity.ts';

const PAYER = ownerOf({ by: 'account', accountId: 1_000n });
// A published test vector's key (EIP-155): nobody's wallet.
const AGENT = privateKeyToAccount(`0x${'46'.repeat(32)}`);
const REGISTRY = getAddress('0x8004a169fb4a3325136eb29fa0ceb6d2e539a432');

let database: TestDatabase;
let chain: TestChain;
let registrar: Registrar;
before(async () => {
  [database, chain] = await Promise.all([openTestDatabase(), startTestChain()]);
  registrar = createRegistrar({
    sql: database.sql,
    sender: senderOn(chain),
    chainId: 8453,
    registry: ERC8004_IDENTITY_REGISTRY,
    nowMs: Date.now,
  });
});
after(async () => {
  await chain.stop();
  await database.close();
});

/** Sends from the registrar's account, each id once. */
function senderOn({ client, accounts }: TestChain): TransactionSender {
  const account = privateKeyToAccount(accounts.registrar.privateKey);
  const sent = new Map<string, Promise<Hex>>();
  return {
    address: account.address,
    async send({ id, to, data }) {
      const hash = sent.get(id) ?? client.sendTransaction({ account, to, data });
      sent.set(id, Promise.resolve(hash));
      const receipt = await client.waitForTransactionReceipt({ hash: await hash, pollingInterval: 50 });
      return { hash: receipt.transactionHash, status: receipt.status, logs: receipt.logs };
    },
  };
}

let calls = 0;
/** Buys it as a caller would, from the body on. */
async function buy(body: Record<string, unknown>) {
  const input = readInput(verifiedAgentIdentity, Buffer.from(JSON.stringify(body)));
  const context = runContext({ base: chain.upstreams.base });
  const call = { ...context.call, callId: `identity-call-${calls++}` };
  const made = await verifiedAgentIdentity.run(input, {
    ...context,
    call,
    identities: registrar.paidBy(PAYER),
  });
  return { ...made, fields: verifiedAgentIdentity.output.parse(made.fields) as Record<string, unknown> };
}

/** Asks the registry by viem alone. */
async function onChain(tokenId: unknown): Promise<{ owner: Address; uri: string; file: unknown }> {
  const asked = { address: REGISTRY, abi: erc721Abi, args: [BigInt(String(tokenId))] } as const;
  const [owner, uri] = await Promise.all([
    chain.client.readContract({ ...asked, functionName: 'ownerOf' }),
    chain.client.readContract({ ...asked, functionName: 'tokenURI' }),
  ]);
  const [head, base64] = uri.split(',');
  assert.equal(head, 'data:application/json;base64');
  return { owner, uri, file: JSON.parse(Buffer.from(base64 ?? '', 'base64').toString('utf8')) };
}

function tokensOf(owner: Address): Promise<bigint> {
  return chain.client.readContract({
    address: REGISTRY,
    abi: erc721Abi,
    functionName: 'balanceOf',
    args: [owner],
  });
}

async function failureOf(buying: Promise<unknown>): Promise<ServiceFailure> {
  const error = await buying.then(
    () => null,
    (reason: unknown) => reason,
  );
  assert(error instanceof ServiceFailure, String(error));
  return error;
}

const statementOf = (agentId: string) =>
  `ERC-8004 agent identity\nagentId: ${agentId}\nwallet: ${AGENT.address}\nregistry: eip155:8453:${REGISTRY}`;

describe('an identity', () => {
  test('is on chain as the answer says: its owner, its file, both transactions', async () => {
    const { fields, sources } = await buy({
      agentId: 'weather-7',
      agentName: 'Wetterfrosch ☂',
      capabilities: ['forecast', 'warnings'],
      description: 'Tells the weather.',
      services: [{ name: 'A2A', endpoint: 'https://agent.example/card.json', version: '1.0' }],
      x402Support: true,
      walletAddress: AGENT.address.toLowerCase(),
    });
    const { owner, uri, file } = await onChain(fields.tokenId);
    assert.equal(owner, AGENT.address);
    assert.deepEqual([fields.owner, fields.agentURI, fields.registrationFile], [owner, uri, file]);
    assert.deepEqual(file, {
      type: 'https://eips.ethereum.org/EIPS/eip-8004#registration-v1',
      name: 'Wetterfrosch ☂',
      description: 'Tells the weather.',
      services: [{ name: 'A2A', endpoint: 'https://agent.example/card.json', version: '1.0' }],
      x402Support: true,
      active: true,
      registrations: [],
      externalId: 'weather-7',
      capabilities: ['forecast', 'warnings'],
    });
    for (const hash of [fields.transactionHash, fields.transferTransactionHash]) {
      const receipt = await chain.client.getTransactionReceipt({ hash: String(hash) as Hex });
      assert.deepEqual([receipt.status, getAddress(receipt.to ?? '0x')], ['success', REGISTRY]);
    }
    assert.deepEqual([fields.agentId, fields.verified], ['weather-7', false]);
    assert.deepEqual(
      sources.map(({ name, sandbox }) => [name, sandbox]),
      [['base', true]],
    );
  });

  test('without a wallet stays with the registrar, and the answer says so', async () => {
    const { fields, notes } = await buy({ agentId: 'homeless', agentName: 'Homeless' });
    assert.equal((await onChain(fields.tokenId)).owner, chain.accounts.registrar.address);
    assert.deepEqual(
      [fields.owner, fields.transferTransactionHash],
      [chain.accounts.registrar.address, null],
    );
    assert(notes.some((note) => note.includes('registrar holds')));
  });

  test('is not registered a second time', async () => {
    const body = { agentId: 'twice', agentName: 'Twice', walletAddress: AGENT.address };
    const { fields } = await buy(body);
    const held = await tokensOf(AGENT.address);
    const failure = await failureOf(buy(body));
    assert.deepEqual([failure.status, failure.code], [422, 'IDENTITY_EXISTS']);
    assert(failure.message.includes(String(fields.transactionHash)));
    assert.equal(await tokensOf(AGENT.address), held);
  });
});

describe('verified', () => {
  test('is true when the wallet signed for this agentId', async () => {
    const signature = await AGENT.signMessage({ message: statementOf('signed') });
    const { fields } = await buy({
      agentId: 'signed',
      agentName: 'S',
      agentAddress: AGENT.address,
      proof: signature,
    });
    assert.deepEqual([fields.verified, fields.verifiedStatement], [true, statementOf('signed')]);
  });

  test('a signature for another agentId, or none at all, registers nothing', async () => {
    const held = await tokensOf(AGENT.address);
    const other = await AGENT.signMessage({ message: statementOf('signed') });
    for (const signature of [other, '0x1234', `0x${'00'.repeat(65)}`]) {
      const failure = await failureOf(
        buy({ agentId: 'forged', agentName: 'F', walletAddress: AGENT.address, signature }),
      );
      assert.deepEqual(
        [failure.status, failure.code, failure.field],
        [400, 'SIGNATURE_INVALID', 'signature'],
      );
      assert(failure.message.includes('agentId: forged'), 'it says what to sign');
    }
    assert.equal(await tokensOf(AGENT.address), held);
  });
});

test('a wrong signature is refused before a payment settles', async () => {
  const input = readInput(
    verifiedAgentIdentity,
    Buffer.from(
      JSON.stringify({
        agentId: 'early',
        agentName: 'E',
        walletAddress: AGENT.address,
        signature: '0x1234',
      }),
    ),
  );
  const context = { ...runContext({ base: chain.upstreams.base }), identities: registrar.paidBy(PAYER) };
  const failure = await failureOf(
    verifiedAgentIdentity.beforeSettling?.(input, context) ?? Promise.resolve(),
  );
  assert.deepEqual([failure.status, failure.code], [400, 'SIGNATURE_INVALID']);
});

test('a client that sends an address and nothing else registers the agent under it', async () => {
  const { fields } = await buy({ agentAddress: AGENT.address });
  assert.deepEqual([fields.agentId, fields.owner], [AGENT.address, AGENT.address]);
});

test('a file too large for the chain, an address misspelled and a line too many are refused before anything is paid', () => {
  const read = (body: Record<string, unknown>) =>
    readInput(verifiedAgentIdentity, Buffer.from(JSON.stringify({ agentId: 'a', agentName: 'A', ...body })));
  assert.ok(read({}));
  const service = { name: 'web', endpoint: `https://agent.example/${'x'.repeat(270)}` };
  const capabilities = Array.from({ length: 32 }, (_, index) => `${index}${'y'.repeat(60)}`);
  for (const [body, words] of [
    [{ services: Array(8).fill(service), capabilities }, /too long/],
    [{ walletAddress: AGENT.address.replace(/[a-f]/, (digit) => digit.toUpperCase()) }, /checksum/],
    [{ walletAddress: `0x${'0'.repeat(40)}` }, /zero address/],
    [{ agentId: 'a\nwallet: 0x1' }, /control characters/],
    [{ signature: '0x12' }, /required with a signature/],
  ] as const) {
    assert.throws(() => read(body), words);
  }
});
