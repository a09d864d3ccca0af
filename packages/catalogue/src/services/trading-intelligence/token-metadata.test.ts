import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Address, concatHex, erc20Abi, formatUnits, type Hex, stringToHex } from 'viem';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import { evmChainFacts } from '../../upstreams/adapters/evm-chains.ts';
import { runContext } from '../run-context.fixture.ts';
import tokenMetadata from './token-metadata.ts';

const { usdc, wrappedNative } = evmChainFacts('base');
const OLD_TOKEN: Address = '0x00000000000000000000000000000000000a0001';
const NO_TOKEN: Address = '0x00000000000000000000000000000000000a0002';

let chain: TestChain;
before(async () => {
  chain = await startTestChain();
});
after(() => chain.stop());

const run = (body: Record<string, unknown>) =>
  tokenMetadata.run(tokenMetadata.input.parse(body), runContext(chain.upstreams));

/** Code that answers the same 32 bytes to whatever is called: PUSH32 word, MSTORE at 0, RETURN 32 bytes. */
function answering(word: Hex): Hex {
  return concatHex(['0x7f', word, '0x60005260206000f3']);
}

describe('token metadata', () => {
  it('is what the contract says', async () => {
    for (const address of [usdc, wrappedNative.address]) {
      const [{ fields, sources }, head] = await chain.still(
        async () =>
          [
            await run({ tokenAddress: address.toLowerCase(), chain: 'base' }),
            await chain.client.getBlockNumber({ cacheTime: 0 }),
          ] as const,
      );
      const contract = { address, abi: erc20Abi } as const;
      const totalSupply = await chain.client.readContract({ ...contract, functionName: 'totalSupply' });
      const decimals = await chain.client.readContract({ ...contract, functionName: 'decimals' });
      assert.deepEqual(
        [fields.name, fields.symbol, fields.decimals, fields.totalSupply, fields.totalSupplyFormatted],
        [
          await chain.client.readContract({ ...contract, functionName: 'name' }),
          await chain.client.readContract({ ...contract, functionName: 'symbol' }),
          decimals,
          String(totalSupply),
          formatUnits(totalSupply, decimals),
        ],
      );
      assert.equal(fields.address, address);
      assert.equal(fields.blockNumber, Number(head));
      assert.equal(sources[0]?.sandbox, true);
      assert(tokenMetadata.output.safeParse(fields).success);
    }
  });

  it('reads names of 32 bytes, and has null for what a contract cannot mean', async () => {
    await chain.client.setCode({
      address: OLD_TOKEN,
      bytecode: answering(stringToHex('MKR', { size: 32 })),
    });
    const { fields, notes } = await run({ tokenAddress: OLD_TOKEN, chain: 'base' });
    // Its decimals would be the same 32 bytes, which is no number of decimals.
    assert.deepEqual([fields.name, fields.symbol, fields.decimals], ['MKR', 'MKR', null]);
    assert.equal(fields.totalSupplyFormatted, null);
    assert.match(notes.join(' '), /does not say its decimals/);
  });

  it('knows what is no token', async () => {
    await assert.rejects(run({ tokenAddress: '0x00000000000000000000000000000000000a0003', chain: 'base' }), {
      status: 404,
      field: 'tokenAddress',
    });
    await chain.client.setCode({ address: NO_TOKEN, bytecode: '0x60006000fd' });
    await assert.rejects(run({ tokenAddress: NO_TOKEN, chain: 'base' }), {
      status: 422,
      code: 'NOT_A_TOKEN',
    });
    await assert.rejects(
      run({ tokenAddress: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v', chain: 'base' }),
      { status: 422, code: 'OTHER_KIND_OF_ADDRESS', field: 'tokenAddress' },
    );
  });

  it('knows the coin of the chain, but not how much of it there is', async () => {
    const { fields } = await run({
      tokenAddress: '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE',
      chain: 'base',
    });
    assert.deepEqual(
      [fields.symbol, fields.decimals, fields.totalSupply, fields.isNative],
      ['ETH', 18, null, true],
    );
  });

  it('says which chains it reads when asked for another', async () => {
    await assert.rejects(run({ tokenAddress: usdc, chain: 'polygon' }), {
      status: 422,
      message: /Configured are: base\./,
    });
    await assert.rejects(run({ tokenAddress: usdc, chain: 'solana' }), { status: 422, field: 'chain' });
  });
});
