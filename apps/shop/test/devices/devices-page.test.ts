/** The page of a key's devices in a real Chromium: what they report, where they are and what they earn, on a phone too. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { launchBrowser } from '../../../../packages/sandbox/src/browser.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { openCertificate, post, register } from '../devices.fixture.ts';
import { assertReadable } from '../look.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';

let database: TestDatabase;
let server: TestServer;
let browser: Browser;
let owner: string;
let certificate: ReturnType<typeof openCertificate>;
before(async () => {
  database = await openTestDatabase();
  certificate = openCertificate();
  server = await startTestServer({ pools: database, environment: certificate.environment });
  browser = await launchBrowser();
  owner = await server.key('1');
  for (const [nth, deviceId] of ['greenhouse-1', 'greenhouse-2', 'van-1'].entries()) {
    const device = await register(server, owner, { deviceId, name: deviceId });
    const rows = Array.from({ length: 40 }, (_, at) => ({
      at: new Date(Date.now() - (40 - at) * 120_000).toISOString(),
      values: { temperature: 20 + nth + Math.round(30 * Math.sin(at / 6)) / 10 },
      position: { lat: 52.1 + nth * 0.2, lon: 4.9 + nth * 0.3 },
    }));
    assert.equal((await post(server, device, rows)).status, 200);
  }
  const stranger = await server.key('1');
  assert.equal((await server.call('iot-sensor-reading', stranger, { deviceId: 'van-1' })).status, 200);
});
after(async () => {
  await browser.close();
  await server.close();
  await database.close();
  certificate.close();
});

test('a key without devices is told how to get one, and nothing stands empty', async () => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(`${server.url}/devices`, { waitUntil: 'networkidle' });
  await page.getByLabel('Key', { exact: true }).fill(await server.key('1'));
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByText('You have no devices yet.').waitFor();
  assert(!(await page.getByRole('heading', { name: 'The last day' }).isVisible()));
  assert.equal(
    (await fetch(`${server.url}${await page.getByText('How a device reports').getAttribute('href')}`)).status,
    200,
  );
  await page.getByRole('button', { name: 'Use another key' }).click();
  assert(await page.getByLabel('Key', { exact: true }).isVisible());
  await page.getByRole('button', { name: 'Forget' }).click();
  await page.getByRole('heading', { name: 'Register a device' }).waitFor({ state: 'hidden' });
  assert.equal(await page.evaluate('sessionStorage.length'), 0);
  await page.close();
});

for (const scheme of ['light', 'dark'] as const)
  for (const width of [390, 1280])
    test(`an owner sees devices, map, chart and earnings at ${width} px in ${scheme}, and registers one`, async () => {
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme });
      const troubles: string[] = [];
      page.on('pageerror', (error) => troubles.push(error.message));
      page.on('request', (request) => {
        if (!request.url().startsWith(server.url)) troubles.push(`asked ${request.url()}`);
      });
      await page.goto(`${server.url}/devices`, { waitUntil: 'networkidle' });
      await page.getByLabel('Key', { exact: true }).fill(owner);
      await page.getByRole('button', { name: 'Open' }).click();
      await page.getByRole('button', { name: 'van-1' }).click();
      await page.getByText(/van-1, temperature: [\d.]+ celsius now/).waitFor();
      assert(
        !(await page.getByLabel('Key', { exact: true }).isVisible()),
        'the box folds once a key is open',
      );
      const shown = String(await page.locator('#prefix').textContent());
      assert(owner.startsWith(shown.slice(0, -1)) && shown.length === 13, shown);
      assert.equal(await page.locator('.map circle').count(), 3);
      const axis = await page.locator('#chart .tick').allTextContents();
      assert.deepEqual(axis.slice(0, 2), ['19', '25'], 'least and most of its readings');
      const cut = await page.evaluate(`[...document.querySelectorAll('.map text')].filter((name) => {
        const [own, all] = [name, name.ownerSVGElement].map((each) => each.getBoundingClientRect());
        return own.right > all.right || own.left < all.left;
      }).map((name) => name.textContent)`);
      assert.deepEqual(cut, [], 'names of lines that the map cuts off');
      assert.match(String(await page.locator('#earnings').textContent()), /Earned\$0\.025/);
      await assertReadable(page, `/devices at ${width} in ${scheme}`);
      const name = `new-${width}-${scheme}`;
      await page.getByLabel('Device id').fill(name);
      await page.getByLabel('Sensors with their units').fill('co2=ppm, light=lux');
      await page.getByRole('button', { name: 'Register' }).click();
      await page.getByText(`${name} is registered`).waitFor();
      const secret = String(await page.locator('#register-message pre').first().textContent());
      assert.match(secret, /^[0-9a-f]{64}$/);
      const command = String(
        await page.getByLabel('the command of a first report', { exact: true }).textContent(),
      );
      assert.match(command, new RegExp(`-p \\d+ .* -u ${name} -P "\\$SECRET"`));
      assert.match(command, new RegExp(`-t devices/${name}/readings -m .*"co2":1,"light":1`));
      assert(!command.includes(secret));
      assert(!page.url().includes(owner), 'no secret in an address');
      assert.deepEqual(troubles, []);
      await page.close();
    });
