import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { overTheWire } from '../wire-server.fixture.ts';
import { cctp } from './cctp.ts';
import { lifi } from './lifi.ts';

const WALLET = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const DIAMOND = '0x1231DEB6f5749EF6cE6943a275A1D3E7486F4EaE';

describe('Circle CCTP', () => {
  it('has fees by finality, with fractions of a basis point; no fast fee where blocks are final at once', async () => {
    const body = [
      { finalityThreshold: 1000, minimumFee: 1.3 },
      { finalityThreshold: 2000, minimumFee: 0 },
    ];
    await overTheWire(cctp, [{ path: '/v2/burn/USDC/fees/6/3', body }], async (api) => {
      assert.deepEqual((await api.fees(6, 3)).value, { fastBasisPoints: 1.3, finalBasisPoints: 0 });
    });
    await overTheWire(cctp, [{ path: '/v2/burn/USDC/fees/7/3', body: body.slice(1) }], async (api) => {
      assert.deepEqual((await api.fees(7, 3)).value, { fastBasisPoints: null, finalBasisPoints: 0 });
    });
    const none = { path: '/v2/burn/USDC/fees/6/99', status: 404, body: { code: 404, message: 'not found' } };
    await overTheWire(cctp, [none], async (api) => {
      assert.equal((await api.fees(6, 99)).value, null);
    });
    const odd = [{ finalityThreshold: 1000, minimumFee: 20_000 }];
    await overTheWire(cctp, [{ path: '/v2/burn/USDC/fees/6/3', body: odd }], async (api) => {
      await assert.rejects(api.fees(6, 3), { reason: 'invalid_reply' });
    });
  });

  it('says how much may be transferred fast', async () => {
    const body = { allowance: 124_834.5, lastUpdated: '2026-11-21T05:30:00Z' };
    await overTheWire(cctp, [{ path: '/v2/fastBurn/USDC/allowance', body }], async (api) => {
      assert.equal((await api.fastAllowance()).value.allowance, 124_834.5);
    });
  });
});

describe('LI.FI', () => {
  const token = { address: USDC, chainId: 8453, symbol: 'USDC', decimals: 6, name: 'USD Coin' };
  const body = {
    id: 'uuid',
    type: 'lifi',
    tool: 'across',
    action: {
      fromChainId: 8453,
      toChainId: 42161,
      fromToken: token,
      toToken: token,
      fromAmount: '1000000',
      fromAddress: WALLET,
      toAddress: WALLET,
      slippage: 0.005,
    },
    estimate: {
      fromAmount: '1000000',
      toAmount: '997800',
      toAmountMin: '992811',
      approvalAddress: DIAMOND,
      executionDuration: 12,
      fromAmountUSD: '1.00',
      feeCosts: [{ name: 'LP fee', amount: '1200', amountUSD: '0.0012', included: true }],
      gasCosts: [{ type: 'SEND', amountUSD: '0.004' }],
    },
    transactionRequest: {
      from: WALLET,
      to: DIAMOND,
      chainId: 8453,
      data: '0x0123',
      value: '0x0',
      gasLimit: '0x4c4b4',
      gasPrice: '0x5b8d80',
    },
  };
  const request = {
    fromChainId: 8453,
    toChainId: 42161,
    fromToken: USDC,
    toToken: USDC,
    fromAmount: 1_000_000n,
    fromAddress: WALLET,
    toAddress: WALLET,
    slippage: 0.005,
  };

  it('quotes amounts as whole numbers, and asks for no contract call at the destination', async () => {
    await overTheWire(
      lifi,
      [{ path: '/quote', body }],
      async (api, asked) => {
        const { value, source } = await api.quote(request);
        assert.deepEqual([value?.estimate.toAmountMin, value?.transactionRequest.value], [992_811n, 0n]);
        assert.equal(value?.estimate.toAmountUSD, null);
        assert.equal(asked[0]?.url.searchParams.get('allowDestinationCall'), 'false');
        assert.equal(asked[0]?.headers['x-lifi-api-key'], 'secret');
        assert(!source.url.includes('secret'));
      },
      'secret',
    );
  });

  it('has no quote for a route that no bridge serves, and reports a rate limit as an outage', async () => {
    const none = { path: '/quote', status: 404, body: { message: 'No available quotes', code: 1002 } };
    await overTheWire(lifi, [none], async (api) => {
      assert.equal((await api.quote(request)).value, null);
    });
    const often = { path: '/quote', status: 429, body: { message: 'Rate limit exceeded', code: 1005 } };
    await overTheWire(lifi, [often], async (api) => {
      await assert.rejects(api.quote(request), { reason: 'rate_limited' });
    });
  });
});
