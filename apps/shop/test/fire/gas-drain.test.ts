/**
 * Wallets whose own code burns our settler's gas: it lets a trial pass and fails when it is sent. What is measured is the
 * wei that the settler's account loses.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { formatEther, type Hex, numberToHex, parseEther, serializeErc6492Signature } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { fund } from '../../../../packages/sandbox/src/chain/faucet.ts';
import { startTestChain, type TestChain } from '../chain.fixture.ts';
import { jsonOf } from '../server.fixture.ts';
import { type SignedPayment, signPayment } from '../x402.fixture.ts';
import { until } from './until.fixture.ts';
import { PRICE, type Stage, setStage } from './x402-stage.fixture.ts';

/** A wallet's code: EIP-1271's magic value, unless what this code puts on the stack is not zero. Then it burns all gas. */
function agreesUnless(condition: Hex): Hex {
  const end = condition.length / 2 - 1 + 19;
  return `${condition}60${end.toString(16)}57631626ba7e60e01b60005260206000f35bfe`;
}
/** Burns when somebody pays for its gas (GASPRICE): `eth_call` without a price does not. */
const BURNS_WHEN_PAID = agreesUnless('0x3a');
/** Burns when its first slot says so (SLOAD 0). */
const BURNS_WHEN_TOLD = agreesUnless('0x600054');
/** Agrees, after hashing 300 kB of memory, which takes some 250,000 gas. */
const DEAR: Hex = '0x620493e060002050631626ba7e60e01b60005260206000f3';
/** The worth of a price of 0.05 USD where the chain's currency is taken to be worth 1 USD. */
const PRICE_WORTH_WEI = parseEther('0.05');
const MAX_FAILURES = 5;
const SEND = 'eth_sendRawTransactionSync';
const ADMIN = 'a-token-of-the-tests-of-gas';

let chain: TestChain;
before(async () => {
  chain = await startTestChain();
});
after(() => chain?.stop());

/** Runs against a shop with a settler of its own. @returns how many wei the settler lost, and how often it sent */
async function lostBy(
  attack: (stage: Stage) => Promise<void>,
  environment: Record<string, string> = {},
): Promise<{ wei: bigint; sent: number }> {
  const stage = await setStage({ chain, settledBy: 'own settler', environment });
  try {
    const { settler: address } = stage;
    const held = await chain.client.getBalance({ address });
    await attack(stage);
    const wei = held - (await chain.client.getBalance({ address }));
    return { wei, sent: await chain.client.getTransactionCount({ address }) };
  } finally {
    await stage.close();
  }
}

/** Presents what it is handed again and again, with a fresh signature each time. @returns what it was told */
async function insist(stage: Stage, times: number, payment: () => Promise<SignedPayment>): Promise<string[]> {
  const told: string[] = [];
  for (let i = 0; i < times; i++) told.push((await stage.present(await stage.header(await payment()))).text);
  return told;
}

test('a wallet that burns when its gas is paid for is refused before anything is sent', async () => {
  const { wei, sent } = await lostBy(async (stage) => {
    const payer = await stage.wallet();
    await chain.client.setCode({ address: payer.address, bytecode: BURNS_WHEN_PAID });
    const told = await insist(stage, 3, () => stage.sign(payer));
    assert.deepEqual(told, Array(3).fill('402 PAYMENT_SIGNATURE_INVALID'));
    assert.equal(stage.script.runs, 0);
  });
  assert.deepEqual([wei, sent], [0n, 0]);
});

test('one that passes every trial and burns when it is sent: the loss of a payer is bounded', async () => {
  const { wei, sent } = await lostBy(async (stage) => {
    const payer = await stage.wallet();
    await chain.client.setCode({ address: payer.address, bytecode: BURNS_WHEN_TOLD });
    const tell = (value: bigint) =>
      chain.client.setStorageAt({
        address: payer.address,
        index: 0,
        value: numberToHex(value, { size: 32 }),
      });
    const told = await insist(stage, 12, async () => {
      await tell(0n);
      stage.node.before(SEND, () => tell(1n));
      return stage.sign(payer);
    });
    assert.deepEqual(told.slice(MAX_FAILURES), Array(12 - MAX_FAILURES).fill('402 PAYMENT_FAILED_TOO_OFTEN'));
    assert(
      told.slice(0, MAX_FAILURES).every((text) => /^402 /.test(text)),
      told.join(),
    );
    assert.equal(stage.script.runs, MAX_FAILURES, 'no service runs for a payer that is refused');
    // Nor on another replica; and not for ever.
    await tell(0n);
    stage.node.mend();
    const header = await stage.payment(payer);
    assert.equal((await stage.present(header, { on: stage.there })).text, '402 PAYMENT_FAILED_TOO_OFTEN');
    await stage.database.sql`update lost_gas set since = since - interval '1 day'`;
    assert.equal((await stage.present(header)).text, '200');
  });
  assert.equal(sent, MAX_FAILURES + 1);
  assert(wei > 0n && wei < BigInt(MAX_FAILURES) * PRICE_WORTH_WEI, `${wei} wei were lost`);
});

test('many at once of one wallet: no more are sent than may fail', async () => {
  const { sent } = await lostBy(async (stage) => {
    const payer = await stage.wallet();
    await chain.client.setCode({ address: payer.address, bytecode: BURNS_WHEN_TOLD });
    const headers = await Promise.all(
      Array.from({ length: 20 }, async () => stage.header(await stage.sign(payer))),
    );
    let running = 0;
    const all = Promise.withResolvers<void>();
    // All have been tried, and none has been sent: now it changes.
    stage.script.during = async () => {
      running += 1;
      if (running === headers.length) {
        await chain.client.setStorageAt({
          address: payer.address,
          index: 0,
          value: numberToHex(1, { size: 32 }),
        });
        // The settler tries once more before it sends: to it nothing has changed.
        stage.node.answerWith((method, [call]) =>
          method === 'eth_estimateGas'
            ? '0x11170'
            : method === 'eth_call' && fieldOf(call, 'data').startsWith('0xe3ee160e')
              ? '0x'
              : undefined,
        );
        all.resolve();
      }
      await all.promise;
    };
    const told = await Promise.all(
      headers.map((header, i) => stage.present(header, { on: i % 2 === 0 ? stage.here : stage.there })),
    );
    assert(told.every(({ status }) => status !== 200));
    assert.equal(await stage.moved(), 0n);
  });
  assert.equal(sent, MAX_FAILURES);
});

test('a key whose settlements fail, such as by spending its money elsewhere, is refused as well', async () => {
  const { sent } = await lostBy(async (stage) => {
    const payer = await stage.wallet();
    const told = await insist(stage, 8, async () => {
      // Enough for all that it signed: what was refused counts as in flight until it is dead.
      await fund(chain.url, payer.address, { usdcMicros: 8n * PRICE.nickel, ethWei: 0n });
      stage.node.before(SEND, async () => {
        await stage.transfer(payer, chain.accounts.faucet.address, await stage.balanceOf(payer.address));
      });
      return stage.sign(payer);
    });
    assert.deepEqual(told.slice(MAX_FAILURES), Array(8 - MAX_FAILURES).fill('402 PAYMENT_FAILED_TOO_OFTEN'));
  });
  assert.equal(sent, MAX_FAILURES);
});

test('a factory that is not known is never called', async () => {
  const { wei } = await lostBy(async (stage) => {
    const [factory, owner] = [privateKeyToAccount(`0x${'31'.repeat(32)}`).address, await stage.wallet()];
    await chain.client.setCode({ address: factory, bytecode: BURNS_WHEN_PAID });
    const told = await insist(stage, 3, async () => {
      const { authorization, signature } = await signPayment(owner, {
        to: stage.recipient,
        valueUnits: PRICE.nickel,
      });
      const wrapped = serializeErc6492Signature({ address: factory, data: '0x12345678', signature });
      return { authorization, signature: wrapped };
    });
    assert.deepEqual(told, Array(3).fill('402 PAYMENT_WALLET_NOT_DEPLOYED'));
  });
  assert.equal(wei, 0n);
});

test('a check that takes more gas than the price is worth is refused, and says so', async () => {
  const { wei } = await lostBy(
    async (stage) => {
      const payer = await stage.wallet();
      await chain.client.setCode({ address: payer.address, bytecode: DEAR });
      assert.deepEqual(await insist(stage, 1, () => stage.sign(payer)), ['402 PAYMENT_GAS_ABOVE_PRICE']);
    },
    { X402_GAS_TOKEN_USD: 'base:200' },
  );
  assert.equal(wei, 0n);
});

test('a wallet that pays as it said is not counted, however often', async () => {
  await lostBy(async (stage) => {
    const payer = await stage.wallet();
    await chain.client.setCode({ address: payer.address, bytecode: BURNS_WHEN_TOLD });
    const told = await insist(stage, MAX_FAILURES + 2, () => stage.sign(payer));
    assert.deepEqual(told, Array(MAX_FAILURES + 2).fill('200'));
    const counted = await stage.database.sql`select payer from lost_gas`;
    assert.equal(counted.length, 0);
  });
});

function fieldOf(value: unknown, name: string): string {
  return typeof value === 'object' && value !== null ? String(Reflect.get(value, name)) : '';
}

test('a settler without gas, a stuck one and fees above the price: not offered, and offered again when it is over', async () => {
  const stage = await setStage({
    chain,
    settledBy: 'own settler',
    environment: { X402_GAS_TOKEN_USD: 'base:150' },
  });
  const { settler: address, refunds } = stage;
  const look = () => stage.here.app.jobs.find(({ name }) => name === 'look-at-gas')?.run();
  const offers = async (path: string) => {
    await look();
    const { accepts } = await jsonOf(fetch(`${stage.here.url}/x402/${path}`, { method: 'POST' }));
    return accepts?.some(({ network }: { network: string }) => network === 'base') === true;
  };
  const both = async () => [await offers('nickel'), await offers('deed')];
  try {
    const { sql } = stage.database;
    assert.deepEqual(await both(), [true, true]);
    const header = await stage.payment(await stage.wallet());

    await chain.client.setBalance({ address, value: 1n });
    assert.deepEqual(await both(), [false, false], 'without gas');
    // Refused before the service runs, and good again once it is over.
    const told = await stage.present(header);
    assert.equal(told.text, '402 PAYMENT_NETWORK_UNSUPPORTED');
    await stage.assertProper(told);
    assert.equal(stage.script.runs, 0);
    await chain.client.setBalance({ address, value: parseEther('10') });
    assert.deepEqual(await both(), [true, true]);
    assert.equal((await stage.present(header)).text, '200');

    await chain.client.setBalance({ address: refunds, value: 1n });
    assert.deepEqual(await both(), [true, false], 'nothing can be sent back');
    await chain.client.setBalance({ address: refunds, value: parseEther('10') });

    await sql`
      insert into relayer_transactions
        (network, address, nonce, id, to_address, data, gas_limit, max_fee_wei, raw, hashes, created_at, sent_at)
      values ('eip155:8453', ${address.toLowerCase()}, 900, 'stuck', ${address}, '0x', 21000, 1, '0x', '{}',
        now() - interval '5 minutes', now() + interval '1 hour')`;
    assert.deepEqual(await both(), [false, false], 'all behind it would wait');
    await sql`delete from relayer_transactions where id = 'stuck'`;

    await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 3_000_000_000n });
    await chain.client.mine({ blocks: 1 });
    await until('the fees to be seen', async () => !(await offers('nickel')));
    assert.equal(await offers('deed'), true, 'a price of 0.10 USD is worth its gas still');
    await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 1_000_000n });
    await chain.client.mine({ blocks: 1 });
    await until('the fees to be seen', () => offers('nickel'));
  } finally {
    await stage.close();
  }
});

const lookAtGas = (stage: Stage) => stage.here.app.jobs.find(({ name }) => name === 'look-at-gas')?.run();
const isOffered = async (stage: Stage) => {
  const { accepts } = await jsonOf(fetch(`${stage.here.url}/x402/nickel`, { method: 'POST' }));
  return accepts?.some(({ network }: { network: string }) => network === 'base') === true;
};

test('a key that runs dry between offer and settlement: nothing is sent or charged, then or later, and the payment stays good', async () => {
  const stage = await setStage({ chain, settledBy: 'own settler' });
  const { settler: address } = stage;
  try {
    const header = await stage.payment(await stage.wallet());
    stage.script.during = async () => {
      await chain.client.setBalance({ address, value: 0n });
    };
    const told = await stage.present(header);
    assert.equal(told.text, '402 PAYMENT_SETTLER_OUT_OF_GAS');
    await stage.assertProper(told);
    assert.equal(await isOffered(stage), false, 'at once, before anybody looked');
    // Filled: without its payer nothing is settled of what was refused.
    stage.script.during = async () => {};
    await chain.client.setBalance({ address, value: parseEther('10') });
    await stage.rest();
    assert.equal(await stage.moved(), 0n);
    assert.equal(
      (await stage.database.sql`select 1 from relayer_transactions where address = ${address.toLowerCase()}`)
        .length,
      0,
    );
    await lookAtGas(stage);
    assert.equal(await isOffered(stage), true);
    // The answer was ready, and is paid for now.
    assert.equal((await stage.present(header)).text, '200 again');
    assert.deepEqual([await stage.moved(), stage.script.runs], [PRICE.nickel, 1]);
    assert.deepEqual(await stage.calls(), { ...(await stage.calls()), open: 0, captured: 1, withChain: 0 });
    await stage.assertBooksBalance();
  } finally {
    await stage.close();
  }
});

test('of two settlers the dry one is passed by, the days of the other are told, and a key of before counts for nothing', async () => {
  const [dry, rich, removed] = [generatePrivateKey(), generatePrivateKey(), generatePrivateKey()];
  const addressOf = (key: Hex) => privateKeyToAccount(key).address.toLowerCase() as Hex;
  await chain.client.setBalance({ address: addressOf(dry), value: 0n });
  await chain.client.setBalance({ address: addressOf(rich), value: parseEther('10') });
  const stage = await setStage({
    chain,
    settledBy: 'own settler',
    environment: { X402_RELAYER_KEYS: `${dry},${rich}`, ADMIN_TOKENS: `desk:${ADMIN}` },
  });
  const held = parseEther('10');
  try {
    await stage.database.sql`
      insert into relayer_transactions
        (network, address, nonce, id, to_address, data, gas_limit, max_fee_wei, raw, hashes, created_at, sent_at)
      values ('eip155:8453', ${addressOf(removed)}, 0, 'of a key of before', ${addressOf(removed)}, '0x', 21000, 1, '0x', '{}',
        now() - interval '1 day', now() + interval '1 hour')`;
    const payer = await stage.wallet();
    const headers = await Promise.all(Array.from({ length: 10 }, async () => stage.payment(payer)));
    const told = await Promise.all(headers.map((header) => stage.present(header)));
    assert.deepEqual(
      told.map(({ text }) => text),
      Array(10).fill('200'),
    );
    assert.equal(await chain.client.getTransactionCount({ address: addressOf(dry) }), 0);
    const lost = held - (await chain.client.getBalance({ address: addressOf(rich) }));
    await until('what it cost to be noted', async () => {
      const [row] = await stage.database.sql<{ spent: string }[]>`
        select spent::text from gas_spent where address = ${addressOf(rich)}`;
      return row !== undefined && BigInt(row.spent) === lost;
    });
    await lookAtGas(stage);
    assert.equal(await isOffered(stage), true);
    const authorization = `Bearer ${ADMIN}`;
    const { gas } = await jsonOf(
      fetch(`${stage.here.url}/admin/api/overview?days=1`, { headers: { authorization } }),
    );
    const settling = gas.filter(({ duty }: { duty: string }) => duty === 'settle');
    // In less than a day it has spent what it spends a day.
    const days = Number(((held - lost) * 10n) / lost) / 10;
    const [first, second] = settling;
    assert.deepEqual([first.address, first.isAble, first.daysLeft], [addressOf(dry), false, null]);
    assert.deepEqual([second.address, second.isAble], [addressOf(rich), true]);
    // Nearly: a test that runs over midnight has a second day.
    const isNearly = (value: unknown, expected: number) => Math.abs(Number(value) / expected - 1) < 0.01;
    assert(isNearly(second.spentPerDay, Number(formatEther(lost))), second.spentPerDay);
    assert(isNearly(second.daysLeft, days), second.daysLeft);
    const metrics = await (await fetch(`${stage.here.url}/metrics`)).text();
    const line = metrics
      .split('\n')
      .find((each) => each.startsWith('farebox_gas_days_left{') && each.includes(addressOf(rich)));
    assert(isNearly(line?.split(' ').at(-1), days), line);
    const said = stage.here.log.filter((each) => each.includes('cannot pay for transactions'));
    assert.equal(said.length, 1, said.join());
    assert.match(said[0] ?? '', /"level":40.*"otherKeys":true/);
  } finally {
    await stage.close();
  }
});

test('a node that is silent when the balance is asked changes no offer, and is asked again', async () => {
  const stage = await setStage({ chain, settledBy: 'own settler' });
  const { settler: address } = stage;
  try {
    stage.node.cut();
    await lookAtGas(stage);
    assert.equal(await isOffered(stage), true);
    stage.node.mend();
    await chain.client.setBalance({ address, value: 0n });
    await lookAtGas(stage);
    assert.equal(await isOffered(stage), false);
    stage.node.cut();
    await chain.client.setBalance({ address, value: parseEther('10') });
    await lookAtGas(stage);
    assert.equal(await isOffered(stage), false);
    stage.node.mend();
    await lookAtGas(stage);
    assert.equal(await isOffered(stage), true);
  } finally {
    stage.node.mend();
    await stage.close();
  }
});
