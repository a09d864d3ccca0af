/** For tests: a server whose vault is on the sandbox's chain, and wallets on it. */
import assert from 'node:assert/strict';
import { createTestClient, type Hex, http, publicActions, walletActions } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { base } from 'viem/chains';
import type { Pools } from '../../../packages/core/src/db/connection.ts';
import { SEED } from '../../../packages/sandbox/src/accounts.fixture.ts';
import { startEvmChain } from '../../../packages/sandbox/src/chain/chain.ts';
import { fund } from '../../../packages/sandbox/src/chain/faucet.ts';
import { connect } from '../../../packages/sandbox/src/chain/node.ts';
import { jsonOf, startTestServer } from './server.fixture.ts';

export type YieldWorld = Awaited<ReturnType<typeof startYieldWorld>>;
export type Wallet = Awaited<ReturnType<YieldWorld['wallet']>>;

const ETH_WEI = 10n ** 18n;

/** A step as the API hands it out. */
export interface HandedOut {
  to: Hex;
  data: Hex;
  gas: Hex;
}

/** @param through gives the address by which the server reaches the chain's node; the node's own, unless given */
export async function startYieldWorld(
  pools: Pools,
  { through, nowMs }: { through?: (nodeUrl: string) => Promise<string>; nowMs?: () => number } = {},
) {
  const chain = await startEvmChain({ seed: SEED, stateDir: null });
  const client = createTestClient({
    mode: 'anvil',
    chain: base,
    transport: http(chain.url, { timeout: 60_000 }),
    pollingInterval: 10,
    cacheTime: 0,
  })
    .extend(publicActions)
    .extend(walletActions);
  const server = await startTestServer({
    pools,
    ...(nowMs === undefined ? {} : { nowMs }),
    environment: {
      UPSTREAM_BASE_BASE_URL: through === undefined ? chain.url : await through(chain.url),
      YIELD_VAULT_ADDRESS: chain.vault,
      YIELD_PERMIT_DEPOSIT_ADDRESS: chain.permitDeposit,
    },
  });
  const ask = (path: string) => fetch(`${server.url}/api/yield/${path}`);
  return {
    chain,
    client,
    server,
    ask,
    node: connect(chain.url),
    /** The answer, which must be a 200. */
    async answer(path: string) {
      const response = await ask(path);
      const body = await jsonOf(response);
      assert.equal(response.status, 200, `${path}: ${JSON.stringify(body)}`);
      return body;
    },
    /** The refusal, with its status. */
    async refusal(path: string) {
      const response = await ask(path);
      return { status: response.status, body: await jsonOf(response) };
    },
    /** A new wallet with so much USDC, and ETH for gas. */
    async wallet(usdcMicros: bigint) {
      const privateKey = generatePrivateKey();
      const account = privateKeyToAccount(privateKey);
      await fund(chain.url, account.address, { usdcMicros, ethWei: ETH_WEI });
      return {
        account,
        privateKey,
        address: account.address,
        /** Signs and sends what was handed out, as it was handed out. */
        async send(steps: readonly HandedOut[]) {
          const receipts = [];
          for (const { to, data, gas } of steps) {
            const hash = await client.sendTransaction({ account, to, data, gas: BigInt(gas) });
            const receipt = await client.waitForTransactionReceipt({ hash });
            assert.equal(receipt.status, 'success', `to ${to}`);
            receipts.push(receipt);
          }
          return receipts;
        },
      };
    },
    async stop() {
      await server.close();
      await chain.stop();
    },
  };
}
