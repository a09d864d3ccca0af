import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OnChainPayment } from '../../paid-call/rail.ts';
import { x402Chains } from './chains.ts';
import type { Opened } from './open-networks.ts';

test('the commit that moves the money asks whether a call is kept only where our own transaction on an EVM chain moves it', () => {
  const all = new Map([
    ['ours', { settling: {} }],
    ['by facilitators', { settling: null }],
    ['solana', { settler: {} }],
  ]) as unknown as ReadonlyMap<string, Opened>;
  const needs = { nowMs: () => 0, offered: { canRefund: () => true }, findTransfer: () => assert.fail() };
  const chains = x402Chains({ all }, needs as unknown as Parameters<typeof x402Chains>[1]);
  const asks = (network: string, evidence: Record<string, unknown> = { scheme: 'exact-evm' }) =>
    chains.asksIfKept?.({ network, evidence } as unknown as OnChainPayment);
  assert.equal(asks('ours'), true);
  assert.equal(asks('ours', { scheme: 'transfer', transaction: '0xaa' }), false);
  for (const network of ['by facilitators', 'solana', 'not open here'])
    assert.equal(asks(network), false, network);
});
