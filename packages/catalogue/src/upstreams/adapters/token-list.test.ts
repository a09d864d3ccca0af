/** Token lists as publishers make them, and files that must not be mistaken for them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { InvalidList } from './published-list.ts';
import { readTokenList } from './token-list.ts';

const USDC = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
const made = (tokens: unknown[], timestamp: unknown = '2026-11-20T12:00:00.000+00:00') =>
  Buffer.from(JSON.stringify({ name: 'A list', timestamp, version: { major: 1 }, tokens }), 'utf8');
const token = (more: object = {}) => ({
  chainId: 8453,
  address: USDC,
  symbol: 'USDC',
  name: 'USD Coin',
  decimals: 6,
  logoURI: 'https://example.test/',
  ...more,
});
const refused = (bytes: Buffer, why: RegExp) =>
  assert.rejects(readTokenList(bytes), (error) => error instanceof InvalidList && why.test(error.message));

describe('a token list', () => {
  it('gives each token of a known chain once, spelled as the chain does', async () => {
    const { publishedAt, tokens } = await readTokenList(
      made([
        token(),
        token({ address: USDC.toUpperCase().replace('0X', '0x'), symbol: 'SECOND' }),
        token({ chainId: 1 }),
        token({ chainId: 999 }),
        token({ chainId: 501_000_101, address: 'So11111111111111111111111111111111111111112' }),
      ]),
    );
    assert.equal(publishedAt, '2026-11-20T12:00:00.000Z');
    assert.deepEqual(tokens, [
      { chain: 'base', address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', symbol: 'USDC' },
      { chain: 'ethereum', address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', symbol: 'USDC' },
    ]);
  });

  it('leaves out what cannot be read, and keeps the rest', async () => {
    const good = Array.from({ length: 9 }, (_, at) =>
      token({ address: `0x${String(at).padStart(40, '0')}` }),
    );
    for (const bad of [
      token({ address: 'javascript:alert(1)' }),
      token({ symbol: '' }),
      token({ symbol: 'x'.repeat(41) }),
      token({ symbol: 5 }),
      null,
      'text',
      [],
    ]) {
      assert.equal((await readTokenList(made([...good, bad]))).tokens.length, 9);
    }
  });

  it('is refused when it is something else', async () => {
    await refused(Buffer.from('<html></html>'), /not JSON/);
    await refused(made([token()]).subarray(0, 60), /not JSON/);
    await refused(Buffer.from('{}'), /timestamp/);
    await refused(made([token()], 'yesterday'), /when it was published/);
    await refused(made([token(), 5, 6]), /2 of its 3 entries cannot be read/);
    await refused(made(Array.from({ length: 50_001 }, () => 1)), /tokens/);
  });
});
