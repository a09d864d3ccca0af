/** A key that was bought and lost: the return page gives the same one while it is handed over, a mailed link a new one. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, test } from 'node:test';
import { launchBrowser } from '../../../../packages/sandbox/src/browser.fixture.ts';
import { type Mailbox, startMailbox } from '../../../../packages/sandbox/src/mailbox/mailbox.ts';
import { type CardWorld, startCardWorld } from '../cards.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { assertReadable } from '../look.fixture.ts';
import { jsonOf, startTestServer } from '../server.fixture.ts';

const CREDITS = '/api/m2m/credits';
const MINUTE_MS = 60_000;
const TOKEN = 'an-operators-token-of-the-tests';

let world: CardWorld;
let mailbox: Mailbox;
let aheadMs = 0;
before(async () => {
  mailbox = await startMailbox({ stateDir: null });
  world = await startCardWorld({
    nowMs: () => Date.now() + aheadMs,
    environment: {
      SMTP_URL: mailbox.smtpUrl,
      MAIL_FROM: 'credits@farebox.test',
      ADMIN_TOKENS: `desk:${TOKEN}`,
    },
  });
});
after(async () => {
  await world?.stop();
  await mailbox?.stop();
});
beforeEach(async () => {
  aheadMs = 0;
  await fetch(`${mailbox.url}/__control/mails`, { method: 'DELETE' });
  await world.control('DELETE', '/faults');
});

async function post(path: string, body: object) {
  const response = await world.post(CREDITS + path, body);
  return { status: response.status, headers: response.headers, body: await jsonOf(response) };
}

/** A checkout that was paid, and the link that the payer came back by. */
async function paid(body: object = { amountUsd: 10 }) {
  const opened = await post('/checkout/session', body);
  assert.equal(opened.status, 200, JSON.stringify(opened.body));
  const { sessionId, retrievalToken, checkoutUrl } = opened.body;
  const back = await world.pay(checkoutUrl);
  const link = new URL(back.headers.get('location') ?? '');
  const [order] = await world.database.sql<{ id: string; page_seal: Buffer | null }[]>`
    select id, page_seal from card_orders where session_id = ${sessionId}`;
  assert(order !== undefined);
  await until('the payment', async () => {
    await world.settle();
    const [row] = await world.database.sql<{ state: number }[]>`
      select state from card_orders where session_id = ${sessionId}`;
    return row?.state === 1;
  });
  return {
    sessionId,
    retrievalToken,
    link,
    orderId: order.id,
    seal: order.page_seal,
    proof: link.hash.slice(1),
  };
}

const handOver = (session: { sessionId: string; proof: string }, reveal = false) =>
  post('/checkout/hand-over', { sessionId: session.sessionId, proof: session.proof, reveal });
const byAgent = async (session: { sessionId: string; retrievalToken: string }) =>
  jsonOf(
    fetch(
      `${world.server.url}${CREDITS}/checkout/status/${session.sessionId}?token=${session.retrievalToken}`,
    ),
  );

/** Sends what waits, and reads what came: the link of the newest mail. */
async function mailedLink(): Promise<{ to: string; token: string; text: string }> {
  const job = world.server.app.jobs.find(({ name }) => name === 'send-mails');
  await job?.run(new AbortController().signal);
  const { mails } = (await (await fetch(`${mailbox.url}/__control/mails`)).json()) as {
    mails: { text: string; to: string[] }[];
  };
  await fetch(`${mailbox.url}/__control/mails`, { method: 'DELETE' });
  const all = JSON.stringify(mails);
  const [, token = ''] = [...all.matchAll(/credits\/new-key#([\w-]{43})/g)].at(-1) ?? [];
  assert.notEqual(token, '', all);
  return { to: all, token, text: all };
}

test('the page has the same key as the agent, in any browser, and says who had it first', async () => {
  const session = await paid();
  assert.match(session.link.href, /\/credits\/return\?session=cs_\w+#[\w-]{22}$/);
  assert.deepEqual(
    [(await handOver(session)).body.state, (await handOver(session)).body.apiKey],
    ['waiting', undefined],
  );

  const shown = await handOver(session, true);
  assert.match(shown.body.apiKey, /^fbx_live_/);
  assert.deepEqual([shown.body.state, shown.body.deliveredTo], ['open', 'page']);
  assert.equal(shown.headers.get('cache-control'), 'no-store');
  const again = await Promise.all([handOver(session, true), handOver(session, true)]);
  for (const { body } of again)
    assert.equal(body.apiKey, shown.body.apiKey, 'another browser, twice at once');
  assert.equal((await byAgent(session)).apiKey, shown.body.apiKey, 'the agent gets the same one');

  assert.equal((await world.server.call('ping', shown.body.apiKey)).status, 200);
  const after = await handOver(session, true);
  assert.deepEqual([after.body.state, after.body.apiKey], ['over', undefined], 'used, it is told no more');

  const other = await paid();
  const { apiKey } = await byAgent(other);
  assert.deepEqual((await handOver(other)).body.deliveredTo, 'agent');
  assert.equal((await handOver(other, true)).body.apiKey, apiKey);
  aheadMs += 3 * MINUTE_MS;
  assert.deepEqual((await handOver(other, true)).body.apiKey, undefined, 'two minutes later');
});

test('nothing but the proof leads to the key: neither the session, nor another proof, nor what is stored', async () => {
  const [session, other] = [await paid(), await paid()];
  for (const proof of ['', 'a'.repeat(22), other.proof, session.retrievalToken, session.proof.slice(0, 21)]) {
    const refused = await handOver({ sessionId: session.sessionId, proof }, true);
    assert.deepEqual([refused.status, refused.body.code], [403, 'INVALID_PROOF'], proof);
  }
  assert.equal((await handOver(session)).body.state, 'waiting', 'nobody has had it');
  assert(session.seal !== null && !session.seal.toString('hex').includes(session.retrievalToken.slice(0, 8)));
  const [row] = await world.database.sql<{ all: string }[]>`
    select to_jsonb(o)::text as all from card_orders o where id = ${session.orderId}`;
  assert(row !== undefined && !row.all.includes(session.proof));

  const unpaid = await post('/checkout/session', { amountUsd: 5 });
  const mail = await post('/checkout/mail-key', { sessionId: unpaid.body.sessionId });
  assert.deepEqual([mail.status, mail.body.code], [409, 'NO_KEY_BOUGHT']);
});

test('a mailed link gives a new key once, to the address of the payment, and ends the old one', async () => {
  const session = await paid({ amountUsd: 10, keyName: 'lost one' });
  const { apiKey: old } = await byAgent(session);
  const sent = await post('/checkout/mail-key', { sessionId: session.sessionId });
  // What the payer wrote at the provider: the order itself has no address.
  assert.deepEqual([sent.status, sent.body.to], [200, 'p…@example.com'], JSON.stringify(sent.body));
  const { to, token } = await mailedLink();
  assert(to.includes('payer@example.com') && !to.includes(old));
  const [kept] = await world.database.sql<
    { body: string }[]
  >`select body from mails order by created_at desc limit 1`;
  assert.equal(kept?.body, '', 'once it is sent, no secret of it is kept');

  const sooner = await post('/checkout/mail-key', { sessionId: session.sessionId });
  assert.deepEqual([sooner.status, sooner.body.code], [429, 'LINK_SENT_BEFORE']);
  assert.equal(String(sooner.body.retryAfterSeconds), sooner.headers.get('retry-after'));

  // A scanner that opens the link, by whatever method a browser has for it, uses nothing up.
  for (const method of ['GET', 'HEAD'])
    assert.equal((await fetch(`${world.server.url}/credits/new-key`, { method })).status, 200);
  assert.equal((await world.me(old)).status, 'active');
  const guessed = await post('/new-key', { token: 'A'.repeat(43) });
  assert.deepEqual([guessed.status, guessed.body.code], [410, 'LINK_ENDED']);

  const clicks = await Promise.all([1, 2, 3].map(() => post('/new-key', { token })));
  const keys = new Set(clicks.map(({ body }) => body.apiKey));
  assert.equal(keys.size, 1, `clicks at once get one key: ${JSON.stringify(clicks.map(({ body }) => body))}`);
  const [fresh] = keys;
  assert.match(fresh, /^fbx_live_/);
  assert.notEqual(fresh, old);
  const me = await world.me(fresh);
  assert.deepEqual([me.balanceUsd, me.label, me.status], ['10.000000', 'lost one', 'active']);
  assert.equal((await world.me(old)).code, 'API_KEY_REVOKED');
  const [made] = await world.database.sql<{ count: number }[]>`
    select count(*)::integer as count from api_keys k join card_orders o on o.account_id = k.account_id where o.id = ${session.orderId}`;
  assert.equal(made?.count, 2);

  assert.equal((await world.server.call('ping', fresh)).status, 200);
  const replayed = await post('/new-key', { token });
  assert.deepEqual([replayed.status, replayed.body.code], [410, 'LINK_ENDED'], 'once the key is used');
  await world.assertBooks();
});

test('a link ends after a day, with the use of another, and does nothing for money that went back', async () => {
  const [session, old, disputed] = [await paid(), await paid(), await paid()];
  await byAgent(session);
  const { apiKey } = await byAgent(disputed);
  await post('/checkout/mail-key', { sessionId: disputed.sessionId });
  const { token } = await mailedLink();
  const [order] = await world.database.sql<{ payment_intent_id: string }[]>`
    select payment_intent_id from card_orders where id = ${disputed.orderId}`;
  await world.control('POST', '/disputes', { paymentIntent: order?.payment_intent_id });
  await until('the dispute', async () => {
    await world.settle();
    const [row] = await world.database
      .sql`select 1 from card_orders where id = ${disputed.orderId} and disputed_micros > 0`;
    return row !== undefined;
  });
  assert.equal((await post('/new-key', { token })).body.code, 'PAYMENT_REVERSED');
  assert.equal(
    (await post('/checkout/mail-key', { sessionId: disputed.sessionId })).body.code,
    'PAYMENT_REVERSED',
  );
  assert.notEqual((await world.me(apiKey)).code, 'API_KEY_REVOKED', 'the old key is as it was');

  await post('/checkout/mail-key', { sessionId: session.sessionId });
  const first = await mailedLink();
  await post('/checkout/mail-key', { sessionId: old.sessionId });
  const late = await mailedLink();
  aheadMs += 11 * MINUTE_MS;
  assert.equal((await post('/checkout/mail-key', { sessionId: session.sessionId })).status, 200);
  const second = await mailedLink();
  assert.notEqual(first.token, second.token);
  assert.equal((await post('/new-key', { token: second.token })).status, 200);
  assert.equal(
    (await post('/new-key', { token: first.token })).body.code,
    'LINK_ENDED',
    'the other was used',
  );

  const forget = async () => {
    await world.server.app.jobs.find(({ name }) => name === 'forget-key-links')?.run();
    const [row] = await world.database.sql<{ count: number }[]>`
      select count(*)::integer as count from key_links where order_id in (${session.orderId}, ${old.orderId})`;
    return row?.count;
  };
  aheadMs += 23 * 60 * MINUTE_MS;
  assert.equal(await forget(), 3, 'they are counted for a day');
  aheadMs += 60 * MINUTE_MS;
  assert.equal((await post('/new-key', { token: late.token })).body.code, 'LINK_ENDED');
  aheadMs += 3 * MINUTE_MS;
  assert.equal(await forget(), 0, 'what is done is forgotten');
  assert.equal((await post('/new-key', { token: late.token })).body.code, 'LINK_ENDED');
});

test('an operator sends the same link, and the act stands in the audit', async () => {
  const session = await paid();
  await byAgent(session);
  const [order] = await world.database.sql<{ account_id: bigint }[]>`
    select account_id from card_orders where id = ${session.orderId}`;
  const act = async (body: object, key: string = randomUUID()) => {
    const response = await fetch(`${world.server.url}/admin/api/accounts/${order?.account_id}/mail-key`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'idempotency-key': key },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: await jsonOf(response) };
  };
  const key = randomUUID();
  const wanted = { reason: 'lost with the tab', orderId: session.orderId };
  const done = await Promise.all([act(wanted, key), act(wanted, key)]);
  for (const { status, body } of done)
    assert.deepEqual(
      [status, body.act?.act, body.act?.orderId],
      [200, 'mail_key', session.orderId],
      JSON.stringify(body),
    );
  const [links] = await world.database.sql<{ count: number }[]>`
    select count(*)::integer as count from key_links where order_id = ${session.orderId}`;
  assert.equal(links?.count, 1, 'one act, one link');
  const { token } = await mailedLink();
  assert.equal((await post('/new-key', { token })).status, 200);
  const unknown = await act({ ...wanted, orderId: randomUUID() });
  assert.equal(unknown.status, 404);
  // Nobody has typed an address on the page of this one yet.
  const { body: opened } = await post('/checkout/session', { amountUsd: 10 });
  const [unpaid] = await world.database.sql<{ id: string }[]>`
    select id from card_orders where session_id = ${opened.sessionId}`;
  const nowhere = await act({ ...wanted, orderId: unpaid?.id });
  assert.deepEqual([nowhere.status, nowhere.body.code], [409, 'NO_ADDRESS']);
});

test('a server that sends no mail says so, and writes no link down', async () => {
  const session = await paid();
  const { SMTP_URL: _, MAIL_FROM: __, ...environment } = world.environment as Record<string, string>;
  const mute = await startTestServer({
    pools: world.database,
    upstreamsUrl: world.upstreams.url,
    environment,
  });
  const { sessionId } = session;
  const refused = await world.post(`${CREDITS}/checkout/mail-key`, { sessionId }, {}, mute);
  assert.deepEqual([refused.status, (await jsonOf(refused)).code], [503, 'MAIL_NOT_CONFIGURED']);
  assert.equal(refused.headers.get('retry-after'), '3600');
  const links = await world.database.sql`select 1 from key_links where order_id = ${session.orderId}`;
  assert.equal(links.length, 0);
  await mute.close();
});

test('the page of a mailed link can be read on a phone and a screen, by day and by night, however it stands', async () => {
  const session = await paid();
  const { apiKey: old } = await byAgent(session);
  await post('/checkout/mail-key', { sessionId: session.sessionId });
  const { token } = await mailedLink();
  const address = `${world.server.url}/credits/new-key`;
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage();
    const button = page.getByRole('button', { name: 'End the old key and show a new one' });
    const look = async (state: string) => {
      for (const width of [390, 1280])
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.setViewportSize({ width, height: 844 });
          await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
          await assertReadable(page, `${state}, ${width} px, ${colorScheme}`);
        }
    };
    await page.goto(address);
    await page.getByText('This address is not a whole link').waitFor();
    assert.equal(await button.isVisible(), false);
    await look('no link');

    await page.goto(`${address}#${token}`);
    await page.waitForURL(address);
    assert.equal((await world.me(old)).status, 'active', 'opening it does nothing');
    await look('before the press');
    await button.click();
    await page.getByText('Your new key').waitFor();
    await look('with the key');
    const text = (await page.textContent('main')) ?? '';
    const [fresh = ''] = /fbx_live_[0-9a-f]{64}/.exec(text) ?? [];
    assert.equal((await world.me(fresh)).status, 'active');
    assert.equal((await world.server.call('ping', fresh)).status, 200);

    await page.goto('about:blank');
    await page.goto(`${address}#${token}`);
    await button.click();
    await page.getByRole('status').or(page.getByRole('alert')).filter({ hasText: 'link' }).waitFor();
    assert.equal(await button.isVisible(), false, 'what has ended cannot be pressed again');
    await look('ended');
  } finally {
    await browser.close();
  }
});
