import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createKeyPairFromBytes, getAddressFromPublicKey, getBase58Encoder } from '@solana/kit';
import { privateKeyToAddress } from 'viem/accounts';
import { readInput } from '../../../../core/src/paid-call/request-body.ts';
import { availabilityOf } from '../../../../core/src/service/availability.ts';
import type { Custody, Service } from '../../../../core/src/service/define.ts';
import type { ChainName } from '../../../../core/src/words/chain-names.ts';
import { ServiceFailure } from '../../../../core/src/words/failure.ts';
import { NOW_MS, runContext } from '../run-context.fixture.ts';
import agentCreateWallet from './agent-create-wallet.ts';
import instantAgentWallet from './instant-agent-wallet.ts';

const ADDRESS = '0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F';

async function buy(service: Service, body: Record<string, unknown>, custody?: Custody) {
  const input = readInput(service, Buffer.from(JSON.stringify(body)));
  const made = await service.run(input, { ...runContext({}), custody });
  return { ...made, fields: service.output.parse(made.fields) as Record<string, unknown> };
}

test('an instant wallet’s key leads to its address, and no two are the same', async () => {
  const [a, b] = [
    await buy(instantAgentWallet, {}),
    await buy(instantAgentWallet, { network: 'eip155:8453' }),
  ];
  for (const { fields } of [a, b]) {
    const hex = String(fields.privateKey).slice(2);
    assert.equal(privateKeyToAddress(`0x${hex}`), fields.walletAddress);
    assert.deepEqual([fields.chain, fields.chainId, fields.address], ['base', 8453, fields.walletAddress]);
    assert.equal(fields.createdAt, new Date(NOW_MS).toISOString());
    assert.deepEqual(fields.fundingInstructions, {
      asset: 'USDC',
      contract: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
      to: fields.walletAddress,
    });
  }
  assert.notEqual(a.fields.privateKey, b.fields.privateKey);
});

test('on Solana it is a Solana key', async () => {
  const { fields } = await buy(instantAgentWallet, { chain: 'solana' });
  const pair = await createKeyPairFromBytes(getBase58Encoder().encode(String(fields.privateKey)));
  assert.equal(await getAddressFromPublicKey(pair.publicKey), fields.walletAddress);
  assert.equal(fields.chainId, null);
});

test('answers with secrets in them are declared as such, and a managed wallet is made only when it is paid for', () => {
  assert.deepEqual([instantAgentWallet.secretAnswer, instantAgentWallet.effect], [true, 'read']);
  assert.deepEqual([agentCreateWallet.secretAnswer, agentCreateWallet.effect], [true, 'write']);
  assert.deepEqual(agentCreateWallet.requires, ['custody']);
});

const standing = (configured: boolean) => ({ configured, setBy: 'WALLET_ENCRYPTION_KEY', unable: null });

test('without a key-encryption key no managed wallet is sold, and buyers are told no variable', () => {
  const health = () => assert.fail('it asks no source');
  const without = availabilityOf(agentCreateWallet, health, (name) => standing(name === 'identities'));
  assert.deepEqual([without.available, without.reason], [false, 'not_configured']);
  assert.match(without.message ?? '', /does not offer custody/);
  assert.doesNotMatch(without.message ?? '', /WALLET_ENCRYPTION_KEY/);
  assert.equal(
    availabilityOf(agentCreateWallet, health, (name) => standing(name === 'custody')).available,
    true,
  );
  assert.equal(availabilityOf(instantAgentWallet, health).available, true);
});

/** A custody that knows one wallet. */
function custodyWith(bought: 'wallet' | 'networks' | 'nothing') {
  const walletSecret = bought === 'wallet' ? 'fbx_wallet_1' : null;
  const asked: Parameters<Custody['walletFor']>[0][] = [];
  const custody: Custody = {
    claim: async () => null,
    async walletFor(request) {
      asked.push(request);
      const addresses = request.networks.map((network: ChainName) => ({ network, address: ADDRESS }));
      const { agentId, agentName, purpose } = request;
      return {
        wallet: { walletId: 'w1', agentId, agentName, purpose, addresses, createdAtMs: NOW_MS },
        bought,
        walletSecret,
      };
    },
  };
  return { custody, asked };
}

test('a managed wallet is answered with its secret when it is new, and without when networks were added', async () => {
  for (const bought of ['wallet', 'networks'] as const) {
    const { custody } = custodyWith(bought);
    const walletSecret = bought === 'wallet' ? 'fbx_wallet_1' : null;
    const { fields, notes } = await buy(agentCreateWallet, { agentId: 'a1' }, custody);
    assert.deepEqual([fields.walletSecret, fields.created], [walletSecret, walletSecret !== null]);
    assert.deepEqual([fields.wallet_address, fields.walletAddress], [ADDRESS, ADDRESS]);
    assert.deepEqual(fields.manage, {
      facts: 'http://localhost/api/wallets/w1',
      export: 'http://localhost/api/wallets/w1/export',
      delete: 'http://localhost/api/wallets/w1',
    });
    assert(
      notes.some((note) => note.includes(walletSecret === null ? 'had its wallet before' : 'shown once')),
    );
  }
});

test('a wallet that its buyer has is not sold again, before or after a payment settles', async () => {
  const { custody } = custodyWith('nothing');
  const { wallet } = await custody.walletFor({
    callId: 'call',
    agentId: 'a1',
    agentName: null,
    purpose: null,
    networks: ['base'],
  });
  const context = { ...runContext({}), custody: { ...custody, claim: async () => wallet } };
  const input = readInput(agentCreateWallet, Buffer.from('{"agentId":"a1"}'));
  for (const refused of [
    agentCreateWallet.beforeSettling?.(input, context),
    agentCreateWallet.run(input, context),
  ])
    await assert.rejects(refused ?? Promise.resolve(), (error: unknown) => {
      assert(error instanceof ServiceFailure);
      assert.deepEqual([error.status, error.code, error.field], [422, 'WALLET_EXISTS', 'agentId']);
      return true;
    });
});

test('what existing clients send is understood', async () => {
  for (const [body, agentId, networks] of [
    [{ agent_id: 'a1' }, 'a1', ['base']],
    [{ agentName: 'Ann', chain: 'polygon' }, 'Ann', ['polygon']],
    [{ label: 'l1', chain: 8453 }, 'l1', ['base']],
    [{ agentId: 'a1', networks: ['eth', 'solana'], tags: ['x'], metadata: {} }, 'a1', ['ethereum', 'solana']],
  ] as const) {
    const { custody, asked } = custodyWith('wallet');
    await buy(agentCreateWallet, body, custody);
    assert.deepEqual([asked[0]?.agentId, asked[0]?.networks], [agentId, networks]);
  }
  assert.throws(() => readInput(agentCreateWallet, Buffer.from('{}')), /agentId/);
});
