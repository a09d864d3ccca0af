/** The page of a key's devices in a real Chromium: what they report, where they are and what they earn, on a phone too. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { launchBrowser } from '../../../../packages/sandbox/src/browser.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { post, register } from '../devices.fixture.ts';
import { assertReadable } from '../look.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';

let database: TestDatabase;
let server: TestServer;
let browser: Browser;
let owner: string;
before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({ pools: database });
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
      assert.equal(await page.locator('.map circle').count(), 3);
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
      assert.match(String(await page.locator('#register-message code').textContent()), /^[0-9a-f]{64}$/);
      assert(!page.url().includes(owner), 'no secret in an address');
      assert.deepEqual(troubles, []);
      await page.close();
    });
