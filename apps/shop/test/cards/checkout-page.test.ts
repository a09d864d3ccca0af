/**
 * People pay in a real Chromium, on a phone's screen, while their agent polls all the time: in each case it gets one key
 * that works, the card is charged once, and no secret stands in any address or log line.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { after, afterEach, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { launchBrowser } from '../../../../packages/sandbox/src/browser.fixture.ts';
import { type CardWorld, startCardWorld } from '../cards.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf } from '../server.fixture.ts';

const PHONE = { width: 390, height: 844 };
const GOOD = '4242 4242 4242 4242';
const DECLINED = '4000 0000 0000 0002';
const ASKS = '4000 0027 6000 3184';
const CHECKOUT = '/api/m2m/credits/checkout';

let world: CardWorld;
let browser: Browser;
/** The public address: what the provider leads a person back to must be known before the server has its own. */
let home: string;
let closeHome: () => void;
let aheadMs = 0;
before(async () => {
  let port = 0;
  const door = createServer((incoming) => {
    const outgoing = connect(port, '127.0.0.1');
    incoming.pipe(outgoing).pipe(incoming);
    for (const socket of [incoming, outgoing]) socket.on('error', () => incoming.destroy());
  });
  door.listen(0, '127.0.0.1');
  await once(door, 'listening');
  const address = door.address();
  assert(address !== null && typeof address === 'object');
  home = `http://127.0.0.1:${address.port}`;
  closeHome = () => door.close();
  world = await startCardWorld({ environment: { PUBLIC_URL: home }, nowMs: () => Date.now() + aheadMs });
  port = Number(new URL(world.server.url).port);
  browser = await launchBrowser();
});
after(async () => {
  await browser.close();
  closeHome();
  await world.stop();
});

/** The secrets that must not be seen: tokens, keys, and the digits of cards. */
const secrets = new Set<string>();
for (const number of [GOOD, DECLINED, ASKS]) secrets.add(number).add(number.replaceAll(' ', ''));
const sessions = new Set<string>();
/** Every address that a browser asked for, in this test. */
let asked: string[] = [];
let troubles: string[] = [];
let contexts: BrowserContext[] = [];
let agents: { end(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of agents) await each.end();
  agents = [];
  for (const context of contexts) await context.close();
  contexts = [];
  assert.deepEqual(troubles, []);
  assertNone('address', asked);
  // A session leads to no key, and stands in one address: the one that the provider leads back to.
  for (const line of world.server.log)
    for (const session of sessions) assert(!line.includes(session), `a session is in a log line: ${line}`);
  assertNone('log line', world.server.log);
  await world.assertBooks();
  asked = [];
  troubles = [];
});

function assertNone(kind: string, texts: readonly string[]): void {
  for (const text of texts)
    for (const secret of secrets) assert(!text.includes(secret), `a secret is in this ${kind}: ${text}`);
}

/** A browser of one person: its tabs share nothing with other people's. */
async function person(options: { javaScriptEnabled?: boolean; colorScheme?: 'dark' } = {}) {
  const context = await browser.newContext({ viewport: PHONE, ...options });
  contexts.push(context);
  return {
    context,
    /** Opens a tab. What it complains of, or asks of strangers, fails the test. */
    async tab(address: string): Promise<Page> {
      const page = await context.newPage();
      page.on('pageerror', (error) => troubles.push(`page error: ${error.message}`));
      page.on('console', (message) => {
        if (message.type() === 'error') troubles.push(`console: ${message.text()}`);
      });
      page.on('request', (request) => {
        const url = request.url();
        // The interface has the token in the query of this one address; a browser asks it of the page's own server.
        if (!url.startsWith(`${home}${CHECKOUT}/status/`)) asked.push(url);
        if (![home, world.provider.url, 'data:'].some((own) => url.startsWith(own)))
          troubles.push(`asked ${url}`);
        assertNone('referrer', [request.headers().referer ?? '']);
      });
      page.on('framenavigated', (frame) => asked.push(frame.url()));
      await page.goto(address);
      return page;
    },
  };
}

/** Opens a checkout and polls it as an agent does, from the first moment to the last. */
async function agent(body: object = { amountUsd: 10, email: 'payer@example.com' }) {
  const response = await world.post(`${CHECKOUT}/session`, body);
  const session = await jsonOf(response);
  assert.equal(response.status, 200, JSON.stringify(session));
  secrets.add(session.retrievalToken);
  sessions.add(session.sessionId);
  const chargedBefore = await chargedCents();
  const keys = new Set<string>();
  const statuses: string[] = [];
  let isPolling = true;
  const polling = (async () => {
    while (isPolling) {
      const status = await jsonOf(
        fetch(`${world.server.url}${CHECKOUT}/status/${session.sessionId}?token=${session.retrievalToken}`),
      );
      statuses.push(status.status);
      if (status.apiKey !== undefined) {
        keys.add(status.apiKey);
        secrets.add(status.apiKey);
      }
      await pause(20);
    }
  })();
  const end = async () => {
    isPolling = false;
    await polling;
  };
  agents.push({ end });
  return {
    sessionId: String(session.sessionId),
    checkoutUrl: String(session.checkoutUrl),
    returnUrl: `${home}/credits/return?session=${session.sessionId}`,
    statuses,
    end,
    /** One key that works, one charge, and no key ever after. */
    async assertOneKey(): Promise<string> {
      await until('the key', () => keys.size > 0);
      const [key = ''] = keys;
      assert.equal((await world.server.call('ping', key)).status, 200);
      await until('the delivery', () => statuses.at(-1) === 'delivered');
      await end();
      assert.equal(keys.size, 1);
      assert.deepEqual([...new Set(statuses)], ['pending', 'paid', 'delivered']);
      assert.equal((await chargedCents()) - chargedBefore, session.amountUsd * 100);
      assert.equal((await world.me(key)).balanceUsd, `${session.amountUsd - 1}.750000`);
      return key;
    },
    async assertNotCharged(): Promise<void> {
      assert.equal(keys.size, 0);
      assert.equal(await chargedCents(), chargedBefore);
    },
  };
}

async function chargedCents(): Promise<number> {
  return (await world.control('GET', '')).totals.chargedCents;
}

async function fill(page: Page, number: string): Promise<void> {
  const email = page.getByLabel('E-mail');
  if ((await email.count()) > 0) await email.fill('payer@example.com');
  await page.getByLabel('Card number').fill(number);
  await page.getByLabel('Expiry (MM/YY)').fill('12/34');
  await page.getByLabel('Security code (CVC)').fill('123');
}

async function pay(page: Page, number: string): Promise<void> {
  await fill(page, number);
  await page.getByRole('button', { name: /^Pay \$/ }).click();
}

/** The text that a person can read: nothing of what is hidden. */
async function text(page: Page): Promise<string> {
  return String(await page.evaluate('document.body.innerText')).replaceAll(/\s+/g, ' ');
}

/** The page after a payment: what was bought, where to go now, and nothing that is secret. */
async function assertPaid(page: Page, amountUsd = 10): Promise<void> {
  await page.getByRole('heading', { name: 'Paid. Thank you.' }).waitFor();
  assert.equal(page.url(), `${home}/credits/return`, 'the session leaves the address bar');
  const shown = await text(page);
  assert.match(shown, new RegExp(`Paid by card \\$${amountUsd}\\.00 USD`));
  assert.match(shown, /Reference [0-9a-f-]{36}/);
  assert.match(
    shown,
    /go back to your agent: it fetches the key itself; you need to do nothing|your agent has fetched the key at/i,
  );
  assertNone('page', [await page.content()]);
  await assertFits(page);
}

async function assertFits(page: Page): Promise<void> {
  const overflow = await page.evaluate('document.documentElement.scrollWidth - window.innerWidth');
  assert(Number(overflow) <= 0, `${page.url()} is ${overflow} px too wide`);
}

test('a good card pays, and the person sees what was bought', async () => {
  const waiting = await agent();
  const page = await (await person()).tab(waiting.checkoutUrl);
  await assertFits(page);
  await pay(page, GOOD);
  await assertPaid(page);
  const shown = await text(page);
  assert.match(
    shown,
    /Bought Prepaid credit, Starter Credit \$10\.00 Date \S.* Seller Farebox, 127\.0\.0\.1:\d+ To p\*\*\*@example\.com Card Visa ending in 4242 Reference /,
  );
  assert.match(shown, /sends a receipt to the e-mail address that was given/);
  assert.equal(await page.getByRole('status').textContent(), '$10.00 of credit is ready.');
  assert.equal(await page.getByRole('link', { name: 'Start again' }).isVisible(), false);
  assert.match(await page.title(), /^Paid/);
  await waiting.assertOneKey();

  await page.reload();
  await assertPaid(page);
  await page.emulateMedia({ media: 'print' });
  assert.equal(await page.getByRole('heading', { name: 'Receipt' }).isVisible(), true);
  for (const hidden of [page.getByRole('navigation').first(), page.getByRole('button')])
    assert.equal(await hidden.isVisible(), false, 'paper has no buttons');
  assert.match(await text(page), /Card Visa ending in 4242/);
  await page.emulateMedia({ media: 'screen' });
  // As a purchase that was paid before cards were kept to be shown.
  await world.database.sql`
    update card_orders set card_brand = null, card_last4 = null where session_id = ${waiting.sessionId}`;
  await page.reload();
  await assertPaid(page);
  assert.doesNotMatch(await text(page), /ending in/);
});

test('a declined card, and then a good one', async () => {
  const waiting = await agent({ amountUsd: 5 });
  const page = await (await person({ colorScheme: 'dark' })).tab(waiting.checkoutUrl);
  await pay(page, DECLINED);
  await page.getByRole('alert').waitFor();
  assert.match(await text(page), /declined/);
  await waiting.assertNotCharged();
  await pay(page, GOOD);
  await assertPaid(page, 5);
  assert.match(await text(page), /No e-mail address was given/);
  await waiting.assertOneKey();
});

test('the bank asks: refused, then approved', async () => {
  const waiting = await agent();
  const page = await (await person()).tab(waiting.checkoutUrl);
  await pay(page, ASKS);
  await page.getByRole('button', { name: 'Fail authentication' }).click();
  await page.getByRole('alert').waitFor();
  await waiting.assertNotCharged();
  await pay(page, ASKS);
  await page.getByRole('button', { name: 'Approve' }).click();
  await assertPaid(page);
  await waiting.assertOneKey();
});

test('the tab is closed halfway, twice, and the link is paid later in a new one', async () => {
  const waiting = await agent();
  const someone = await person();
  const first = await someone.tab(waiting.checkoutUrl);
  await fill(first, GOOD);
  await first.close();
  const second = await someone.tab(waiting.checkoutUrl);
  await pay(second, ASKS);
  await second.getByRole('button', { name: 'Approve' }).waitFor();
  await second.close();
  await waiting.assertNotCharged();
  const third = await someone.tab(waiting.checkoutUrl);
  await pay(third, GOOD);
  await assertPaid(third);
  await waiting.assertOneKey();
});

test('the tab is closed in the moment of paying: the agent gets its key all the same', async () => {
  const waiting = await agent();
  const page = await (await person()).tab(waiting.checkoutUrl);
  await fill(page, GOOD);
  const sent = page.waitForRequest((request) => request.method() === 'POST');
  await page.getByRole('button', { name: /^Pay \$/ }).click({ noWaitAfter: true });
  await sent;
  await page.close();
  await waiting.assertOneKey();
});

test('two tabs pay the same link at once: one charge, one key, and both are told that it is paid', async () => {
  const waiting = await agent();
  const someone = await person();
  const tabs = [await someone.tab(waiting.checkoutUrl), await someone.tab(waiting.checkoutUrl)];
  for (const tab of tabs) await fill(tab, GOOD);
  await Promise.all(tabs.map((tab) => tab.getByRole('button', { name: /^Pay \$/ }).click()));
  for (const tab of tabs) await assertPaid(tab);
  await waiting.assertOneKey();
});

test('who cancels is told that nothing was charged, and can pay after all', async () => {
  const waiting = await agent();
  const page = await (await person()).tab(waiting.checkoutUrl);
  await page.getByRole('link', { name: 'Cancel and go back' }).click();
  await page.getByRole('heading', { name: 'Nothing was charged' }).waitFor();
  assert.equal(page.url(), `${home}/credits/cancel`);
  assert.match(await text(page), /Open its link again/);
  await assertFits(page);
  await page.getByRole('link', { name: 'Choose an amount' }).click();
  await page.getByRole('heading', { name: 'Buy credit' }).waitFor();
  await waiting.assertNotCharged();
  await page.goto(waiting.checkoutUrl);
  await pay(page, GOOD);
  await assertPaid(page);
  await waiting.assertOneKey();
});

test('the return page follows a payment that is not confirmed yet, through a network that comes and goes', async () => {
  const waiting = await agent();
  const someone = await person();
  const page = await someone.tab(waiting.returnUrl);
  await page.getByText('has not confirmed it yet').waitFor();
  assert.equal(page.url(), `${home}/credits/return`);
  assert.equal(await page.getByRole('heading', { name: 'Receipt' }).isVisible(), false);
  await page.route('**/summary/**', (route) => route.abort());
  await page.getByText('The server cannot be reached').waitFor();
  await pay(await someone.tab(waiting.checkoutUrl), GOOD);
  await page.unroute('**/summary/**');
  await assertPaid(page);
  await waiting.assertOneKey();
  // What the browser itself says of a request that was cut off.
  troubles = troubles.filter((trouble) => !trouble.includes('net::ERR_FAILED'));
});

test('the return page gives up with words, and looks again when it is asked to', async () => {
  const waiting = await agent();
  const page = await (await person()).tab('about:blank');
  await page.clock.install();
  await page.goto(waiting.returnUrl);
  await page.getByText('has not confirmed it yet').waitFor();
  const again = page.getByRole('button', { name: 'Look again' });
  await until('the end of looking', async () => {
    await page.clock.runFor(20_000);
    return again.isVisible();
  });
  assert.match(await text(page), /If you paid, nothing is lost/);
  assert.equal((await world.pay(waiting.checkoutUrl, { number: GOOD })).status, 303);
  await again.press('Enter');
  await assertPaid(page);
  assert.equal(
    await page.evaluate('document.activeElement?.id'),
    'title',
    'the keyboard is where the news is',
  );
  await waiting.assertOneKey();
});

test('the return page says what it cannot know', async () => {
  const someone = await person();
  for (const [address, heading] of [
    [`${home}/credits/return`, 'No payment named'],
    [`${home}/credits/return?session=../../keys`, 'No payment named'],
    [`${home}/credits/return?session=cs_test_${'0'.repeat(40)}`, 'Unknown payment'],
  ] as const) {
    const page = await someone.tab(address);
    await page.getByRole('heading', { name: heading }).waitFor();
    assert.equal(page.url(), `${home}/credits/return`);
    assert.equal(await page.getByRole('link', { name: 'Start again' }).isVisible(), true);
    assert.equal(await page.getByRole('heading', { name: 'Receipt' }).isVisible(), false);
    await assertFits(page);
  }
  troubles = troubles.filter((trouble) => !trouble.includes('status of 404'));

  const plain = await person({ javaScriptEnabled: false });
  const page = await plain.tab(`${home}/credits/return?session=cs_test_${'0'.repeat(40)}`);
  assert.match(await text(page), /go back to your agent: it fetches the key itself/);
  await page.goto(`${home}/credits/cancel`);
  assert.match(await text(page), /Nothing was charged/);
});

test('the form that sells credit comes to the key page without moving what is there', async () => {
  const { context } = await person();
  await context.addInitScript(`
    window.shifted = 0;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
    }).observe({ type: 'layout-shift', buffered: true });
  `);
  let release = () => {};
  const drawn = new Promise<void>((resolve) => {
    release = resolve;
  });
  // Every answer comes only after the page was drawn without it.
  await context.route(`${home}/{api,x402}/**`, async (route) => {
    await drawn;
    await route.continue();
  });
  const page = await context.newPage();
  await page.goto(`${home}/keys`);
  await page.evaluate(
    'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(null))))',
  );
  assert.equal(await page.getByRole('heading', { name: 'Buy credit' }).isVisible(), false);
  release();
  await page.getByRole('heading', { name: 'Buy credit' }).waitFor();
  await page.waitForLoadState('networkidle');
  const shifted = Number(await page.evaluate('window.shifted'));
  assert(shifted < 0.02, `the page moves by ${shifted} while it loads`);
});

test('a person without an agent buys a key on the key page, and it refills itself', async () => {
  const chargedBefore = await chargedCents();
  const page = await (await person()).tab(`${home}/keys`);
  await page.getByRole('radio', { name: /\$25/ }).check();
  await page.getByLabel('E-mail for the receipt').fill('payer@example.com');
  await page.getByLabel('Name of the key').fill('my first key');
  await page.getByLabel('Keep the card').check();
  await page.getByLabel('When it is below').last().fill('4');
  await assertFits(page);
  await page.getByRole('button', { name: 'Go to the payment' }).click();
  await page.waitForURL(/\/c\/pay\//);
  assert.match(await text(page), /This card is saved/);
  assert.match(await text(page), /By paying you agree .* charged 25\.00 USD .* below 4\.00 USD/);

  // Back and forth: the tab keeps what it has begun.
  await page.getByRole('link', { name: 'Cancel and go back' }).click();
  await page.getByRole('link', { name: 'Pay 25 USD after all' }).click();
  await page.waitForURL(/\/c\/pay\//);
  await page.goto(`${home}/keys`);
  await page.getByText('No payment is confirmed yet').waitFor();
  await page.getByRole('link', { name: 'Pay $25.00' }).click();
  await pay(page, GOOD);
  await page.getByRole('heading', { name: 'Paid. Thank you.' }).waitFor();
  assertNone('page', [await page.content()]);
  const kept = JSON.parse(String(await page.evaluate("sessionStorage.getItem('farebox-checkouts')")));
  secrets.add(kept[0].retrievalToken);
  sessions.add(kept[0].sessionId);
  assert.equal(await page.evaluate('localStorage.length + document.cookie.length'), 0);
  await page.getByRole('link', { name: 'Collect the key' }).click();
  await page.getByText('Your new key, with $25.00 of credit').waitFor();
  const key = (await page.getByLabel('the key', { exact: true }).textContent()) ?? '';
  assert.match(key, /^fbx_live_[0-9a-f]{64}$/);
  secrets.add(key);
  assert.equal(await page.evaluate("sessionStorage.getItem('farebox-checkouts')"), null);
  assert.equal((await chargedCents()) - chargedBefore, 2_500);
  await page.getByText('on: $25.00 below $4.00').click();
  await page.getByText('Visa 4242 is charged $25.00 when the balance falls below $4.00.').waitFor();
  await assertFits(page);
  assert.equal((await world.server.call('ping', key)).status, 200);
  assert.equal((await world.me(key)).label, 'my first key');

  const recharge = page.getByRole('region', { name: 'Auto-recharge' });
  await recharge.getByLabel('When it is below').fill('30');
  await recharge.getByRole('button', { name: 'Save' }).click();
  await recharge.getByText('Must be at most the charge, 25.00').waitFor();
  await recharge.getByText('agreed to at most $25.00 below $4.00, and $75.00 in 24 hours').waitFor();
  await recharge.getByLabel('When it is below').fill('10');
  await recharge.getByRole('button', { name: 'Save' }).click();
  await recharge.getByText('has agreed to a charge of 25.00 USD below 4.00 USD, and to no more').waitFor();
  await recharge.getByLabel('When it is below').fill('3');
  await recharge.getByLabel(/^Charge \(/).fill('15.5');
  await recharge.getByRole('button', { name: 'Save' }).click();
  await recharge.getByText('Visa 4242 is charged $15.50 when the balance falls below $3.00.').waitFor();
  await recharge.getByRole('button', { name: 'Switch off' }).click();
  await recharge.getByText('You switched it off.').waitFor();
  assert.equal((await world.me(key)).autoRecharge.disabledReason, 'owner');
  await recharge.getByRole('button', { name: 'Switch on again' }).click();
  await recharge.getByText('Visa 4242 is charged $15.50').waitFor();
  troubles = troubles.filter((trouble) => !/status of 4(00|09)/.test(trouble));

  // The payment goes back: what was spent of it is owed, and the card is not charged any more.
  const [order] = await world.database.sql<{ payment_intent_id: string }[]>`
    select payment_intent_id from card_orders where session_id = ${kept[0].sessionId}`;
  await world.control('POST', '/refunds', { paymentIntent: order?.payment_intent_id });
  await until('the refund', async () => {
    await world.settle();
    return (await world.me(key)).status === 'frozen';
  });
  await page.getByRole('button', { name: 'Refresh' }).click();
  await page.getByText('This key owes $0.25.').waitFor();
  await recharge.getByText('A payment by this card was refunded.').waitFor();
  await assertFits(page);

  // Credit for the same key pays the debt, and the key works again.
  const buying = page.getByRole('region', { name: 'Buy credit' });
  assert.equal(await buying.getByRole('radio', { name: /the key fbx_live_/ }).isChecked(), true);
  assert.equal(await buying.getByLabel('Name of the key').isVisible(), false);
  await buying.getByRole('radio', { name: /\$5 / }).check();
  await buying.getByRole('button', { name: 'Go to the payment' }).click();
  await page.waitForURL(/\/c\/pay\//);
  await pay(page, GOOD);
  await page.getByText('The credit is on the key that you chose.').waitFor();
  await page.getByRole('link', { name: 'Look at the key' }).click();
  await page.getByText('Paid. $5.00 of credit went to the key that you chose.').waitFor();
  await page.getByText('$4.75').first().waitFor();
  assert.equal((await world.me(key)).status, 'active');
  assert.equal(await page.getByText('This key owes').count(), 0);
});

// Last: the provider's clock does not go back.
test('a checkout that nobody pays ends, and each page says so', async () => {
  const waiting = await agent();
  const someone = await person();
  const buyer = await someone.tab(`${home}/keys`);
  await buyer.getByRole('button', { name: 'Go to the payment' }).click();
  await buyer.waitForURL(/\/c\/pay\//);
  // The browser's own way back leads to the checkout that is still open, and to a form that works.
  await buyer.goBack();
  await buyer.getByText('No payment is confirmed yet').waitFor();
  assert(await buyer.getByRole('button', { name: 'Go to the payment' }).isEnabled());
  await buyer.goForward();
  await buyer.waitForURL(/\/c\/pay\//);
  aheadMs += 61 * 60_000;
  await world.control('POST', '/clock', { advanceSeconds: 61 * 60 });
  await until('the end', () => waiting.statuses.at(-1) === 'expired');
  await waiting.end();
  await waiting.assertNotCharged();
  const page = await someone.tab(waiting.returnUrl);
  await page.getByRole('heading', { name: 'Nothing was charged' }).waitFor();
  assert.match(await text(page), /not paid in time/);
  await buyer.goto(`${home}/keys`);
  await buyer.getByText('Nobody paid in time, and nothing was charged.').waitFor();
  await buyer.reload();
  await buyer.getByRole('heading', { name: 'Buy credit' }).waitFor();
  assert.doesNotMatch(await text(buyer), /Your checkout/);
  await page.goto(waiting.checkoutUrl);
  await page.getByRole('heading', { name: 'This payment has expired' }).waitFor();
  troubles = troubles.filter((trouble) => !/status of 4\d\d/.test(trouble));
});
