/**
 * A stage for one fault of Solana: a shop of its own with a chain of its own, since faults and slots that pass at once are the
 * whole chain's. It settles with a fee payer of its own, and pays refunds.
 */
import assert from 'node:assert/strict';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { generateKeyPairSigner, getBase58Decoder, type Instruction, type KeyPairSigner } from '@solana/kit';
import { connectPools, endPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { readSolanaKey } from '../../../../packages/core/src/rails/x402/solana-key.ts';
import { SEED } from '../../../../packages/sandbox/src/accounts.fixture.ts';
import { startSolana } from '../../../../packages/sandbox/src/solana/solana.ts';
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
import { countingServices } from './counting-services.fixture.ts';
import type { Asking } from './fault-table.fixture.ts';
import { startNodeWire } from './x402-node.fixture.ts';
import { ofLife } from './x402-stage.fixture.ts';
import { assertProperX402, type Told, toldOf } from './x402-told.fixture.ts';

export const PRICE = { nickel: 50_000n, deed: 100_000n };
export const REFUND_AFTER_SECONDS = 60;
/** Lamports. */
export const SOL = 1e9;

/** A key as Solana's tools write it, of a wallet that holds nothing. */
export function newKey(): string {
  const { privateKey } = generateKeyPairSync('ed25519');
  const { d = '', x = '' } = privateKey.export({ format: 'jwk' });
  return getBase58Decoder().decode(Buffer.concat([Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]));
}
const addressOf = (key: string) => readSolanaKey(key).address;

export type Stage = Awaited<ReturnType<typeof setStage>>;

export async function setStage() {
  const chain = await startSolana({ seed: SEED, stateDir: null });
  const node = await startNodeWire(chain.url);
  const way = solanaNode(chain.url);
  const database = await openTestDatabase();
  const elsewhere = connectPools(database.url, 6);
  const [recipient, settlerKey, refundKey] = [(await generateKeyPairSigner()).address, newKey(), newKey()];
  const [settler, refunder] = [addressOf(settlerKey), addressOf(refundKey)];
  const elsewhereTo = (await generateKeyPairSigner()).address;
  // What is given opens an account.
  for (const to of [recipient, elsewhereTo]) await way.give(to, { usdcUnits: 1 });
  await way.give(settler, { lamports: SOL });
  await way.give(refunder, { lamports: SOL, usdcUnits: 5_000_000 });
  let aheadMs = 0;
  const nowMs = () => Date.now() + aheadMs;
  const script = { runs: 0, during: async (_run: number): Promise<void> => {} };
  const services = countingServices(script, { nickel: '0.05', deed: '0.10' }, 3_000);
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
  /** The settings that it was told to have otherwise; null: none. */
  let otherwise: Record<string, string> | null = null;
  /** The money, the calls and the refunds when the row began. */
  let before: { movedUnits: bigint; calls: readonly string[]; refunds: readonly string[] } = {
    movedUnits: 1n,
    calls: [],
    refunds: [],
  };

  const stage = {
    chain: way,
    node,
    database,
    recipient,
    settler,
    refunder,
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
    async wallet(usd = 5): Promise<KeyPairSigner> {
      const payer = await generateKeyPairSigner();
      await way.give(payer.address, { usdcUnits: Math.round(usd * 1e6) });
      return payer;
    },
    pay: (payer: KeyPairSigner, path?: string): Promise<string> =>
      stage.sign(payer, path === 'deed' ? path : 'nickel'),
    priceOf: (path: string): bigint => (path === 'deed' ? PRICE.deed : PRICE.nickel),
    held: (payer: KeyPairSigner): Promise<bigint> => way.holds(payer.address),
    moved: async (): Promise<bigint> => (await way.holds(recipient)) - before.movedUnits,
    /** The sum that the key for refunds has sent away. */
    sentBack: async (): Promise<bigint> => -(await way.holds(refunder)),
    receiptOf: ({ transaction }: Told): string | null => transaction,
    otherRecipient: { X402_RECIPIENT_SOLANA: elsewhereTo } as Record<string, string>,
    /** It settles by itself: there is nobody but the node. */
    nobodyElse: {} as Record<string, string>,
    async reset(): Promise<void> {
      node.mend();
      await way.ask('sandbox_clearFaults');
      script.runs = 0;
      script.during = async () => {};
      aheadMs = 0;
      if (otherwise !== null) await stage.restart();
      // What has come to its end is not looked at again, and meets no fault of somebody else.
      await database.patient`update settlements set final_at = now() where final_at is null`;
      const calls = await database.patient<{ id: string }[]>`select id from calls`;
      const refunds = await database.patient<{ call_id: string }[]>`select call_id from refunds`;
      before = {
        movedUnits: await way.holds(recipient),
        calls: calls.map(({ id }) => id),
        refunds: refunds.map((row) => row.call_id),
      };
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
          memo(randomUUID()),
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
    async present(header: string, asking: Asking = {}): Promise<Told> {
      const { path = 'nickel', body = {}, on = here, signal, send = fetch } = asking;
      const response = await send(`${on.url}/x402/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'payment-signature': header },
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...(signal === undefined ? {} : { signal }),
      });
      return toldOf(response, header);
    },
    /** A new process on the same database. */
    async restart(more?: Record<string, string>): Promise<void> {
      await here.close();
      life = { isOver: false };
      otherwise = more ?? null;
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
        await way.pass(15);
      }
    },
    async refunds(): Promise<{ owed: number; paid: number }> {
      const [row] = await database.patient<{ owed: number; paid: number }[]>`
        select count(*) filter (where state = 0)::integer as owed, count(*) filter (where state = 1)::integer as paid
        from refunds where not call_id = any(${before.refunds as string[]}::uuid[])`;
      return { owed: row?.owed ?? 0, paid: row?.paid ?? 0 };
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
      assert.equal((await stage.refunds()).owed, 0);
      const { checks } = await proveBooks(database.patient);
      assert.deepEqual(
        checks.filter(({ ok }) => !ok),
        [],
      );
    },
    /** Asserts what must hold of every answer, whatever happened. */
    async assertProper(told: Told): Promise<void> {
      assertProperX402(told);
      if (told.status !== 200) return;
      const { value } = await way.ask<{ value: ({ err: unknown } | null)[] }>(
        'getSignatureStatuses',
        [told.transaction],
        { searchTransactionHistory: true },
      );
      assert.equal(value[0]?.err, null, 'the receipt names a transaction that the chain does not have');
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
