import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeEventTopics, encodeFunctionData, hashTypedData, parseAbi, toEventSelector } from 'viem';
import { transferData, USDC_DOMAIN } from '../../../../sandbox/src/chain/eip3009.fixture.ts';
import {
  type Authorization,
  authorizationDigest,
  authorizationOf,
  type Hex,
  identityOf,
  SELECTOR_STATE,
  stateCalldata,
  TOPIC_CANCELED,
  TOPIC_TRANSFER,
  TOPIC_USED,
  textOf,
  topicOf,
  transferCalldata,
} from './eip3009.ts';
import type { EvmNetwork } from './network.ts';

const AUTHORIZATION: Authorization = {
  from: '0x1111111111111111111111111111111111111111',
  to: '0x2222222222222222222222222222222222222222',
  value: 50_000n,
  validAfter: 1_700_000_000n,
  validBefore: 1_700_000_300n,
  nonce: `0x${'5a'.repeat(32)}`,
};
const NETWORK: EvmNetwork = {
  title: 'Base',
  id: 'eip155:8453',
  chainId: USDC_DOMAIN.chainId,
  asset: USDC_DOMAIN.verifyingContract,
  domain: { name: USDC_DOMAIN.name, version: USDC_DOMAIN.version },
  finalAfterBlocks: 10,
  transferConfirmations: 3,
};
const ABI = parseAbi([
  'function transferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce,uint8 v,bytes32 r,bytes32 s)',
  'function transferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce,bytes signature)',
  'function authorizationState(address authorizer,bytes32 nonce) view returns (bool)',
  'event Transfer(address indexed from,address indexed to,uint256 value)',
]);

test('a payment is told apart by network, asset, payer and nonce: a nonce that another payer copies is another payment', () => {
  const where = { network: NETWORK.id, asset: NETWORK.asset };
  const paid = textOf(AUTHORIZATION);
  const identity = identityOf(where, paid);
  const others = [
    identityOf(where, { ...paid, from: AUTHORIZATION.to }),
    identityOf(where, { ...paid, nonce: `0x${'5b'.repeat(32)}` }),
    identityOf({ ...where, network: 'eip155:1' }, paid),
    identityOf({ ...where, asset: AUTHORIZATION.to }, paid),
  ];
  assert.equal(new Set([identity, ...others]).size, 5);
  // The asset is the same however its address is written.
  assert.equal(identityOf({ ...where, asset: NETWORK.asset.toLowerCase() }, paid), identity);
});

test('the digest is the one of EIP-712, and changes with every field', () => {
  const fields: Partial<Authorization>[] = [
    {},
    { from: AUTHORIZATION.to },
    { to: AUTHORIZATION.from },
    { value: 50_001n },
    { validAfter: 0n },
    { validBefore: 2n ** 200n },
    { nonce: `0x${'00'.repeat(32)}` },
  ];
  for (const field of fields) {
    const message = { ...AUTHORIZATION, ...field };
    const digest: Hex = `0x${authorizationDigest(NETWORK, message).toString('hex')}`;
    assert.equal(
      digest,
      hashTypedData({ ...transferData(message), primaryType: 'TransferWithAuthorization' }),
    );
  }
  const elsewhere = { ...NETWORK, id: 'eip155:1' as const, chainId: 1 };
  assert.notDeepEqual(
    authorizationDigest(elsewhere, AUTHORIZATION),
    authorizationDigest(NETWORK, AUTHORIZATION),
  );
});

test('a plain signature goes as v, r and s, with v of either form, and a longer one as bytes', () => {
  const { from, to, value, validAfter, validBefore, nonce } = AUTHORIZATION;
  const fields = [from, to, value, validAfter, validBefore, nonce] as const;
  const r: Hex = `0x${'ab'.repeat(32)}`;
  const s: Hex = `0x${'cd'.repeat(32)}`;
  for (const [written, v] of [
    ['00', 27],
    ['01', 28],
    ['1b', 27],
    ['1c', 28],
  ] as const) {
    assert.equal(
      transferCalldata(AUTHORIZATION, `${r}${s.slice(2)}${written}`),
      encodeFunctionData({ abi: ABI, functionName: 'transferWithAuthorization', args: [...fields, v, r, s] }),
    );
  }
  for (const bytes of [64, 96, 130]) {
    const signature: Hex = `0x${'ef'.repeat(bytes)}`;
    assert.equal(
      transferCalldata(AUTHORIZATION, signature),
      encodeFunctionData({
        abi: ABI,
        functionName: 'transferWithAuthorization',
        args: [...fields, signature],
      }),
    );
  }
});

test('topics, selectors and the text of an authorization are those of the standard', () => {
  assert.equal(TOPIC_USED, toEventSelector('AuthorizationUsed(address,bytes32)'));
  assert.equal(TOPIC_CANCELED, toEventSelector('AuthorizationCanceled(address,bytes32)'));
  const { from, nonce } = AUTHORIZATION;
  assert.deepEqual(
    [TOPIC_TRANSFER, topicOf(NETWORK.asset)],
    encodeEventTopics({ abi: ABI, eventName: 'Transfer', args: { from: NETWORK.asset } }).slice(0, 2),
  );
  const asked = encodeFunctionData({ abi: ABI, functionName: 'authorizationState', args: [from, nonce] });
  assert.equal(stateCalldata(AUTHORIZATION), asked);
  assert(asked.startsWith(SELECTOR_STATE));
  assert.deepEqual(authorizationOf(textOf(AUTHORIZATION)), AUTHORIZATION);
});
