/** Tasks of A2A: what was asked, where it stands and what it bought. Any replica finds them, and so does the next process. */
import { randomUUID } from 'node:crypto';
import type { Database } from '../db/connection.ts';

/** `charging`: the last moment at which it could be canceled is over. */
export type TaskState = 'input-required' | 'working' | 'charging' | 'completed' | 'failed' | 'canceled';
export type PaidBy = 'key' | 'x402';

/** The message of a status, beside its state. */
export interface StatusMessage {
  /** The text for people and models. */
  text?: string;
  /** The data for programs: an error as HTTP has it, or what may be asked for. */
  data?: Record<string, unknown>;
  /** Why a payment was refused, as a 402 tells it. */
  refused?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
}

export interface Task {
  id: string;
  /** The account whose key made it; null: it belongs to whoever knows its id. */
  accountId: bigint | null;
  contextId: string;
  /** The path of the service that is asked for; null: none yet. */
  service: string | null;
  /** The JSON that it is asked with; null: it may not be kept, or is not kept any more. */
  input: string | null;
  state: TaskState;
  paidBy: PaidBy | null;
  /** The digest of its payment; null: none may have been taken. */
  paidWith: Buffer | null;
  workingUntilMs: number | null;
  call: { accountId: bigint; id: string } | null;
  statusMessage: StatusMessage | null;
  updatedAtMs: number;
}

export interface NewTask extends Pick<Task, 'accountId' | 'service' | 'input' | 'statusMessage'> {
  /** The key by which its message is known when it comes again; null: not at all. */
  messageKey: Buffer | null;
  /** A new one is made where none is given. */
  contextId: string | null;
}

/** How a piece of work on a task ended. */
export interface Ending extends Pick<Task, 'state' | 'statusMessage' | 'call'> {
  /** Its payment may have been taken, so no other one is taken for it. */
  keepsPayment: boolean;
  /** Whether it tells of what was bought before, which others know more of. */
  isRepeat: boolean;
}

/** The kind of sender, as far as that gives a message room. `account`: by a key that is known here. */
export type Sender = keyof typeof SHARES;

export interface TaskPage {
  tasks: Task[];
  /** Null: there are no more. */
  next: string | null;
  total: number;
}

/** The time for which tasks that bought nothing are kept. */
const UNPAID_MS = 3_600_000;
/** The shorter time for tasks that an x402 payment failed to buy: anybody can send something that looks like one. */
const REFUSED_MS = 300_000;
/** Longer input has to come with the payment. */
const MAX_INPUT_CHARACTERS = 16_384;
const MAX_MESSAGE_CHARACTERS = 16_384;
/** The part of the room for unpaid tasks that may be taken when one more comes from these. */
const SHARES = { nobody: 0.5, x402: 0.75, account: 1 } as const;
/** How far tasks are counted for a list. */
const MAX_COUNTED = 10_000;
/** How old the number of unpaid tasks may be that new ones are refused by. */
const COUNTED_EVERY_MS = 2_000;

interface Row {
  id: string;
  account_id: bigint | null;
  context_id: string;
  service: string | null;
  input: string | null;
  state: TaskState;
  paid_by: PaidBy | null;
  paid_with: Buffer | null;
  working_until: Date | null;
  call_account_id: bigint | null;
  call_id: string | null;
  told: string | null;
  updated_at: Date;
}

export class Tasks {
  readonly #sql: Database;
  readonly #options: { nowMs(): number; keptMs: number; maxUnpaid: number };
  #counted = { atMs: Number.NEGATIVE_INFINITY, unpaid: 0 };

  /** @param options.keptMs how long a task is kept that bought an answer */
  constructor(sql: Database, options: { nowMs(): number; keptMs: number; maxUnpaid: number }) {
    this.#sql = sql;
    this.#options = options;
  }

  /**
   * Begins a task, or finds the one that the same message began.
   *
   * @returns isNew false: the message has come before
   */
  async open(task: NewTask): Promise<{ task: Task; isNew: boolean }> {
    const now = this.#options.nowMs();
    const [made] = await this.#sql<Row[]>`
        insert into a2a_tasks
          (id, account_id, context_id, message_key, service, input, state, told, updated_at, expires_at)
        values (${randomUUID()}, ${asText(task.accountId)}, ${task.contextId ?? randomUUID()}, ${task.messageKey},
                ${task.service}, ${keepable(task.input)}, 'input-required', ${statusMessageText(task.statusMessage)}, ${at(now)},
                ${at(now + UNPAID_MS)})
        on conflict (message_key) do nothing
        returning *`;
    if (made !== undefined) return { task: taskOf(made), isNew: true };
    const [row] = await this.#sql<Row[]>`
        select * from a2a_tasks where message_key = ${task.messageKey} and expires_at > ${at(now)}`;
    if (row !== undefined) return { task: taskOf(row), isNew: false };
    // It has ended meanwhile, or its time is over and nobody has dropped it yet.
    await this
      .#sql`delete from a2a_tasks where message_key = ${task.messageKey} and expires_at <= ${at(now)}`;
    return this.open(task);
  }

  /** The task that a message began which comes again. @returns null when there is none */
  async begunBy(messageKey: Buffer): Promise<Task | null> {
    const now = at(this.#options.nowMs());
    const [row] = await this.#sql<Row[]>`
        select * from a2a_tasks where message_key = ${messageKey} and expires_at > ${now}`;
    return row === undefined ? null : taskOf(row);
  }

  /** @param accountId of the key that asks; null without one. @returns null when there is none that this caller may see */
  async find(id: string, accountId: bigint | null): Promise<Task | null> {
    const task = await this.#read(id);
    return task === null || (task.accountId !== null && task.accountId !== accountId) ? null : task;
  }

  /** Puts down what is asked for now, or what is still missing. Nothing changes once it is worked on. */
  async ask(id: string, asked: Pick<Task, 'service' | 'input' | 'statusMessage'>): Promise<Task | null> {
    const [row] = await this.#sql<Row[]>`
        update a2a_tasks
        set service = ${asked.service}, input = ${keepable(asked.input)}, told = ${statusMessageText(asked.statusMessage)},
            updated_at = ${at(this.#options.nowMs())}
        where id = ${id} and state = 'input-required' and paid_with is null
        returning *`;
    return row === undefined ? null : taskOf(row);
  }

  /**
   * Takes a task to work on it with a payment. Work with the same payment may go on beside it: the paid call sells once. The
   * first worker stays the one that writes an end without a call, for as long as it may be at work.
   *
   * @returns null when it has ended, or another payment may have been taken for it
   */
  async claim(
    id: string,
    { by, digest, worker, forMs }: { by: PaidBy; digest: Buffer; worker: string; forMs: number },
  ): Promise<Task | null> {
    const now = this.#options.nowMs();
    const isWorkedOn = this.#sql`
        state in ('working', 'charging') and worker is not null and coalesce(working_until > ${at(now)}, false)`;
    const [row] = await this.#sql<Row[]>`
        update a2a_tasks
        set state = case when state = 'input-required' and paid_with is null then 'working'
                         when state = 'working' then 'working' else 'charging' end,
            worker = case when ${isWorkedOn} then worker else ${worker}::uuid end,
            working_until = case when ${isWorkedOn} then working_until else ${at(now + forMs)}::timestamptz end,
            paid_by = ${by}, paid_with = ${digest}, told = null,
            updated_at = ${at(now)}, expires_at = greatest(expires_at, ${at(now + UNPAID_MS)})
        where id = ${id} and state in ('input-required', 'working', 'charging')
          and (paid_with is null or paid_with = ${digest})
        returning *`;
    return row === undefined ? null : taskOf(row);
  }

  /** Makes whoever charges the worker from then on. @returns false when it was canceled, or its payment was let go, before */
  async beginCharging(id: string, { digest, worker }: { digest: Buffer; worker: string }): Promise<boolean> {
    const [row] = await this.#sql`
        update a2a_tasks
        set state = case when state = 'working' then 'charging' else state end, worker = ${worker}
        where id = ${id} and paid_with = ${digest} returning id`;
    return row !== undefined;
  }

  /** Whether a task was canceled before it was charged. */
  async isCanceled(id: string): Promise<boolean> {
    const rows = await this.#sql`select 1 from a2a_tasks where id = ${id} and state = 'canceled'`;
    return rows.length === 1;
  }

  /**
   * Ends a task for good, but for an answer that was bought meanwhile. An end without a call is written for the worker of the task
   * alone: another one knows nothing of the charge that may be going on.
   *
   * @param by.keepsInput for who asks for the answer again
   * @returns the task as it is now
   */
  async end(id: string, ending: Ending, by: { worker: string; keepsInput: boolean }): Promise<Task | null> {
    const now = this.#options.nowMs();
    const { state, statusMessage, call, keepsPayment, isRepeat } = ending;
    const stays = state !== 'completed' ? ['canceled', 'failed', 'completed'] : [];
    if (state === 'completed' && isRepeat) stays.push('canceled', 'completed');
    const keptMs = call === null ? UNPAID_MS : this.#options.keptMs;
    const keepsInput = state === 'input-required' || by.keepsInput;
    await this.#sql`
        update a2a_tasks
        set state = ${state}, told = ${statusMessageText(statusMessage)}, working_until = null,
            call_account_id = ${asText(call?.accountId ?? null)}, call_id = ${call?.id ?? null},
            paid_with = case when ${keepsPayment} then paid_with end,
            message_key = case when ${state} in ('failed', 'canceled') then null else message_key end,
            input = case when ${keepsInput} then input end, updated_at = ${at(now)},
            expires_at = case when ${state === 'failed'} and paid_by = 'x402' then ${at(now + REFUSED_MS)}::timestamptz
                              else ${at(now + keptMs)}::timestamptz end
        where id = ${id} and not state = any (${stays}) and (${call !== null} or worker = ${by.worker})`;
    return this.#read(id);
  }

  /**
   * Leaves a task before anything was taken for it.
   *
   * @returns null when that cannot be done: it has ended, is being charged, or its payment may have been taken
   */
  async leave(id: string, state: 'canceled' | 'failed', statusMessage: StatusMessage): Promise<Task | null> {
    const now = at(this.#options.nowMs());
    const [row] = await this.#sql<Row[]>`
        update a2a_tasks
        set state = ${state}, told = ${statusMessageText(statusMessage)}, message_key = null, paid_with = null, working_until = null, input = null,
            updated_at = ${now}
        where id = ${id} and expires_at > ${now}
          and (state = 'working' or (state = 'input-required' and paid_with is null))
        returning *`;
    return row === undefined ? null : taskOf(row);
  }

  /** Tasks of an account, the one that changed last first. */
  async list(
    accountId: bigint,
    asked: {
      contextId: string | null;
      states: readonly TaskState[] | null;
      changedSinceMs: number | null;
      after: string | null;
      most: number;
    },
  ): Promise<TaskPage> {
    const { contextId, states, changedSinceMs, after, most } = asked;
    const cursor = after === null ? null : cursorOf(after);
    const those = this.#sql`
        account_id = ${String(accountId)} and expires_at > ${at(this.#options.nowMs())}
        and ${contextId === null ? this.#sql`true` : this.#sql`context_id = ${contextId}`}
        and ${states === null ? this.#sql`true` : this.#sql`state = any (${states as string[]})`}
        and ${changedSinceMs === null ? this.#sql`true` : this.#sql`updated_at >= ${at(changedSinceMs)}`}`;
    const [rows, [count]] = await Promise.all([
      this.#sql<Row[]>`
          select * from a2a_tasks
          where ${those} and ${cursor === null ? this.#sql`true` : this.#sql`(updated_at, id) < (${at(cursor.atMs)}, ${cursor.id})`}
          order by updated_at desc, id desc limit ${most + 1}`,
      this.#sql<{ total: number }[]>`
          select count(*)::integer as total from (select 1 from a2a_tasks where ${those} limit ${MAX_COUNTED}) t`,
    ]);
    const tasks = rows.slice(0, most).map(taskOf);
    const last = tasks.at(-1);
    return {
      tasks,
      next: rows.length > most && last !== undefined ? `${last.updatedAtMs}_${last.id}` : null,
      total: count?.total ?? 0,
    };
  }

  /** Whether one more that has bought nothing may be kept. A part of the room is for who brings a payment, and one for who has a key. */
  async hasRoom(sender: Sender): Promise<boolean> {
    const now = this.#options.nowMs();
    if (now - this.#counted.atMs >= COUNTED_EVERY_MS) {
      this.#counted = { atMs: now, unpaid: this.#counted.unpaid };
      const [row] = await this.#sql<{ unpaid: number }[]>`
          select count(*)::integer as unpaid from a2a_tasks where call_id is null and expires_at > ${at(now)}`;
      this.#counted.unpaid = row?.unpaid ?? 0;
    }
    // Who is refused takes no room from the others.
    if (this.#counted.unpaid + 1 > this.#options.maxUnpaid * SHARES[sender]) return false;
    this.#counted.unpaid += 1;
    return true;
  }

  /** Forgets tasks whose time is over, so many at most. @returns how many */
  async dropExpired(limit: number): Promise<number> {
    const dropped = await this.#sql`
        delete from a2a_tasks where id in (
          select id from a2a_tasks where expires_at <= ${at(this.#options.nowMs())} order by expires_at limit ${limit}
          for update skip locked)`;
    return dropped.count;
  }

  async #read(id: string): Promise<Task | null> {
    const now = at(this.#options.nowMs());
    const [row] = await this.#sql<Row[]>`select * from a2a_tasks where id = ${id} and expires_at > ${now}`;
    return row === undefined ? null : taskOf(row);
  }
}

const at = (ms: number) => new Date(ms).toISOString();
const asText = (id: bigint | null) => (id === null ? null : String(id));

/** Whether a place in the list, as `list` names it, can be one. */
export function isCursor(text: string): boolean {
  return cursorOf(text) !== null;
}

function cursorOf(text: string): { atMs: number; id: string } | null {
  const [, ms, id] = /^(\d{1,13})_([0-9a-f-]{36})$/.exec(text) ?? [];
  return ms === undefined || id === undefined ? null : { atMs: Number(ms), id };
}

/** A `claimSecret` is stored nowhere, so input that may hold one is not kept either. */
const keepable = (input: string | null) =>
  input === null || input.length > MAX_INPUT_CHARACTERS || input.includes('claimSecret') ? null : input;

/** Writes the message as JSON, without its particulars if it is longer than may be kept. */
function statusMessageText(statusMessage: StatusMessage | null): string | null {
  if (statusMessage === null) return null;
  const text = JSON.stringify(statusMessage);
  return text.length <= MAX_MESSAGE_CHARACTERS
    ? text
    : JSON.stringify({ text: statusMessage.text?.slice(0, 1_000) });
}

function taskOf(row: Row): Task {
  return {
    id: row.id,
    accountId: row.account_id,
    contextId: row.context_id,
    service: row.service,
    input: row.input,
    state: row.state,
    paidBy: row.paid_by,
    paidWith: row.paid_with,
    workingUntilMs: row.working_until?.getTime() ?? null,
    call:
      row.call_id === null || row.call_account_id === null
        ? null
        : { accountId: row.call_account_id, id: row.call_id },
    statusMessage: row.told === null ? null : JSON.parse(row.told),
    updatedAtMs: row.updated_at.getTime(),
  };
}
