/**
 * Fills an empty database as a shop that has run for long would have left it: calls of keys and of chains with what identifies
 * them, their transfers, sales and spending by day, closed days of the books, compact weeks, answers of the last day.
 *
 * However many calls it are, the old weeks, the last days and today have as many in each: what is open or due is the same, and
 * only what has been differs.
 */
import type { Database, Pools } from '../packages/core/src/db/connection.ts';
import { sqlFunction } from '../packages/core/src/db/functions.ts';
import { makeWeeks, weekOf } from '../packages/core/src/db/weeks.ts';
import { dropReleased } from '../packages/core/src/history/drop-released.ts';
import { digestOf } from '../packages/core/src/keys/api-key.ts';
import { closableDay, closeDays } from '../packages/core/src/ledger/closed-days.ts';

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
/** Few accounts made many calls, many made few. The first made the most. */
const ACCOUNTS = 10_000;
export const BUSIEST_ACCOUNT = 1_000_000;
const HISTORY_DAYS = 90;
/** The last of the old weeks ended so many days ago. */
const OLD_DAYS = 130;
/** Of PostgreSQL while it is filled: what is lost when it dies is filled again. */
export const WHILE_FILLED = {
  wal_level: 'minimal',
  fsync: 'off',
  autovacuum: 'off',
  max_wal_size: '8GB',
  shared_buffers: '512MB',
};
/** A week is compact from then on. */
const COMPACT_DAYS = 45;
/** Released calls of longer ago have left. */
const RELEASED_DAYS = 29;
const PRICE_MICROS = 250_000;
const LEFT_OVER_MICROS = 10_000_000;

export interface LongAgo {
  /** All calls. */
  calls: number;
  /** Weeks of long ago, each with so many of them. */
  oldWeeks: number;
  oldWeekCalls: number;
  /** The days before today, each with so many of them, that are not closed yet. */
  openDays: number;
  dayCalls: number;
}

/** A length of time that calls are spread over evenly. */
interface Spell {
  fromMs: number;
  toMs: number;
  calls: number;
}

/** The beginning of today in UTC. */
const todayMs = (nowMs: number): number => nowMs - (nowMs % DAY_MS);

/** The day before which all are closed: YYYY-MM-DD. */
function firstOpenDay(nowMs: number, { openDays }: LongAgo): string {
  return new Date(todayMs(nowMs) - openDays * DAY_MS).toISOString().slice(0, 10);
}

/** The Mondays of the old weeks, the oldest first. */
export function oldMondays(nowMs: number, { oldWeeks }: Pick<LongAgo, 'oldWeeks'>): number[] {
  const last = weekOf(nowMs - OLD_DAYS * DAY_MS - WEEK_MS).name.slice(1);
  const lastMs = Date.parse(`${last.slice(0, 4)}-${last.slice(4, 6)}-${last.slice(6)}T00:00:00Z`);
  return Array.from({ length: oldWeeks }, (_, n) => lastMs - (oldWeeks - 1 - n) * WEEK_MS);
}

function spellsOf(nowMs: number, past: LongAgo): Spell[] {
  const midnight = todayMs(nowMs);
  const old = oldMondays(nowMs, past).map((fromMs) => ({
    fromMs,
    toMs: fromMs + WEEK_MS,
    calls: past.oldWeekCalls,
  }));
  const days = Array.from({ length: past.openDays }, (_, n) => {
    const fromMs = midnight - (past.openDays - n) * DAY_MS;
    return { fromMs, toMs: fromMs + DAY_MS, calls: past.dayCalls };
  });
  const today = { fromMs: midnight, toMs: nowMs - 120_000, calls: Math.floor(past.dayCalls / 4) };
  const fixed = [...old, ...days, today];
  const calls = past.calls - fixed.reduce((sum, spell) => sum + spell.calls, 0);
  if (calls < 0) throw new RangeError(`${past.calls} calls are fewer than those of the fixed days`);
  const historyDays = HISTORY_DAYS - past.openDays;
  // Each day by itself, so that no call begins on one day and ends on the next.
  const history = Array.from({ length: historyDays }, (_, n) => {
    const fromMs = midnight - (HISTORY_DAYS - n) * DAY_MS;
    const each = Math.floor(calls / historyDays);
    return { fromMs, toMs: fromMs + DAY_MS, calls: n === 0 ? calls - each * (historyDays - 1) : each };
  });
  return [...old.flatMap(daysOf), ...history, ...days, today];
}

/** The days of a week. */
function daysOf({ fromMs, calls }: Spell): Spell[] {
  const each = Math.floor(calls / 7);
  return Array.from({ length: 7 }, (_, n) => ({
    fromMs: fromMs + n * DAY_MS,
    toMs: fromMs + (n + 1) * DAY_MS,
    calls: n === 0 ? calls - each * 6 : each,
  }));
}

/** An id that begins with a time (UUID version 7). @param of what it is an id of, a letter */
const idAt = (at: string, n: string, of: string) => `
  (lpad(to_hex((extract(epoch from ${at}) * 1000)::bigint), 12, '0')
    || '7' || substr(md5('${of}' || ${n}), 1, 3) || '8' || substr(md5('${of}' || ${n}), 4, 12) || '000')::uuid`;

/** The calls of a spell in the order of time. Every fiftieth was paid on a chain, of the newer ones every hundredth was released. */
const callsOf = ({ fromMs, toMs, calls }: Spell, first: number, nowMs: number) => `
  insert into calls (account_id, id, key_id, state, rail, service, price_micros, created_at, begun_at, expires_at, finished_at,
      outcome, identity, payment_key, fingerprint)
  select case when chain then 5 else account end, id, case when chain then null else account end, case when released then 2 else 1 end,
    case when chain then 'x402' else 'credits' end, service, ${PRICE_MICROS}, at, at, at + interval '25 seconds',
    at + interval '5 milliseconds', case when released then 'FAILED' else 'answered' end,
    case when released then null when chain then '0x' || md5('p' || n) || md5('q' || n) when n % 10 = 3 then md5('i' || n) end,
    case when chain and not released then '0x' || md5('k' || n) || md5('l' || n) end,
    case when not released and (chain or n % 10 = 3) then sha256('\\x00') end
  from (
    select n, at, account, n % 50 = 11 as chain,
      n % 100 = 7 and at >= to_timestamp(${(todayMs(nowMs) - RELEASED_DAYS * DAY_MS) / 1_000}) as released,
      ${idAt('at', 'n', 'c')} as id,
      (array['ping', 'token-price', 'trade-signals', 'market-brief'])[1 + n % 4] as service
    from (
      select n, ${BUSIEST_ACCOUNT} + floor(${ACCOUNTS} * power(hashint4(n)::float8 / 4294967296 + 0.5, 2))::bigint as account,
        date_trunc('milliseconds', to_timestamp(${fromMs / 1_000})
          + (n - ${first} + 0.5) * (interval '${toMs - fromMs} milliseconds' / ${Math.max(calls, 1)})) as at
      from generate_series(${first}, ${first + calls - 1}) n
    ) numbered
  ) past order by n`;

/** What follows from the calls: their transfers, what names them, what they add up to, and the accounts that they are of. */
const FOLLOWING = `
  insert into ledger_transfers
      (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
    select account_id, id, case when phase = 2 then 2 when state = 1 then 3 else 4 end, account_id,
      case when account_id = 5 then 6 else 1 end, price_micros, 'call', case phase when 2 then created_at else finished_at end
    from calls cross join lateral generate_series(2, 2 + (price_micros > 0)::integer) phase;

  insert into call_identities (account_id, kind, identity, call_id)
    select account_id, 0, identity, id from calls where identity is not null;
  insert into call_identities (account_id, kind, identity, call_id)
    select account_id, 1, payment_key, id from calls where payment_key is not null;
  insert into settlements (account_id, call_id, rail, network, asset, payer, pay_to, amount_units, evidence, answered,
      state, dead_after, lease_until, next_at, transaction, created_at, settled_at, final_at)
    select account_id, id, rail, 'eip155:8453', 'usdc', '0x' || substr(md5(identity), 1, 3) || repeat('0', 37), 'us',
      price_micros, '{}', true, 1, created_at, created_at, created_at, '0x' || md5(identity) || md5(payment_key), created_at,
      finished_at, finished_at
    from calls where account_id = 5 and state = 1;
  insert into paid_requests (request_id, at, service, rail, outcome, status, call_id)
    select 'req_' || md5(id::text), finished_at, service, rail, 'captured', 200, id
    from calls where account_id = 5 and created_at > now() - interval '30 days';
  insert into call_answers (account_id, id, expires_at, status, headers, body)
    select account_id, id, created_at + interval '1 day', 200, '{}', '{"answer":"' || repeat('a', 500) || '"}'
    from calls where identity is not null and created_at > now() - interval '1 day';

  insert into account_sales_days (account_id, day, service, rail, answered, answered_micros, released, released_micros)
    select account_id, (finished_at at time zone 'UTC')::date, service, rail,
      count(*) filter (where state = 1), coalesce(sum(price_micros) filter (where state = 1), 0),
      count(*) filter (where state = 2), coalesce(sum(price_micros) filter (where state = 2), 0)
    from calls group by 1, 2, 3, 4 order by 1, 2, 3, 4;
  insert into sales_days (day, service, rail, answered, answered_micros, released, released_micros)
    select day, service, rail, sum(answered), sum(answered_micros), sum(released), sum(released_micros)
    from account_sales_days group by 1, 2, 3;
  insert into call_spending (account_id, day, service, calls, spent_micros)
    select account_id, day, service, answered, answered_micros
    from account_sales_days where account_id >= 1000 and answered > 0;

  insert into ledger_accounts (id, house, debits_posted, credits_posted, created_at)
    select account_id, false, sum(spent_micros), sum(spent_micros) + ${LEFT_OVER_MICROS}, min(day)
    from call_spending group by account_id;
  insert into api_keys (id, account_id, lookup, digest, prefix, kind, created_at)
    overriding system value
    select id, id, ('x' || encode(substr(digest, 1, 8), 'hex'))::bit(64)::bigint, digest, substr(key, 1, 12), 'grant', created_at
    from (
      select id, created_at, key, sha256(convert_to(key, 'UTF8')) as digest
      from (select id, created_at, 'fbx_live_' || md5('k' || id) || substr(md5('l' || id), 1, 29) || '000' as key from ledger_accounts
        where id >= ${BUSIEST_ACCOUNT}) accounts
    ) keys;
  insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
    select account_id, ${idAt('at', 'account_id', 'g')}, 1, 4, account_id, micros, 'operator_grant', at from (
      select account_id, week at time zone 'UTC' + account_id % 60 * interval '1 second' as at,
        micros + case when week = min(week) over (partition by account_id) then ${LEFT_OVER_MICROS} else 0 end as micros
      from (
        select account_id, date_trunc('week', day::timestamp) as week, sum(spent_micros) as micros
        from call_spending group by 1, 2
      ) of_weeks
    ) grants order by at;
  insert into transfer_days (day, code, transfers, moved_micros)
    select (created_at at time zone 'UTC')::date, code, count(*), sum(amount_micros)
    from ledger_transfers where code <> 'call' group by 1, 2;

  update sales_folded set calls_to = now() - interval '1 minute', transfers_to = now() - interval '1 minute',
    complete_to = now() - interval '1 minute';
  update calls_open_since set begun_at = now() - interval '1 minute'`;

/** A key with all that its account ever bought. */
export async function keyOfBusiest(sql: Database): Promise<string> {
  const [row] = await sql<{ key: string }[]>`
    select 'fbx_live_' || md5(${`k${BUSIEST_ACCOUNT}`}) || substr(md5(${`l${BUSIEST_ACCOUNT}`}), 1, 29) || '000' as key`;
  const [known] = await sql`select 1 from api_keys where lookup = ${String(digestOf(row?.key ?? '').lookup)}`;
  if (row === undefined || known === undefined) throw new Error('the busiest account has no key');
  return row.key;
}

/** Fills the database, closes its days but the open ones, and lets go of what the jobs would have. */
export async function fillLongAgo(
  sql: Database,
  { patient }: Pick<Pools, 'patient'>,
  nowMs: number,
  past: LongAgo,
): Promise<void> {
  const spells = spellsOf(nowMs, past);
  const oldestMs = Math.min(...spells.map(({ fromMs }) => fromMs));
  const weeks: ReturnType<typeof weekOf>[] = [];
  for (let atMs = oldestMs; atMs < nowMs + WEEK_MS; atMs += WEEK_MS) weeks.push(weekOf(atMs));
  await sql.begin(async (transaction) => {
    await transaction`set local statement_timeout = 0`;
    await makeWeeks(transaction, weeks);
    const compact = weekOf(nowMs - COMPACT_DAYS * DAY_MS).name;
    for (const { name } of weeks.filter((week) => week.name < compact)) {
      await transaction.unsafe(`alter table calls_${name} set (fillfactor = 100)`);
      await transaction`insert into compacted_weeks (week, lease_until, compacted_at) values (${name}, now(), now())`;
    }
    // Indexes are built after the rows are inserted, which is faster. The rows are in order of time all the same.
    await transaction.unsafe(`
      set local work_mem = '256MB';
      set local maintenance_work_mem = '512MB';
      alter table ledger_transfers drop constraint ledger_transfers_pkey;
      alter table calls drop constraint calls_pkey;
      alter table call_identities drop constraint call_identities_pkey`);
    let first = 0;
    for (const spell of spells) {
      await transaction.unsafe(callsOf(spell, first, nowMs));
      first += spell.calls;
    }
    await transaction.unsafe(FOLLOWING);
    await transaction.unsafe(`
      alter table calls add primary key (account_id, id);
      alter table ledger_transfers add primary key (account_id, id, resolves);
      alter table call_identities add primary key (account_id, kind, identity)`);
  });
  await sql.unsafe('set statement_timeout = 0');
  await sql.unsafe('vacuum (analyze, freeze)');
  // As the job that makes weeks does, once a week has ended.
  await sql`
    select brin_summarize_new_values(i.indexrelid) from pg_index i
    join pg_class c on c.oid = i.indexrelid join pg_am a on a.oid = c.relam
    where a.amname = 'brin' and substring(i.indrelid::regclass::text from 'w[0-9]{8}$') < ${weekOf(nowMs).name}`;
  await closePast(sql, patient, nowMs, past);
  await dropReleased(sql, () => nowMs);
  await sql.unsafe('vacuum (analyze) ledger_days, ledger_day_moves, ledger_closed_balances');
  await sql.unsafe('checkpoint');
}

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);

/** Closes all days but the open ones: those of the old weeks as a server does, the others at once. */
async function closePast(sql: Database, patient: Database, nowMs: number, past: LongAgo): Promise<void> {
  // The first time notes who is writing.
  await closableDay(patient);
  const closable = await closableDay(patient);
  const open = firstOpenDay(nowMs, past);
  const last = dayOf(Date.parse(open) - DAY_MS);
  if (closable === null || closable < last) throw new Error(`${closable} could be closed, not ${last}`);
  const oldEndMs = (oldMondays(nowMs, past).at(-1) ?? 0) + WEEK_MS;
  await closeDays(sql, dayOf(oldEndMs - DAY_MS), () => true);
  await closeAtOnce(sql, dayOf(oldEndMs), open);
}

/**
 * Closes days as `ledger_close_day` does, all at once and from the sums by day. What is made up is the digest of their transfers, which
 * nobody reads but the whole proof and an archive of them.
 */
async function closeAtOnce(sql: Database, from: string, to: string): Promise<void> {
  const within = `day >= '${from}'::date and day < '${to}'::date`;
  await sql.begin(async (transaction) => {
    await transaction.unsafe(`
      set local work_mem = '256MB';
      create temporary table moved on commit drop as
        select day, account_id, 0::bigint as debits, answered_micros as credits from account_sales_days where false;
      insert into moved select day, account_id, answered_micros, 0 from account_sales_days where ${within};
      insert into moved select day, case rail when 'credits' then 1 else 6 end, 0, answered_micros from sales_days where ${within};
      insert into moved
        select (created_at at time zone 'UTC')::date, account, case when given then 0 else amount_micros end,
          case when given then amount_micros else 0 end
        from ledger_transfers cross join lateral (values (credit_account, true), (debit_account, false)) sides (account, given)
        where code <> 'call' and (created_at at time zone 'UTC')::date >= '${from}' and (created_at at time zone 'UTC')::date < '${to}';
      insert into ledger_day_moves (day, account_id, debits_pending, debits_posted, credits_pending, credits_posted)
        select day, account_id, 0, sum(debits), 0, sum(credits) from moved group by 1, 2 order by 1, 2;
      insert into ledger_closed_balances as b (account_id, debits_pending, debits_posted, credits_pending, credits_posted)
        select account_id, 0, sum(debits), 0, sum(credits) from moved group by 1
        on conflict (account_id) do update set debits_posted = b.debits_posted + excluded.debits_posted,
          credits_posted = b.credits_posted + excluded.credits_posted`);
    for (let day = from; day < to; day = dayOf(Date.parse(day) + DAY_MS))
      await transaction`
        with head as (
          update ledger_days_head set open_day = ${day}::date + 1 returning digest
        ), closing as (
          select digest as before, sha256(convert_to(${day}, 'UTF8')) as made,
            ${transaction(sqlFunction('ledger_moves_digest'))}(${day}::date) as moves,
            (select coalesce(2 * sum(answered), 0) from sales_days where day = ${day}::date)
              + (select coalesce(sum(transfers), 0) from transfer_days where day = ${day}::date) as transfers
          from head
        )
        insert into ledger_days (day, transfers, transfers_digest, moves_digest, digest, released_apart)
        select ${day}::date, transfers, made, moves,
          ${transaction(sqlFunction('ledger_day_digest'))}(before, ${day}::date, transfers::bigint, made, moves), true
        from closing`.then(
        () =>
          transaction`update ledger_days_head set digest = (select digest from ledger_days where day = ${day}::date)`,
      );
  });
}
