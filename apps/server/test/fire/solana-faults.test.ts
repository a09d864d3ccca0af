/**
 * The fault table of Solana: one row a fault, of settlements with a fee payer of our own and of refunds. Each row says
 * what the payer holds after each request, how much USDC moved where, and what the books say once all is at rest.
 */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { describe, test } from 'node:test';
import { generateKeyPairSigner, getBase58Decoder, type Instruction, type KeyPairSigner } from '@solana/kit';
import { z } from 'zod';
import { SEED } from '../../../../packages/sandbox/src/accounts.fixture.ts';
import { startSolana } from '../../../../packages/sandbox/src/solana/solana.ts';
import { connectPools, endPools, type Pools } from '../../src/db/connection.ts';
import { readSolanaKey } from '../../src/rails/x402/solana-key.ts';
import { defineService, type Service } from '../../src/services/define.ts';
import { answer } from '../../src/words/answer.ts';
import { ServiceFailure } from '../../src/words/failure.ts';
import { proveBooks } from '../books.fixture.ts';
import { openTestDatabase } from '../database.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';
import {
  closing,
  memo,
  signTransaction,
  solanaNode,
  transferOf,
  unitLimit,
  unitPrice,
} from '../solana.fixture.ts';
import { type NodeFault, startNodeWire } from './x402-node.fixture.ts';
import { ofLife } from './x402-stage.fixture.ts';

const PRICE = { nickel: 50_000n, deed: 100_000n };
const REFUND_AFTER_SECONDS = 60;
const SEND = 'sendTransaction';
const SOL = 1e9;

interface Told {
  status: number;
  text: string;
  body: string;
}

interface Row {
  fault: string;
  service?: 'nickel' | 'deed';
  /** It sits out a time-out of ours, so it starts with the first. */
  waits?: true;
  /** What is done before the payer signs. */
  given?: (stage: Stage, payer: KeyPairSigner) => Promise<void> | void;
  /** What it signs; what the published client does unless said otherwise. */
  terms?: (payer: KeyPairSigner, stage: Stage) => Promise<readonly Instruction[]>;
  /** What the payer does; presents its payment once unless said otherwise. */
  play?: (stage: Stage, header: string, payer: KeyPairSigner) => Promise<readonly Told[]>;
  told: readonly string[];
  /** What the same payment gets once everything is at rest; null: it is not presented again. */
  atRest: string | null;
  runs: number;
  /** How many prices came to the recipient, and how many went back. */
  paid: number;
  refunded?: number;
  books: { captured?: number; released?: number; withChain?: number };
}

const ONE_SALE = { atRest: '200 again', runs: 1, paid: 1, books: { captured: 1 } } as const;
const UNKNOWN = '503 SETTLEMENT_UNKNOWN';
/** Paid for, failed, and sent back. */
const GIVEN_BACK = {
  service: 'deed',
  told: ['503 SOURCE_DOWN'],
  atRest: '410 REFUNDED again',
  runs: 1,
  paid: 1,
  refunded: 1,
  books: { captured: 1 },
} as const;
const sendingMeets =
  (fault: NodeFault, times = 1): NonNullable<Row['given']> =>
  (stage) =>
    stage.node.next(SEND, fault, times);
const DID_IT_AND_SAID_NO: NodeFault = {
  did: true,
  says: { error: { code: -32002, message: 'Transaction simulation failed: Blockhash not found' } },
};

/** A paid call that fails; its refund meets this. */
function refundMeets(fault: (stage: Stage, payer: KeyPairSigner) => Promise<void> | void): Partial<Row> {
  return {
    given: (stage) => {
      stage.script.fails = true;
    },
    play: async (stage, header, payer) => {
      const told = await stage.present(header, { path: 'deed' });
      stage.later((REFUND_AFTER_SECONDS + 1) * 1_000);
      await fault(stage, payer);
      return [told];
    },
  };
}

const ROWS: readonly Row[] = [
  // Settling with a fee payer of our own.
  { fault: 'none', told: ['200'], ...ONE_SALE },
  {
    fault: '20 copies at once, on two replicas',
    play: async (stage, header) => {
      const copies = Array.from({ length: 20 }, (_, i) =>
        stage.present(header, { on: i % 2 === 0 ? stage.here : stage.there }),
      );
      return (await Promise.all(copies)).toSorted((a, b) => a.text.localeCompare(b.text));
    },
    told: ['200', ...Array.from({ length: 19 }, () => '200 again')],
    ...ONE_SALE,
  },
  {
    fault: 'the transaction gets lost on its way to the node',
    given: sendingMeets('request lost'),
    told: ['200'],
    ...ONE_SALE,
  },
  {
    fault: 'the node takes the transaction and its reply gets lost',
    given: sendingMeets('reply lost'),
    told: ['200'],
    ...ONE_SALE,
  },
  {
    fault: 'the node takes the transaction and says no',
    given: sendingMeets(DID_IT_AND_SAID_NO),
    told: ['200'],
    ...ONE_SALE,
  },
  {
    fault: 'the node takes the transaction and never replies',
    waits: true,
    given: sendingMeets('reply held'),
    told: ['200'],
    ...ONE_SALE,
  },
  {
    fault: 'killed between storing the signature and sending it',
    given: (stage) => stage.node.before(SEND, () => stage.crash()),
    play: async (stage, header) => {
      const crashed = stage.crashed();
      stage.node.next(SEND, 'request lost');
      await assert.rejects(stage.present(header));
      await crashed;
      return [];
    },
    told: [],
    ...ONE_SALE,
  },
  {
    fault: 'killed between sending and hearing that it landed',
    given: (stage) =>
      stage.node.before('getEpochInfo', async () => {
        // The first tells the end of the blockhash; the next asks what became of it.
        stage.node.before('getEpochInfo', () => stage.crash());
      }),
    play: async (stage, header) => {
      const crashed = stage.crashed();
      await assert.rejects(stage.present(header));
      await crashed;
      return [];
    },
    told: [],
    ...ONE_SALE,
  },
  {
    fault: 'the network loses it every time, until its blockhash is over',
    waits: true,
    play: async (stage, header) => {
      await stage.chain.ask('sandbox_setFault', { fault: 'never-lands', count: 1_000 });
      const told = await stage.present(header);
      await stage.chain.pass(250);
      await stage.chain.ask('sandbox_clearFaults');
      return [told];
    },
    told: [UNKNOWN],
    atRest: '402 PAYMENT_EXPIRED',
    runs: 1,
    paid: 0,
    books: { released: 2 },
  },
  {
    fault: 'the balance moves between verifying and settling',
    given: (stage, payer) => {
      stage.script.during = () => stage.empty(payer);
    },
    told: ['402 PAYMENT_INSUFFICIENT_FUNDS'],
    // Tried out a moment ago it is sent, and fails on the chain for good; else it is tried again, and ends unsent.
    atRest: '402 PAYMENT_INSUFFICIENT_FUNDS|402 PAYMENT_EXPIRED',
    runs: 1,
    paid: 0,
    books: { released: 2 },
  },
  {
    fault: 'a priority fee that our key would pay',
    terms: async (payer, stage) => [
      unitLimit(1_400_000),
      unitPrice(5_000_000n),
      await transferOf(payer.address, stage.recipient, PRICE.nickel),
    ],
    told: ['402 PAYMENT_TRANSACTION_UNSUITABLE'],
    atRest: '402 PAYMENT_TRANSACTION_UNSUITABLE',
    runs: 0,
    paid: 0,
    books: { released: 2 },
  },
  {
    fault: 'a memo in the name of our key',
    terms: async (payer, stage) => [
      unitLimit(60_000),
      unitPrice(1n),
      await transferOf(payer.address, stage.recipient, PRICE.nickel),
      { ...memo('said by the shop'), accounts: [{ address: stage.settler as never, role: 2 }] },
    ],
    told: ['402 PAYMENT_TRANSACTION_UNSUITABLE'],
    atRest: '402 PAYMENT_TRANSACTION_UNSUITABLE',
    runs: 0,
    paid: 0,
    books: { released: 2 },
  },
  {
    fault: 'a budget that is not said',
    terms: async (payer, stage) => [await transferOf(payer.address, stage.recipient, PRICE.nickel)],
    told: ['402 PAYMENT_TRANSACTION_UNSUITABLE'],
    atRest: '402 PAYMENT_TRANSACTION_UNSUITABLE',
    runs: 0,
    paid: 0,
    books: { released: 2 },
  },
  {
    fault: 'the fee payer runs dry: the chain is not offered until it is filled',
    play: async (stage, header) => {
      await stage.restart({ X402_RELAYER_KEY_SOLANA: newKey() });
      assert.equal((await stage.unpaid()).accepts.length, 0);
      const refused = await stage.present(header);
      await stage.restart();
      return [refused, await stage.present(header)];
    },
    told: ['402 PAYMENT_NETWORK_UNSUPPORTED', '200'],
    ...ONE_SALE,
  },
  {
    fault:
      'the chain says that the fee payer cannot pay: refused before the service runs, until it was looked at again',
    play: async (stage, header) => {
      const result = { context: { slot: 1 }, value: { err: 'InsufficientFundsForFee' } };
      stage.node.next('simulateTransaction', { did: false, says: { result } });
      const refused = await stage.present(header);
      assert.equal((await stage.unpaid()).accepts.length, 0);
      await stage.here.app.jobs.find(({ name }) => name === 'look-at-gas')?.run();
      return [refused, await stage.present(header)];
    },
    told: ['402 PAYMENT_SETTLER_OUT_OF_GAS', '200'],
    ...ONE_SALE,
    books: { released: 1, captured: 1 },
  },
  {
    fault: 'the key is replaced while a payment is on its way',
    waits: true,
    play: async (stage, header) => {
      stage.node.next(SEND, 'request lost', 20);
      const told = await stage.present(header);
      stage.node.mend();
      await stage.restart({ X402_RELAYER_KEY_SOLANA: await stage.fundedKey() });
      await stage.rest();
      await stage.restart();
      return [told];
    },
    told: [UNKNOWN],
    ...ONE_SALE,
  },

  // Refunds.
  { fault: 'a paid call that fails', ...GIVEN_BACK, ...refundMeets(() => {}) },
  {
    fault: 'a refund that two replicas are at, again and again',
    waits: true,
    ...GIVEN_BACK,
    ...refundMeets(async (stage) => {
      for (let round = 0; round < 4; round += 1) {
        await Promise.all([stage.finish(stage.here), stage.finish(stage.there)]);
        stage.later(3_000);
      }
    }),
  },
  {
    fault: 'a refund that the node takes, and its reply gets lost',
    ...GIVEN_BACK,
    ...refundMeets((stage) => stage.node.next(SEND, 'reply lost')),
  },
  {
    fault: 'a refund that the node takes, and says no',
    ...GIVEN_BACK,
    ...refundMeets((stage) => stage.node.next(SEND, DID_IT_AND_SAID_NO)),
  },
  {
    fault: 'a refund while the node is silent',
    ...GIVEN_BACK,
    ...refundMeets(async (stage) => {
      stage.node.cut();
      await stage.finish(stage.here);
      await stage.finish(stage.here);
      stage.node.mend();
    }),
  },
  {
    fault: 'a refund whose process is killed between storing and sending',
    ...GIVEN_BACK,
    ...refundMeets((stage) => {
      const crashed = stage.crashed();
      stage.node.before(SEND, () => stage.crash());
      stage.node.next(SEND, 'request lost');
      void stage.finish(stage.here);
      return crashed;
    }),
  },
  {
    fault: 'a refund whose process is killed between sending and hearing that it landed',
    ...GIVEN_BACK,
    ...refundMeets((stage) => {
      const crashed = stage.crashed();
      stage.node.before('getEpochInfo', () => stage.crash());
      void stage.finish(stage.here);
      return crashed;
    }),
  },
  {
    fault: 'a refund that gets lost until its blockhash is over: another one is sent',
    waits: true,
    ...GIVEN_BACK,
    ...refundMeets(async (stage) => {
      await stage.chain.ask('sandbox_setFault', { fault: 'never-lands', count: 1_000 });
      await stage.finish(stage.here);
      await stage.finish(stage.here);
      await stage.chain.ask('sandbox_clearFaults');
      await stage.chain.pass(250);
    }),
  },
  {
    fault: 'a refund key without funds, until it has some',
    ...GIVEN_BACK,
    ...refundMeets(async (stage) => {
      await stage.restart({ X402_REFUND_KEY_SOLANA: newKey() });
      for (let round = 0; round < 3; round += 1) {
        await stage.finish(stage.here);
        stage.later(11_000);
      }
      assert.deepEqual(await stage.refunds(), { owed: 1, paid: 0 });
      await stage.restart();
    }),
  },
];

describe('the fault table', { concurrency: 4 }, () => {
  for (const row of ROWS.toSorted((a, b) => Number(b.waits ?? false) - Number(a.waits ?? false)))
    test(row.fault, () => prove(row));

  test('a payee without a token account gets one from us, once', async () => {
    const stage = await setStage();
    try {
      stage.script.fails = true;
      const payer = await stage.wallet();
      const [first, second] = [
        await stage.sign(payer, 'deed', 'one'),
        await stage.sign(payer, 'deed', 'two'),
      ];
      for (const header of [first, second])
        assert.equal((await stage.present(header, { path: 'deed' })).text, '503 SOURCE_DOWN');
      await stage.closeAccount(payer);
      stage.later((REFUND_AFTER_SECONDS + 1) * 1_000);
      await stage.rest();
      assert.equal(await stage.chain.holds(payer.address), 2n * PRICE.deed, 'both fit into one new account');

      const third = await stage.sign(payer, 'deed', 'three');
      assert.equal((await stage.present(third, { path: 'deed' })).text, '503 SOURCE_DOWN');
      await stage.closeAccount(payer);
      stage.later((REFUND_AFTER_SECONDS + 1) * 1_000);
      await stage.rest();
      assert.deepEqual(await stage.refunds(), { owed: 1, paid: 2 }, 'it waits until the payee opens one');
      await stage.chain.give(payer.address, { usdcUnits: 1 });
      await stage.rest();
      assert.deepEqual(await stage.refunds(), { owed: 0, paid: 3 });
      assert.equal(await stage.chain.holds(payer.address), PRICE.deed + 1n);

      // What our keys paid is known to the lamport, the deposit of the account that we opened among it.
      await stage.rest(1);
      for (const address of [stage.settler, stage.refunder]) {
        const [row] = await stage.database.sql<{ transactions: number; spent: string }[]>`
          select sum(transactions)::integer as transactions, sum(spent)::text as spent from gas_spent
          where address = ${address}`;
        const lost = SOL - (await stage.chain.lamports(address));
        assert.deepEqual({ ...row }, { transactions: 3, spent: String(lost) });
      }
    } finally {
      await stage.close();
    }
  });
});

async function prove(row: Row): Promise<void> {
  const stage = await setStage();
  try {
    const { service = 'nickel' } = row;
    const payer = await stage.wallet();
    await row.given?.(stage, payer);
    const header = await stage.sign(payer, service, 'it', await row.terms?.(payer, stage));
    const told = await (row.play?.(stage, header, payer) ??
      Promise.all([stage.present(header, { path: service })]));
    assert.deepEqual(
      told.map(({ text }) => text),
      row.told,
      [...told.map(({ body }) => body), ...stage.here.log.slice(-5)].join('\n'),
    );
    stage.node.mend();
    await stage.rest();
    if (row.atRest !== null) {
      const last = await stage.present(header, { path: service });
      assert(row.atRest.split('|').includes(last.text), `at rest it gets ${last.text}: ${last.body}`);
    }
    await stage.rest(1);
    const { paid, refunded = 0 } = row;
    assert.equal(stage.script.runs, row.runs, 'runs of the service');
    assert.equal(await stage.chain.holds(stage.recipient), PRICE[service] * BigInt(paid), 'came');
    assert.equal(
      stage.refundsAtFirst - (await stage.chain.holds(stage.refunder)),
      PRICE[service] * BigInt(refunded),
      'went back',
    );
    const { capturedMicros, ...calls } = await stage.calls();
    assert.deepEqual(calls, { open: 0, captured: 0, released: 0, withChain: 0, ...row.books });
    assert.equal(capturedMicros, PRICE[service] * BigInt(paid), 'what moved is not what was captured');
    assert.deepEqual(await stage.refunds(), { owed: 0, paid: refunded });
    const books = await proveBooks(stage.database.sql);
    assert.deepEqual(
      books.checks.filter(({ ok }) => !ok),
      [],
    );
  } finally {
    await stage.close();
  }
}

/** A key as Solana's tools write it, of a wallet that holds nothing. */
function newKey(): string {
  const { privateKey } = generateKeyPairSync('ed25519');
  const { d = '', x = '' } = privateKey.export({ format: 'jwk' });
  return getBase58Decoder().decode(Buffer.concat([Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]));
}
const addressOf = (key: string) => readSolanaKey(key).address;

type Stage = Awaited<ReturnType<typeof setStage>>;

/** A shop and a chain of its own: a database, a recipient, keys, two replicas, a wire to the node. */
async function setStage() {
  // Faults, and slots that pass at once, are the whole chain's.
  const chain = await startSolana({ seed: SEED, stateDir: null });
  const node = await startNodeWire(chain.url);
  const way = solanaNode(chain.url);
  const database = await openTestDatabase();
  const elsewhere = connectPools(database.url, 6);
  const [recipient, settlerKey, refundKey] = [(await generateKeyPairSigner()).address, newKey(), newKey()];
  const [settler, refunder] = [addressOf(settlerKey), addressOf(refundKey)];
  // What is given opens its account; it goes to somebody else again.
  await way.give(recipient, { usdcUnits: 1 });
  await way.give(settler, { lamports: SOL });
  await way.give(refunder, { lamports: SOL, usdcUnits: 5_000_000 });
  const receivedAtFirst = 1n;
  let aheadMs = 0;
  const nowMs = () => Date.now() + aheadMs;
  const script = { runs: 0, fails: false, during: async (): Promise<void> => {} };
  const services = (['nickel', 'deed'] as const).map(
    (path): Service =>
      defineService({
        path,
        name: path,
        tag: 'Discovery',
        priceUsd: path === 'nickel' ? '0.05' : '0.10',
        summary: 'For tests.',
        effect: path === 'nickel' ? 'read' : 'write',
        timeoutMs: 3_000,
        input: z.object({ name: z.string().default('a') }),
        output: z.object({ name: z.string(), run: z.number().int() }),
        example: { name: 'a' },
        async run({ name }) {
          script.runs += 1;
          await script.during();
          if (script.fails)
            throw new ServiceFailure({ status: 503, code: 'SOURCE_DOWN', message: 'The source is down.' });
          return answer({ name, run: script.runs }, { method: 'Counted.' });
        },
      }),
  );
  const environment: Record<string, string> = {
    X402_NETWORKS: 'solana',
    UPSTREAM_SOLANA_BASE_URL: node.url,
    X402_RECIPIENT_SOLANA: recipient,
    X402_RELAYER_KEY_SOLANA: settlerKey,
    X402_REFUND_KEY_SOLANA: refundKey,
    X402_REFUND_AFTER_SECONDS: String(REFUND_AFTER_SECONDS),
    FACILITATOR_URL: '',
  };
  const open = (pools: Pools, more = {}) =>
    startTestServer({ pools, services, nowMs, environment: { ...environment, ...more } });
  let life = { isOver: false };
  let [here, there] = await Promise.all([open(ofLife(database, life)), open(elsewhere)]);
  const dying: Promise<void>[] = [];
  let crashes = Promise.withResolvers<void>();

  const stage = {
    chain: {
      ...way,
      holds: async (owner: string) => (await way.holds(owner)) - (owner === recipient ? receivedAtFirst : 0n),
    },
    node,
    database,
    recipient,
    settler,
    refunder,
    refundsAtFirst: 5_000_000n,
    script,
    get here() {
      return here;
    },
    get there() {
      return there;
    },
    later(ms: number): void {
      aheadMs += ms;
    },
    async wallet(): Promise<KeyPairSigner> {
      const payer = await generateKeyPairSigner();
      await way.give(payer.address, { usdcUnits: 5_000_000 });
      return payer;
    },
    async fundedKey(): Promise<string> {
      const key = newKey();
      await way.give(addressOf(key), { lamports: SOL });
      return key;
    },
    /** All that the wallet holds goes elsewhere. */
    async empty(payer: KeyPairSigner): Promise<void> {
      const units = await way.holds(payer.address);
      if (units === 0n) return;
      const other = (await generateKeyPairSigner()).address;
      await way.give(other, { usdcUnits: 1 });
      await way.give(payer.address, { lamports: SOL });
      const { wire } = await signTransaction([await transferOf(payer.address, other, units)], {
        feePayer: payer.address,
        blockhash: await way.blockhash(),
        signers: [payer],
      });
      await way.send(wire);
    },
    /** Empties the wallet's token account and closes it. */
    async closeAccount(payer: KeyPairSigner): Promise<void> {
      await stage.empty(payer);
      const { wire } = await signTransaction([await closing(payer.address)], {
        feePayer: payer.address,
        blockhash: await way.blockhash(),
        signers: [payer],
      });
      await way.send(wire);
    },
    async unpaid(path: 'nickel' | 'deed' = 'nickel') {
      const challenge = await fetch(`${here.url}/x402/${path}`, { method: 'POST' });
      await challenge.text();
      const required = challenge.headers.get('payment-required');
      return required === null ? { accepts: [] } : JSON.parse(Buffer.from(required, 'base64').toString());
    },
    /** The header of a payment: with these instructions, or as the published client makes it. */
    async sign(
      payer: KeyPairSigner,
      path: 'nickel' | 'deed',
      text: string,
      instructions?: readonly Instruction[],
    ): Promise<string> {
      const required = await stage.unpaid(path);
      const [accepted] = required.accepts;
      assert.equal(accepted.extra.feePayer, settler);
      const { wire } = await signTransaction(
        instructions ?? [
          unitLimit(60_000),
          unitPrice(1n),
          await transferOf(payer.address, recipient, PRICE[path]),
          memo(text),
        ],
        { feePayer: settler, blockhash: await way.blockhash(), signers: [payer] },
      );
      const payment = {
        x402Version: 2,
        accepted,
        payload: { transaction: wire },
        resource: required.resource,
      };
      return Buffer.from(JSON.stringify(payment)).toString('base64');
    },
    async present(
      header: string,
      { path = 'nickel', on = here }: { path?: string; on?: TestServer } = {},
    ): Promise<Told> {
      const response = await fetch(`${on.url}/x402/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'payment-signature': header },
        body: '{}',
      });
      const body = await response.text();
      const { status } = response;
      const said: { code?: string; last_error_reason?: { code?: string } } = JSON.parse(body);
      const code = said.last_error_reason?.code ?? said.code ?? null;
      const again = response.headers.get('idempotent-replayed') === 'true';
      const text = [String(status), ...(code === null ? [] : [code]), ...(again ? ['again'] : [])].join(' ');
      return { status, text, body };
    },
    async restart(more: Record<string, string> = {}): Promise<void> {
      await here.close();
      life = { isOver: false };
      here = await open(ofLife(database, life), more);
    },
    /** The process of `here` ends between two steps: it writes nothing more, and its connections break. */
    async crash(): Promise<void> {
      const { http } = here.app;
      life.isOver = true;
      http.server.closeAllConnections();
      dying.push(http.close());
      life = { isOver: false };
      here = await open(ofLife(database, life));
      crashes.resolve();
      crashes = Promise.withResolvers();
    },
    crashed: () => crashes.promise,
    finish: (on: TestServer) => on.app.settlementFinisher.run(),
    /** Lets the jobs do what is left to do; both clocks go on between their rounds. */
    async rest(rounds = 4): Promise<void> {
      for (let round = 0; round < rounds; round += 1) {
        aheadMs += 65_000;
        await here.app.jobs.find(({ name }) => name === 'resume-relayers')?.run();
        await here.app.reconciler.run();
        await stage.finish(here);
        await way.pass(40);
      }
    },
    async refunds(): Promise<{ owed: number; paid: number }> {
      const [row] = await database.sql<{ owed: number; paid: number }[]>`
        select count(*) filter (where state = 0)::integer as owed, count(*) filter (where state = 1)::integer as paid
        from refunds`;
      return { owed: row?.owed ?? 0, paid: row?.paid ?? 0 };
    },
    async calls() {
      const rows = await database.sql<{ state: number; count: number; micros: bigint }[]>`
        select state, count(*)::integer as count, sum(price_micros)::bigint as micros from calls group by state`;
      const of = (state: number) => rows.find((row) => row.state === state);
      return {
        open: of(0)?.count ?? 0,
        captured: of(1)?.count ?? 0,
        released: of(2)?.count ?? 0,
        withChain: of(3)?.count ?? 0,
        capturedMicros: of(1)?.micros ?? 0n,
      };
    },
    async close(): Promise<void> {
      node.mend();
      await Promise.all([here.close(), there.close(), ...dying]);
      await Promise.all([node.close(), endPools(elsewhere, 1)]);
      await Promise.all([database.close(), chain.stop()]);
    },
  };
  return stage;
}
