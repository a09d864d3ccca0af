import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type Address,
  appendTransactionMessageInstructions,
  type Base64EncodedWireTransaction,
  type Blockhash,
  createSolanaRpc,
  createSolanaRpcSubscriptions,
  createTransactionMessage,
  generateKeyPairSigner,
  getBase64EncodedWireTransaction,
  getSignatureFromTransaction,
  type Instruction,
  type KeyPairSigner,
  lamports,
  type Signature,
  sendAndConfirmTransactionFactory,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from '@solana/kit';
import {
  getCreateAssociatedTokenIdempotentInstruction,
  getTransferCheckedInstruction,
} from '@solana-program/token';
import { x402Client } from '@x402/core/client';
import { x402Facilitator } from '@x402/core/facilitator';
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import { toFacilitatorSvmSigner } from '@x402/svm';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { registerExactSvmScheme } from '@x402/svm/exact/facilitator';
import { SEED, secretKeyOf, signerOf } from '../accounts.fixture.ts';
import { secretKeyOf as secretKeyOfAny } from './accounts.ts';
import { usdcAccountOf } from './genesis.ts';
import { TOKEN_PROGRAM, USDC_MINT } from './programs.ts';
import { type SolanaChain, startSolana } from './solana.ts';

const NETWORK = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const SOL = 1_000_000_000;

async function chainFor(context: TestContext, stateDir: string | null = null): Promise<SolanaChain> {
  const chain = await startSolana({ seed: SEED, stateDir });
  context.after(() => chain.stop());
  return chain;
}

interface Reply {
  id: unknown;
  result?: unknown;
  error?: { code: number; message: string; data?: unknown };
}

function post(url: string, body: string): Promise<Response> {
  return fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
}

async function call(url: string, method: string, ...params: unknown[]): Promise<Reply> {
  const response = await post(url, JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
  return (await response.json()) as Reply;
}

async function funded(url: string, usdcUnits = 5_000_000): Promise<KeyPairSigner> {
  const wallet = await generateKeyPairSigner();
  const { error } = await call(url, 'sandbox_fund', wallet.address, { lamports: SOL, usdcUnits });
  assert.equal(error, undefined);
  return wallet;
}

async function usdcOf(url: string, owner: Address): Promise<string> {
  const rpc = createSolanaRpc(url);
  const { value } = await rpc.getTokenAccountBalance(await usdcAccountOf(owner)).send();
  return value.amount;
}

interface Lifetime {
  blockhash: Blockhash;
  lastValidBlockHeight: bigint;
}

async function lifetimeOf(url: string): Promise<Lifetime> {
  return (await createSolanaRpc(url).getLatestBlockhash().send()).value;
}

function signed(payer: KeyPairSigner, lifetime: Lifetime, instructions: readonly Instruction[]) {
  const empty = setTransactionMessageFeePayerSigner(payer, createTransactionMessage({ version: 0 }));
  const timed = setTransactionMessageLifetimeUsingBlockhash(lifetime, empty);
  return signTransactionMessageWithSigners(appendTransactionMessageInstructions(instructions, timed));
}

async function transferOf(from: KeyPairSigner, to: Address, amount: bigint): Promise<Instruction> {
  return getTransferCheckedInstruction({
    source: await usdcAccountOf(from.address),
    mint: USDC_MINT,
    destination: await usdcAccountOf(to),
    authority: from,
    amount,
    decimals: 6,
  });
}

async function wireTransfer(url: string, from: KeyPairSigner, to: Address, amount: bigint) {
  const transaction = await signed(from, await lifetimeOf(url), [await transferOf(from, to, amount)]);
  return {
    wire: getBase64EncodedWireTransaction(transaction),
    signature: getSignatureFromTransaction(transaction),
  };
}

const sending = (wire: string, skipPreflight = false) =>
  [wire, { encoding: 'base64', skipPreflight }] as const;

describe('with the client library', () => {
  test('a token transfer is confirmed over the websocket and read back with what it did', async (context) => {
    const { url, wsUrl } = await chainFor(context);
    const rpc = createSolanaRpc(url);
    const rpcSubscriptions = createSolanaRpcSubscriptions(wsUrl);
    const from = await funded(url);
    const to = await generateKeyPairSigner();
    const ata = await usdcAccountOf(to.address);
    const transaction = await signed(from, await lifetimeOf(url), [
      getCreateAssociatedTokenIdempotentInstruction({ payer: from, ata, owner: to.address, mint: USDC_MINT }),
      await transferOf(from, to.address, 1_250_000n),
    ]);

    await sendAndConfirmTransactionFactory({ rpc, rpcSubscriptions })(
      { ...transaction, lifetimeConstraint: transaction.lifetimeConstraint as Lifetime },
      { commitment: 'confirmed' },
    );

    assert.equal(await usdcOf(url, to.address), '1250000');
    assert.equal(await usdcOf(url, from.address), '3750000');
    const signature = getSignatureFromTransaction(transaction);
    const config = { commitment: 'confirmed', maxSupportedTransactionVersion: 0 } as const;
    const parsed = await rpc.getTransaction(signature, { ...config, encoding: 'jsonParsed' }).send();
    assert.ok(parsed?.meta);
    assert.equal(parsed.meta.fee, 5_000n);
    // 2,039,280 lamports are what 165 bytes of a token account must hold on mainnet.
    assert.equal(Number(parsed.meta.preBalances[0]) - Number(parsed.meta.postBalances[0]), 2_039_280 + 5_000);
    assert.deepEqual(
      parsed.meta.postTokenBalances
        ?.map(({ owner, uiTokenAmount }) => [owner, uiTokenAmount.uiAmountString])
        .sort(),
      [
        [from.address, '3.75'],
        [to.address, '1.25'],
      ].sort(),
    );
    assert.equal(parsed.meta.preTokenBalances?.length, 1);
    const transfer = parsed.transaction.message.instructions[1];
    assert.ok(transfer && 'parsed' in transfer);
    assert.equal(transfer.parsed.type, 'transferChecked');
    const asJson = await rpc.getTransaction(signature, { ...config, encoding: 'json' }).send();
    assert.equal(asJson?.transaction.message.header.numRequiredSignatures, 1);
    const asBase64 = await rpc.getTransaction(signature, { ...config, encoding: 'base64' }).send();
    assert.deepEqual(asBase64?.transaction, [getBase64EncodedWireTransaction(transaction), 'base64']);
    const listed = await rpc.getSignaturesForAddress(ata, { commitment: 'confirmed' }).send();
    assert.deepEqual(
      listed.map((one) => one.signature),
      [signature],
    );
    const held = await rpc
      .getTokenAccountsByOwner(to.address, { programId: TOKEN_PROGRAM }, { encoding: 'jsonParsed' })
      .send();
    assert.equal(held.value[0]?.pubkey, ata);
    assert.equal(held.value[0]?.account.data.parsed.info.tokenAmount.uiAmountString, '1.25');
  });

  test('a subscription to finality is told when 32 slots have passed, not before', async (context) => {
    const { url, wsUrl } = await chainFor(context);
    const from = await funded(url);
    const { wire, signature } = await wireTransfer(url, from, (await signerOf('recipient')).address, 1n);
    const abort = new AbortController();
    const notifications = await createSolanaRpcSubscriptions(wsUrl)
      .signatureNotifications(signature, { commitment: 'finalized' })
      .subscribe({ abortSignal: abort.signal });
    const told = notifications[Symbol.asyncIterator]().next();

    await call(url, 'sendTransaction', ...sending(wire));
    const early = await createSolanaRpc(url)
      .getTransaction(signature, {
        commitment: 'finalized',
        encoding: 'json',
        maxSupportedTransactionVersion: 0,
      })
      .send();
    await call(url, 'sandbox_advanceSlots', 32);

    assert.equal(early, null);
    assert.equal((await told).value?.value.err, null);
    const { value } = await createSolanaRpc(url).getSignatureStatuses([signature]).send();
    assert.equal(value[0]?.confirmationStatus, 'finalized');
    abort.abort();
  });
});

describe('with the x402 client and facilitator', () => {
  async function payment(url: string, payer: KeyPairSigner) {
    const feePayer = await signerOf('facilitator');
    const accepted: PaymentRequirements = {
      scheme: 'exact',
      network: NETWORK,
      asset: USDC_MINT,
      amount: '250000',
      payTo: (await signerOf('recipient')).address,
      maxTimeoutSeconds: 60,
      extra: { feePayer: feePayer.address },
    };
    const client = new x402Client().register('solana:*', new ExactSvmScheme(payer, { rpcUrl: url }));
    const payload: PaymentPayload = await client.createPaymentPayload({
      x402Version: 2,
      resource: { url: 'http://127.0.0.1/paid', description: 'paid', mimeType: 'application/json' },
      accepts: [accepted],
    });
    return { accepted, payload };
  }

  async function facilitatorFor(url: string) {
    const signer = toFacilitatorSvmSigner(await signerOf('facilitator'), { defaultRpcUrl: url });
    return registerExactSvmScheme(new x402Facilitator(), { signer, networks: NETWORK });
  }

  test('a payment verifies and settles once; the payer needs no SOL', async (context) => {
    const { url } = await chainFor(context);
    const payer = await generateKeyPairSigner();
    await call(url, 'sandbox_fund', payer.address, { usdcUnits: 1_000_000 });
    const { accepted, payload } = await payment(url, payer);
    const facilitator = await facilitatorFor(url);

    const verified = await facilitator.verify(payload, accepted);
    const settled = await facilitator.settle(payload, accepted);
    const again = await facilitator.settle(payload, accepted);
    // Another facilitator does not remember the payment; there the chain refuses it.
    const elsewhere = await (await facilitatorFor(url)).verify(payload, accepted);

    assert.deepEqual([verified.isValid, verified.payer], [true, payer.address]);
    assert.equal(settled.success, true);
    assert.equal(again.success, false);
    assert.equal(again.errorReason, 'duplicate_settlement');
    assert.equal(elsewhere.isValid, false);
    assert.match(elsewhere.invalidMessage ?? '', /AlreadyProcessed/);
    assert.equal(await usdcOf(url, payer.address), '750000');
    assert.equal(await usdcOf(url, (await signerOf('recipient')).address), '250000');
  });

  test('a payment is refused once its blockhash has expired', async (context) => {
    const { url } = await chainFor(context);
    const payer = await funded(url);
    const { accepted, payload } = await payment(url, payer);
    await call(url, 'sandbox_advanceSlots', 151);
    const verified = await (await facilitatorFor(url)).verify(payload, accepted);
    assert.equal(verified.isValid, false);
    assert.match(verified.invalidMessage ?? '', /BlockhashNotFound/);
  });
});

describe('as a node', () => {
  test('a blockhash can be used for 150 slots', async (context) => {
    const { url } = await chainFor(context);
    const from = await funded(url);
    const { address: to } = await signerOf('recipient');
    const { blockhash } = await lifetimeOf(url);
    const { wire } = await wireTransfer(url, from, to, 1n);

    await call(url, 'sandbox_advanceSlots', 140);
    const before = await call(url, 'isBlockhashValid', blockhash);
    await call(url, 'sandbox_advanceSlots', 11);
    const after = await call(url, 'isBlockhashValid', blockhash);
    const refused = await call(url, 'sendTransaction', ...sending(wire));
    const unseen = await call(url, 'sendTransaction', ...sending(wire, true));

    assert.equal((before.result as { value: boolean }).value, true);
    assert.equal((after.result as { value: boolean }).value, false);
    assert.equal(refused.error?.code, -32002);
    assert.equal(refused.error?.message, 'Transaction simulation failed: Blockhash not found');
    assert.equal((refused.error?.data as { err?: unknown } | undefined)?.err, 'BlockhashNotFound');
    assert.equal(typeof unseen.result, 'string');
    const { value } = await createSolanaRpc(url)
      .getSignatureStatuses([unseen.result as Signature])
      .send();
    assert.deepEqual(value, [null]);
    assert.equal(await usdcOf(url, to), '0');
  });

  test('a transaction runs once, however often it is sent', async (context) => {
    const { url } = await chainFor(context);
    const from = await funded(url);
    const { address: to } = await signerOf('recipient');
    const { wire, signature } = await wireTransfer(url, from, to, 7n);
    for (const skipPreflight of [false, true, false])
      assert.equal((await call(url, 'sendTransaction', ...sending(wire, skipPreflight))).result, signature);
    assert.equal(await usdcOf(url, to), '7');
  });

  test('a failing instruction lands and pays only without preflight; a bad signature never does', async (context) => {
    const { url } = await chainFor(context);
    const rpc = createSolanaRpc(url);
    const from = await funded(url, 10);
    const { address: to } = await signerOf('recipient');
    const tooMuch = await wireTransfer(url, from, to, 11n);
    const forged = Buffer.from((await wireTransfer(url, from, to, 1n)).wire, 'base64').fill(7, 1, 65);

    const preflight = await call(url, 'sendTransaction', ...sending(tooMuch.wire));
    const { value: untouched } = await rpc.getBalance(from.address).send();
    await call(url, 'sendTransaction', ...sending(tooMuch.wire, true));
    const { value: charged } = await rpc.getBalance(from.address).send();
    const refused = await call(url, 'sendTransaction', ...sending(forged.toString('base64')));
    const dropped = await call(url, 'sendTransaction', ...sending(forged.toString('base64'), true));

    // 1 is the token program's "insufficient funds".
    assert.equal(
      preflight.error?.message,
      'Transaction simulation failed: Error processing Instruction 0: custom program error: 0x1',
    );
    assert.equal(untouched, lamports(BigInt(SOL)));
    assert.equal(untouched - charged, 5_000n);
    assert.equal(refused.error?.code, -32003);
    const { value } = await rpc.getSignatureStatuses([tooMuch.signature, dropped.result as Signature]).send();
    assert.deepEqual(value[0]?.err, { InstructionError: [0n, { Custom: 1n }] });
    assert.equal(value[1], null);
  });

  test('an unsigned transaction with any blockhash can be simulated', async (context) => {
    const { url } = await chainFor(context);
    const from = await funded(url);
    const { address: to } = await signerOf('recipient');
    const lifetime = { blockhash: USDC_MINT as string as Blockhash, lastValidBlockHeight: 0n };
    const transaction = await signed(from, lifetime, [await transferOf(from, to, 1n)]);
    const unsigned = Buffer.from(getBase64EncodedWireTransaction(transaction), 'base64').fill(0, 1, 65);
    const wire = unsigned.toString('base64') as Base64EncodedWireTransaction;
    const rpc = createSolanaRpc(url);

    const ata = await usdcAccountOf(to);
    const replaced = await rpc
      .simulateTransaction(wire, {
        encoding: 'base64',
        replaceRecentBlockhash: true,
        accounts: { addresses: [ata], encoding: 'jsonParsed' },
      })
      .send();
    const kept = await rpc.simulateTransaction(wire, { encoding: 'base64' }).send();
    const verified = await call(url, 'simulateTransaction', wire, { encoding: 'base64', sigVerify: true });

    assert.equal(replaced.value.err, null);
    const [shown] = replaced.value.accounts;
    assert.ok(shown && 'parsed' in shown.data);
    assert.equal(await usdcOf(url, to), '0');
    assert.match(JSON.stringify(shown.data.parsed), /"amount":"1"/);
    assert.equal(kept.value.err, 'BlockhashNotFound');
    assert.equal(verified.error?.code, -32003);
    // A missing signature is refused again after a simulation that checked no signatures.
    const sent = await call(url, 'sendTransaction', ...sending(wire));
    assert.equal(sent.error?.code, -32003);
  });

  test('the fee that is foretold is the fee that is paid', async (context) => {
    const { url } = await chainFor(context);
    const rpc = createSolanaRpc(url);
    const from = await funded(url);
    const unitLimit = Uint8Array.of(2, 0x20, 0x4e, 0, 0);
    const unitPrice = Uint8Array.of(3, 0x40, 0x4b, 0x4c, 0, 0, 0, 0, 0);
    const budget = 'ComputeBudget111111111111111111111111111111' as Address;
    const transaction = await signed(from, await lifetimeOf(url), [
      { programAddress: budget, data: unitLimit },
      { programAddress: budget, data: unitPrice },
      await transferOf(from, (await signerOf('recipient')).address, 1n),
    ]);
    const message = Buffer.from(transaction.messageBytes).toString('base64');
    const foretold = await call(url, 'getFeeForMessage', message);
    const before = await rpc.getBalance(from.address).send();
    await call(url, 'sendTransaction', ...sending(getBase64EncodedWireTransaction(transaction)));
    const after = await rpc.getBalance(from.address).send();
    // One signature, and 20,000 units at 5,000,000 millionths of a lamport.
    assert.equal((foretold.result as { value: number }).value, 105_000);
    assert.equal(before.value - after.value, 105_000n);
  });

  test('junk is answered with an error and hurts nobody', async (context) => {
    const { url, wsUrl } = await chainFor(context);
    const from = await funded(url);
    const { wire } = await wireTransfer(url, from, (await signerOf('recipient')).address, 1n);
    const codeOf = async (body: string) => ((await (await post(url, body)).json()) as Reply).error?.code;

    assert.equal(await codeOf('{'), -32700);
    assert.equal(await codeOf(''), -32700);
    assert.equal(await codeOf('[]'), -32600);
    assert.equal(await codeOf('null'), -32600);
    assert.equal(await codeOf('{"jsonrpc":"2.0","id":1,"method":7}'), -32600);
    assert.equal((await call(url, 'getAccountInfo')).error?.code, -32602);
    assert.equal((await call(url, 'constructor')).error?.code, -32601);
    assert.equal((await call(url, 'getBalance', 'l0l')).error?.code, -32602);
    assert.equal((await call(url, 'getSignatureStatuses', ['x'])).error?.code, -32602);
    assert.equal((await call(url, 'sendTransaction', 'AAAA', { encoding: 'base64' })).error?.code, -32602);
    assert.equal((await post(url, ' '.repeat(300_000))).status, 413);
    const balance = await call(url, 'getTokenAccountBalance', from.address);
    assert.equal(balance.error?.message, 'Invalid param: not a Token account');

    // LiteSVM ends the process on bytes that are no transaction, so every kind of damage must be refused before it.
    const bytes = Buffer.from(wire, 'base64');
    const damaged: unknown[] = [];
    for (let at = 0; at < bytes.length; at++) {
      for (const value of [0, 0x7f, 0xff]) {
        const one = Buffer.from(bytes);
        one[at] = value;
        damaged.push({
          jsonrpc: '2.0',
          id: at,
          method: 'simulateTransaction',
          params: sending(one.toString('base64')),
        });
      }
      const cut = bytes.subarray(0, at).toString('base64');
      damaged.push({ jsonrpc: '2.0', id: at, method: 'simulateTransaction', params: sending(cut) });
    }
    for (let from = 0; from < damaged.length; from += 100) {
      const batch = damaged.slice(from, from + 100);
      const replies = (await (await post(url, JSON.stringify(batch))).json()) as Reply[];
      assert.equal(replies.length, batch.length);
      for (const { error } of replies) assert.ok(error === undefined || error.code === -32602);
    }

    const socket = new WebSocket(wsUrl);
    await new Promise((opened) => socket.addEventListener('open', opened));
    const answered = new Promise<string>((resolve) =>
      socket.addEventListener('message', ({ data }) => resolve(String(data))),
    );
    socket.send('{"jsonrpc":"2.0","id":1,"method":"slotSubscribe","params":[');
    assert.match(await answered, /-32700/);
    socket.close();
    assert.equal((await call(url, 'getHealth')).result, 'ok');
  });

  test('faults happen as often as they were ordered', async (context) => {
    const { url } = await chainFor(context);
    const from = await funded(url);
    const { address: to } = await signerOf('recipient');
    const lost = await wireTransfer(url, from, to, 1n);
    const cut = await wireTransfer(url, from, to, 2n);

    await call(url, 'sandbox_setFault', { fault: 'refuse' });
    assert.equal((await call(url, 'sendTransaction', ...sending(lost.wire))).error?.code, -32005);
    await call(url, 'sandbox_setFault', { fault: 'never-lands' });
    assert.equal((await call(url, 'sendTransaction', ...sending(lost.wire))).result, lost.signature);
    assert.equal(await usdcOf(url, to), '0');
    await call(url, 'sandbox_setFault', { fault: 'drop-reply' });
    await assert.rejects(call(url, 'sendTransaction', ...sending(cut.wire)));
    assert.equal(await usdcOf(url, to), '2');
    await call(url, 'sandbox_setFault', { fault: 'status', httpStatus: 503, count: 2 });
    for (const expected of [503, 503, 200])
      assert.equal((await post(url, '{"jsonrpc":"2.0","id":1,"method":"getSlot"}')).status, expected);
    await call(url, 'sandbox_setFault', { fault: 'refuse', count: 1_000 });
    await call(url, 'sandbox_clearFaults');
    assert.equal((await call(url, 'sendTransaction', ...sending(lost.wire))).result, lost.signature);
    assert.equal(await usdcOf(url, to), '3');
  });
});

test('the chain goes on after a restart, and knows what landed', async (context) => {
  const stateDir = mkdtempSync(join(tmpdir(), 'farebox-solana-'));
  const first = await startSolana({ seed: SEED, stateDir });
  const from = await funded(first.url);
  const { address: to } = await signerOf('recipient');
  const { wire, signature } = await wireTransfer(first.url, from, to, 9n);
  await call(first.url, 'sendTransaction', ...sending(wire));
  await call(first.url, 'sandbox_advanceSlots', 100);
  const slot = Number((await call(first.url, 'getSlot')).result);
  await first.stop();

  const { url } = await chainFor(context, stateDir);
  context.after(() => rmSync(stateDir, { recursive: true }));

  assert.ok(Number((await call(url, 'getSlot')).result) >= slot);
  assert.equal(await usdcOf(url, to), '9');
  const { value } = await createSolanaRpc(url).getSignatureStatuses([signature]).send();
  assert.equal(value[0]?.err, null);
  // The transaction's blockhash can still be used, and yet the transaction does not run again.
  assert.equal((await call(url, 'sendTransaction', ...sending(wire))).result, signature);
  assert.equal(await usdcOf(url, to), '9');
  const again = await wireTransfer(url, from, to, 1n);
  assert.equal((await call(url, 'sendTransaction', ...sending(again.wire))).result, again.signature);
});

test('what happened is on disk before the node stops; a damaged file is refused', async (context) => {
  const [stateDir, copyDir] = ['running', 'copy'].map((name) =>
    mkdtempSync(join(tmpdir(), `farebox-${name}-`)),
  );
  assert.ok(stateDir && copyDir);
  const { url } = await chainFor(context, stateDir);
  const from = await funded(url);
  const { address: to } = await signerOf('recipient');
  const { wire, signature } = await wireTransfer(url, from, to, 9n);
  await call(url, 'sendTransaction', ...sending(wire));
  const file = join(stateDir, 'solana.state');
  while (!existsSync(file) || !readFileSync(file).includes(signature)) await nextTurn();

  // What a killed node would leave behind.
  copyFileSync(file, join(copyDir, 'solana.state'));
  const second = await startSolana({ seed: SEED, stateDir: copyDir });
  assert.equal(await usdcOf(second.url, to), '9');
  await second.stop();
  truncateSync(join(copyDir, 'solana.state'), 100_000);
  await assert.rejects(startSolana({ seed: SEED, stateDir: copyDir }), /is damaged/);
  for (const directory of [stateDir, copyDir]) context.after(() => rmSync(directory, { recursive: true }));
});

test('who hands money out has one key everywhere; who takes any has one of the installation', async () => {
  const secret = secretKeyOf('faucet');
  // sha256sum of "farebox sandbox solana faucet"
  assert.equal(
    Buffer.from(secret.subarray(0, 32)).toString('hex'),
    '231d776aa20f8fc73c44fd57190f9bf5d9ac051695322dd0bdbb1e16fe7fe67b',
  );
  for (const role of ['recipient', 'facilitator', 'settler', 'refunds'] as const) {
    assert.notDeepEqual(secretKeyOf(role), secretKeyOfAny('b'.repeat(64), role), role);
    assert.deepEqual(secretKeyOf(role), secretKeyOfAny(SEED, role), role);
  }
  assert.equal(secret.length, 64);
});
