import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  encodeFunctionData,
  hashTypedData,
  parseAbi,
  recoverAddress as recoverWithViem,
  toEventSelector,
  toFunctionSelector,
} from 'viem';
import { privateKeyToAccount, sign } from 'viem/accounts';
import { transferData } from '../../../../sandbox/src/chain/eip3009.fixture.ts';
import { NETWORKS } from '../x402/networks.ts';
import {
  type Authorization,
  authorizationDigest,
  SELECTOR_BYTES,
  SELECTOR_STATE,
  SELECTOR_VRS,
  stateCalldata,
  TOPIC_CANCELED,
  TOPIC_TRANSFER,
  TOPIC_USED,
  transferCalldata,
} from './eip3009.ts';
import { recoverAddress, recoverInJavaScript, recoverNatively } from './recover.ts';

const ABI = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
]);
const hex = (bytes: number) =>
  fc
    .uint8Array({ minLength: bytes, maxLength: bytes })
    .map((value): `0x${string}` => `0x${Buffer.from(value).toString('hex')}`);
const authorizations: fc.Arbitrary<Authorization> = fc.record({
  from: hex(20),
  to: hex(20),
  value: fc.bigInt(0n, 2n ** 256n - 1n),
  validAfter: fc.bigInt(0n, 2n ** 64n),
  validBefore: fc.bigInt(0n, 2n ** 256n - 1n),
  nonce: hex(32),
});

test('selectors and topics are those of the standard', () => {
  const types = 'address,address,uint256,uint256,uint256,bytes32';
  assert.equal(SELECTOR_VRS, toFunctionSelector(`transferWithAuthorization(${types},uint8,bytes32,bytes32)`));
  assert.equal(SELECTOR_BYTES, toFunctionSelector(`transferWithAuthorization(${types},bytes)`));
  assert.equal(SELECTOR_STATE, toFunctionSelector('authorizationState(address,bytes32)'));
  assert.equal(TOPIC_USED, toEventSelector('AuthorizationUsed(address,bytes32)'));
  assert.equal(TOPIC_CANCELED, toEventSelector('AuthorizationCanceled(address,bytes32)'));
  assert.equal(TOPIC_TRANSFER, toEventSelector('Transfer(address,address,uint256)'));
});

test('digest and calldata are those of viem, for any authorization on any chain', () => {
  const evm = NETWORKS.filter(({ kind }) => kind === 'evm');
  fc.assert(
    fc.property(
      authorizations,
      fc.constantFrom(...evm),
      hex(65),
      hex(171),
      (authorization, network, short, long) => {
        if (network.kind !== 'evm') return;
        const { from, to, value, validAfter, validBefore, nonce } = authorization;
        const expected = hashTypedData(
          transferData(authorization, {
            ...network.domain,
            chainId: network.chainId,
            verifyingContract: network.asset,
          }),
        );
        assert.equal(`0x${authorizationDigest(network, authorization).toString('hex')}`, expected);
        const fields = [from, to, value, validAfter, validBefore, nonce] as const;
        const v = Number(`0x${short.slice(130)}`);
        const wholeV = v < 27 ? v + 27 : v;
        assert.equal(
          transferCalldata(authorization, short),
          encodeFunctionData({
            abi: ABI,
            functionName: 'transferWithAuthorization',
            args: [...fields, wholeV, `0x${short.slice(2, 66)}`, `0x${short.slice(66, 130)}`],
          }),
        );
        assert.equal(
          transferCalldata(authorization, long),
          encodeFunctionData({
            abi: ABI,
            functionName: 'transferWithAuthorization',
            args: [...fields, long],
          }),
        );
        assert.equal(
          stateCalldata(authorization),
          encodeFunctionData({ abi: ABI, functionName: 'authorizationState', args: [from, nonce] }),
        );
      },
    ),
    { numRuns: 60 },
  );
});

test('native and JavaScript recovery agree with viem, on valid, altered and malleable signatures', async () => {
  assert.ok(recoverNatively !== null, 'this platform has the native binding');
  const ways = [recoverNatively, recoverInJavaScript];
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
  for (let round = 0; round < 40; round++) {
    const privateKey = `0x${randomBytes(32).toString('hex')}` as const;
    const digest = randomBytes(32);
    const hash = `0x${digest.toString('hex')}` as const;
    const signature = await sign({ hash, privateKey, to: 'hex' });
    const address = privateKeyToAccount(privateKey).address.toLowerCase();
    for (const way of ways) assert.equal(recoverAddress(digest, signature, way), address);
    // A signature with v as 0 or 1 is the same signature.
    const zeroBased = `${signature.slice(0, 130)}0${Number(`0x${signature.slice(130)}`) - 27}` as const;
    for (const way of ways) assert.equal(recoverAddress(digest, zeroBased as `0x${string}`, way), address);
    // The malleable twin with the other s recovers the same address mathematically, and is refused.
    const twin =
      `${signature.slice(0, 66)}${(order - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0')}${signature.endsWith('1b') ? '1c' : '1b'}` as `0x${string}`;
    assert.equal((await recoverWithViem({ hash, signature: twin })).toLowerCase(), address);
    for (const way of ways) assert.equal(recoverAddress(digest, twin, way), null);
    // After a flipped bit both ways must agree, and neither may return the signer.
    const bytes = Buffer.from(signature.slice(2), 'hex');
    bytes.writeUInt8(bytes.readUInt8(round) ^ 1, round);
    const altered = `0x${bytes.toString('hex')}` as const;
    const [native, inJavaScript] = ways.map((way) => recoverAddress(digest, altered, way));
    assert.equal(native, inJavaScript);
    assert.notEqual(native, address);
  }
  for (const junk of [
    '0x',
    '0x00',
    `0x${'00'.repeat(65)}`,
    `0x${'ff'.repeat(65)}`,
    `0x${'11'.repeat(64)}05`,
  ] as const) {
    for (const way of ways) assert.equal(recoverAddress(randomBytes(32), junk, way), null);
  }
});
