/** Signing in at the provider in a real Chromium: the button, the way there and back, what each role sees, and the way out. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { freePort } from '../../../../packages/process/src/free-port.ts';
import { launchBrowser } from '../../../../packages/sandbox/src/browser.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { assertReadable } from '../look.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';
import { CLIENT, type SignInProviderDouble, startSignInProvider } from './sign-in-provider.fixture.ts';

const TOKEN = 'an-operators-token-of-the-tests';
const ANN = { sub: 'ann-1', email: 'ann@example.com', email_verified: true };
const BEN = { sub: 'ben-1', email: 'ben@example.com', email_verified: true };

let database: TestDatabase;
let provider: SignInProviderDouble;
let server: TestServer;
let browser: Browser;
before(async () => {
  const [opened, double, port] = await Promise.all([openTestDatabase(), startSignInProvider(), freePort()]);
  [database, provider] = [opened, double];
  server = await startTestServer({
    pools: database,
    port,
    environment: {
      PUBLIC_URL: `http://127.0.0.1:${port}`,
      ADMIN_TOKENS: `desk:${TOKEN}`,
      ADMIN_OIDC_ISSUER: provider.issuer,
      ADMIN_OIDC_CLIENT_ID: CLIENT.id,
      ADMIN_OIDC_CLIENT_SECRET: CLIENT.secret,
      ADMIN_ROLES: 'email=ann@example.com:admin,email=ben@example.com:read',
    },
  });
  browser = await launchBrowser();
});
after(async () => {
  await browser.close();
  await server.close();
  await provider.stop();
  await database.close();
});

/** Pictures for whoever wants to look: set `ADMIN_PAGE_PICTURES` to a folder. */
async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.ADMIN_PAGE_PICTURES;
  if (folder !== undefined) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
}
async function assertFits(page: Page, what: string): Promise<void> {
  const overflow = await page.evaluate('document.documentElement.scrollWidth - window.innerWidth');
  assert(Number(overflow) <= 0, `${what} is ${overflow} px too wide`);
}

for (const width of [1280, 390]) {
  test(`at ${width} px an admin signs in with a button, sees who is there, and ends a session`, async () => {
    const context = await browser.newContext({ viewport: { width, height: 900 } });
    const page = await context.newPage();
    const troubles: string[] = [];
    page.on('pageerror', (error) => troubles.push(error.message));
    await page.goto(`${server.url}/admin`, { waitUntil: 'networkidle' });
    await page.getByText('The token is for the first hour and for emergencies.').waitFor();
    await assertFits(page, 'the door');
    await assertReadable(page, 'the door');
    await picture(page, `sign-in-${width}`);
    provider.person = null;
    await page.getByRole('link', { name: 'Sign in' }).click();
    await page.getByText('The provider did not let this sign-in happen. Sign in again.').waitFor();
    assert.equal(new URL(page.url()).hash, '', 'the address does not keep it');

    provider.person = BEN;
    const ben = await (await browser.newContext()).newPage();
    await ben.goto(`${server.url}/admin/sign-in`);
    await ben.getByText('signed in as ben@example.com, role read').waitFor();
    await ben.goto(`${server.url}/admin#operators`);
    await ben.getByRole('heading', { name: 'Operators' }).waitFor();
    assert.equal(await ben.getByRole('button', { name: 'Turn tokens off' }).count(), 0);
    await ben.goto(`${server.url}/admin#find`);
    await ben.goto(`${server.url}/admin#audit`);
    await ben.getByText('This needs the role support, and yours is read.').waitFor();

    provider.person = ANN;
    await page.getByRole('link', { name: 'Sign in' }).click();
    await page.getByText('signed in as ann@example.com, role admin').waitFor();
    await page.getByRole('link', { name: 'Operators' }).click();
    // Not that of the trail, which names him too.
    const people = page.getByRole('table', { name: 'People who have signed in' });
    const row = people.getByRole('row', { name: /ben@example\.com/ });
    await row.getByRole('button', { name: 'End' }).first().waitFor();
    await page.getByText('Trail, newest first').waitFor();
    await assertFits(page, 'the operators');
    await assertReadable(page, 'the operators');
    await picture(page, `operators-${width}`);
    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save both logs' }).click();
    assert.equal((await saving).suggestedFilename(), 'audit.jsonl');
    const ends = row.getByRole('button', { name: 'End' });
    const sessions = await ends.count();
    assert(sessions > 0, 'there is a session to be ended');
    for (let left = sessions; left > 0; left -= 1) {
      // The list is empty for a moment whenever it is drawn anew.
      const ended = page.waitForResponse((answer) => answer.url().endsWith('/end') && answer.ok());
      await ends.first().click();
      await ended;
      await until('the session to go from the list', async () => (await ends.count()) < left);
    }
    // Once: with the answer the browser forgets the session, and the page after it has nothing to say of one.
    await ben.goto(`${server.url}/admin`);
    await ben.getByText('This session is over. Sign in again.').waitFor();

    await page.getByRole('link', { name: 'Accounting' }).click();
    await page.getByRole('heading', { name: 'Accounting' }).waitFor();
    await assertFits(page, 'the accounting');
    await assertReadable(page, 'the accounting');
    await picture(page, `accounting-${width}`);
    const file = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save as CSV' }).click();
    assert.match((await file).suggestedFilename(), /^accounting-.*\.csv$/);

    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('You are signed out here.').waitFor();
    await page.reload();
    await page.getByRole('link', { name: 'Sign in' }).waitFor();
    assert.deepEqual(troubles, []);
    await context.close();
    await ben.context().close();
  });
}
