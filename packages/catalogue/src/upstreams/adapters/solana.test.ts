import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { UpstreamUnavailable } from '../../../../core/src/words/failure.ts';
import { againstLocalServer } from '../local-server.fixture.ts';
import { SOLANA_USDC_MINT, solana, TOKEN_PROGRAMS } from './solana.ts';

const OWNER = 'So11111111111111111111111111111111111111112';
const OTHER_MINT = 'DezXAZ8z7PnrnRJjz3wXBoRgixCa6xjnB7YaB1pPB263';
const context = { slot: 348_000_000 };

type Api = ReturnType<(typeof solana)['open']>;
interface RpcRequest {
  method: string;
  params: unknown[];
}

function onNode<Result>(
  node: (request: RpcRequest) => Record<string, unknown>,
  run: (api: Api, requests: () => RpcRequest[]) => Promise<Result>,
): Promise<Result> {
  return againstLocalServer(
    solana,
    {},
    ({ body }) => ({ body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...node(JSON.parse(body)) }) }),
    (api, asked) => run(api, () => asked.map(({ body }) => JSON.parse(body))),
  );
}

function account(mint: string, amount: string, decimals: number) {
  const info = { mint, owner: OWNER, tokenAmount: { amount, decimals, uiAmountString: '' } };
  return { pubkey: OWNER, account: { data: { program: 'spl-token', parsed: { type: 'account', info } } } };
}

describe('Solana', () => {
  it('reads a balance with its slot, and shows the host of the node only', async () => {
    await onNode(
      () => ({ result: { context, value: 1_500_000_001 } }),
      async (api, requests) => {
        const { value, slot, source } = await api.balanceOf(OWNER);
        assert.deepEqual([value, slot], [1_500_000_001n, context.slot]);
        assert.match(source.url, /^https:\/\/api\.mainnet-beta\.solana\.com\/#slot=348000000$/);
        assert.deepEqual(requests()[0]?.params[0], OWNER);
      },
    );
  });

  it('adds up the accounts of a token over both programs, and leaves empty ones out', async () => {
    const accounts: Record<string, unknown[]> = {
      [TOKEN_PROGRAMS[0]]: [
        account(SOLANA_USDC_MINT, '18446744073709551615', 6),
        account(SOLANA_USDC_MINT, '1', 6),
        account(OWNER, '0', 9),
      ],
      [TOKEN_PROGRAMS[1]]: [account(OTHER_MINT, '7', 5)],
    };
    await onNode(
      ({ params }) => {
        const { programId } = params[1] as { programId: string };
        return { result: { context, value: accounts[programId] } };
      },
      async (api) => {
        assert.deepEqual((await api.tokenBalancesOf(OWNER, null)).value, [
          { mint: SOLANA_USDC_MINT, amount: 18_446_744_073_709_551_616n, decimals: 6 },
          { mint: OTHER_MINT, amount: 7n, decimals: 5 },
        ]);
      },
    );
  });

  it('asks for one mint alone when told to', async () => {
    await onNode(
      () => ({ result: { context, value: [account(SOLANA_USDC_MINT, '5', 6)] } }),
      async (api, requests) => {
        assert.equal((await api.tokenBalancesOf(OWNER, SOLANA_USDC_MINT)).value[0]?.amount, 5n);
        assert.deepEqual(
          requests().map(({ params }) => params[1]),
          [{ mint: SOLANA_USDC_MINT }],
        );
      },
    );
  });

  it('reads recent priority fees', async () => {
    await onNode(
      () => ({ result: [{ slot: 9, prioritizationFee: 1_000 }] }),
      async (api) => {
        const { value } = await api.recentPriorityFees();
        assert.deepEqual(value, [{ slot: 9, microLamportsPerComputeUnit: 1_000 }]);
      },
    );
  });

  it('turns errors of the node into outages', async () => {
    for (const [code, reason] of [
      [-32005, 'rate_limited'],
      [-32603, 'invalid_reply'],
    ] as const) {
      await onNode(
        () => ({ error: { code, message: 'inner words of the node' } }),
        (api) =>
          assert.rejects(api.balanceOf(OWNER), (error) => {
            assert(error instanceof UpstreamUnavailable);
            assert.equal(error.reason, reason);
            assert.doesNotMatch(error.message, /inner words/);
            return true;
          }),
      );
    }
  });
});
