/**
 * A stage for one fault of MPP: a shop of its own, with a database, recipients, a settler, two replicas, and wires to the
 * nodes that can be cut. Only the chains are shared with other stages.
 */
import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { erc20Abi, parseEther } from 'viem';
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { Actions } from 'viem/tempo';
import { z } from 'zod';
import { connectPools, endPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { defineService, type Service } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { PATH_USD, USDC_E } from '../../../../packages/sandbox/src/tempo/addresses.ts';
import { proveBooks } from '../books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { type Method, type MppWorld, opened } from '../mpp.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';
import { paymentHeader, type SignedPayment, USDC } from '../x402.fixture.ts';
import type { Told } from './fault-table.fixture.ts';
import { startNodeWire } from './x402-node.fixture.ts';

export const PRICE = 50_000n;
export const NOBODY = '0x000000000000000000000000000000000000dEaD';
const SERVICE_TIMEOUT_MS = 2_000;

/** The answers that nodes were seen to give to a transaction that they had passed on. */
export const WORDS = [
  [-32000, 'transaction already in pool'],
  [-32000, 'internal error'],
  [-32003, 'transaction rejected'],
] as const;

export interface Asking {
  path?: string;
  body?: Record<string, unknown> | string;
  on?: TestServer;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** The way to send a request, as for any stage. */
  send?: typeof fetch;
}

export type Stage = Awaited<ReturnType<typeof setStage>>;

export async function setStage(world: MppWorld, method: Method) {
  const recipient = privateKeyToAccount(generatePrivateKey()).address;
  const settlerKey = generatePrivateKey();
  await world.base.chain.client.setBalance({
    address: privateKeyToAccount(settlerKey).address,
    value: parseEther('10'),
  });
  const [database, base, tempo]: [TestDatabase, ...Awaited<ReturnType<typeof startNodeWire>>[]] =
    await Promise.all([
      openTestDatabase(),
      startNodeWire(world.base.chain.url),
      startNodeWire(world.tempo.url),
    ]);
  assert(base !== undefined && tempo !== undefined);
  const elsewhere = connectPools(database.url, 6);
  const script = { runs: 0, during: async (_run: number): Promise<void> => {} };
  const services = (['nickel', 'coin', 'deed'] as const).map(
    (path): Service =>
      defineService({
        path,
        name: path,
        tag: 'Discovery',
        priceUsd: '0.05',
        mpp: true,
        summary: 'For tests.',
        effect: path === 'deed' ? 'write' : 'read',
        timeoutMs: SERVICE_TIMEOUT_MS,
        input: z.object({ name: z.string().default('a') }),
        output: z.object({ name: z.string(), run: z.number().int() }),
        example: { name: 'a' },
        async run({ name }) {
          script.runs += 1;
          const { runs } = script;
          await script.during(runs);
          return answer({ name, run: runs }, { method: 'Counted.' });
        },
      }),
  );
  const environment: Record<string, string> = {
    ...world.environment,
    UPSTREAM_BASE_BASE_URL: base.url,
    FACILITATOR_URL: '',
    X402_RELAYER_KEYS: settlerKey,
    X402_RECIPIENT: recipient,
    MPP_TEMPO_RPC_URL: tempo.url,
    MPP_TEMPO_RECIPIENT: recipient,
  };
  const open = (pools: Pools, more: Record<string, string> = {}) =>
    startTestServer({ pools, services, nowMs: () => Date.now(), environment: { ...environment, ...more } });
  let [here, there] = await Promise.all([open(database), open(elsewhere)]);
  /** The settings that it was told to have otherwise; null: none. */
  let otherwise: Record<string, string> | null = null;
  /** The money and the calls when the row began. */
  let before: { movedUnits: bigint; calls: readonly string[] } = { movedUnits: 0n, calls: [] };

  const stage = {
    world,
    method,
    recipient,
    database,
    script,
    node: method === 'tempo' ? tempo : base,
    /** How the rail sends a transaction there. */
    sending: method === 'tempo' ? 'eth_sendRawTransaction' : 'eth_sendRawTransactionSync',
    get here() {
      return here;
    },
    get there() {
      return there;
    },
    /** A new process on the same database. */
    async restart(more?: Record<string, string>): Promise<void> {
      await here.close();
      otherwise = more ?? null;
      here = await open(database, more);
    },
    otherRecipient: { X402_RECIPIENT: NOBODY, MPP_TEMPO_RECIPIENT: NOBODY } as Record<string, string>,
    /** It settles by itself: there is nobody but the node. */
    nobodyElse: {} as Record<string, string>,
    wallet: (usd = 5): Promise<PrivateKeyAccount> => world.wallet(usd),
    pay: (payer: PrivateKeyAccount): Promise<string> => stage.credential(payer),
    priceOf: (): bigint => PRICE,
    held: (payer: PrivateKeyAccount): Promise<bigint> => world.holds(payer.address, method),
    receiptOf: ({ headers }: Told): string | null => headers.get('payment-receipt'),
    assertProper,
    async reset(): Promise<void> {
      base.mend();
      tempo.mend();
      script.runs = 0;
      script.during = async () => {};
      if (otherwise !== null) await stage.restart();
      // What has come to its end is not looked at again, and meets no fault of somebody else.
      await database.patient`update settlements set final_at = now() where final_at is null`;
      const calls = await database.patient<{ id: string }[]>`select id from calls`;
      before = { movedUnits: await world.holds(recipient, method), calls: calls.map(({ id }) => id) };
    },
    unpaid: (asking: { body?: string } = {}): Promise<Response> =>
      fetch(`${here.url}/mpp/nickel`, { method: 'POST', ...asking }),
    answer: (payer: PrivateKeyAccount, unpaid: Response): Promise<string> =>
      world.credential(payer, method, unpaid),
    async credential(payer: PrivateKeyAccount, asking: { body?: string } = {}): Promise<string> {
      return stage.answer(payer, await stage.unpaid(asking));
    },
    async present(authorization: string, asking: Asking = {}): Promise<Told> {
      const {
        path = 'nickel',
        body = '{"name":"a"}',
        on = here,
        headers = {},
        signal,
        send = fetch,
      } = asking;
      const response = await send(`${on.url}/mpp/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization, ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...(signal === undefined ? {} : { signal }),
      });
      return toldOf(response);
    },
    /** The authorization of an MPP credential, as an x402 client would bring it. */
    async presentAsX402(credential: string): Promise<Told> {
      const { signature, type: _, ...authorization } = opened(credential).payload;
      const unpaid = await fetch(`${here.url}/x402/nickel`, { method: 'POST' });
      const payment = { authorization, signature } as SignedPayment;
      const response = await fetch(`${here.url}/x402/nickel`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'payment-signature': await paymentHeader(unpaid, payment),
        },
        body: '{"name":"a"}',
      });
      return toldOf(response);
    },
    /** The base units that came to the recipient since the row began. */
    moved: async (): Promise<bigint> => (await world.holds(recipient, method)) - before.movedUnits,
    /** The payer sends all its money away. */
    async empty(payer: PrivateKeyAccount): Promise<void> {
      const amount = await world.holds(payer.address, method);
      if (method === 'evm') {
        const hash = await world.base.chain.client.writeContract({
          account: payer,
          address: USDC,
          abi: erc20Abi,
          functionName: 'transfer',
          args: [NOBODY, amount],
        });
        await world.base.chain.client.waitForTransactionReceipt({ hash, pollingInterval: 10 });
        return;
      }
      await Actions.token.transferSync(world.tempo.client, {
        account: payer,
        feeToken: PATH_USD,
        gas: 5_000_000n,
        nonceKey: 'expiring',
        validBefore: Math.floor(Date.now() / 1_000) + 20,
        token: USDC_E,
        to: NOBODY,
        amount,
      });
    },
    /** Lets the jobs do what is left to do. What is held has its time; the test does not wait for it. */
    async rest(): Promise<void> {
      for (let round = 0; round < 2; round += 1) {
        await database.patient`update settlements set next_at = now() where final_at is null`;
        for (const name of ['resume-relayers', 'reconcile-calls', 'finish-settlements', 'pay-refunds'])
          await here.app.jobs.find((job) => job.name === name)?.run();
      }
    },
    async calls() {
      const rows = await database.patient<{ state: number; count: number; micros: bigint }[]>`
        select state, count(*)::integer as count, sum(price_micros)::bigint as micros from calls
        where not id = any(${before.calls as string[]}::uuid[]) group by state`;
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
      const { checks } = await proveBooks(database.patient);
      assert.deepEqual(
        checks.filter(({ ok }) => !ok),
        [],
      );
    },
    async close(): Promise<void> {
      base.mend();
      tempo.mend();
      await Promise.all([here.close(), there.close()]);
      await Promise.all([base.close(), tempo.close(), endPools(elsewhere, 1)]);
      await database.close();
    },
  };
  return stage;
}

async function toldOf(response: Response): Promise<Told> {
  const body = await response.text();
  const { status, headers } = response;
  const said: { code?: string; type?: string } = JSON.parse(body);
  const why = status === 402 ? said.type?.split('/').at(-1) : said.code;
  const again = headers.get('idempotent-replayed') === 'true';
  const text = [String(status), ...(why === undefined ? [] : [why]), ...(again ? ['again'] : [])].join(' ');
  return { status, text, body, headers };
}

/** Asserts what must hold of every answer, whatever happened and whichever way it came. */
export function assertProperOverAnyDoor({ status, text, body, headers }: Told): void {
  assert.doesNotMatch(
    body,
    /\b(?:viem|FiatToken|ERC20:|TIP20|ECONN|postgres|eth_[a-z])|at \S+ \(/i,
    'inner text got out',
  );
  assert.equal(headers.has('payment-receipt'), status === 200 && !headers.has('payment-response'), text);
  assert.equal(
    headers.has('www-authenticate'),
    status === 402,
    `${text}: a challenge with a 402, and else none`,
  );
  if (status === 503) assert(Number(headers.get('retry-after')) >= 1, 'no Retry-After');
}

/** Asserts what must hold of every answer over HTTP as well. */
export function assertProper(told: Told): void {
  assertProperOverAnyDoor(told);
  const { status, body, headers } = told;
  if (status === 200) {
    assert.match(headers.get('cache-control') ?? '', /private/);
    return;
  }
  assert.match(headers.get('content-type') ?? '', /^application\/problem\+json/);
  assert.match(headers.get('cache-control') ?? '', /no-store/);
  assert.equal(JSON.parse(body).status, status);
}

/** Lets all of this process believe that it is later; chains keep their own time. */
export async function minutesLater<T>(minutes: number, work: () => Promise<T>): Promise<T> {
  mock.timers.enable({ apis: ['Date'], now: Date.now() + minutes * 60_000 });
  try {
    return await work();
  } finally {
    mock.timers.reset();
  }
}
