/** The webhooks on the page of a key in a real Chromium: registered, tried, sent again, replaced and deleted. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Browser } from 'playwright-core';
import { launchBrowser } from '../../../../packages/sandbox/src/browser.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { assertReadable } from '../look.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';
import { type Receiver, startReceiver } from '../webhooks.fixture.ts';

const PATIENCE_MS = 60_000;
let database: TestDatabase;
let server: TestServer;
let receiver: Receiver;
let browser: Browser;
before(async () => {
  database = await openTestDatabase();
  receiver = await startReceiver();
  server = await startTestServer({ pools: database, environment: { WEBHOOK_PRIVATE_ADDRESSES: 'true' } });
  browser = await launchBrowser();
});
after(async () => {
  await browser.close();
  await receiver.stop();
  await server.close();
  await database.close();
});

async function sent(count: number): Promise<void> {
  const job = server.app.jobs.find(({ name }) => name === 'send-webhooks');
  assert(job !== undefined);
  await job.run();
  const endMs = Date.now() + PATIENCE_MS;
  const noted = async () => {
    const [row] = await database.sql`
      select count(*)::int as n from webhook_deliveries where delivered_at is not null`;
    return row?.n === 1 && receiver.arrived.length === count;
  };
  while (!(await noted())) {
    assert(Date.now() < endMs, `still waiting for message ${count}`);
    await pause(20);
  }
}

for (const [width, scheme] of [
  [390, 'dark'],
  [1280, 'light'],
] as const)
  test(`an owner manages webhooks at ${width} px in ${scheme}`, async () => {
    const owner = await server.key('1');
    receiver.arrived.splice(0);
    const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme });
    page.setDefaultTimeout(PATIENCE_MS);
    const troubles: string[] = [];
    page.on('pageerror', (error) => troubles.push(error.message));
    page.on('request', (request) => {
      if (!request.url().startsWith(server.url)) troubles.push(`asked ${request.url()}`);
    });
    await page.goto(`${server.url}/keys`, { waitUntil: 'networkidle' });
    await page.getByLabel('Key', { exact: true }).fill(owner);
    await page.getByRole('button', { name: 'Open' }).click();
    const section = page.locator('#webhooks');
    await section.getByRole('heading', { name: 'Webhooks' }).click();
    await section.getByText('There is none yet.').waitFor();

    await section.getByLabel('HTTPS address', { exact: true }).fill('ftp://example.com/x');
    await section.getByLabel('the balance is low').check();
    await section.getByLabel('When it is below').fill('0.50');
    await section.getByRole('button', { name: 'Add webhook' }).click();
    await section.locator('#webhook-url-problem').getByText('Must begin with https://').waitFor();
    await section.getByLabel('HTTPS address', { exact: true }).fill(`${receiver.url}/page`);
    await section.getByRole('button', { name: 'Add webhook' }).click();
    await section.getByText('Its secret. Save it now').waitFor();
    const secret = String(await section.locator('#webhook-message code').textContent());
    assert.match(secret, /^whsec_/);
    await section.getByText('When the balance is below $0.50.').waitFor();

    await section.getByRole('button', { name: 'Send a test' }).click();
    await page.waitForFunction("document.querySelector('#webhook-message').textContent === ''");
    const waiting = async () => (await database.sql`select 1 from webhook_deliveries`).length === 1;
    for (const endMs = Date.now() + PATIENCE_MS; !(await waiting()); await pause(20))
      assert(Date.now() < endMs, 'no test was asked for');
    await sent(1);
    assert(
      !(await section.getByRole('button', { name: 'Add webhook' }).isVisible()),
      'the form folds once there is one',
    );
    await section.getByText('More', { exact: true }).click();
    await section.getByRole('button', { name: 'Messages' }).click();
    await section.getByText('webhook.test').waitFor();
    await section.getByText('delivered').waitFor();
    await assertReadable(page, `/keys with webhooks at ${width} in ${scheme}`);
    if (process.env.SHOTS_DIR !== undefined)
      await section.screenshot({ path: `${process.env.SHOTS_DIR}/webhooks-${width}-${scheme}.png` });
    await section.getByRole('button', { name: /^Send again/ }).click();
    await section.locator('.deliveries').getByText('waiting').waitFor();
    await sent(2);
    assert.equal(receiver.arrived[0]?.id, receiver.arrived[1]?.id);

    await section.getByRole('button', { name: 'New secret' }).click();
    await section.getByText('The old one signs too for a day.').waitFor();
    assert.notEqual(await section.locator('#webhook-message code').textContent(), secret);
    // As the sender leaves one that fails, and one that failed for too long.
    await database.sql`update webhooks set failing_since = now() - interval '1 day', failures = 3`;
    await section.getByRole('button', { name: 'New secret' }).click();
    await section.getByText('Its receiver took nothing since').waitFor();
    await database.sql`update webhooks set disabled_at = now(), disabled_because = 'failing'`;
    await section.getByRole('button', { name: 'New secret' }).click();
    await section.getByText('Its receiver took nothing for three days. Nothing was sent since').waitFor();
    await assertReadable(page, `/keys with a webhook that is off at ${width} in ${scheme}`);
    if (process.env.SHOTS_DIR !== undefined)
      await section.screenshot({ path: `${process.env.SHOTS_DIR}/webhooks-off-${width}-${scheme}.png` });
    await section.getByRole('button', { name: 'Switch on' }).click();
    await section.getByRole('button', { name: 'Switch off' }).click();
    await section.getByText('You switched it off.').waitFor();
    await database.sql`
      insert into account_events (account_id, type, data, about_money, created_at)
      select account_id, 'balance.low', '{}', false, now() from webhooks`;
    await section.getByRole('button', { name: 'Switch on' }).click();
    await section.getByText('It has missed one event of the last 30 days.').waitFor();
    await assertReadable(page, `/keys with a webhook that missed an event at ${width} in ${scheme}`);
    await section.getByRole('button', { name: 'Send what it missed' }).click();
    await section.getByText('One message will be sent.').waitFor();
    await section.getByRole('button', { name: 'Change address' }).click();
    await section.getByLabel('Its address').fill(`${receiver.url}/moved`);
    await section.getByRole('button', { name: 'Save' }).click();
    await section.getByText(`${receiver.url}/moved`).waitFor();
    await section.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await section.getByText(`${receiver.url}/moved`).waitFor();
    await section.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Delete the webhook' }).click();
    await section.getByText('There is none yet.').waitFor();
    assert(!page.url().includes(owner), 'no secret in an address');
    assert.deepEqual(troubles, []);
    await page.close();
  });
