/** The operator's page in a real Chromium: getting in, the figures, and an act from the search to the audit trail. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser } from '../../../../packages/sandbox/src/browser.fixture.ts';
import { type CardWorld, startCardWorld } from '../cards.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { assertReadable } from '../look.fixture.ts';
import { jsonOf, type TestServer } from '../server.fixture.ts';

const TOKEN = 'an-operators-token-of-the-tests';
const DAY_MS = 86_400_000;

let world: CardWorld;
let server: TestServer;
let browser: Browser;
let nowMs = Date.now();
let customerKey: string;
let customer: string;
before(async () => {
  world = await startCardWorld({ environment: { ADMIN_TOKENS: `desk:${TOKEN}` }, nowMs: () => nowMs });
  server = world.server;
  await someTraffic();
  browser = await launchBrowser();
});
after(async () => {
  await browser.close();
  await world.stop();
});

/** A key that was bought by card, a month of calls on all rails, and a settlement of which nobody knows the end. */
async function someTraffic(): Promise<void> {
  const checkout = { amountUsd: 100, email: 'buyer@example.com' };
  const opened = await jsonOf(world.post('/api/m2m/credits/checkout/session', checkout));
  await world.pay(opened.checkoutUrl);
  const status = `${opened.sessionId}?token=${opened.retrievalToken}`;
  const paid = await jsonOf(fetch(`${server.url}/api/m2m/credits/checkout/status/${status}`));
  customerKey = paid.apiKey;
  const known = await server.app.keys.find(customerKey);
  assert(known !== null);
  customer = String(known.accountId);
  await server.app.keys.update(known.id, { label: 'weather station' });
  const today = nowMs;
  for (let ago = 29; ago >= 0; ago -= 1) {
    nowMs = today - ago * DAY_MS;
    for (let count = 0; count < 1 + (ago % 4); count += 1) {
      await (await server.call(count % 2 === 0 ? 'ping' : 'first-call', customerKey)).text();
    }
    if (ago % 3 === 0) {
      await chainCall(
        ago % 2 === 0 ? 'x402' : 'mpp',
        'token-price',
        250_000n * BigInt(1 + (ago % 5)),
        'settled',
      );
    }
  }
  nowMs = today;
  await chainCall('x402', 'wallet-portfolio', 500_000n, 'unknown');
  await server.key('5');
}

/** A call that was paid on a chain; or may have been, two minutes ago, and nobody knows. */
async function chainCall(
  rail: 'x402' | 'mpp',
  service: string,
  priceMicros: bigint,
  end: 'settled' | 'unknown',
): Promise<void> {
  const { calls } = server.app;
  const id = randomUUID();
  const now = nowMs;
  if (end === 'unknown') nowMs -= 120_000;
  const call = {
    id,
    accountId: 5n,
    bucket: 0,
    rail,
    service,
    priceMicros,
    revenue: `revenue_${rail}` as const,
  };
  const unnamed = {
    keyId: null,
    identity: id,
    onChainIdentity: id,
    fingerprint: Buffer.alloc(32),
    ttlMs: 60_000,
  };
  await calls.begin({ ...call, ...unnamed });
  await calls.keep({
    ...call,
    payment: {
      identity: id,
      network: 'eip155:8453',
      asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
      payer: '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65',
      payTo: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
      amountUnits: priceMicros,
      deadAfterMs: nowMs + 60_000,
      evidence: {},
    },
    answer: { status: 200, headers: {}, body: '{}' },
    leaseMs: 1_000,
  });
  const settled = { transaction: `0x${id.replaceAll('-', '')}`, blockNumber: 1n };
  if (end === 'settled') {
    await calls.finish({ ...call, capture: true, outcome: 'answered', answer: null, settled });
  }
  nowMs = now;
}

/** Opens the page and notes what it complains about, or asks of anybody but this server. */
async function open(width: number, scheme: 'light' | 'dark' = 'light') {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme });
  const troubles: string[] = [];
  page.on('pageerror', (error) => troubles.push(`page error: ${error.message}`));
  page.on('console', (message) => {
    // What the server refuses is written down by Chromium itself.
    if (message.type() === 'error' && !/status of 40[01]/.test(message.text())) troubles.push(message.text());
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(server.url)) troubles.push(`asked ${request.url()}`);
  });
  await page.goto(`${server.url}/admin`, { waitUntil: 'networkidle' });
  return { page, troubles };
}

async function enter(page: Page, token: string): Promise<void> {
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

async function assertFits(page: Page, what: string): Promise<void> {
  const overflow = await page.evaluate('document.documentElement.scrollWidth - window.innerWidth');
  assert(Number(overflow) <= 0, `${what} is ${overflow} px too wide`);
}

/** Pictures for whoever wants to look: set `ADMIN_PAGE_PICTURES` to a folder. */
async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.ADMIN_PAGE_PICTURES;
  if (folder !== undefined) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
}

test('an operator gets in, sees the figures, finds a key, freezes it, grants, and finds it all on record', async () => {
  const { page, troubles } = await open(1280);
  await enter(page, 'not-the-token-of-an-operator');
  await page.getByText('This token is not known here.').waitFor();
  assert.equal(await page.getByRole('heading', { name: 'Overview' }).count(), 0);
  await enter(page, TOKEN);
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  assert.equal(await page.getByLabel('Token').isVisible(), false);

  assert.deepEqual(await page.locator('h1:visible').allTextContents(), ['Overview']);
  const titles = await page.locator('#view h2').allTextContents();
  assert.deepEqual(titles, ['Needs you', 'Today', 'Sales', 'Money', 'System']);
  await page.locator('.line', { hasText: 'Your address' }).getByText('127.0.0.1').first().waitFor();
  const chart = page.getByRole('img', { name: /^Sold by day/ });
  await chart.waitFor();
  for (const rail of ['credits', 'x402', 'mpp']) {
    const tallest = await chart.locator(`rect.${rail}`).evaluateAll((bars: unknown) =>
      // The page's own types are not ours.
      Math.max(...(bars as { getBBox(): { height: number } }[]).map((bar) => bar.getBBox().height)),
    );
    assert(tallest > 1, `${rail} is in the picture`);
  }
  await page.getByRole('rowheader', { name: 'token-price' }).waitFor();
  assert.match((await page.textContent('#view')) ?? '', /1 settlement unknown/);
  await page.getByRole('heading', { name: 'Books' }).click();
  await page.getByRole('button', { name: 'Check now' }).click();
  await page.locator('#message').getByText('The books balance.').waitFor();
  await page.getByText(/Books in balance, checked (just now|\d+ min ago)\./).waitFor();
  await picture(page, 'overview-1280');

  await page.getByRole('link', { name: 'Keys', exact: true }).click();
  await page.getByRole('heading', { name: 'Keys', exact: true }).waitFor();
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.getByLabel('Find keys').fill(customerKey);
  await page.getByRole('button', { name: 'Find' }).click();
  const row = page.getByRole('row').filter({ hasText: 'weather station' });
  await row.waitFor();
  assert(
    asked.some((url) => url.includes('/keys?q=fbx_')) &&
      !asked.some((url) => url.includes(customerKey.slice(12))),
    'of a pasted key only its beginning leaves the page',
  );
  await page.getByLabel('Find keys').fill('buyer@example');
  await page.getByRole('button', { name: 'Find' }).click();
  await row.waitFor();
  await picture(page, 'keys-1280');
  await world.database.sql`
    insert into account_sales_days
      (account_id, day, service, rail, answered, answered_micros, released, refunded, refunded_micros)
    select account_id, '2026-03-09', 'ping', 'credits', 3, 750000, 2, 1, 250000 from api_keys where label = 'weather station'`;
  await row.getByRole('link').click();
  await page.getByRole('heading', { name: /^Account \d+$/ }).waitFor();

  await page.getByRole('button', { name: 'Freeze …', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Freeze this account?' });
  await dialog.getByRole('button', { name: 'Freeze' }).click();
  assert(await dialog.isVisible(), 'nothing is done without a reason');
  await dialog.getByLabel('Reason').fill('somebody else has it');
  await picture(page, 'dialog-1280');
  await dialog.getByRole('button', { name: 'Freeze' }).click();
  await page.getByText('Frozen by an operator').waitFor();
  assert.equal((await server.call('ping', customerKey)).status, 402);

  await page.getByRole('button', { name: 'Grant credit …' }).click();
  const grant = page.getByRole('dialog', { name: 'Grant credit?' });
  await grant.getByLabel('Amount, USD').fill('20000');
  await grant.getByLabel('Reason').fill('for the trouble');
  await grant.getByRole('button', { name: 'Grant' }).click();
  await grant.getByText(/at most 10000.00/).waitFor();
  await grant.getByLabel('Amount, USD').fill('12.50');
  await grant.getByRole('button', { name: 'Grant' }).click();
  await page.getByText('Granted $12.50.').waitFor();

  await page
    .getByRole('button', { name: /^Refund call/ })
    .first()
    .click();
  const refund = page.getByRole('dialog', { name: /Give this call/ });
  await refund.getByLabel('Reason').fill('the answer was wrong');
  await refund.getByRole('button', { name: 'Give back' }).click();
  await page.getByText('given back', { exact: true }).waitFor();
  await page.getByRole('button', { name: /^Refund order/ }).click();
  const sendBack = page.getByRole('dialog', { name: 'Send this payment back?' });
  await sendBack.getByLabel('Amount, USD').fill('5');
  await sendBack.getByLabel('Reason').fill('as agreed');
  await sendBack.getByRole('button', { name: 'Send back' }).click();
  await page.getByText('On its way back: $5.00.').waitFor();
  // What was done is shown at once, and the account anew a moment later.
  await page.locator('#view:not([aria-busy])').waitFor();
  const ids = page.getByRole('table', { name: 'Last calls' }).getByRole('button', { name: /^Copy / });
  const [shown, whole] = [await ids.first().textContent(), await ids.first().getAttribute('title')];
  assert.equal(shown, `…${whole?.slice(-8)}`, 'an id is told by its end: ids of one hour begin alike');
  const bought = page
    .getByRole('table', { name: 'Bought by day' })
    .getByRole('row')
    .filter({ hasText: '2026-03-09' });
  assert.match((await bought.textContent()) ?? '', /ping\s*credits\s*3\s*\$0\.75\s*2\s*1\s*\$0\.25/);
  const transfers = page.getByRole('table', { name: 'Last transfers' });
  assert.equal(
    await transfers.getByText('call, pending').count(),
    0,
    'what moved no money is not in the way',
  );
  await page.getByRole('button', { name: /^Show \d+ pending or void$/ }).click();
  await transfers.getByText('call, pending').first().waitFor();
  await picture(page, 'account-1280');
  await assertReadable(page, 'the account');

  await page.getByRole('link', { name: 'Audit log', exact: true }).click();
  const acts = page.getByRole('table', { name: 'Newest first' });
  for (const why of ['somebody else has it', 'for the trouble', 'the answer was wrong', 'as agreed'])
    await acts.getByRole('row').filter({ hasText: why }).filter({ hasText: 'desk' }).waitFor();
  assert.equal(await acts.getByRole('row').count(), 5);
  await picture(page, 'audit-1280');

  assert(!page.url().includes(TOKEN));
  await page.reload({ waitUntil: 'networkidle' });
  await acts.waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  assert(await page.getByLabel('Token').isVisible());
  assert.equal(
    await page.evaluate('JSON.stringify({ ...sessionStorage, ...localStorage }) + document.cookie'),
    '{}',
  );
  assert.deepEqual(troubles, []);
  await page.close();
});

test('an operator sets a price, takes a service off sale and takes both back, beside what the file and the default say', async () => {
  const { page, troubles } = await open(1280);
  await enter(page, TOKEN);
  await page.getByRole('link', { name: 'Services', exact: true }).click();
  const row = page
    .getByRole('row')
    .filter({ has: page.getByRole('rowheader', { name: 'first-call', exact: true }) });
  const isShown = (words: readonly string[]) =>
    until(`first-call to be shown as ${words.join(', ')}`, async () => {
      const cells = await row.getByRole('cell').allTextContents();
      return words.every((each, index) => cells[index] === each);
    });
  const change = async (button: string, confirm: string, price?: string) => {
    await row.getByRole('button', { name: button, exact: true }).click();
    const dialog = page.getByRole('dialog');
    if (price !== undefined) await dialog.getByLabel('Price in USD').fill(price);
    await dialog.getByLabel('Reason').fill('the source costs more');
    await dialog.getByRole('button', { name: confirm, exact: true }).click();
  };
  const sold = async () => {
    const asked = await fetch(`${server.url}/x402/first-call`, { method: 'POST' });
    const body: { priceUsd?: string; accepts?: { amount: string }[] } = JSON.parse(await asked.text());
    return [asked.status, body.accepts?.[0]?.amount];
  };
  await isShown(['$0.05', '$0.05', '—']);
  await change('Price', 'Price', '0.07');
  await isShown(['$0.07', '$0.05', 'operator: $0.07']);
  assert.deepEqual(await sold(), [402, '70000']);
  await change('Take off sale', 'Take off sale');
  await isShown(['off sale', '$0.05', 'operator: $0.07, off sale']);
  assert.equal((await sold())[0], 404);
  await assertReadable(page, 'the services');
  await change('Take back', 'Take back');
  await isShown(['$0.05', '$0.05', '—']);
  assert.deepEqual(await sold(), [402, '50000']);
  const history = page.getByRole('table', { name: 'History' });
  assert.equal(await history.getByRole('row').filter({ hasText: 'the source costs more' }).count(), 3);
  await picture(page, 'services-1280');
  assert.deepEqual(troubles, []);
  await page.close();
});

test('a dispute leads to its order and its account, and says until when evidence is taken', async () => {
  const opened = await jsonOf(world.post('/api/m2m/credits/checkout/session', { amountUsd: 25 }));
  await world.pay(opened.checkoutUrl);
  const paid = async () => {
    await world.settle();
    const [row] = await world.database.sql<{ id: string; payment_intent_id: string | null }[]>`
      select id, payment_intent_id from card_orders where session_id = ${opened.sessionId} and state = 1`;
    return row;
  };
  await until('the payment', async () => (await paid()) !== undefined);
  const order = await paid();
  assert(order !== undefined);
  const dispute = await world.control('POST', '/disputes', { paymentIntent: order.payment_intent_id });
  const due = async () => {
    await world.settle();
    const [row] = await world.database.sql<{ dispute_due_at: Date | null; account_id: bigint }[]>`
      select dispute_due_at, account_id from card_orders where id = ${order.id}`;
    return row;
  };
  await until('the dispute', async () => (await due())?.dispute_due_at !== null);
  const known = await due();
  assert.equal(known?.dispute_due_at?.getTime(), dispute.evidence_details.due_by * 1_000);

  const { page, troubles } = await open(1280);
  await enter(page, TOKEN);
  const row = page
    .getByRole('table', { name: 'Open disputes' })
    .getByRole('row')
    .filter({ hasText: order.id });
  await row.getByText('needs response').waitFor();
  await row.locator('time').first().waitFor();
  assert.equal(
    await row.locator('time').first().getAttribute('datetime'),
    known?.dispute_due_at?.toISOString(),
  );
  await assertReadable(page, 'the overview');
  await row.getByRole('link', { name: order.id }).click();
  await page.getByRole('heading', { name: `Account ${known?.account_id}` }).waitFor();
  await page.getByText('evidence due').waitFor();
  assert.equal(
    await page.evaluate('document.activeElement.textContent'),
    order.id,
    'its order has the focus',
  );
  assert.deepEqual(troubles, []);
  await page.close();
  await world.control('POST', `/disputes/${dispute.id}`, { status: 'won' });
});

test('what a customer has an id of leads to the call, its story and its refund', async () => {
  const customerKey = await server.key('1');
  const bought = await server.call('first-call', customerKey);
  const callId = String(bought.headers.get('x-call-id'));
  for (const width of [1280, 390]) {
    const { page, troubles } = await open(width);
    await enter(page, TOKEN);
    const box = page.getByRole('searchbox', { name: 'Find what a customer has an id of' });
    await box.fill('nothing of ours');
    await box.press('Enter');
    await page.getByRole('heading', { name: 'Find' }).waitFor();
    await page.getByText('Nothing has this id.').waitFor();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    await box.fill(` ${customerKey} `);
    await box.press('Enter');
    await page.getByRole('row').filter({ hasText: 'USD left' }).waitFor();
    assert(
      asked.some((url) => url.includes('/find?q=fbx_')) &&
        !asked.some((url) => url.includes(customerKey.slice(12))),
      'of a pasted key only its beginning leaves the page',
    );
    await box.fill(` ${callId.toUpperCase()} `);
    await box.press('Enter');
    await assertFits(page, 'what was found');
    await page.getByRole('link', { name: callId }).click();
    await page.getByRole('heading', { name: 'Call of first-call' }).waitFor();
    await page.getByRole('row').filter({ hasText: 'captured' }).waitFor();
    await assertReadable(page, `a call at ${width} px`);
    await assertFits(page, 'a call');
    await picture(page, `call-${width}`);
    if (width === 1280) {
      await page.getByRole('button', { name: 'Refund …' }).click();
      const dialog = page.getByRole('dialog', { name: 'Give this call’s price back?' });
      await dialog.getByLabel('Reason').fill('the answer was of no use');
      await dialog.getByRole('button', { name: 'Give back' }).click();
      await page.getByText('Given back: $0.05.').waitFor();
    }
    await page.getByRole('row').filter({ hasText: 'to the account' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Refund …' }).count(), 0, 'once');
    assert.deepEqual(troubles, []);
    await page.close();
  }
});

test('who types while a view is still loading is not interrupted when it comes', async () => {
  const { page, troubles } = await open(1280);
  let goOn: () => void = () => {};
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  await page.route(/\/admin\/api\/overview/, async (route) => {
    await held;
    await route.continue();
  });
  await enter(page, TOKEN);
  const box = page.getByRole('searchbox', { name: 'Find what a customer has an id of' });
  await box.pressSequentially('nothing of');
  goOn();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await page.locator('#view:not([aria-busy])').waitFor();
  await page.keyboard.type(' ours');
  await page.keyboard.press('Enter');
  await page.getByText('Nothing has this id.').waitFor();
  assert.equal(await box.inputValue(), 'nothing of ours');
  assert.equal(
    await page.evaluate('document.activeElement.textContent'),
    'Find',
    'what was asked for has it',
  );
  assert.deepEqual(troubles, []);
  await page.close();
});

test('a source that was never asked is not up', async () => {
  const stateOf = async (name: string): Promise<string | undefined> => {
    const headers = { authorization: `Bearer ${TOKEN}` };
    const { upstreams } = await jsonOf(fetch(`${server.url}/admin/api/overview?days=1`, { headers }));
    return upstreams.find((each: { name: string }) => each.name === name)?.state;
  };
  assert.equal(await stateOf('binance'), 'not_asked');
  const bought = await server.call('trade-signals', await server.key('5'), { token: 'ETH/USDT' });
  assert.equal(bought.status, 200, await bought.text());
  assert.equal(await stateOf('binance'), 'up');
  assert.equal(await stateOf('kraken'), 'not_asked');
});

test('the official pages of laws are counted, and listed when somebody wants to see them', async () => {
  const { page, troubles } = await open(1024);
  await enter(page, TOKEN);
  await page.getByText('Official pages of laws', { exact: true }).click();
  await page.getByText(/^\d+ not read yet of \d+$/).waitFor();
  await page.getByRole('button', { name: 'List the pages' }).click();
  const table = page.getByRole('table', { name: /^Official pages that the rules/ });
  await table.getByRole('link', { name: 'sso.agc.gov.sg' }).first().waitFor();
  await table.getByText('not read', { exact: true }).first().waitFor();
  await assertFits(page, 'the list of official pages');
  assert.deepEqual(troubles, []);
  await page.close();
});

test('it fits a phone and a desk, in light and dark, and can be worked by keyboard', async () => {
  for (const [width, scheme] of [
    [390, 'dark'],
    [390, 'light'],
    [768, 'light'],
    [1024, 'light'],
    [1280, 'dark'],
  ] as const) {
    const { page, troubles } = await open(width, scheme);
    await page.keyboard.press('Tab');
    await page.getByLabel('Token').focus();
    await page.keyboard.type(TOKEN);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    for (const view of ['overview', 'keys', 'audit', `account-${customer}`]) {
      await page.goto(`${server.url}/admin#${view}`);
      await page.locator('#view:not([aria-busy]) h1').first().waitFor();
      await assertReadable(page, `${view} at ${width}`);
      if (width !== 768) await picture(page, `${view.replace(/\d+/, '')}-${width}-${scheme}`);
    }
    await page.getByRole('button', { name: /^(Freeze|Unfreeze) …$/ }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    assert.match(
      String(await page.evaluate('document.activeElement.id')),
      /^act-/,
      'the dialog has the focus',
    );
    await assertFits(page, `the dialog at ${width}`);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    assert.deepEqual(troubles, []);
    await page.close();
  }
});

test('an operator has MPP buy a service, and no more, by a button beside its price', async () => {
  const { page, troubles } = await open(1280);
  await enter(page, TOKEN);
  await page.getByRole('link', { name: 'Services', exact: true }).click();
  const row = page
    .getByRole('row')
    .filter({ has: page.getByRole('rowheader', { name: 'token-price', exact: true }) });
  const shown = async () => {
    const answer = await fetch(`${server.url}/admin/api/services`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    const { services } = (await answer.json()) as { services: { service: string; inForce: object }[] };
    return services.find(({ service }) => service === 'token-price')?.inForce;
  };
  for (const [label, isSold] of [
    ['By MPP', true],
    ['Not by MPP', false],
  ] as const) {
    await row.getByRole('button', { name: label, exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Reason').fill('wallets asked for it');
    await dialog.getByRole('button', { name: label, exact: true }).click();
    await row.getByRole('button', { name: isSold ? 'Not by MPP' : 'By MPP', exact: true }).waitFor();
    const inForce = (await shown()) as { available: boolean; mpp: boolean };
    assert.deepEqual([inForce.available, inForce.mpp], [true, isSold]);
  }
  assert.deepEqual(troubles, []);
  await page.close();
});
