/**
 * A stage for one fault: a shop of its own, with a database, a recipient, a settler, two replicas and a wire to the node
 * that can be cut. Only the chain may be shared with other stages.
 */
import assert from 'node:assert/strict';
import { erc20Abi, type Hex, isHash, parseEther, parseEventLogs } from 'viem';
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import {
  connectPools,
  type Database,
  endPools,
  type Pools,
} from '../../../../packages/core/src/db/connection.ts';
import type { ChainAudit } from '../../../../packages/core/src/rails/evm/audit.ts';
import { createX402Rail } from '../../../../packages/core/src/rails/x402/rail.ts';
import { createGasTanks } from '../../../../packages/core/src/relayer/gas-tanks.ts';
import { secretsOf } from '../../../../packages/core/src/secrets/secrets.ts';
import { fund } from '../../../../packages/sandbox/src/chain/faucet.ts';
import { startFacilitator } from '../../../../packages/sandbox/src/facilitator/facilitator.ts';
import { proveBooks } from '../books.fixture.ts';
import type { TestChain } from '../chain.fixture.ts';
import { openTestDatabase } from '../database.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';
import { paymentHeader, type SignedPayment, signPayment, USDC } from '../x402.fixture.ts';
import { countingServices } from './counting-services.fixture.ts';
import { type NodeFault, startNodeWire } from './x402-node.fixture.ts';
import { assertProperX402, type Told, toldOf } from './x402-told.fixture.ts';

export type SettledBy = 'facilitator' | 'own settler';
export type Terms = Partial<Parameters<typeof signPayment>[1]>;

export interface Asking {
  path?: string;
  body?: Record<string, unknown> | string;
  on?: TestServer;
  headerName?: 'payment-signature' | 'x-payment';
  signal?: AbortSignal;
  /** The way to send a request, as for any stage. */
  send?: typeof fetch;
}

export const PRICE = { nickel: 50_000n, deed: 100_000n };
const REFUND_AFTER_SECONDS = 60;

const NEVER = new Promise<never>(() => {});

/** The database as one process sees it: once its life is over, nothing that it says is heard. */
export function ofLife(
  { sql, commits, patient, ...others }: Pools,
  life: { readonly isOver: boolean },
): Pools {
  const mortal = (pool: Database): Database =>
    new Proxy(pool, {
      apply: (target, self, args: unknown[]) => (life.isOver ? NEVER : Reflect.apply(target, self, args)),
      get: (target, name) => (life.isOver && name === 'begin' ? () => NEVER : Reflect.get(target, name)),
    });
  return { sql: mortal(sql), commits: mortal(commits), patient: mortal(patient), ...others };
}

export type Stage = Awaited<ReturnType<typeof setStage>>;

export async function setStage(options: {
  chain: TestChain;
  settledBy: SettledBy;
  /** How many facilitators, in order. */
  facilitators?: number;
  environment?: Record<string, string>;
}) {
  const { chain, settledBy } = options;
  const recipient = privateKeyToAccount(generatePrivateKey()).address;
  const [settlerKey, refundKey] = [generatePrivateKey(), generatePrivateKey()];
  for (const key of [settlerKey, refundKey])
    await chain.client.setBalance({ address: privateKeyToAccount(key).address, value: parseEther('10') });
  const refunds = privateKeyToAccount(refundKey).address;
  await fund(chain.url, refunds, { usdcMicros: 5_000_000n, ethWei: 0n });
  const [database, node, facilitator] = await Promise.all([
    openTestDatabase(),
    startNodeWire(chain.url),
    startFacilitator({ evm: { rpcUrl: chain.url, privateKeys: [settlerKey] }, solana: null }),
  ]);
  const elsewhere = connectPools(database.url, 6);
  let aheadMs = 0;
  const nowMs = () => Date.now() + aheadMs;

  /** The services' script; a test may make them fail or wait. */
  const script = { runs: 0, during: async (_run: number): Promise<void> => {} };
  const services = countingServices(script, { nickel: '0.05', deed: '0.10' }, 3_000);

  const environment: Record<string, string> = {
    X402_NETWORKS: 'base',
    UPSTREAM_BASE_BASE_URL: node.url,
    X402_RECIPIENT: recipient,
    X402_REFUND_KEYS: refundKey,
    // The node asks for some hundred times the fees of Base.
    X402_GAS_TOKEN_USD: 'base:1',
    X402_REFUND_AFTER_SECONDS: String(REFUND_AFTER_SECONDS),
    ...(settledBy === 'facilitator'
      ? { FACILITATOR_URL: facilitator.url }
      : { FACILITATOR_URL: '', X402_RELAYER_KEYS: settlerKey }),
    ...options.environment,
  };
  const open = (pools: Pools, more = {}) =>
    startTestServer({ pools, services, nowMs, environment: { ...environment, ...more } });
  let life = { isOver: false };
  let [here, there] = await Promise.all([open(ofLife(database, life)), open(elsewhere)]);
  const dying: Promise<void>[] = [];
  /** The settings that it was told to have otherwise; null: none. */
  let otherwise: Record<string, string> | null = null;
  /** The money and the calls when the row began. */
  let before: { movedUnits: bigint; calls: readonly string[] } = { movedUnits: 0n, calls: [] };

  async function job(name: string, on: TestServer): Promise<void> {
    const found = on.app.jobs.find((each) => each.name === name);
    assert(found !== undefined, `there is no job ${name}`);
    await found.run();
  }

  const stage = {
    chain,
    settledBy,
    recipient,
    refunds,
    settler: privateKeyToAccount(settlerKey).address,
    database,
    node,
    facilitatorUrl: facilitator.url,
    nowMs,
    script,
    get here() {
      return here;
    },
    get there() {
      return there;
    },
    /** Lets the replicas' clock run ahead; the chain keeps its own. */
    later(ms: number): void {
      aheadMs += ms;
    },

    /** A fresh wallet with USDC. */
    async wallet(usd = 5): Promise<PrivateKeyAccount> {
      const account = privateKeyToAccount(generatePrivateKey());
      await fund(chain.url, account.address, {
        usdcMicros: BigInt(Math.round(usd * 1e6)),
        ethWei: parseEther('0.1'),
      });
      return account;
    },

    sign(account: PrivateKeyAccount, terms: Terms = {}): Promise<SignedPayment> {
      return signPayment(account, { to: recipient, valueUnits: PRICE.nickel, ...terms });
    },

    /** The header of a payment as the reference client makes it. */
    async header(
      payment: SignedPayment,
      path: 'nickel' | 'deed' = 'nickel',
      extensions?: Record<string, unknown>,
    ): Promise<string> {
      const challenge = await fetch(`${there.url}/x402/${path}`, { method: 'POST' });
      assert.equal(challenge.status, 402, await challenge.text());
      return paymentHeader(challenge, payment, extensions);
    },

    /** A signed payment in its header. */
    async payment(account: PrivateKeyAccount, path: 'nickel' | 'deed' = 'nickel', terms: Terms = {}) {
      return stage.header(await stage.sign(account, { valueUnits: PRICE[path], ...terms }), path);
    },

    pay: (payer: PrivateKeyAccount, path?: string) => stage.payment(payer, path === 'deed' ? path : 'nickel'),
    priceOf: (path: string): bigint => (path === 'deed' ? PRICE.deed : PRICE.nickel),
    held: (payer: PrivateKeyAccount): Promise<bigint> => stage.balanceOf(payer.address),
    /** The sum that the key for refunds has sent away. */
    sentBack: async (): Promise<bigint> => -(await stage.balanceOf(refunds)),
    receiptOf: ({ transaction }: Told): string | null => transaction,

    async present(header: string, asking: Asking = {}): Promise<Told> {
      const {
        path = 'nickel',
        body = {},
        on = here,
        headerName = 'payment-signature',
        signal,
        send = fetch,
      } = asking;
      const response = await send(`${on.url}/x402/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', [headerName]: header },
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...(signal === undefined ? {} : { signal }),
      });
      return toldOf(response, header);
    },

    /** The next settlement, or verification, goes wrong in this way. */
    async facilitatorFaults(faults: readonly Record<string, unknown>[]): Promise<void> {
      const ordered = await fetch(`${facilitator.url}/__control`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ faults }),
      });
      assert.equal(ordered.status, 201, await ordered.text());
    },
    /**
     * The same for our own settler: what befalls the sending of its next transaction.
     *
     * @param andAgain whether the second sending, which follows a failed one at once, is lost as well
     */
    settlerFault(fault: NodeFault, andAgain: boolean): void {
      node.next('eth_sendRawTransactionSync', fault);
      if (andAgain) node.next('eth_sendRawTransaction', 'request lost');
    },

    /** A new process on the same database. */
    async restart(more?: Record<string, string>): Promise<void> {
      await here.close();
      life = { isOver: false };
      otherwise = more ?? null;
      here = await open(ofLife(database, life), more);
    },
    otherRecipient: { X402_RECIPIENT: refunds },
    nobodyElse: (settledBy === 'facilitator' ? { FACILITATOR_URL: 'http://127.0.0.1:9' } : {}) as Record<
      string,
      string
    >,
    async reset(): Promise<void> {
      node.mend();
      script.runs = 0;
      script.during = async () => {};
      aheadMs = 0;
      await fetch(`${facilitator.url}/__control`, { method: 'DELETE' });
      if (otherwise !== null) await stage.restart();
      // What has come to its end is not looked at again, and meets no fault of somebody else.
      await database.patient`update settlements set final_at = now() where final_at is null`;
      const calls = await database.patient<{ id: string }[]>`select id from calls`;
      before = { movedUnits: await stage.balanceOf(recipient), calls: calls.map(({ id }) => id) };
    },
    /** The process of `here` ends between two steps: it writes nothing more, and its connections break. */
    async crash(): Promise<void> {
      const { http } = here.app;
      life.isOver = true;
      http.server.closeAllConnections();
      // Not the whole app: it would wait for what it owes, which the dead do not pay.
      dying.push(http.close());
      life = { isOver: false };
      here = await open(ofLife(database, life));
    },

    resume: (on = here) => job('resume-relayers', on),
    finish: () => here.app.settlementFinisher.run(),

    /** Lets the jobs do what is left to do; the clock goes on between their rounds. */
    async rest(rounds = 3): Promise<void> {
      for (let round = 0; round < rounds; round += 1) {
        aheadMs += 11_000;
        await stage.resume();
        await here.app.reconciler.run();
        await stage.finish();
      }
    },

    balanceOf: (address: Hex): Promise<bigint> =>
      chain.client.readContract({
        address: USDC,
        abi: erc20Abi,
        functionName: 'balanceOf',
        args: [address],
      }),
    /** A transfer that a wallet makes by itself; mined when this returns, unless the chain does not mine. */
    async transfer(from: PrivateKeyAccount, to: Hex, amountUnits: bigint): Promise<Hex> {
      const hash = await chain.client.writeContract({
        account: from,
        address: USDC,
        abi: erc20Abi,
        functionName: 'transfer',
        args: [to, amountUnits],
      });
      await chain.client.waitForTransactionReceipt({ hash, pollingInterval: 10 });
      return hash;
    },
    /** A call of the asset that the wallet sends by itself. */
    async send(from: PrivateKeyAccount, to: Hex, data: Hex): Promise<Hex> {
      const hash = await chain.client.sendTransaction({ account: from, to, data });
      await chain.client.waitForTransactionReceipt({ hash, pollingInterval: 10 });
      return hash;
    },
    /** USDC that came to the recipient since the row began, in base units. */
    moved: async () => (await stage.balanceOf(recipient)) - before.movedUnits,

    /** How many calls since then are in each state, and what the captured ones cost. */
    async calls() {
      const rows = await database.patient<{ state: number; count: number; micros: bigint }[]>`
        select state, count(*)::integer as count, sum(price_micros)::bigint as micros from calls
        where rail = 'x402' and not id = any(${before.calls as string[]}::uuid[]) group by state`;
      const of = (state: number) => rows.find((row) => row.state === state);
      return {
        open: of(0)?.count ?? 0,
        captured: of(1)?.count ?? 0,
        released: of(2)?.count ?? 0,
        withChain: of(3)?.count ?? 0,
        capturedMicros: of(1)?.micros ?? 0n,
      };
    },

    async assertBooksBalance(): Promise<void> {
      const books = await proveBooks(database.patient);
      assert.deepEqual(
        books.checks.filter(({ ok }) => !ok),
        [],
      );
    },

    /** The books held against the chain, as `npm run books` does it. */
    async audit(): Promise<ChainAudit> {
      const rail = createX402Rail(
        {
          networks: ['base'],
          recipient,
          recipientSolana: null,
          rpcUrls: { base: chain.url, ethereum: null, polygon: null, arbitrum: null, solana: null },
          facilitatorUrls: [],
          facilitatorToken: () => null,
          relayerKeys: [],
          refundKeys: [],
          walletFactories: [],
          gasTokenUsd: {},
          relayerKeySolana: null,
          refundKeySolana: null,
        },
        {
          sql: database.patient,
          baseUrl: here.url,
          secrets: secretsOf(['of the audit']),
          sandbox: false,
          gas: createGasTanks({ sql: database.patient, nowMs, report: () => {} }),
          nowMs,
          report: () => {},
        },
      );
      try {
        const [audit] = await rail.audit();
        assert(audit !== undefined);
        return audit;
      } finally {
        await rail.close();
      }
    },

    /** Asserts what must hold of every answer, whatever happened. */
    async assertProper(told: Told): Promise<void> {
      assertProperX402(told);
      if (told.status !== 200) return;
      // Who paid a bare hash is not known while its chain is away.
      assert(told.hasReceipt || (told.text === '200 again' && isHash(told.presented)), 'no receipt');
      const receipt = await chain.client.getTransactionReceipt({ hash: told.transaction as Hex });
      const paid = parseEventLogs({ abi: erc20Abi, logs: receipt.logs, eventName: 'Transfer' });
      assert(
        paid.some(({ address, args }) => BigInt(address) === BigInt(USDC) && args.to === recipient),
        'the receipt names a transaction that does not pay us',
      );
    },

    async close(): Promise<void> {
      node.mend();
      await Promise.all([here.close(), there.close(), ...dying]);
      await Promise.all([facilitator.stop(), node.close(), endPools(elsewhere, 1)]);
      await database.close();
    },
  };
  return stage;
}
