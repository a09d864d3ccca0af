/**
 * The five promises under random fire: four replicas on one database, callers who repeat, hang up, run out of
 * credit and lie about where they are, keys that end in between, a clock that jumps, a database that is lost under a
 * statement or says nothing any more, accounts that somebody else holds, processes that die between any two steps and
 * hosts that are lost in the middle of a transaction. A program of some hundred such acts runs, everything is left to
 * come to rest, and then what every caller was told is held against what the database took from them.
 *
 * A failure names its seed and its program: FIRE_SEED and FIRE_PATH run them again; how their acts interleave is up to
 * the machine. FIRE_STEPS is how many acts there are; `npm run test:deep` makes a million of them.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { z } from 'zod';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { defineService, type Service } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { noAnswer, notFound, sourceUnavailable } from '../../../../packages/core/src/words/failure.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf } from '../server.fixture.ts';
import { lockAccounts } from './account-lock.fixture.ts';
import { isDeep } from './depth.fixture.ts';
import { Disturbance } from './disturbance.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf, callsOf, refundsOf } from './money.fixture.ts';
import { type Blow, type MortalReplica, startMortalReplica } from './mortal-replica.fixture.ts';
import { until } from './until.fixture.ts';

const ACTS = isDeep ? 2_000 : 220;
/** How many acts there are in all; those of `npm test` are bounded by time as well. */
const STEPS = Number(process.env.FIRE_STEPS ?? (isDeep ? 1_000_000 : 10 * ACTS));
/** No program begins later. */
const BEGINS_WITHIN_MS = isDeep ? Number.POSITIVE_INFINITY : 35_000;
/** The proof of the books reads everything: after so many acts there is a new database. */
const PROGRAMS_ON_A_DATABASE = Math.ceil(10_000 / ACTS);
const REPLICAS = 4;
/** Longer than anybody waits for anything; deep runs have time for the minute that it was once seen to take. */
const LONG_MS = isDeep ? 60_000 : 5_500;
const MAX_OUTSTANDING = 12;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const TRIAL_MICROS = usdToMicros('5');

// ---------------------------------------------------------------------------------------------- what is sold

const MODES = [
  ...['ok', 'slow', 'flaky', 'not-found', 'no-answer', 'source', 'throw', 'misfit', 'hang'],
] as const;
type Mode = (typeof MODES)[number];
const FAILURE: Partial<Record<string, [number, string]>> = {
  'not-found': [404, 'NOT_FOUND'],
  'no-answer': [422, 'NO_SUCH_SEA'],
  source: [503, 'UPSTREAM_UNAVAILABLE'],
  throw: [500, 'SERVICE_ERROR'],
  misfit: [500, 'SERVICE_ERROR'],
  hang: [503, 'DEADLINE_EXCEEDED'],
  flaky: [503, 'UPSTREAM_UNAVAILABLE'],
};

/** The codes that are told while a replica, its database or an account is out of order. */
const TROUBLES = ['OUTCOME_UNKNOWN', 'LEDGER_UNAVAILABLE', 'ACCOUNT_BUSY', 'DATABASE_UNAVAILABLE'];

let runs = 0;
/** How often the service ran for a call, over both replicas and all their lives. */
const runsOfCall = new Map<string, number>();

const PRICES = { cheap: '0.05', fair: '0.10', dear: '10', metered: '0.10' } as const;
type Path = keyof typeof PRICES;
/** The cost of a metered answer, of which its price is the most. */
const costOf = (text: string) => 1n + 1_000n * BigInt(Buffer.byteLength(text));
const METERED = {
  measured: 'bytes of the text',
  priceUsd: '0.001',
  per: 1,
  atMostUsd: PRICES.metered,
  whenUnmeasuredUsd: null,
};

const services: Service[] = Object.entries(PRICES).map(([path, priceUsd]) => {
  const service = defineService({
    path,
    name: path,
    tag: 'Discovery',
    priceUsd,
    summary: 'For tests.',
    input: z.object({ mode: z.string(), text: z.string() }),
    output: z.object({ run: z.number().int(), callId: z.string(), text: z.string() }),
    example: { mode: 'ok', text: '' },
    timeoutMs: 60,
    async run({ mode, text }, { call }) {
      runs += 1;
      const run = runs;
      runsOfCall.set(call.callId, (runsOfCall.get(call.callId) ?? 0) + 1);
      if (mode === 'slow') await new Promise((resolve) => setTimeout(resolve, 15));
      if (mode === 'hang') await new Promise(() => {});
      if (mode === 'not-found') throw notFound('text', 'no such text');
      if (mode === 'no-answer') throw noAnswer('NO_SUCH_SEA', 'no sea here', 'text');
      if (mode === 'source' || (mode === 'flaky' && run % 2 === 0)) {
        throw sourceUnavailable('somewhere', 'upstream_down', 'Somewhere is down');
      }
      if (mode === 'throw') throw new TypeError('a bug');
      return answer(
        { run: mode === 'misfit' ? 0.5 : run, callId: call.callId, text },
        { method: 'Counted.' },
      );
    },
  });
  if (path !== 'metered') return service;
  const run: Service['run'] = async (input, context) =>
    Object.assign(await service.run(input, context), {
      costMicros: costOf((input as { text: string }).text),
    });
  return Object.assign({}, service, { metered: METERED, run });
});

// ------------------------------------------------------------------------------------------------- the acts

/** Texts and idempotency keys that a careless quoting would trip over on their way through the database. */
const TEXTS = ['plain', 'π "q" \\ {a,NULL} \u{1F600}', 'NUL \u0000', 'half a pair \ud800'] as const;
/** Those among them that nothing could keep: they are refused at the door. */
const UNKEEPABLE: readonly string[] = TEXTS.slice(2);
const IDEMPOTENCY_KEYS = ['order-1', '{"a\\",NULL}', 'NULL', "'--", '\\'] as const;
/** The questions under each of them, unless a caller confuses them. */
const QUESTIONS: readonly { path: Path; mode: Mode; text: number }[] = [
  { path: 'cheap', mode: 'flaky', text: 0 },
  { path: 'fair', mode: 'slow', text: 1 },
  { path: 'cheap', mode: 'ok', text: 1 },
  { path: 'dear', mode: 'ok', text: 0 },
  { path: 'metered', mode: 'flaky', text: 1 },
];

const ACCOUNTS = ['poor', 'plain', 'rich', 'trial', 'day cap', 'call cap'] as const;
const DAY_CAP = '0.50';
const CALL_CAP = '0.07';

const account = fc.nat(ACCOUNTS.length - 1);
const replica = fc.nat(REPLICAS - 1);
const on = fc.constantFrom('anything' as const, 'capture' as const);
const loss = fc.record<Blow>({ falls: fc.constantFrom('lost before', 'lost after'), on });
const often = <T>(arbitrary: fc.Arbitrary<T>, weight: number) => ({ arbitrary, weight });

const call = fc.record({
  act: fc.constant('call' as const),
  account,
  replica,
  path: fc.oneof(
    often(fc.constant<Path>('cheap'), 5),
    often(fc.constant<Path>('fair'), 3),
    often(fc.constant<Path>('metered'), 3),
    often(fc.constant<Path>('dear'), 1),
  ),
  mode: fc.oneof(
    often(fc.constant<Mode>('ok'), 6),
    often(fc.constantFrom<Mode>('slow', 'flaky'), 4),
    often(fc.constantFrom(...MODES), 2),
  ),
  text: fc.nat(TEXTS.length - 1),
  idempotencyKey: fc.option(fc.nat(IDEMPOTENCY_KEYS.length - 1), { freq: 3 }),
  /** The same request so often at once, in turn on all replicas. */
  copies: fc.oneof(often(fc.constant(1), 12), often(fc.integer({ min: 2, max: 5 }), 1)),
  hangUpAfterMs: fc.oneof(often(fc.constant(null), 14), often(fc.nat(25), 1)),
  formerKey: fc.nat(9).map((n) => n === 0),
  confused: fc.nat(5).map((n) => n === 0),
});
type Call = typeof call extends fc.Arbitrary<infer T> ? T : never;

const lasts = fc.oneof(often(fc.constant(300), 3), often(fc.constant(LONG_MS), 1));
const lock = fc.record({ act: fc.constant('lock' as const), account, ms: lasts });
const silence = fc.record({
  act: fc.constant('silence' as const),
  /** Null: the database itself is frozen, for all of them. */
  replica: fc.option(replica, { freq: 2 }),
  everybody: fc.boolean(),
  ms: lasts,
});
const hostLost = fc.record({ act: fc.constant('lose host' as const), replica, account });
const claim = fc.record({
  act: fc.constant('claim' as const),
  replica,
  address: fc.nat(2),
  lie: fc.constantFrom('none' as const, 'forwarded' as const, 'x-forwarded-for' as const, 'both' as const),
});

const act = fc.oneof(
  often(call, 80),
  often(
    fc.record({
      act: fc.constant('wait' as const),
      turns: fc.nat(20),
    }),
    12,
  ),
  often(
    fc.record({
      act: fc.constant('clock' as const),
      ms: fc.oneof(
        often(fc.constant(MINUTE_MS), 12),
        often(fc.constant(5 * 60 * MINUTE_MS), 3),
        often(fc.constant(8 * DAY_MS), 1),
      ),
    }),
    4,
  ),
  often(
    fc.record({
      act: fc.constantFrom('reconcile' as const, 'expire trials' as const, 'drop answers' as const),
      replica,
    }),
    8,
  ),
  often(
    fc.record({
      act: fc.constant('strike' as const),
      replica,
      blows: fc.oneof(
        // Survived: the same batch is sent again.
        often(fc.array(loss, { minLength: 1, maxLength: 2 }), 3),
        // Not survived: all attempts to take a price fail, the first of them perhaps after it was taken.
        often(
          fc
            .tuple(
              fc.constantFrom('lost before' as const, 'lost after' as const),
              fc.integer({ min: 4, max: 6 }),
            )
            .map(([first, more]): Blow[] => [
              { falls: first, on: 'capture' },
              ...Array.from({ length: more }, (): Blow => ({ falls: 'lost before', on: 'capture' })),
            ]),
          1,
        ),
        often(fc.tuple(fc.record<Blow>({ falls: fc.constantFrom('dies before', 'dies after'), on })), 2),
      ),
    }),
    4,
  ),
  often(fc.record({ act: fc.constant('die' as const), replica }), 1),
  often(hostLost, 1),
  often(lock, 1),
  often(silence, 1),
  often(claim, 3),
  often(
    fc.record({
      act: fc.constantFrom('rotate' as const, 'revoke' as const, 'cap' as const),
      account: fc.constantFrom(0, 1, 3),
      replica,
    }),
    2,
  ),
);
type Act = typeof act extends fc.Arbitrary<infer T> ? T : never;

/** The disturbances that every program has at some time, so that no run is without it. */
const CERTAIN = [lock, silence, hostLost, claim.map((one) => ({ ...one, lie: 'both' as const }))] as const;

const program = fc
  .tuple(
    fc.array(act, { minLength: ACTS - CERTAIN.length, maxLength: ACTS - CERTAIN.length }),
    fc.tuple(...CERTAIN),
    fc.array(fc.nat(ACTS), { minLength: CERTAIN.length, maxLength: CERTAIN.length }),
  )
  .map(([acts, certain, places]): Act[] => {
    const all: Act[] = [...acts];
    for (const [index, one] of certain.entries()) all.splice(places[index] ?? 0, 0, one);
    return all;
  });

// ------------------------------------------------------------------------------- what a caller remembers

interface Key {
  apiKey: string;
  /** When somebody began to end it, and when they were told that it had ended; in ticks. */
  ending: number | null;
  ended: number | null;
}

interface Account {
  name: (typeof ACCOUNTS)[number];
  id: bigint;
  grantedMicros: bigint;
  keys: Key[];
  /** Somebody else holds it. */
  hold: Disturbance;
  expiresAtMs: number | null;
  /** Odd while it is being changed. */
  capVersion: number;
  capPerCallMicros: bigint | null;
}

interface Asked {
  account: Account;
  key: Key;
  path: Path;
  mode: Mode;
  text: string;
  idempotencyKey: string | null;
  hungUp: boolean;
  capVersion: number;
  /** Order of events in this process. */
  began: number;
  endedAt: number | null;
  clockMs: { began: number; ended: number | null };
  /** Whether the replica was hit while it had this request, or was to be. */
  troubled: boolean;
  replica: MortalReplica;
  deathsAtEnd: number;
  /** Null: no answer came. */
  told: {
    status: number;
    code: string | null;
    body: string;
    callId: string | null;
    replayed: boolean;
  } | null;
}

/** A claim of a trial, with the address that the proxy saw. */
interface Claim {
  address: string;
  clockMs: { began: number; ended: number };
}

let database: TestDatabase;
let replicas: MortalReplica[];
/** Some account is held: by somebody else, or by a transaction whose process is silent or lost. */
let anyHold: Disturbance;
/** The disturbance that left things stuck: a process fell silent or was lost, and its transactions are not over yet. */
let stuck: Disturbance;
let programs = 0;
let deathsBefore = 0;
let nowMs = Date.parse('2026-11-21T10:00:00Z');
let tick = 0;
let claimants = 0;
const seen = {
  requests: 0,
  answers: 0,
  metered: 0,
  replays: 0,
  unknown: 0,
  cut: 0,
  blind: 0,
  refunds: 0,
  deaths: 0,
  holds: 0,
  silences: 0,
  hostsLost: 0,
  claims: 0,
  lies: 0,
};

async function raiseWorld(): Promise<void> {
  database = await openTestDatabase();
  anyHold = new Disturbance();
  stuck = new Disturbance();
  const options = {
    databaseUrl: database.url,
    services,
    nowMs: () => nowMs,
    environment: { TRUSTED_PROXIES: 'loopback', ANSWER_TTL_HOURS: '24' },
    elsewhere: anyHold,
  };
  replicas = await Promise.all(Array.from({ length: REPLICAS }, () => startMortalReplica(options)));
}
async function endWorld(): Promise<void> {
  deathsBefore += replicas.reduce((sum, { deaths }) => sum + deaths, 0);
  await Promise.all(replicas.map((each) => each.close()));
  await database.close();
}
before(raiseWorld);
after(endWorld);

function at<T>(list: readonly T[], index: number): T {
  const item = list[index];
  assert(item !== undefined);
  return item;
}

async function openAccount(name: Account['name']): Promise<Account> {
  const server = await at(replicas, 0).server();
  const made = (apiKey: string, grantedMicros: bigint, expiresAtMs: number | null) =>
    accountOf(database.sql, apiKey).then((id) => ({
      name,
      id,
      grantedMicros,
      keys: [{ apiKey, ending: null, ended: null }],
      hold: new Disturbance(),
      expiresAtMs,
      capVersion: 0,
      capPerCallMicros: null as bigint | null,
    }));
  if (name === 'trial') {
    claimants += 1;
    const trial = await fetch(`${server.url}/api/m2m/credits/trial`, {
      headers: { 'x-forwarded-for': `8.8.${claimants >> 8}.${claimants & 255}` },
    });
    assert.equal(trial.status, 200);
    return made((await jsonOf(trial)).apiKey, TRIAL_MICROS, nowMs + 7 * DAY_MS);
  }
  const usd = name === 'poor' ? '0.30' : name === 'plain' ? '2' : name === 'rich' ? '100000' : '1000';
  const opened = await made(await server.key(usd), usdToMicros(usd), null);
  const caps =
    name === 'day cap' ? { perDayUsd: DAY_CAP } : name === 'call cap' ? { perCallUsd: CALL_CAP } : null;
  if (caps !== null) {
    await patch(server.url, at(opened.keys, 0).apiKey, caps);
    if (name === 'call cap') opened.capPerCallMicros = usdToMicros(CALL_CAP);
  }
  return opened;
}

/** Whether the caps were changed; null when the database was lost on the way, and nobody can say. */
async function patch(
  url: string,
  apiKey: string,
  caps: Record<string, string | null>,
): Promise<boolean | null> {
  const response = await fetch(`${url}/api/keys/me`, {
    method: 'PATCH',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ caps }),
  });
  return response.status === 503 ? null : response.ok;
}

// ------------------------------------------------------------------------------------------ running a program

class Scene {
  readonly accounts: Account[];
  readonly asked: Asked[] = [];
  readonly claims: Claim[] = [];
  /** The changes on their way beside calls; each is little and is waited for. */
  readonly #changes: Promise<void>[] = [];
  #outstanding = 0;

  constructor(accounts: Account[]) {
    this.accounts = accounts;
  }

  async perform(one: Act): Promise<void> {
    switch (one.act) {
      case 'call':
        for (let copy = 0; copy < one.copies; copy++)
          this.ask(one, at(replicas, (one.replica + copy) % REPLICAS));
        break;
      case 'wait':
        for (let turn = 0; turn < one.turns; turn++) await new Promise(setImmediate);
        break;
      case 'clock':
        nowMs += one.ms;
        break;
      case 'reconcile':
        this.#change(one.act, at(replicas, one.replica).reconcile());
        break;
      case 'expire trials':
        this.#change(
          one.act,
          this.#job(one.replica, ({ app }) => app.trials.expire(500)),
        );
        break;
      case 'drop answers':
        this.#change(
          one.act,
          this.#job(one.replica, ({ app }) => app.calls.dropExpiredAnswers(5_000)),
        );
        break;
      case 'strike':
        at(replicas, one.replica).strike(one.blows);
        break;
      case 'die':
        at(replicas, one.replica).die();
        break;
      case 'lose host':
        this.#change(one.act, this.#loseHost(at(this.accounts, one.account), at(replicas, one.replica)));
        break;
      case 'lock':
        this.#change(one.act, this.#hold(at(this.accounts, one.account), one.ms));
        break;
      case 'silence':
        this.#change(
          one.act,
          this.#silence(one.replica === null ? replicas : [at(replicas, one.replica)], one.everybody, one.ms),
        );
        break;
      case 'claim':
        this.#change(
          one.act,
          this.#claim(`9.${programs >> 8}.${programs & 255}.${one.address}`, one.lie, one.replica),
        );
        break;
      case 'rotate':
      case 'revoke':
        this.#change(
          one.act,
          this.#endKey(one.act, at(this.accounts, one.account), at(replicas, one.replica)),
        );
        break;
      case 'cap':
        this.#change(one.act, this.#changeCap(at(this.accounts, one.account), at(replicas, one.replica)));
        break;
    }
    await this.#breathe();
  }

  /** Makes a change, whose failure is told when all has come to rest. */
  #change(what: Act['act'], change: Promise<void>): void {
    const told = change.catch((error: unknown) => {
      throw new Error(`${what} went wrong`, { cause: error });
    });
    told.catch(() => {});
    this.#changes.push(told);
  }

  async #job(
    index: number,
    run: (server: Awaited<ReturnType<MortalReplica['server']>>) => Promise<number>,
  ): Promise<void> {
    const target = at(replicas, index);
    const [wasHit, wasHeld] = [target.watch(), anyHold.watch()];
    await run(await target.server()).catch((error: unknown) => {
      if (!wasHit() && !wasHeld()) throw error;
    });
  }

  /** Somebody else holds an account. */
  async #hold(account: Account, ms: number): Promise<void> {
    const ends = [account.hold.begin(), anyHold.begin()];
    const release = await lockAccounts(database.url, [account.id]);
    await sleep(ms);
    await release();
    for (const end of ends) end();
    seen.holds += 1;
  }

  async #loseHost(account: Account, target: MortalReplica): Promise<void> {
    const ends = [anyHold.begin(), stuck.begin()];
    const giveUp = await target.loseHost(account.id);
    await transactionsOver();
    await giveUp();
    for (const end of ends) end();
    seen.hostsLost += 1;
  }

  async #silence(silent: readonly MortalReplica[], everybody: boolean, ms: number): Promise<void> {
    const ends = [anyHold.begin(), stuck.begin()];
    const silences = Promise.all(silent.map((each) => each.freeze(everybody, ms)));
    await transactionsOver();
    for (const end of ends) end();
    await silences;
    seen.silences += 1;
  }

  /** A proxy names the address that it sees, behind whatever its caller claims. */
  async #claim(address: string, lie: Extract<Act, { act: 'claim' }>['lie'], replica: number): Promise<void> {
    const forged = `7.7.${this.claims.length}.${seen.claims % 250}`;
    const clockMs = { began: nowMs, ended: 0 };
    const { url } = await at(replicas, replica).server();
    seen.claims += 1;
    if (lie !== 'none') seen.lies += 1;
    const response = await fetch(`${url}/api/m2m/credits/trial`, {
      headers: {
        'x-forwarded-for': lie === 'x-forwarded-for' || lie === 'both' ? `${forged}, ${address}` : address,
        ...(lie === 'forwarded' || lie === 'both' ? { forwarded: `for=${forged}` } : {}),
      },
    }).catch(() => null);
    clockMs.ended = nowMs;
    if (response?.status === 200) this.claims.push({ address, clockMs });
    await response?.arrayBuffer().catch(() => {});
  }

  /** A bounded number of requests at once. Those that wait for a call that will never end need a later hour. */
  async #breathe(): Promise<void> {
    let turns = 0;
    while (this.#outstanding > MAX_OUTSTANDING) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      turns += 1;
      if (turns % 60 === 0) {
        nowMs += MINUTE_MS;
        await Promise.all(replicas.map((each) => each.reconcile()));
      }
    }
  }

  ask(one: Omit<Call, 'act' | 'copies' | 'replica'>, target: MortalReplica): void {
    const question = one.idempotencyKey === null || one.confused ? one : at(QUESTIONS, one.idempotencyKey);
    const account = at(this.accounts, one.account);
    const former = account.keys.length > 1 && one.formerKey;
    const key = at(account.keys, account.keys.length - (former ? 2 : 1));
    const asked: Asked = {
      account,
      key,
      path: question.path,
      mode: question.mode,
      text: at(TEXTS, question.text),
      idempotencyKey: one.idempotencyKey === null ? null : at(IDEMPOTENCY_KEYS, one.idempotencyKey),
      hungUp: one.hangUpAfterMs !== null,
      capVersion: account.capVersion,
      began: ++tick,
      endedAt: null,
      clockMs: { began: nowMs, ended: null },
      troubled: false,
      replica: target,
      deathsAtEnd: 0,
      told: null,
    };
    this.asked.push(asked);
    void this.#send(asked, one.hangUpAfterMs);
  }

  async #send(asked: Asked, hangUpAfterMs: number | null): Promise<void> {
    const { replica: target } = asked;
    const [wasHit, wasHeld, wasAnyHeld] = [target.watch(), asked.account.hold.watch(), stuck.watch()];
    const pendingBefore = target.pending;
    this.#outstanding += 1;
    try {
      const { url } = await target.server();
      const response = await fetch(`${url}/x402/${asked.path}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-api-key': asked.key.apiKey,
          ...(asked.idempotencyKey === null ? {} : { 'idempotency-key': asked.idempotencyKey }),
        },
        body: JSON.stringify({ mode: asked.mode, text: asked.text }),
        ...(hangUpAfterMs === null ? {} : { signal: AbortSignal.timeout(hangUpAfterMs) }),
      });
      const body = await response.text();
      asked.told = {
        status: response.status,
        code: codeOf(body),
        body,
        callId: response.headers.get('x-call-id'),
        replayed: response.headers.get('idempotent-replayed') === 'true',
      };
    } catch {
      // Hung up, or the process died: no answer came. Nothing else may break a connection.
    } finally {
      this.#outstanding -= 1;
      asked.endedAt = ++tick;
      asked.clockMs.ended = nowMs;
      asked.deathsAtEnd = target.deaths;
      asked.troubled = wasHit() || wasHeld() || wasAnyHeld() || pendingBefore > 0;
    }
  }

  async #endKey(how: 'rotate' | 'revoke', account: Account, target: MortalReplica): Promise<void> {
    const key = at(account.keys, account.keys.length - 1);
    if (key.ending !== null) return;
    key.ending = ++tick;
    const { url } = await target.server();
    const response = await fetch(`${url}/api/keys/me${how === 'rotate' ? '/rotate' : ''}`, {
      method: how === 'rotate' ? 'POST' : 'DELETE',
      headers: { 'x-api-key': key.apiKey },
    }).catch(() => null);
    // The process died under the request: the caller cannot know, and asks no more of this key's end.
    if (response === null || response.status === 503) return;
    assert.equal(response.status, 200);
    key.ended = ++tick;
    if (how === 'rotate') {
      account.keys.push({ apiKey: (await jsonOf(response)).apiKey, ending: null, ended: null });
      account.capVersion += 2;
    }
  }

  async #changeCap(account: Account, target: MortalReplica): Promise<void> {
    if (account.capVersion % 2 === 1) return;
    account.capVersion += 1;
    const next = account.capPerCallMicros === null ? CALL_CAP : null;
    const { url } = await target.server();
    const key = at(account.keys, account.keys.length - 1);
    const done = await patch(url, key.apiKey, { perCallUsd: next }).catch(() => null);
    // Refused: the key had ended. No answer: nobody knows, and the version stays odd.
    if (done === null) return;
    if (done) account.capPerCallMicros = next === null ? null : usdToMicros(next);
    account.capVersion += 1;
  }

  /** Lets everything come to an end: callers get their answers, open calls their time. */
  async rest(): Promise<void> {
    await Promise.allSettled(this.#changes).then((all) => {
      for (const one of all) if (one.status === 'rejected') throw one.reason;
    });
    let turns = 0;
    await until('every caller to have an answer', async () => {
      turns += 1;
      if (turns % 20 === 0) {
        nowMs += MINUTE_MS;
        await this.#reconcileAll();
      }
      return this.#outstanding === 0;
    });
    for (const each of replicas) each.forgetBlows();
    nowMs += MINUTE_MS;
    // A service that was abandoned at its deadline may be about to give its price back.
    await until('no call to run', async () => {
      const servers = await Promise.all(replicas.map((each) => each.server()));
      return servers.every(({ app }) => app.paidCall.running === 0);
    });
    await this.#reconcileAll();
    await this.#reconcileAll();
  }

  async #reconcileAll(): Promise<void> {
    await Promise.all(replicas.map((each) => each.reconcile()));
  }
}

function codeOf(body: string): string | null {
  if (!body.startsWith('{')) return null;
  const parsed: { code?: string; last_error_reason?: { code?: string } } = JSON.parse(body);
  return parsed.last_error_reason?.code ?? parsed.code ?? null;
}

/** PostgreSQL ends the transactions of a process that is silent or lost; whatever was begun by now is over. */
async function transactionsOver(): Promise<void> {
  const { sql } = database;
  const [now] = await sql<{ at: string }[]>`select clock_timestamp()::text as at`;
  let open: { state: string; wait_event: string | null; query: string }[] = [];
  await until('the end of all transactions', async () => {
    open = await sql`
      select state, wait_event, query from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and xact_start < ${now?.at ?? ''}::timestamptz
        and application_name = 'farebox'`;
    return open.length === 0;
  }).catch((error: unknown) => {
    throw new Error(`still open: ${JSON.stringify(open)}`, { cause: error });
  });
}

// ------------------------------------------------------------------------------------------------ the judgement

/** The amount that is reserved for it. */
const priceOf = (path: Path) => usdToMicros(PRICES[path]);
const takenOf = ({ path, text }: Asked) => (path === 'metered' ? costOf(text) : priceOf(path));
const questionOf = ({ path, mode, text }: Asked) => `${path} ${mode} ${text}`;

/** Whether a request may have been told this, from what its caller could know. */
function assertPlausible(asked: Asked): void {
  const { told, account, key, troubled } = asked;
  if (told === null) {
    assert(asked.hungUp || troubled, 'a connection broke by itself');
    return;
  }
  const { status, code } = told;
  const why = `${account.name} ${questionOf(asked)} was told ${status} ${code}: ${told.body.slice(0, 300)}`;
  const clockMoved = asked.clockMs.ended !== asked.clockMs.began;
  if (status === 200) {
    const body: { callId: string; text: string; run: number } = JSON.parse(told.body);
    assert(['ok', 'slow', 'flaky'].includes(asked.mode), why);
    assert.equal(body.callId, told.callId, why);
    assert.equal(body.text, asked.text, why);
    assert(!UNKEEPABLE.includes(asked.text), why);
    assert.equal(runsOfCall.get(body.callId), 1, `the service ran once for one call. ${why}`);
    if (!told.replayed) {
      if (
        account.capPerCallMicros !== null &&
        asked.capVersion % 2 === 0 &&
        asked.capVersion === account.capVersion
      ) {
        assert(priceOf(asked.path) <= account.capPerCallMicros, why);
      }
      if (account.expiresAtMs !== null) assert(asked.clockMs.began < account.expiresAtMs, why);
    }
    if (key.ended !== null) assert(asked.began < key.ended, `a key bought after it had ended. ${why}`);
    return;
  }
  if (status === 402) {
    if (code === 'API_KEY_REVOKED') assert(key.ending !== null && key.ending < (asked.endedAt ?? 0), why);
    else if (code === 'API_KEY_EXPIRED')
      assert((asked.clockMs.ended ?? 0) >= (account.expiresAtMs ?? Infinity), why);
    else if (code === 'INSUFFICIENT_CREDITS') assert.notEqual(account.name, 'rich', why);
    else if (code === 'SPEND_CAP_PER_DAY') assert.equal(account.name, 'day cap', why);
    else assert.equal(code, 'SPEND_CAP_PER_CALL', why);
    return;
  }
  if (status === 400) {
    assert(UNKEEPABLE.includes(asked.text), why);
    const refusal: { fields?: { field: string }[]; charged?: unknown } = JSON.parse(told.body);
    assert.deepEqual([refusal.fields?.[0]?.field, refusal.charged], ['text', false], why);
    return;
  }
  if (status === 409) {
    assert(asked.idempotencyKey !== null, why);
    assert(code === 'IDEMPOTENCY_KEY_REUSED' || code === 'ANSWER_EXPIRED', why);
    return;
  }
  const failure = FAILURE[asked.mode];
  if (failure !== undefined && status === failure[0] && code === failure[1]) return;
  // A real deadline on a slow machine.
  if (code === 'DEADLINE_EXCEEDED') return;
  if (code === 'TOOK_TOO_LONG' || code === 'STILL_RUNNING') assert(clockMoved, why);
  else assert(troubled && status === 503 && code !== null && TROUBLES.includes(code), why);
}

/** Judges that no address got a trial twice in seven days, whoever its caller claimed to be. */
function judgeClaims(claims: readonly Claim[]): void {
  for (const [address, own] of Map.groupBy(claims, (claim) => claim.address)) {
    const sorted = own.toSorted((a, b) => a.clockMs.ended - b.clockMs.ended);
    for (const [index, later] of sorted.entries()) {
      const earlier = sorted[index - 1];
      if (earlier === undefined) continue;
      assert(later.clockMs.ended - earlier.clockMs.began >= 7 * DAY_MS, `${address} got two trials`);
    }
  }
}

async function judge(scene: Scene): Promise<void> {
  await assertBooksClosed(database.patient);
  for (const asked of scene.asked) assertPlausible(asked);
  judgeClaims(scene.claims);
  for (const account of scene.accounts) {
    await judgeAccount(
      account,
      scene.asked.filter((asked) => asked.account === account),
    );
  }
}

async function judgeAccount(account: Account, asked: readonly Asked[]): Promise<void> {
  const calls = await callsOf(database.sql, account.id);
  const captured = new Map(calls.filter(({ state }) => state === 1).map((row) => [row.id, row]));
  const refunds = await refundsOf(database.sql, account.id);
  const spentMicros = [...captured.values()].reduce((sum, row) => sum + row.price_micros, 0n);
  const refundedMicros = refunds.reduce((sum, id) => sum + (captured.get(id)?.price_micros ?? 0n), 0n);

  // Every answer that was handed over was charged, at its price; and once, since its call is its own.
  const delivered = new Map<string, Asked>();
  for (const one of asked) {
    if (one.told?.status !== 200) continue;
    const row = captured.get(one.told.callId ?? '');
    assert(
      row !== undefined,
      `${account.name} got an answer for call ${one.told.callId}, which was not charged`,
    );
    assert.equal(row.price_micros, takenOf(one));
    if (one.path === 'metered') seen.metered += 1;
    assert.equal(row.service, one.path);
    assert.equal(row.identity, one.idempotencyKey === null ? null : `key:${one.idempotencyKey}`);
    if (one.told.replayed) continue;
    assert(!delivered.has(row.id), `call ${row.id} was handed over twice as if new`);
    delivered.set(row.id, one);
    seen.answers += 1;
  }

  // One payment, one answer, always.
  for (const idempotencyKey of IDEMPOTENCY_KEYS)
    judgePayment(asked.filter((a) => a.idempotencyKey === idempotencyKey));

  // Nothing else was charged, but what its caller can still ask for, what was given back, and what nobody can know.
  const refunded = new Set(refunds);
  assert.equal(refunded.size, refunds.length, 'a call was refunded twice');
  const blind: string[] = [];
  for (const [id, row] of captured) {
    if (refunded.has(id)) assert.equal(row.identity, null, 'an answer that can be asked for was refunded');
    if (delivered.has(id)) {
      assert(!refunded.has(id), `call ${id} was delivered and refunded`);
      continue;
    }
    const unheard = asked.filter(
      (one) =>
        one.path === row.service &&
        row.identity === (one.idempotencyKey === null ? null : `key:${one.idempotencyKey}`) &&
        (one.told === null || one.told.code === 'OUTCOME_UNKNOWN'),
    );
    assert(unheard.length > 0, `call ${id} of ${account.name} was charged and nobody was without an answer`);
    if (row.identity === null && !refunded.has(id)) blind.push(row.service);
  }
  seen.refunds += refunds.length;
  seen.blind += blind.length;
  for (const path of Object.keys(PRICES)) {
    // Cut off in the very moment; or left behind by a process that died owing a refund.
    const excused = asked.filter(
      (one) =>
        one.path === path &&
        one.idempotencyKey === null &&
        (one.told === null || (one.told.code === 'OUTCOME_UNKNOWN' && one.replica.deaths > one.deathsAtEnd)),
    );
    assert(
      blind.filter((service) => service === path).length <= excused.length,
      `${account.name} paid for nothing`,
    );
  }

  // The balance, to the micro-dollar.
  const balance = await balanceOf(database.sql, account.id);
  const closed =
    account.expiresAtMs !== null && balance !== account.grantedMicros - spentMicros + refundedMicros;
  if (closed) assert(nowMs >= (account.expiresAtMs ?? Infinity), 'a trial was closed before its time');
  const expiredMicros = closed && spentMicros < TRIAL_MICROS ? TRIAL_MICROS - spentMicros : 0n;
  assert.equal(balance, account.grantedMicros - spentMicros + refundedMicros - expiredMicros, account.name);
  assert(balance >= 0n, `${account.name} is overdrawn`);

  if (account.name === 'day cap') {
    const days = Map.groupBy(captured.values(), ({ finished_day }) => finished_day);
    for (const [day, rows] of days) {
      const sum = rows.reduce((total, row) => total + row.price_micros, 0n);
      assert(sum <= usdToMicros(DAY_CAP), `${sum} micro-USD were taken on ${day}, above the day's cap`);
    }
  }
}

/** Everything that was asked under one idempotency key of one account. */
function judgePayment(asked: readonly Asked[]): void {
  const answered = asked.filter((one) => one.told?.status === 200);
  const first = answered.reduce<Asked | undefined>(
    (earliest, one) => ((one.endedAt ?? 0) < (earliest?.endedAt ?? Infinity) ? one : earliest),
    undefined,
  );
  if (first === undefined) return;
  assert.equal(new Set(answered.map((one) => one.told?.body)).size, 1, 'one payment got two answers');
  assert.equal(new Set(answered.map(questionOf)).size, 1, 'one payment answered two questions');
  assert(answered.filter((one) => one.told?.replayed === false).length <= 1, 'one payment was sold twice');
  seen.replays += answered.length - 1;
  for (const later of asked) {
    if (later.began < (first.endedAt ?? 0) || later.told === null || later.troubled) continue;
    const { status, code } = later.told;
    const why = `after its answer the payment was told ${status} ${code}`;
    if (code === 'API_KEY_REVOKED' && later.key.ending !== null) continue;
    if (code === 'INVALID_REQUEST' && UNKEEPABLE.includes(later.text)) continue;
    if (questionOf(later) !== questionOf(first)) assert.equal(code, 'IDEMPOTENCY_KEY_REUSED', why);
    else if (code === 'ANSWER_EXPIRED') {
      assert((later.clockMs.ended ?? 0) >= (first.clockMs.began ?? 0) + DAY_MS, why);
    } else assert.deepEqual([status, later.told.replayed], [200, true], why);
  }
}

/** Fetches what was charged and not heard of: everything is asked for once more, in peace. */
async function askAgain(scene: Scene): Promise<void> {
  const before = scene.asked.length;
  const questions = new Map<string, Asked>();
  for (const one of scene.asked) {
    const key = at(one.account.keys, one.account.keys.length - 1);
    if (one.idempotencyKey === null || key.ending !== null) continue;
    questions.set(`${one.account.name} ${one.idempotencyKey} ${questionOf(one)}`, one);
  }
  const owed = new Map<string, string>();
  for (const account of scene.accounts) {
    for (const row of await callsOf(database.sql, account.id)) {
      if (row.state === 1 && row.identity !== null && row.kept) owed.set(row.id, account.name);
    }
  }
  for (const [index, one] of [...questions.values()].entries()) {
    scene.ask(
      {
        account: scene.accounts.indexOf(one.account),
        path: one.path,
        mode: one.mode,
        text: TEXTS.indexOf(one.text as (typeof TEXTS)[number]),
        idempotencyKey: IDEMPOTENCY_KEYS.indexOf(one.idempotencyKey as (typeof IDEMPOTENCY_KEYS)[number]),
        hangUpAfterMs: null,
        formerKey: false,
        confused: true,
      },
      at(replicas, index % REPLICAS),
    );
    await until('the repeated request', () => scene.asked.every(({ endedAt }) => endedAt !== null));
  }
  for (const one of scene.asked.slice(before)) {
    if (one.told?.status === 200 && one.told.callId !== null) owed.delete(one.told.callId);
  }
  for (const [id, name] of owed) {
    const account = scene.accounts.find((each) => each.name === name);
    const key = account === undefined ? undefined : account.keys.at(-1);
    // Nobody can ask with a key that has ended; and what has expired a day ago is told so.
    if (key?.ending !== null) continue;
    const [row] = await database.sql<{ late: boolean }[]>`
      select expires_at <= ${new Date(nowMs).toISOString()} as late from call_answers where id = ${id}`;
    const said = scene.asked
      .slice(before)
      .filter((one) => one.account === account)
      .map((one) => `${one.idempotencyKey} ${one.told?.status} ${one.told?.code} ${one.told?.callId}`);
    assert(
      row?.late === true,
      `call ${id} of ${name} was charged, and its answer cannot be asked for: ${said.join('; ')}`,
    );
  }
}

test('whatever happens, the promises hold', async (t) => {
  const { FIRE_SEED: seed, FIRE_PATH: path } = process.env;
  const startedAtMs = performance.now();
  const property = fc.asyncProperty(program, async (acts) => {
    if (performance.now() - startedAtMs > BEGINS_WITHIN_MS) return;
    programs += 1;
    if (programs % PROGRAMS_ON_A_DATABASE === 0) {
      await endWorld();
      await raiseWorld();
    }
    const scene = new Scene(await Promise.all(ACCOUNTS.map(openAccount)));
    for (const one of acts) await scene.perform(one);
    await scene.rest();
    await judge(scene);
    await askAgain(scene);
    await scene.rest();
    await judge(scene);
    seen.requests += scene.asked.length;
    seen.cut += scene.asked.filter(({ told }) => told === null).length;
    seen.unknown += scene.asked.filter(({ told }) => told?.code === 'OUTCOME_UNKNOWN').length;
    runsOfCall.clear();
  });
  const outcome = await fc.check(property, {
    numRuns: Math.ceil(STEPS / ACTS),
    // Interleavings do not repeat, so a smaller program would prove little.
    endOnFailure: true,
    ...(seed === undefined ? {} : { seed: Number(seed) }),
    ...(path === undefined ? {} : { path }),
  });
  seen.deaths = deathsBefore + replicas.reduce((sum, { deaths }) => sum + deaths, 0);
  t.diagnostic(JSON.stringify({ programs, ...seen }));
  if (outcome.failed) {
    const again = `FIRE_SEED=${outcome.seed} FIRE_PATH=${outcome.counterexamplePath} npm test -- fire/model.test`;
    throw new Error(`To run this program again: ${again}`, { cause: outcome.errorInstance });
  }
  if (path !== undefined) return;
  // A fire that burns nothing proves nothing.
  const least = {
    requests: 100,
    answers: 20,
    metered: 1,
    replays: 5,
    lies: 1,
    silences: 1,
    holds: 1,
    hostsLost: 1,
  };
  for (const [what, count] of Object.entries(least))
    assert((seen[what as keyof typeof least] ?? 0) >= count * programs, `${what}: ${JSON.stringify(seen)}`);
  // Whether a caller leaves in time, and what a caller is told of a lost commit, is a matter of moments.
  if (programs >= 4) assert(seen.deaths >= 1 && seen.cut >= 1, JSON.stringify(seen));
  if (programs >= 20) assert(seen.unknown >= 1, JSON.stringify(seen));
});
