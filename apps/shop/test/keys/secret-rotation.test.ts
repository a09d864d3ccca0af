/** The server's secret is replaced, and nothing that followed from the old one is lost. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { secretsOf } from '../../../../packages/core/src/secrets/secrets.ts';
import { StartError } from '../../../../packages/process/src/start-error.ts';
import { type CardWorld, startCardWorld } from '../cards.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

const OLD = 'the-secret-of-yesterday-in-this-test';
const NEW = 'the-secret-of-tomorrow-in-this-test';
const DAY_MS = 86_400_000;
const idOf = (secret: string) => secretsOf([secret]).current.id;

let world: CardWorld;
/** The card provider's clock is the real one. */
let aheadMs = 0;
const now = () => Date.now() + aheadMs;
before(async () => {
  world = await startCardWorld({ environment: { FAREBOX_SECRET: OLD }, nowMs: now });
});
after(() => world.stop());

/** A server that is told these secrets, on the same database. */
function startWith(FAREBOX_SECRET: string, environment: Record<string, string> = {}): Promise<TestServer> {
  return startTestServer({
    pools: world.database,
    upstreamsUrl: world.upstreams.url,
    environment: { ...world.environment, FAREBOX_SECRET, ...environment },
    nowMs: now,
  });
}
async function during(FAREBOX_SECRET: string, run: (server: TestServer) => Promise<void>, lost?: string) {
  const server = await startWith(FAREBOX_SECRET, lost === undefined ? {} : { FAREBOX_SECRETS_LOST: lost });
  try {
    await run(server);
  } finally {
    await server.close();
  }
}
/** What a start without the old secret says that it needs it for. */
async function refusedStart(lost?: string): Promise<string> {
  let said = '';
  await assert.rejects(
    during(NEW, async () => {}, lost),
    (error) => {
      said = error instanceof StartError ? error.message : '';
      return said.includes(`version ${idOf(OLD)}`) && !said.includes(OLD);
    },
  );
  return said;
}
const demo = (server: TestServer, address: string, installId: string) =>
  fetch(`${server.url}/api/sdk/demo-key`, {
    method: 'POST',
    headers: { 'x-forwarded-for': address, 'content-type': 'application/json' },
    body: JSON.stringify({ installId, sdkType: 'python-mcp' }),
  });
const trial = (server: TestServer, address: string) =>
  fetch(`${server.url}/api/m2m/credits/trial`, { headers: { 'x-forwarded-for': address } });

test('two replicas of which one is told of the newer secret first give one trial, to whomever comes', async () => {
  const [here, there] = await Promise.all([startWith(`${OLD}, ${NEW}`), startWith(`${NEW},${OLD}`)]);
  try {
    for (let n = 0; n < 6; n += 1) {
      const answers = await Promise.all(
        [here, there, world.server].map((server) => trial(server, `8.50.0.${n}`)),
      );
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 429, 429]);
    }
  } finally {
    await Promise.all([here.close(), there.close()]);
  }
  await world.database.sql`truncate trial_claims`;
});

describe('a key that was bought and not fetched', () => {
  test('is handed over under the new secret, and the start refuses to lose it', async () => {
    const opened = await jsonOf(
      world.post('/api/m2m/credits/checkout/session', { amountUsd: 10, email: 'a@example.com' }),
    );
    await world.pay(opened.checkoutUrl);
    assert.match(await refusedStart(), /keys that were bought and not fetched/);
    const path = `/api/m2m/credits/checkout/status/${opened.sessionId}?token=${opened.retrievalToken}`;
    await during(`${NEW},${OLD}`, async (server) => {
      const { apiKey } = await jsonOf(fetch(server.url + path));
      assert.equal((await server.call('ping', apiKey)).status, 200);
    });
    await during(NEW, async () => {});
  });

  test('nor one that a card bought whose answer was lost', async () => {
    const method = await fetch(`${world.provider.url}/v1/payment_methods`, {
      method: 'POST',
      headers: { authorization: `Bearer ${world.environment.CARD_PROVIDER_KEY}` },
      body: new URLSearchParams({ type: 'card', 'card[token]': 'tok_visa' }),
    });
    const asked = { paymentMethodId: (await jsonOf(method)).id, amountUsd: 5, idempotencyKey: randomUUID() };
    const bought = await jsonOf(world.post('/api/m2m/credits/purchase', asked));
    assert.match(bought.apiKey, /_live_/);
    await during(`${NEW},${OLD}`, async (server) => {
      assert.equal(
        (await jsonOf(world.post('/api/m2m/credits/purchase', asked, {}, server))).apiKey,
        bought.apiKey,
      );
    });
  });
});

test('on a database from before versions had names the oldest secret given is taken for theirs', async () => {
  const { sql } = world.database;
  const unfetched = await jsonOf(
    world.post('/api/m2m/credits/checkout/session', { amountUsd: 5, email: 'b@example.com' }),
  );
  await world.pay(unfetched.checkoutUrl);
  const asItWas = async () => {
    await sql`truncate secret_versions`;
    await sql`update card_orders set key_secret_id = null`;
    await sql`update trial_claims set secret_id = null`;
  };
  await asItWas();
  await during(`${NEW},${OLD}`, async () => {});
  assert.match(await refusedStart(), /keys that were bought and not fetched/);
  // An answer that was sealed before: whoever cannot open it does not start.
  await asItWas();
  await sql`
    insert into call_answers (account_id, id, status, headers, body, expires_at)
    values (1, ${randomUUID()}, 200, '{}', 'sealed:1:bm9uZSBvZiBvdXJzLCBhbmQgb2YgdGhlIHByb3BlciBsZW5ndGg=', ${new Date(now() + DAY_MS).toISOString()})`;
  await assert.rejects(
    during(NEW, async () => {}),
    /sealed with a secret that is not given/,
  );
  await sql`delete from call_answers where body like 'sealed:1:%'`;
  await during(`${NEW},${OLD}`, async (server) => {
    const path = `/api/m2m/credits/checkout/status/${unfetched.sessionId}?token=${unfetched.retrievalToken}`;
    assert.match((await jsonOf(fetch(server.url + path))).apiKey, /_live_/);
  });
});

describe('who has had a trial', () => {
  test('is known under the new secret, and the start refuses to forget it', async () => {
    const first = await jsonOf(demo(world.server, '8.51.0.1', 'install-rotation'));
    assert.equal(first.status, 'new');
    assert.match(await refusedStart(), /who has had a trial/);
    aheadMs += 4 * DAY_MS;
    await during(`${NEW},${OLD}`, async (server) => {
      assert.equal((await trial(server, '8.51.0.1')).status, 429);
      const again = await jsonOf(demo(server, '8.51.0.1', 'install-rotation'));
      assert.deepEqual([again.status, again.credits_remaining], ['existing', 5]);
      assert.equal((await trial(server, '8.51.0.2')).status, 200);
    });
    // No claim matters for longer than a trial, as the first has; and what was claimed while both were given needs one of them.
    aheadMs += 3 * DAY_MS + 1;
    await during(NEW, async () => {});
  });
});

test('a stored answer that holds a secret is handed out again, and the start refuses to lose it', async () => {
  const key = await world.server.key('20');
  const once = { 'idempotency-key': 'a-wallet-please' };
  const bought = await (await world.server.call('instant-agent-wallet', key, {}, once)).text();
  assert.match(bought, /privateKey/);
  assert.match(await refusedStart(), /stored answers that hold secrets/);
  await during(`${NEW},${OLD}`, async (server) => {
    const again = await server.call('instant-agent-wallet', key, {}, once);
    assert.deepEqual([await again.text(), again.headers.get('idempotent-replayed')], [bought, 'true']);
    await (await server.call('instant-agent-wallet', key, {}, { 'idempotency-key': 'another' })).text();
  });
  // Lost for good: who says so starts without what needs it.
  await during(
    NEW,
    async (server) => {
      assert.equal(
        (await server.call('instant-agent-wallet', key, {}, { 'idempotency-key': 'another' })).status,
        200,
      );
      assert.equal((await server.call('instant-agent-wallet', key, {}, once)).status, 500);
    },
    idOf(OLD),
  );
  aheadMs += 3 * DAY_MS;
  await during(NEW, async () => {});
});
