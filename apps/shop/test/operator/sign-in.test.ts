/** Operators who sign in at a provider: who is let in, as what, for how long, and what an attacker gets. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { includes, OPERATOR_ROUTES, ROLES } from '../../../../packages/core/src/operator/roles.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { programOf } from '../programs.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { runProgram } from './program.fixture.ts';
import { atProvider, PAGE, type Surfer, signIn, surfer } from './sign-in.fixture.ts';
import {
  CLIENT,
  type SignInProviderDouble,
  startSignInProvider,
  type Told,
} from './sign-in-provider.fixture.ts';

const OPERATORS = programOf('commands/operators');
const TOKEN = 'an-operators-token-of-the-tests';
const ROLES_OF_TESTS = [
  'email=ann@example.com:admin',
  'email=adam@example.com:admin',
  'groups=finance:money',
  'groups=desk:support',
  'groups=everybody:read',
].join(',');
const ANN: Told = { sub: 'ann-1', email: 'Ann@example.com', email_verified: true };
const ADAM: Told = { sub: 'adam-1', email: 'adam@example.com', email_verified: true };
const inGroups = (sub: string, ...groups: string[]): Told => ({ sub, groups });
const MINUTE_MS = 60_000;

let database: TestDatabase;
let server: TestServer;
let provider: SignInProviderDouble;
let nowMs = Date.now();
before(async () => {
  [database, provider] = await Promise.all([openTestDatabase(), startSignInProvider()]);
  server = await startTestServer({
    pools: database,
    nowMs: () => nowMs,
    environment: environment(),
  });
});
after(async () => {
  await server.close();
  await database.close();
  await provider.stop();
});

function environment(more: Record<string, string> = {}): Record<string, string> {
  return {
    TRUSTED_PROXIES: 'loopback',
    PUBLIC_URL: 'https://fare.test',
    ADMIN_TOKENS: `desk:${TOKEN}`,
    ADMIN_OIDC_ISSUER: provider.issuer,
    ADMIN_OIDC_CLIENT_ID: CLIENT.id,
    ADMIN_OIDC_CLIENT_SECRET: CLIENT.secret,
    ADMIN_ROLES: ROLES_OF_TESTS,
    ...more,
  };
}

let browsers = 0;
/** A browser at an address of its own, so that no bound of another test is in its way. */
const browser = () => {
  browsers += 1;
  return surfer(server.url, `8.9.${browsers >> 8}.${browsers & 255}`);
};
async function signedIn(person: Told): Promise<Surfer> {
  const made = browser();
  const answer = await signIn(made, provider, person);
  assert.equal(answer.headers.get('location'), '/admin', await answer.text());
  return made;
}
const byToken = (path: string, body?: unknown) =>
  browser().ask(path, body, { authorization: `Bearer ${TOKEN}` });
async function trailRows() {
  const rows = await database.sql<
    {
      kind: string;
      actor: string;
      subject: string | null;
      email: string | null;
      role: string | null;
      address: string;
      about: string;
    }[]
  >`select kind, actor, subject, email, role, address, about from operator_trail order by number`;
  return rows.map((row) => ({ ...row, about: JSON.parse(row.about) }));
}

describe('a sign-in', () => {
  test('opens a session whose cookie no script, other site or other host gets, and whose secret is stored nowhere', async () => {
    const ann = browser();
    const answer = await signIn(ann, provider, ANN);
    assert.deepEqual([answer.status, answer.headers.get('location')], [303, '/admin']);
    const [, line = ''] = answer.headers.getSetCookie();
    assert.match(
      line,
      /^__Host-farebox-operator=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure$/,
    );
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    assert.deepEqual([...ann.cookies.keys()], ['__Host-farebox-operator'], 'that of the sign-in is gone');
    const { status, body } = await ann.ask('session');
    assert.equal(status, 200);
    assert.deepEqual(
      [body.actor, body.role, body.by, body.email, body.issuer],
      ['ann@example.com', 'admin', 'provider', 'ann@example.com', provider.issuer],
    );
    const value = [...ann.cookies.values()][0] ?? '';
    const [dump] = await database.sql<{ text: string }[]>`
      select string_agg(s::text, ' ') as text from operator_sessions s`;
    assert(!dump?.text.includes(value) && !dump?.text.includes(Buffer.from(value).toString('hex')));
    assert(!server.log.some((each) => each.includes(value)));
    const last = (await trailRows()).findLast(({ kind }) => kind === 'sign_in');
    assert.deepEqual([last?.actor, last?.subject, last?.role], ['ann@example.com', 'ann-1', 'admin']);
    assert.match(last?.address ?? '', /^8\.9\./);
  });

  test('sends the browser to the provider with state, nonce and a challenge, and back to the public address alone', async () => {
    const asker = browser();
    const forged = {
      host: 'evil.example',
      'x-forwarded-host': 'evil.example',
      forwarded: 'host=evil.example',
    };
    const begun = await asker.get(
      '/admin/sign-in?return_to=https://evil.example&redirect_uri=https://evil.example',
      forged,
    );
    const url = new URL(begun.headers.get('location') ?? '');
    assert.equal(url.origin, provider.issuer);
    assert.equal(url.searchParams.get('redirect_uri'), 'https://fare.test/admin/signed-in');
    assert.equal(url.searchParams.get('code_challenge_method'), 'S256');
    for (const name of ['state', 'nonce', 'code_challenge'])
      assert.match(url.searchParams.get(name) ?? '', /^[\w-]{43}$/, name);
    assert(!url.href.includes('evil'));
    assert.match(
      begun.headers.getSetCookie()[0] ?? '',
      /^__Host-farebox-sign-in-.*HttpOnly; SameSite=Lax; Secure$/,
    );
  });

  test('cannot be finished by a browser that did not begin it', async () => {
    provider.person = ANN;
    const path = await atProvider(browser());
    const victim = browser();
    const refused = await victim.get(path);
    assert.deepEqual([refused.status, (await jsonOf(refused)).code], [400, 'SIGN_IN_FAILED']);
    // One that has begun a sign-in of its own has another state.
    await victim.get('/admin/sign-in');
    assert.equal((await victim.get(path)).status, 400);
    assert(!victim.cookies.has('__Host-farebox-operator'));
  });

  test('begins one session, although it is finished twice or by a provider that takes a code twice', async () => {
    provider.person = ANN;
    provider.codesLast = true;
    try {
      const first = browser();
      const path = await atProvider(first);
      const second = surfer(server.url, '8.9.200.1');
      for (const [name, value] of first.cookies) second.cookies.set(name, value);
      const answers = await Promise.all([first.get(path), second.get(path)]);
      const codes = await Promise.all(
        answers.map(async (each) => (each.status === 303 ? 'in' : (await jsonOf(each)).code)),
      );
      assert.deepEqual(codes.sort(), ['SIGN_IN_USED', 'in']);
    } finally {
      provider.codesLast = false;
    }
  });

  test('does not hold with a code that is sent twice', async () => {
    provider.person = ANN;
    const again = browser();
    const path = await atProvider(again);
    const kept = [...again.cookies];
    assert.equal((await again.get(path)).status, 303);
    for (const [name, value] of kept) again.cookies.set(name, value);
    const refused = await again.get(path);
    assert.deepEqual([refused.status, (await jsonOf(refused)).code], [400, 'SIGN_IN_FAILED']);
  });

  test('two of them in two tabs do not end each other', async () => {
    provider.person = ANN;
    const tabs = browser();
    const [one, two] = [await atProvider(tabs), await atProvider(tabs)];
    for (const path of [two, one]) assert.equal((await tabs.get(path)).status, 303);
  });

  const FORGERIES: [name: string, forge: SignInProviderDouble['forge']][] = [
    ['for another audience', { claims: { aud: 'somebody-else' } }],
    ['of another issuer', { claims: { iss: 'https://evil.example' } }],
    ['without a signature', { unsigned: true }],
    ['signed by another key', { otherKey: true }],
    ['signed with the public key as a secret', { header: { alg: 'HS256' } }],
    ['with another nonce', { claims: { nonce: 'another' } }],
    ['without a nonce', { claims: { nonce: undefined } }],
    ['that is over', { claims: { iat: 1_000, exp: 2_000 } }],
    ['of nobody', { claims: { sub: undefined } }],
  ];
  for (const [name, forge] of FORGERIES) {
    test(`is refused with an id token ${name}`, async () => {
      provider.forge = forge;
      try {
        const attacker = browser();
        const refused = await signIn(attacker, provider, ANN);
        const { code, message } = await jsonOf(refused);
        assert.deepEqual([refused.status, code], [400, 'SIGN_IN_FAILED']);
        assert.match(message, /could not be verified/);
        assert(!attacker.cookies.has('__Host-farebox-operator'));
      } finally {
        provider.forge = {};
      }
    });
  }

  test('without a role, or by an e-mail address that is not verified or only looks like an operator’s, is refused', async () => {
    const people: Told[] = [
      { sub: 'eve-1', email: 'eve@example.com', email_verified: true },
      { ...ANN, sub: 'eve-2', email_verified: false },
      { sub: 'eve-3', email: ANN.email },
      { ...ANN, sub: 'eve-4', email_verified: 'true' },
      { sub: 'eve-5', email: 'ann@example.com\u0000', email_verified: true },
      { sub: 'eve-6', email: 'ann@example.com:admin,x', email_verified: true },
      inGroups('eve-7', 'finance2', 'Finance'),
    ];
    const [before] = await database.sql`select count(*) as people from operator_people`;
    for (const person of people) {
      const refused = await signIn(browser(), provider, person);
      assert.deepEqual([refused.status, (await jsonOf(refused)).code], [403, 'SIGN_IN_REFUSED'], person.sub);
    }
    const [afterwards] = await database.sql`select count(*) as people from operator_people`;
    assert.deepEqual(afterwards, before, 'strangers leave no row');
  });

  test('of more than a thousand people is refused, while those who are known come in', async () => {
    await signedIn(ANN);
    await database.sql`
      insert into operator_people (issuer, subject, actor, claims, first_at, last_at)
      select 'https://elsewhere.example', 'n' || n, 'n' || n, '{}'::jsonb, now(), now() from generate_series(1, 1000) n`;
    try {
      const refused = await signIn(browser(), provider, inGroups('late-1', 'desk'));
      assert.deepEqual([refused.status, (await jsonOf(refused)).code], [409, 'TOO_MANY_OPERATORS']);
      await signedIn(ANN);
    } finally {
      await database.sql`delete from operator_people where issuer = 'https://elsewhere.example'`;
    }
  });

  test('takes what only the user info tells', async () => {
    provider.onlyUserInfo = ['email', 'email_verified'];
    try {
      const adam = await signedIn(ADAM);
      assert.equal((await adam.ask('session')).body.actor, 'adam@example.com');
    } finally {
      provider.onlyUserInfo = [];
    }
  });

  test('shows a browser on the page what went wrong, and a program a problem', async () => {
    provider.person = null;
    const declined = browser();
    const answer = await declined.get(await atProvider(declined), { accept: 'text/html' });
    assert.deepEqual(
      [answer.status, answer.headers.get('location')],
      [303, '/admin#sign-in-SIGN_IN_DECLINED'],
    );
    const asProgram = browser();
    const refused = await asProgram.get(await atProvider(asProgram));
    assert.deepEqual([refused.status, (await jsonOf(refused)).code], [403, 'SIGN_IN_DECLINED']);
    const ways = await jsonOf(browser().get('/admin/ways?problem=SIGN_IN_DECLINED'));
    assert.equal(ways.provider, new URL(provider.issuer).host);
    assert.equal(ways.token, true);
    assert.match(ways.problem, /did not let/);
    assert.equal((await jsonOf(browser().get('/admin/ways?problem=constructor'))).problem, null);
  });

  test('is bounded by address, and so are its ends', async () => {
    const hurried = surfer(server.url, '8.9.201.1');
    const statuses: number[] = [];
    for (let tried = 0; tried < 22; tried += 1) statuses.push((await hurried.get('/admin/sign-in')).status);
    assert.deepEqual(statuses.slice(19), [303, 429, 429]);
    assert.equal((await hurried.get('/admin/signed-in?state=0123456789abcdef')).status, 429);
    assert.equal((await browser().get('/admin/sign-in')).status, 303);
  });
});

describe('a session', () => {
  test('ends when nothing is asked, at its end, and by its owner; a cookie that was made up opens nothing', async () => {
    const idle = await signedIn(ANN);
    nowMs += 29 * MINUTE_MS;
    assert.equal((await idle.ask('session')).status, 200);
    nowMs += 30 * MINUTE_MS;
    const over = await idle.ask('session');
    assert.deepEqual([over.status, over.body.code], [401, 'SESSION_ENDED']);
    assert.equal(idle.cookies.size, 0, 'the browser forgets it');

    const busy = await signedIn(ANN);
    for (let minutes = 0; minutes < 12 * 60 - 20; minutes += 20) {
      nowMs += 20 * MINUTE_MS;
      assert.equal((await busy.ask('session')).status, 200, `after ${minutes} minutes`);
    }
    nowMs += 20 * MINUTE_MS;
    assert.equal((await busy.ask('session')).status, 401);

    const leaving = await signedIn(ANN);
    const kept = new Map(leaving.cookies);
    assert.equal((await leaving.ask('sign-out', {})).status, 200);
    assert.equal(leaving.cookies.size, 0);
    for (const [name, value] of kept) leaving.cookies.set(name, value);
    assert.equal((await leaving.ask('overview')).status, 401);
    assert.equal((await trailRows()).at(-1)?.kind, 'sign_out');

    const fixed = browser();
    fixed.cookies.set('__Host-farebox-operator', 'A'.repeat(43));
    assert.equal((await fixed.ask('session')).status, 401);
    await signIn(fixed, provider, ANN);
    assert.notEqual(
      fixed.cookies.get('__Host-farebox-operator'),
      'A'.repeat(43),
      'a sign-in makes a new one',
    );
  });

  test('opens nothing for another site: not without the page’s header, from elsewhere, or with two cookies', async () => {
    const ann = await signedIn(ANN);
    const forgeries: Record<string, string>[] = [
      { 'sec-fetch-site': 'cross-site', 'x-operator-page': '1' },
      { 'sec-fetch-site': 'same-site', 'x-operator-page': '1' },
      { ...PAGE, origin: 'https://evil.example' },
      { ...PAGE, origin: 'null' },
    ];
    for (const headers of forgeries) {
      const { status, body } = await ann.ask('accounts/1000/freeze', { reason: 'forged' }, headers);
      assert.deepEqual([status, body.code], [403, 'CROSS_SITE_REQUEST'], JSON.stringify(headers));
    }
    const plain = await ann.get('/admin/api/overview', { 'sec-fetch-site': 'same-origin' });
    assert.deepEqual([plain.status, (await jsonOf(plain)).code], [403, 'CROSS_SITE_REQUEST']);
    assert.equal((await ann.ask('session', undefined, { origin: 'https://fare.test' })).status, 200);
    const value = ann.cookies.get('__Host-farebox-operator') ?? '';
    const twice = await browser().ask('session', undefined, {
      cookie: `__Host-farebox-operator=${value}; __Host-farebox-operator=other`,
    });
    assert.equal(twice.status, 401);
    const preflight = await fetch(`${server.url}/admin/api/overview`, {
      method: 'OPTIONS',
      headers: { origin: 'https://evil.example', 'access-control-request-headers': 'x-operator-page' },
    });
    assert.equal(preflight.headers.get('access-control-allow-headers'), null);
  });

  test('ends when an admin ends it, and when its person’s role is taken away here or at the provider', async () => {
    const admin = await signedIn(ANN);
    const money = await signedIn(inGroups('mo-1', 'finance'));
    const { body } = await admin.ask('operators');
    const people = body.operators as {
      operatorId: string;
      subject: string;
      sessions: { sessionId: string }[];
    }[];
    const mo = people.find(({ subject }) => subject === 'mo-1');
    assert.equal((await admin.ask(`sessions/${mo?.sessions[0]?.sessionId}/end`, {})).status, 200);
    assert.equal((await money.ask('session')).status, 401);
    const gone = await admin.ask(`sessions/${mo?.sessions[0]?.sessionId}/end`, {});
    assert.deepEqual([gone.status, gone.body.code], [404, 'NO_SUCH_SESSION']);

    const again = await signedIn(inGroups('mo-1', 'finance'));
    const role = (wanted: string | null) =>
      admin.ask(`operators/${mo?.operatorId}/role`, { reason: 'test', role: wanted });
    assert.equal((await role('read')).status, 200);
    assert.equal((await again.ask('session')).body.role, 'read');
    assert.equal((await role('none')).status, 200);
    assert.equal((await again.ask('session')).status, 401);
    assert.equal((await signIn(browser(), provider, inGroups('mo-1', 'finance'))).status, 403);
    assert.equal((await role(null)).status, 200);
    const back = await signedIn(inGroups('mo-1', 'finance'));
    // The provider says at the next sign-in that the group is gone: the older session goes with it.
    assert.equal((await signIn(browser(), provider, inGroups('mo-1'))).status, 403);
    assert.equal((await back.ask('session')).status, 401);
    const sets = (await trailRows()).filter(({ kind }) => kind === 'role_set');
    assert.deepEqual(
      sets.map(({ actor, about }) => [actor, about.from, about.to]),
      [
        ['ann@example.com', 'money', 'read'],
        ['ann@example.com', 'read', null],
        ['ann@example.com', null, 'money'],
      ],
    );
    const missing = await admin.ask('operators/999999/role', { reason: 'test', role: 'read' });
    assert.deepEqual([missing.status, missing.body.code], [404, 'NO_SUCH_OPERATOR']);
  });

  test('has no role once the settings give none, or name another provider', async () => {
    const ann = await signedIn(ANN);
    const desk = await signedIn(inGroups('sue-1', 'desk'));
    const elsewhere = await startSignInProvider();
    const others = [
      environment({ ADMIN_ROLES: 'email=ann@example.com:read' }),
      environment({ ADMIN_OIDC_ISSUER: elsewhere.issuer }),
    ];
    const statuses: unknown[] = [];
    for (const changed of others) {
      const other = await startTestServer({ pools: database, nowMs: () => nowMs, environment: changed });
      try {
        for (const each of [ann, desk]) {
          const there = surfer(other.url, '8.9.203.1');
          for (const [name, value] of each.cookies) there.cookies.set(name, value);
          const { status, body } = await there.ask('session');
          statuses.push([status, body.role]);
        }
      } finally {
        await other.close();
      }
    }
    await elsewhere.stop();
    assert.deepEqual(statuses, [
      [200, 'read'],
      [401, undefined],
      [401, undefined],
      [401, undefined],
    ]);
  });
});

describe('roles', () => {
  /** An address for each route; what it names is there for nobody. */
  const addressOf = (route: string) =>
    route
      .replace(/:(account|operator|version)/, '999999999')
      .replace(/:(call|act|proposal|session)/, '00000000-0000-4000-8000-000000000000')
      .replace(':service', 'no-such-service');

  test('every route has its least role, below which it answers 403 with a sentence that names it', async () => {
    const routes = server.app.routes
      .filter(
        ({ path, method }) => path.startsWith('/admin/api/') && method !== 'HEAD' && method !== 'OPTIONS',
      )
      .map(({ method, path }) => `${method} ${path.slice('/admin/api'.length)}`);
    assert.deepEqual([...new Set(routes)].sort(), Object.keys(OPERATOR_ROUTES).sort());
    const groups = { read: 'everybody', support: 'desk', money: 'finance' };
    for (const role of ROLES) {
      const who = role === 'admin' ? ADAM : inGroups(`of-role-${role}`, groups[role]);
      let person = await signedIn(who);
      for (const [route, { least }] of Object.entries(OPERATOR_ROUTES)) {
        const [method = '', path = ''] = route.split(' ');
        const { status, body } = await person.ask(
          addressOf(path).slice(1),
          method === 'POST' ? { role: 'x' } : undefined,
        );
        if (includes(role, least)) assert(status !== 401 && status !== 403, `${role}: ${route} ${status}`);
        else {
          assert.deepEqual(
            [status, body.code, body.roleNeeded],
            [403, 'ROLE_NEEDED', least],
            `${role}: ${route}`,
          );
          assert.match(String(body.message), new RegExp(`needs the role ${least}, and yours is ${role}`));
        }
        if (route === 'POST /sign-out') person = await signedIn(who);
      }
    }
  });

  test('a greater group wins, and what one person gave alone counts whatever their sessions', async () => {
    const both = inGroups('bo-1', 'everybody', 'finance', 'desk');
    const one = await signedIn(both);
    assert.equal((await one.ask('session')).body.role, 'money');
    const key = await server.key('1');
    const account = String((await server.app.keys.find(key))?.accountId);
    const grant = (by: Surfer) => by.ask(`accounts/${account}/grant`, { reason: 'test', amountUsd: '30' });
    assert.equal((await grant(one)).status, 200);
    const two = await signedIn(both);
    const waits = await grant(two);
    assert.equal(waits.status, 202, 'above 50 USD together');
    const proposal = (waits.body.proposal as { proposalId: string }).proposalId;
    const approve = (by: Surfer | null) =>
      by === null
        ? byToken(`proposals/${proposal}/approve`, {})
        : by.ask(`proposals/${proposal}/approve`, {});
    for (const by of [one, null]) {
      const { status, body } = await approve(by);
      assert.deepEqual(
        [status, body.code],
        [409, 'SECOND_OPERATOR_NEEDED'],
        by === null ? 'a token' : 'the same',
      );
    }
    assert.equal((await approve(await signedIn(ADAM))).status, 200);
    // What a token asked for waits as well: nobody knows whose it is.
    assert.equal(
      (await byToken(`accounts/${account}/grant`, { reason: 'test', amountUsd: '30' })).status,
      200,
    );
    const asked = await byToken(`accounts/${account}/grant`, { reason: 'test', amountUsd: '30' });
    assert.equal(asked.status, 202);
    const other = (asked.body.proposal as { proposalId: string }).proposalId;
    const agreed = await (await signedIn(ADAM)).ask(`proposals/${other}/approve`, {});
    assert.deepEqual([agreed.status, agreed.body.code], [409, 'SECOND_OPERATOR_NEEDED']);
  });
});

describe('tokens', () => {
  test('work beside sign-ins, go off once an admin has signed in, and never leave nobody', async () => {
    const off = { reason: 'everybody signs in', enabled: false };
    assert.equal((await byToken('session')).body.by, 'token');
    await database.sql`update operator_people set role_set = 'none'`;
    const early = await byToken('tokens', off);
    assert.deepEqual([early.status, early.body.code], [409, 'NO_ADMIN_SIGNED_IN']);
    await database.sql`update operator_people set role_set = null`;
    const unproved = await byToken('tokens', off);
    assert.deepEqual([unproved.status, unproved.body.code], [409, 'ADMIN_SESSION_NEEDED']);

    const ann = await signedIn(ANN);
    const adam = await signedIn(ADAM);
    assert.deepEqual((await ann.ask('tokens', off)).body, { success: true, on: false });
    const refused = await byToken('overview');
    assert.deepEqual([refused.status, refused.body.code], [403, 'TOKENS_OFF']);
    assert.equal((await jsonOf(browser().get('/admin/ways'))).token, false);

    // Two admins who take each other's role at once: one of them stays.
    const { body } = await ann.ask('operators');
    const ids = new Map(
      (body.operators as { operatorId: string; subject: string }[]).map((each) => [
        each.subject,
        each.operatorId,
      ]),
    );
    const demote = (by: Surfer, whom: Told) =>
      by.ask(`operators/${ids.get(whom.sub)}/role`, { reason: 'test', role: 'read' });
    const ends = await Promise.all([demote(ann, ADAM), demote(adam, ANN)]);
    // The second is refused as the last admin, or was no admin any more when it was let in.
    const [won, lost] = ends[0]?.status === 200 ? ends : ends.toReversed();
    assert.equal(won?.status, 200);
    assert(['LAST_ADMIN', 'ROLE_NEEDED'].includes(String(lost?.body.code)), JSON.stringify(lost));
    const left = ends[0]?.status === 200 ? ann : adam;
    const self = await demote(left, left === ann ? ANN : ADAM);
    assert.deepEqual([self.status, self.body.code], [409, 'LAST_ADMIN']);

    // Settings that leave no admin let tokens in again.
    const other = await startTestServer({
      pools: database,
      nowMs: () => nowMs,
      environment: environment({ ADMIN_ROLES: 'groups=everybody:read' }),
    });
    try {
      const there = surfer(other.url, '8.9.204.1');
      await database.sql`update operator_people set role_set = null`;
      assert.equal((await there.ask('session', undefined, { authorization: `Bearer ${TOKEN}` })).status, 200);
    } finally {
      await other.close();
    }
    // Where nobody can sign in, whoever has the server turns them on.
    const { code, out } = await runProgram(OPERATORS, ['tokens', 'on', '--reason', 'the provider is gone'], {
      DATABASE_URL: database.url,
    });
    assert.deepEqual([code, out], [0, 'Tokens are on: those of ADMIN_TOKENS open /admin.\n']);
    assert.equal((await byToken('session')).status, 200);
    assert.equal((await left.ask('tokens', off)).body.on, false);
    assert.equal((await left.ask('tokens', { reason: 'test', enabled: true })).body.on, true);
    assert.equal((await byToken('session')).status, 200);
    const kinds = (await trailRows()).map(({ kind }) => kind);
    assert(kinds.includes('tokens_off') && kinds.includes('tokens_on'));
  });
});

describe('a provider that is away', () => {
  test('is told, keeps no session out, and is asked again', async () => {
    const ann = await signedIn(ANN);
    const elsewhere = await startSignInProvider();
    elsewhere.silent = true;
    const other = await startTestServer({
      pools: database,
      nowMs: () => nowMs,
      environment: environment({ ADMIN_OIDC_ISSUER: elsewhere.issuer }),
    });
    try {
      const there = surfer(other.url, '8.9.205.1');
      const silent = await there.get('/admin/sign-in');
      assert.deepEqual([silent.status, (await jsonOf(silent)).code], [503, 'SIGN_IN_UNAVAILABLE']);
      assert(silent.headers.get('retry-after'));
      assert.equal((await there.ask('session', undefined, { authorization: `Bearer ${TOKEN}` })).status, 200);
      elsewhere.silent = false;
      elsewhere.person = ANN;
      assert.equal((await there.get(await atProvider(there))).status, 303);
    } finally {
      await other.close();
      await elsewhere.stop();
    }
    provider.silent = true;
    try {
      assert.equal((await ann.ask('session')).status, 200);
    } finally {
      provider.silent = false;
    }
  });
});

test('a session is kept as long after its end as the settings say, and is gone with the next sign-in', async () => {
  const wasMs = nowMs;
  const short = await startTestServer({
    pools: database,
    nowMs: () => nowMs,
    environment: environment({ ADMIN_SESSION_RETENTION_DAYS: '3' }),
  });
  const signsIn = async (person: Told) => {
    browsers += 1;
    const answer = await signIn(surfer(short.url, `8.10.0.${browsers & 255}`), provider, person);
    assert.equal(answer.headers.get('location'), '/admin', await answer.text());
  };
  try {
    await signsIn(ANN);
    const [session] = await database.sql<{ id: string; ends_at: Date }[]>`
      select id, ends_at from operator_sessions order by began_at desc limit 1`;
    assert(session !== undefined);
    const isKept = async () =>
      (await database.sql`select 1 from operator_sessions where id = ${session.id}`).length === 1;
    const lastMs = session.ends_at.getTime() + 3 * 86_400_000;
    nowMs = lastMs;
    await signsIn(ADAM);
    assert.equal(await isKept(), true, 'its time is not over');
    nowMs = lastMs + 1;
    await signsIn(ADAM);
    assert.equal(await isKept(), false);
  } finally {
    nowMs = wasMs;
    await short.close();
  }
});
