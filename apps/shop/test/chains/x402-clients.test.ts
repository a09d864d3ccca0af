/**
 * Unmodified clients of x402 buy from the running app over HTTP: what counts is that they understand us, not that we
 * understand each other. Those of the first generation and of Solana have files of their own.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { wrap } from '@faremeter/fetch';
import { exact } from '@faremeter/payment-evm';
import {
  decodePaymentResponseHeader as axiosDecodeReceipt,
  wrapAxiosWithPayment,
  x402Client as x402AxiosClient,
} from '@x402/axios';
import { decodePaymentRequiredHeader } from '@x402/core/http';
import { parsePaymentRequired } from '@x402/core/schemas';
import { ExactEvmScheme } from '@x402/evm';
import {
  type DiscoveryExtension,
  validateDiscoveryExtension,
  validateDiscoveryExtensionSpec,
} from '@x402/extensions/bazaar';
import {
  appendPaymentIdentifierToExtensions,
  generatePaymentId,
  isPaymentIdentifierExtension,
} from '@x402/extensions/payment-identifier';
import {
  createSIWxClientExtension,
  encodeSIWxHeader,
  parseSIWxHeader,
  wrapFetchWithSIWx,
} from '@x402/extensions/sign-in-with-x';
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch';
import axios, { AxiosHeaders } from 'axios';
import type { Hex } from 'viem';
import { erc20Abi, parseEventLogs } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import {
  CREATE2_DEPLOYER,
  openLedger,
  type Signer,
  smartWallets,
} from '../../../../packages/sandbox/src/facilitator/facilitator.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startUpstreams } from '../server.fixture.ts';
import { openStorefront, type Storefront } from '../storefront.fixture.ts';
import { type PaymentWorld, startPaymentWorld, USDC } from '../x402.fixture.ts';

const services = await loadServices();
const FIRST_CALL = { path: '/x402/first-call', body: { agentId: 'unmodified' }, priceUnits: 50_000n };
const PING = { path: '/x402/ping', body: {}, priceUnits: 250_000n };
const SECRET = { path: '/x402/instant-agent-wallet', body: { chain: 'base' }, priceUnits: 1_000_000n };
const RISK = { path: '/x402/risk-metrics', body: exampleOf('risk-metrics'), priceUnits: 1_000_000n };

let world: PaymentWorld;
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let shop: Storefront;

before(async () => {
  [world, database, upstreams] = await Promise.all([
    startPaymentWorld({ solana: true }),
    openTestDatabase(),
    startUpstreams(),
  ]);
  // As a sandbox, which says more in every 402: nobody may stumble over it.
  shop = await openShop({ ...world.environment, ...world.made });
});
after(async () => {
  await shop?.stop();
  await Promise.all([world?.stop(), database?.close(), upstreams?.stop()]);
});

function openShop(environment: Record<string, string>, nowMs?: () => number): Promise<Storefront> {
  const options = { pools: database, environment, upstreamsUrl: upstreams.url };
  return openStorefront(nowMs === undefined ? options : { ...options, nowMs });
}

function exampleOf(path: string): Record<string, unknown> {
  const found = services.find((service) => service.path === path);
  assert.ok(found, `there is no ${path}`);
  return found.example as Record<string, unknown>;
}

const asJson = (body: unknown) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

/** What the recipient got while something was done. */
async function received(work: () => Promise<unknown>): Promise<bigint> {
  const before = await world.received();
  await work();
  return (await world.received()) - before;
}

/** Reads the chain: the transaction moves so much USDC from the payer to the recipient, and nothing else. */
async function assertMoved(transaction: string, payer: Hex, amountUnits: bigint): Promise<void> {
  const { status, logs } = await world.chain.client.getTransactionReceipt({ hash: transaction as Hex });
  assert.equal(status, 'success');
  const transfers = parseEventLogs({ abi: erc20Abi, eventName: 'Transfer', logs });
  assert.deepEqual(
    transfers.map(({ address, args }) => [address.toLowerCase(), args.from, args.to, args.value]),
    [[USDC.toLowerCase(), payer, world.recipient, amountUnits]],
  );
}

interface Bought {
  status: number;
  /** As it came. */
  text: string;
  /** As the client's own decoder reads it. */
  receipt: { success: boolean; transaction: string; network: string; payer?: string | undefined };
}
type Buy = (url: string, body: unknown) => Promise<Bought>;

/** @x402/fetch for a wallet, with the cap raised above what anything costs. */
function modernClient(signer: Signer): x402Client {
  return new x402Client()
    .register('eip155:*', new ExactEvmScheme(signer))
    .setSpendControls({ maxAmountPerPayment: '$10' });
}

function modernBuyer(client: x402Client): Buy {
  const pay = wrapFetchWithPayment(fetch, client);
  return async (url, body) => boughtBy(await pay(url, asJson(body)));
}

async function boughtBy(answer: Response): Promise<Bought> {
  const text = await answer.text();
  const header = answer.headers.get('payment-response');
  assert.ok(header, `${answer.status} without a receipt: ${text} ${shop.log()}`);
  return { status: answer.status, text, receipt: decodePaymentResponseHeader(header) };
}

const CLIENTS: Record<string, (account: PrivateKeyAccount) => Buy> = {
  '@x402/fetch': (account) => modernBuyer(modernClient(account)),
  '@x402/axios': (account) => {
    const client = new x402AxiosClient().register('eip155:*', new ExactEvmScheme(account));
    const instance = wrapAxiosWithPayment(axios.create({ responseType: 'text' }), client);
    return async (url, body) => {
      const { status, data, headers } = await instance.post(url, body, { transformResponse: (text) => text });
      const receipt = axiosDecodeReceipt(
        String(AxiosHeaders.from(headers as AxiosHeaders).get('payment-response')),
      );
      return { status, text: data, receipt };
    };
  },
  '@faremeter/fetch': (account) => {
    const chain = { id: 8453, name: 'Base' };
    const signTypedData = (typed: unknown) =>
      account.signTypedData(typed as Parameters<PrivateKeyAccount['signTypedData']>[0]);
    const handler = exact.createPaymentHandler({
      chain,
      address: account.address,
      account: { signTypedData },
    });
    const pay = wrap(fetch, { handlers: [handler] });
    return async (url, body) => boughtBy(await pay(url, asJson(body)));
  },
};

describe('buys, also while the app restarts, and its payment stays good', () => {
  for (const [name, buyerFor] of Object.entries(CLIENTS)) {
    test(name, async () => {
      const account = await world.wallet();
      const buy = buyerFor(account);
      const purchases = [
        { ...FIRST_CALL, restarting: false },
        { ...RISK, restarting: true },
        { ...PING, restarting: false },
      ];
      for (const { path, body, priceUnits, restarting } of purchases) {
        const paidBefore = shop.payments.length;
        if (restarting) shop.restartBeforePayment();
        const moved = await received(async () => {
          const { status, text, receipt } = await buy(shop.url + path, body);
          assert.equal(status, 200, text + shop.log());
          assert.equal(JSON.parse(text).success, true);
          assert.deepEqual(
            [receipt.success, receipt.network, receipt.payer?.toLowerCase()],
            [true, 'eip155:8453', account.address.toLowerCase()],
          );
          await assertMoved(receipt.transaction, account.address, priceUnits);

          const presented = shop.payments.at(-1);
          assert.ok(presented);
          if (restarting) await shop.restart();
          const again = await shop.present(presented);
          assert.equal(again.status, 200);
          assert.equal(again.headers.get('idempotent-replayed'), 'true');
          assert.equal(await again.text(), text, 'the same payment gets the same answer');
          assert.equal(
            decodePaymentResponseHeader(again.headers.get('payment-response') ?? '').transaction,
            receipt.transaction,
          );
        });
        assert.equal(moved, priceUnits);
        assert.equal(shop.payments.length - paidBefore, 1, 'it signed once');
      }
      assert.equal(await world.balanceOf(account.address), 5_000_000n - 1_300_000n);
    });
  }

  for (const [name, buyerFor] of Object.entries(CLIENTS)) {
    test(`${name}: a secret, at the first try, which a copy without the claim of its terms does not get`, async () => {
      const account = await world.wallet();
      const { path, body, priceUnits } = SECRET;
      const paidBefore = shop.payments.length;
      const moved = await received(async () => {
        const { status, text } = await buyerFor(account)(shop.url + path, body);
        assert.equal(status, 200, text + shop.log());
        const { privateKey } = JSON.parse(text);
        assert.match(privateKey, /^0x[0-9a-f]{64}$/);
        assert.equal(shop.payments.length - paidBefore, 1, 'it signed once');

        const presented = shop.payments.at(-1);
        assert.ok(presented);
        await shop.restart();
        assert.equal(await (await shop.present(presented)).text(), text);
        const payment = JSON.parse(
          Buffer.from(presented.headers['payment-signature'] ?? '', 'base64').toString(),
        );
        assert.match(payment.accepted.extra.claimSecret, /^[\w-]{32}$/);
        payment.accepted.extra.claimSecret = 'x'.repeat(32);
        const copied = Buffer.from(JSON.stringify(payment)).toString('base64');
        const headers = { ...presented.headers, 'payment-signature': copied };
        const refused = await shop.present({ ...presented, headers });
        assert.equal(refused.status, 409);
        assert.ok(!(await refused.text()).includes(privateKey));
      });
      assert.equal(moved, priceUnits);
    });
  }

  test('the payment that a client signed for another request buys nothing', async () => {
    const buy = modernBuyer(modernClient(await world.wallet()));
    await buy(shop.url + FIRST_CALL.path, FIRST_CALL.body);
    const presented = shop.payments.at(-1);
    assert.ok(presented);
    const moved = await received(async () => {
      const other = await shop.present({ ...presented, body: Buffer.from('{"agentId":"other"}') });
      assert.equal(other.status, 409);
    });
    assert.equal(moved, 0n);
  });
});

test('whoever opens the address of a receipt sees a page, and a program gets JSON', async () => {
  const account = await world.wallet();
  const pay = wrapFetchWithPayment(fetch, modernClient(account));
  const answer = await pay(`${shop.url}${FIRST_CALL.path}`, asJson(FIRST_CALL.body));
  assert.equal(answer.status, 200, await answer.text());
  const url = `${shop.url}/x402/receipts/${answer.headers.get('x-call-id')}`;
  const asProgram = await fetch(url);
  assert.equal(asProgram.headers.get('vary'), 'Accept');
  const receipt = await jsonOf(asProgram);
  assert.equal(receipt.status, 'delivered');
  const page = await fetch(url, { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } });
  assert.match(String(page.headers.get('content-type')), /^text\/html/);
  assert.equal(page.headers.get('cache-control'), 'no-store');
  const text = await page.text();
  for (const told of ['<h1>Receipt</h1>', 'Paid, and answered.', '$0.05', receipt.payer, receipt.transaction])
    assert(text.includes(told), `the page says ${told}`);
});

describe('prices above what clients pay by default', () => {
  const DEAR = { path: '/x402/agent-create-wallet', priceUnits: 2_000_000n };

  test('@x402/fetch signs nothing above 1 USD, and the 402 says why', async () => {
    const client = new x402Client().register('eip155:*', new ExactEvmScheme(await world.wallet()));
    const paidBefore = shop.payments.length;
    await assert.rejects(
      wrapFetchWithPayment(fetch, client)(shop.url + DEAR.path, asJson({})),
      /maxAmountPerPayment/,
    );
    assert.equal(shop.payments.length, paidBefore);
    for (const { path, priceUsd } of services) {
      const { spendingCap } = await jsonOf(fetch(`${shop.url}/x402/${path}`, { method: 'POST' }));
      if (usdToMicros(priceUsd) > 1_000_000n) assert.match(spendingCap, /above 1 USD/, path);
    }
  });

  test('with the cap raised it buys', async () => {
    const account = await world.wallet();
    const buy = modernBuyer(modernClient(account));
    const moved = await received(async () => {
      const { status, text, receipt } = await buy(shop.url + DEAR.path, exampleOf('agent-create-wallet'));
      assert.equal(status, 200, text);
      await assertMoved(receipt.transaction, account.address, DEAR.priceUnits);
    });
    assert.equal(moved, DEAR.priceUnits);
  });
});

describe('the 402 of every service, with all five chains', () => {
  /** Those on which money can be sent back, as a service that leaves something behind may have to. */
  const FOUR_CHAINS = ['eip155:8453', 'eip155:1', 'eip155:137', 'eip155:42161'];
  const FIVE_CHAINS = [...FOUR_CHAINS, 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'];
  let all: Storefront;
  let onBase: Storefront;
  before(async () => {
    const chains = ['ETHEREUM', 'POLYGON', 'ARBITRUM'];
    const selling = (networks: string) =>
      openShop({
        ...world.environment,
        X402_NETWORKS: networks,
        X402_REFUND_KEY_SOLANA: '',
        X402_RELAYER_KEYS: world.chain.accounts.relayer.privateKey,
        MPP_METHODS: 'evm',
        MPP_SECRET_KEY: 'a-secret-of-32-characters-for-tests',
        ...Object.fromEntries(chains.map((name) => [`UPSTREAM_${name}_BASE_URL`, world.chain.url])),
      });
    [all, onBase] = await Promise.all([selling('base,ethereum,polygon,arbitrum,solana'), selling('base')]);
  });
  after(() => Promise.all([all?.stop(), onBase?.stop()]));

  test('has 6,000 bytes at most with its headers, and 500 more for each further chain', async () => {
    const tooLarge: string[] = [];
    let seen = 0;
    for (const [shop, mostBytes] of [
      [onBase, 6_000],
      [all, 8_000],
    ] as const) {
      for (const { path } of services) {
        for (const door of ['x402', 'mpp']) {
          const answer = await fetch(`${shop.url}/${door}/${path}`, { method: 'POST' });
          if (answer.status === 404) continue;
          assert.equal(answer.status, 402, path);
          const head = [...answer.headers].map(([name, value]) => `${name}: ${value}\r\n`).join('');
          const bytes = Buffer.byteLength(
            `HTTP/1.1 402 Payment Required\r\n${head}\r\n${await answer.text()}`,
          );
          if (bytes > mostBytes) tooLarge.push(`/${door}/${path}: ${bytes} of ${mostBytes}`);
          seen += 1;
        }
      }
    }
    assert.ok(seen > 2 * services.length, 'services are sold by MPP too');
    assert.deepEqual(tooLarge, []);
  });

  test('parses, and describes itself', async (t) => {
    // The validator says that it does not know formats.
    t.mock.method(console, 'warn', () => {});
    for (const { path, example, summary, priceUsd, effect, secretAnswer } of services) {
      const answer = await fetch(`${all.url}/x402/${path}`, { method: 'POST' });
      assert.equal(answer.status, 402, path);
      const required = decodePaymentRequiredHeader(answer.headers.get('payment-required') ?? '');
      const parsed = parsePaymentRequired(required);
      assert.ok(parsed.success, `${path}: ${parsed.error}`);
      assert.equal(required.x402Version, 2);
      assert.deepEqual(
        required.accepts.map(({ network, amount }) => [network, BigInt(amount)]),
        (effect === 'read' ? FIVE_CHAINS : FOUR_CHAINS).map((network) => [network, usdToMicros(priceUsd)]),
        path,
      );
      const claims = new Set(required.accepts.map(({ extra }) => extra?.claimSecret));
      assert.equal(claims.size, 1, path);
      assert.equal(typeof [...claims][0], secretAnswer ? 'string' : 'undefined', path);
      assert.equal(required.resource.url, `${all.url}/x402/${path}`);
      assert.ok(summary.length <= 500, `${path}: a facilitator may refuse a longer description`);

      const { bazaar, ...others } = required.extensions ?? {};
      assert.deepEqual(
        validateDiscoveryExtensionSpec(bazaar as Record<string, unknown>),
        { valid: true },
        path,
      );
      assert.deepEqual(validateDiscoveryExtension(bazaar as DiscoveryExtension), { valid: true }, path);
      assert.deepEqual((bazaar as { info: { input: { body: unknown } } }).info.input.body, example, path);
      assert.ok(isPaymentIdentifierExtension(others['payment-identifier']), path);
      assert.ok('sign-in-with-x' in others, path);
    }
  });

  test('comes before anything else: to GET, to HEAD, to junk', async () => {
    for (const { path, example } of services) {
      const url = `${all.url}/x402/${path}`;
      const answers = await Promise.all([
        fetch(url),
        fetch(url, { method: 'HEAD' }),
        fetch(url, asJson(example)),
        fetch(url, { ...asJson({}), body: '{"junk' }),
      ]);
      for (const answer of answers) {
        assert.equal(answer.status, 402, path);
        const required = decodePaymentRequiredHeader(answer.headers.get('payment-required') ?? '');
        assert.ok(parsePaymentRequired(required).success, path);
        await answer.body?.cancel();
      }
    }
  });
});

describe('payment-identifier', () => {
  /** The wallet's purchases all bear this name. */
  function buyerNaming(account: PrivateKeyAccount, id: string): Buy {
    const client = modernClient(account).registerExtension({
      key: 'payment-identifier',
      enrichPaymentPayload: async (payload) => ({
        ...payload,
        extensions: appendPaymentIdentifierToExtensions(structuredClone(payload.extensions ?? {}), id),
      }),
    });
    return modernBuyer(client);
  }
  const nonces = () =>
    shop.payments.slice(-2).map(({ headers }) => {
      const { payload } = JSON.parse(Buffer.from(headers['payment-signature'] ?? '', 'base64').toString());
      return payload.authorization.nonce;
    });

  test('two signatures under one name are one purchase, whether one after the other or at once', async () => {
    for (const atOnce of [false, true]) {
      const buy = buyerNaming(await world.wallet(), generatePaymentId());
      const once = () => buy(shop.url + FIRST_CALL.path, FIRST_CALL.body);
      const moved = await received(async () => {
        const [first, second] = atOnce ? await Promise.all([once(), once()]) : [await once(), await once()];
        assert.deepEqual([first.status, second.status], [200, 200]);
        assert.equal(second.text, first.text);
        assert.equal(second.receipt.transaction, first.receipt.transaction);
      });
      assert.equal(moved, FIRST_CALL.priceUnits);
      assert.equal(new Set(nonces()).size, 2, 'it did sign twice');
    }
  });

  test('a name belongs to its wallet', async () => {
    const id = generatePaymentId();
    const buyers = [buyerNaming(await world.wallet(), id), buyerNaming(await world.wallet(), id)];
    const moved = await received(async () => {
      for (const buy of buyers)
        assert.equal((await buy(shop.url + FIRST_CALL.path, FIRST_CALL.body)).status, 200);
    });
    assert.equal(moved, 2n * FIRST_CALL.priceUnits);
  });
});

describe('sign-in-with-x', () => {
  let nowMs: number;
  let club: Storefront;
  before(async () => {
    nowMs = Date.now();
    club = await openShop(world.environment, () => nowMs);
  });
  after(() => club?.stop());

  const member = (account: PrivateKeyAccount) => {
    const client = modernClient(account).registerExtension(createSIWxClientExtension({ signers: [account] }));
    return wrapFetchWithPayment(fetch, client);
  };
  const firstCall = () => `${club.url}${FIRST_CALL.path}`;

  test('a wallet that has paid fetches its answer without paying, also from a restarted app', async () => {
    const enter = member(await world.wallet());
    let paid = '';
    assert.equal(
      await received(async () => {
        const answer = await enter(firstCall(), asJson(FIRST_CALL.body));
        assert.equal(answer.status, 200);
        paid = await answer.text();
      }),
      FIRST_CALL.priceUnits,
    );
    const payments = club.payments.length;
    const moved = await received(async () => {
      for (const restart of [false, true]) {
        nowMs += 1_000;
        if (restart) await club.restart();
        const answer = await enter(firstCall(), asJson(FIRST_CALL.body));
        assert.equal(answer.status, 200);
        assert.equal(answer.headers.get('idempotent-replayed'), 'true');
        assert.equal(await answer.text(), paid);
      }
    });
    assert.deepEqual([moved, club.payments.length], [0n, payments]);

    // What it has not bought it pays for.
    nowMs += 1_000;
    const other = await received(async () => {
      assert.equal((await enter(firstCall(), asJson({ agentId: 'other' }))).status, 200);
    });
    assert.equal(other, FIRST_CALL.priceUnits);
  });

  test('a wallet may sign in twice within a second', async () => {
    const enter = member(await world.wallet());
    nowMs += 1_000;
    const moved = await received(async () => {
      for (let time = 0; time < 3; time += 1)
        assert.equal((await enter(firstCall(), asJson(FIRST_CALL.body))).status, 200);
    });
    assert.equal(moved, FIRST_CALL.priceUnits);
  });

  test('a sign-in that was used, one that was altered and one of another wallet open nothing', async () => {
    const account = await world.wallet();
    await member(account)(firstCall(), asJson(FIRST_CALL.body));
    nowMs += 1_000;
    const signedIn = await wrapFetchWithSIWx(fetch, account)(firstCall(), asJson(FIRST_CALL.body));
    assert.equal(signedIn.status, 200);
    const used = club.signIns.at(-1);
    assert.ok(used);

    const refusal = async (answer: Response) => {
      assert.equal(answer.status, 402);
      return (await jsonOf(answer)).last_error_reason;
    };
    const replayed = await refusal(await club.present(used));
    assert.deepEqual([replayed.code, replayed.field], ['SIGN_IN_INVALID', 'nonce']);
    await club.restart();
    assert.equal((await refusal(await club.present(used))).field, 'nonce');

    const payload = parseSIWxHeader(used.headers['sign-in-with-x'] ?? '');
    const stranger = await world.wallet();
    for (const [changes, field] of [
      [{ address: stranger.address }, 'signature'],
      [{ uri: `${club.url}/x402/ping` }, 'uri'],
      [{ domain: 'elsewhere.test' }, 'domain'],
      [{ chainId: 'eip155:1' }, 'chainId'],
      [{ nonce: `${payload.nonce.slice(0, -1)}!` }, 'nonce'],
      [{ issuedAt: new Date(nowMs - 400_000).toISOString() }, 'issuedAt'],
    ] as const) {
      const headers: Record<string, string> = {
        ...used.headers,
        'sign-in-with-x': encodeSIWxHeader({ ...payload, ...changes }),
      };
      assert.equal((await refusal(await club.present({ ...used, headers }))).field, field);
    }
    nowMs += 1_000;
    const other = await wrapFetchWithSIWx(fetch, stranger)(firstCall(), asJson(FIRST_CALL.body));
    assert.equal((await refusal(other)).code, 'NOTHING_BOUGHT');
  });
});

describe('smart wallets', () => {
  const walletOf = smartWallets();

  for (const how of ['environment', 'ownSettler'] as const) {
    describe(how === 'environment' ? 'settled by a facilitator' : 'settled by our own settler', () => {
      let settling: Storefront;
      before(async () => {
        settling = await openShop(world[how]);
      });
      after(() => settling?.stop());

      async function buyAs(signer: Signer): Promise<void> {
        const moved = await received(async () => {
          const buy = modernBuyer(modernClient(signer));
          const { status, text, receipt } = await buy(settling.url + FIRST_CALL.path, FIRST_CALL.body);
          assert.equal(status, 200, text + settling.log());
          await assertMoved(receipt.transaction, signer.address, FIRST_CALL.priceUnits);
          const presented = settling.payments.at(-1);
          assert.ok(presented);
          assert.equal(await (await settling.present(presented)).text(), text);
        });
        assert.equal(moved, FIRST_CALL.priceUnits);
      }

      test('one that is on the chain (EIP-1271)', async () => {
        const wallet = walletOf(await world.wallet(), CREATE2_DEPLOYER);
        const ledger = openLedger(world.chain.url);
        await ledger.send(CREATE2_DEPLOYER, wallet.deployment);
        await ledger.mint(wallet.deployed.address, 1_000_000n);
        await buyAs(wallet.deployed);

        const thief = walletOf(await world.wallet(), CREATE2_DEPLOYER).deployed;
        const forger = { ...thief, address: wallet.deployed.address };
        const stolen = await received(async () => {
          const pay = wrapFetchWithPayment(fetch, modernClient(forger));
          const answer = await pay(settling.url + FIRST_CALL.path, asJson(FIRST_CALL.body));
          assert.equal(answer.status, 402);
          assert.equal((await jsonOf(answer)).last_error_reason.code, 'PAYMENT_SIGNATURE_INVALID');
        });
        assert.equal(stolen, 0n);
      });

      test('one that its first payment puts there (ERC-6492), and its second, still wrapped', async () => {
        const wallet = walletOf(await world.wallet(), CREATE2_DEPLOYER);
        const { address } = wallet.counterfactual;
        await openLedger(world.chain.url).mint(address, 1_000_000n);
        assert.equal(await world.chain.client.getCode({ address }), undefined);
        await buyAs(wallet.counterfactual);
        assert.notEqual(await world.chain.client.getCode({ address }), undefined);
        await buyAs(wallet.counterfactual);
      });

      test('one whose check is dear, with a signature as long as that of a key', async () => {
        const owner = await world.wallet();
        await world.chain.client.setCode({ address: owner.address, bytecode: DEAR_WALLET });
        await buyAs(owner);
      });

      if (how === 'ownSettler') {
        test('one whose check is a way to burn our gas is refused before anything is sent', async () => {
          const owner = await world.wallet();
          await world.chain.client.setCode({ address: owner.address, bytecode: BURNING_WALLET });
          const { address } = world.chain.accounts.relayer;
          const sentBefore = await world.chain.client.getTransactionCount({ address });
          const moved = await received(async () => {
            const pay = wrapFetchWithPayment(fetch, modernClient(owner));
            const answer = await pay(settling.url + FIRST_CALL.path, asJson(FIRST_CALL.body));
            assert.equal(answer.status, 402);
          });
          assert.equal(moved, 0n);
          assert.equal(await world.chain.client.getTransactionCount({ address }), sentBefore);
        });
      }
    });
  }
});

/** The code of a wallet that agrees to everything after hashing so much memory: SHA3(0, bytes), EIP-1271's magic value. */
function agreeableWallet(hashedBytes: number): Hex {
  const size = hashedBytes.toString(16).padStart(6, '0');
  return `0x62${size}60002050631626ba7e60e01b60005260206000f3`;
}
/** Its check uses some 130,000 gas. */
const DEAR_WALLET = agreeableWallet(200_000);
/** Its check uses some 5 million gas. */
const BURNING_WALLET = agreeableWallet(1_600_000);
