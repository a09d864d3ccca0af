/**
 * A message on its way: it begins a task or goes on with one, chooses a skill, and is worked on once it is paid for.
 *
 *   no skill ─► input-required, with what there is        no payment ─► input-required, with the price
 *   a payment ─► the task is claimed by it ─► the paid call of the house ─► completed, failed, or to be asked again
 *
 * A task is a view of a call and decides nothing about money: whether a payment buys, and that it buys once, is for the paid
 * call to say. The claim holds one payment to a task; `beginCharging` settles who was first, a cancellation or the charge.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Problem, unavailable } from '../http/problem.ts';
import { FREE_HANG_UPS_A_DAY, type FreeHangUps } from '../paid-call/free-hang-ups.ts';
import type {
  CallFollower,
  MadeAnswer,
  PaidAnswer,
  PaidRequest,
  StreamHead,
  StreamReader,
} from '../paid-call/sale.ts';
import type { Service } from '../service/define.ts';
import type { Shelf } from '../service/shelf.ts';
import { type Choices, choose, inputAgain, sayToBuy, soldNoMore } from './choosing.ts';
import { endingOf, namingOutsiders } from './endings.ts';
import { RpcError } from './errors.ts';
import { eventsOf } from './events.ts';
import {
  type Credential,
  credentialOf,
  type Message,
  messageKeyOf,
  type Wish,
  wishOf,
  X402,
} from './messages.ts';
import { type AskedBy, isShownByClaim, serviceOf } from './showing.ts';
import type { Ending, Sender, StatusMessage, Task, Tasks } from './tasks.ts';

/** Beyond a service's own time: what a settlement may take, and the writing of the end. */
const WORK_GRACE_MS = 60_000;
/** A worker looks so often whether its task was canceled. */
const CANCELLATION_LOOKED_FOR_MS = 500;

export interface Asker extends AskedBy {
  headers: PaidRequest['headers'];
  /** The account of the key that it presents; null without one that is known here. */
  accountId: bigint | null;
}

/** A task that is claimed, with what pays for it. */
export interface Work {
  task: Task;
  service: Service;
  /** It is sold no more. */
  isGone: boolean;
  input: string;
  credential: Credential;
  /** Which of those that may work on the task this is. */
  worker: string;
  /** The payment may have been taken before. */
  wasKept: boolean;
}

/** A task after a message, and the work that there is to do. */
export interface Received {
  task: Task;
  /** Null: there is none. */
  work: Work | null;
}

/** A watcher of the work on a task. */
export interface Watcher {
  gone(): boolean;
  verified(): void;
  /** Takes an answer in pieces; absent where nobody reads them. */
  pieces?: (event: Buffer) => Promise<'sent' | 'lost'>;
  /** Settles when the watcher has gone. */
  closed?: Promise<void>;
}

export interface TaskRunnerParts extends Choices {
  shelf: Shelf;
  tasks: Tasks;
  paidCall: { handle(request: PaidRequest): Promise<PaidAnswer> };
  /** The cancellations that a buyer has free in a day, which are those of all other calls too. */
  freeHangUps: Pick<FreeHangUps, 'use' | 'giveBack'>;
  failed(error: unknown): void;
}

export class TaskRunner {
  readonly #parts: TaskRunnerParts;

  constructor(parts: TaskRunnerParts) {
    this.#parts = parts;
  }

  /** @throws RpcError for a task that there is not, or that takes no message */
  async receive(message: Message, asker: Asker): Promise<Received> {
    const known = await this.#knownTask(message, asker);
    const credential = credentialOf(message, asker.headers);
    if (message.metadata[X402.status] === 'payment-rejected')
      return { task: await this.#decline(known), work: null };
    if (known !== null && isOver(known)) {
      if (credential !== null && known.paidWith?.equals(credential.digest))
        return this.#again(known, message, credential);
      throw new RpcError(
        'UNSUPPORTED_OPERATION',
        'This task has ended and takes no more messages. Send one without taskId to begin another.',
      );
    }
    const wish = wishOf(message);
    const skill = wish.skill ?? known?.service ?? null;
    const chosen = choose(this.#parts, { ...wish, skill }, message.text);
    if ('statusMessage' in chosen)
      return { task: await this.#putDown(known, message, asker, chosen.statusMessage), work: null };
    const { service, isGone } = chosen;
    if (isGone && credential === null)
      return {
        task: await this.#putDown(known, message, asker, soldNoMore(this.#parts, service)),
        work: null,
      };
    if (known !== null && isOnlyWords(wish, credential, known))
      return { task: await this.#putDown(known, message, asker, sayToBuy(service), service), work: null };
    const input = inputFor(service, wish.input, known);
    if (input === null)
      return { task: await this.#putDown(known, message, asker, inputAgain(service), service), work: null };
    const task = await this.#begin(known, { message, asker, service, input, credential });
    if (credential === null) return { task, work: null };
    if (isOver(task)) return this.#again(task, message, credential);
    const forMs = service.timeoutMs + WORK_GRACE_MS;
    const worker = randomUUID();
    const { by, digest } = credential;
    const claimed = await this.#parts.tasks.claim(task.id, { by, digest, worker, forMs });
    if (claimed === null) {
      // The same message may have been answered a moment ago, here or on another replica.
      const now = await this.#parts.tasks.find(task.id, asker.accountId);
      if (now !== null && isOver(now) && now.paidWith?.equals(digest))
        return this.#again(now, message, credential);
      // One that failed meanwhile takes no more messages, so this one begins another.
      if (now !== null && isOver(now) && message.taskId === null) return this.receive(message, asker);
      throw otherPayment();
    }
    const wasKept = claimed.state === 'charging';
    return { task: claimed, work: { task: claimed, service, isGone, input, credential, worker, wasKept } };
  }

  /** The same payment for a task that has ended. A secret is handed over by the paid call alone, which asks for its claim. */
  #again(task: Task, message: Message, credential: Credential): Received {
    const service = serviceOf(this.#parts.shelf, task);
    const isGone = service !== undefined && this.#parts.shelf.gone(service.path) === service;
    if (task.state !== 'completed' || service === undefined || !isShownByClaim(task, service))
      return { task, work: null };
    const input = inputFor(service, wishOf(message).input, task);
    if (input === null) return { task, work: null };
    return { task, work: { task, service, isGone, input, credential, worker: randomUUID(), wasKept: true } };
  }

  async #knownTask({ taskId, contextId }: Message, asker: Asker): Promise<Task | null> {
    if (taskId === null) return null;
    const task = await this.#parts.tasks.find(taskId, asker.accountId);
    if (task === null) throw noTask();
    if (contextId !== null && contextId !== task.contextId)
      throw new RpcError('INVALID_PARAMS', 'params.message.contextId is not that of the task.', {
        fields: [{ field: 'message.contextId', message: 'must be that of the task, or be left out' }],
      });
    return task;
  }

  async #decline(known: Task | null): Promise<Task> {
    if (known === null)
      throw new RpcError(
        'INVALID_PARAMS',
        'params.message.taskId must name the task whose price is declined.',
      );
    const statusMessage = {
      text: 'The price was declined. Nothing was charged.',
      metadata: { [X402.status]: 'payment-rejected' },
    };
    const task = await this.#parts.tasks.leave(known.id, 'failed', statusMessage);
    if (task === null) throw notCancelable();
    return task;
  }

  /** A task that waits for what is missing. */
  async #putDown(
    known: Task | null,
    message: Message,
    asker: Asker,
    statusMessage: StatusMessage,
    service: Service | null = null,
  ): Promise<Task> {
    if (known !== null) {
      const asked = await this.#parts.tasks.ask(known.id, {
        service: known.service,
        input: known.input,
        statusMessage,
      });
      if (asked === null) throw otherPayment();
      return asked;
    }
    const { accountId } = asker;
    await this.#assertRoom(accountId === null ? 'nobody' : 'account');
    const { contextId } = message;
    const made = {
      accountId,
      contextId,
      service: service?.path ?? null,
      input: null,
      statusMessage,
      messageKey: null,
    };
    return (await this.#parts.tasks.open(made)).task;
  }

  /** The task of a message that names its skill. */
  async #begin(
    known: Task | null,
    asked: {
      message: Message;
      asker: Asker;
      service: Service;
      input: string;
      credential: Credential | null;
    },
  ): Promise<Task> {
    const { message, asker, service, input, credential } = asked;
    if (known !== null) {
      const isSame =
        known.service === service.path && known.input === input && known.statusMessage?.text === undefined;
      if (isSame || known.paidWith !== null) return known;
      const changed = await this.#parts.tasks.ask(known.id, {
        service: service.path,
        input,
        statusMessage: null,
      });
      if (changed === null) throw otherPayment();
      return changed;
    }
    const sender = senderOf(asker, credential);
    const messageKey = sender === null ? null : messageKeyOf(sender, message.id, [service.path, input]);
    const begun = messageKey === null ? null : await this.#parts.tasks.begunBy(messageKey);
    if (begun !== null) return begun;
    await this.#assertRoom(
      asker.accountId !== null ? 'account' : credential?.by === 'x402' ? 'x402' : 'nobody',
    );
    const { task } = await this.#parts.tasks.open({
      accountId: asker.accountId,
      contextId: message.contextId,
      service: service.path,
      input,
      statusMessage: null,
      messageKey,
    });
    return task;
  }

  async #assertRoom(sender: Sender): Promise<void> {
    if (await this.#parts.tasks.hasRoom(sender)) return;
    throw unavailable(
      'TOO_MANY_TASKS',
      'Too many tasks wait for a payment here. Send the payment, or a key, with the first message.',
      60_000,
    );
  }

  /** Buys what a claimed task asks for. */
  async work(
    { task, service, isGone, input, credential, worker, wasKept }: Work,
    by: AskedBy,
    watcher: Watcher,
  ): Promise<{ task: Task; isRepeat: boolean; made?: MadeAnswer }> {
    const { pieces } = watcher;
    const stream = pieces === undefined ? null : streamTo(pieces, watcher.closed);
    const follow: CallFollower = {
      verified: watcher.verified,
      stillWanted: () => this.#parts.tasks.beginCharging(task.id, { digest: credential.digest, worker }),
      ...(credential.by === 'key' && {
        onWithdrawn: (canceled: () => void) => this.#watchCancellation(task.id, canceled),
      }),
    };
    const answered = await this.#parts.paidCall.handle({
      service,
      isGone,
      headers: credential.headers,
      rawBody: Buffer.from(input),
      follow,
      address: by.address,
      requestId: by.requestId,
      gone: watcher.gone,
      assertMayBuy() {},
      ...(stream === null ? {} : { openStream: stream.open }),
    });
    const answer = answered.left === true && stream !== null ? stream.whole(answered) : answered;
    const ending = namingOutsiders(endingOf(answer, credential, wasKept), service, answer.status);
    const made = ending.state === 'completed' ? { made: answer } : {};
    const writer = { worker, keepsInput: isShownByClaim(task, service) };
    return { task: await this.#write(task, ending, writer), isRepeat: ending.isRepeat, ...made };
  }

  /** A task may be canceled at any replica, so the one that works on it looks. @returns how to stop looking */
  #watchCancellation(id: string, canceled: () => void): () => void {
    let stopped = false;
    const look = async () => {
      while (!stopped) {
        await sleep(CANCELLATION_LOOKED_FOR_MS, undefined, { ref: false });
        // A database that is away for a moment is asked again.
        if (!stopped && (await this.#parts.tasks.isCanceled(id).catch(() => false))) return canceled();
      }
    };
    void look();
    return () => {
      stopped = true;
    };
  }

  /** Writes how a task ended, and hands over what was bought even while the task cannot be written: the same message finds it in the calls. */
  async #write(task: Task, ending: Ending, by: Parameters<Tasks['end']>[2]): Promise<Task> {
    const { state, statusMessage, call } = ending;
    try {
      const written = await this.#parts.tasks.end(task.id, ending, by);
      if (written !== null) return written;
    } catch (error) {
      this.#parts.failed(error);
    }
    return { ...task, state, statusMessage, call };
  }

  /** @throws RpcError when there is none that this caller may see */
  async find(id: string, { accountId }: Asker): Promise<Task> {
    const task = await this.#parts.tasks.find(id, accountId);
    if (task === null) throw noTask();
    return task;
  }

  /** @throws RpcError when there is none that this caller may see, and when it is too late */
  async cancel(id: string, { accountId }: Asker): Promise<Task> {
    const known = await this.#parts.tasks.find(id, accountId);
    if (known === null) throw noTask();
    const elsewhere =
      known.paidBy === 'x402'
        ? ' If another message carried the same payment, its task tells what became of it.'
        : '';
    const statusMessage = { text: `Canceled. Nothing was charged for this task.${elsewhere}` };
    const canceled = await this.#leaveUnpaid(known, () =>
      this.#parts.tasks.leave(id, 'canceled', statusMessage),
    );
    if (canceled === null) throw notCancelable();
    return canceled;
  }

  /**
   * Leaves a task whose work may have begun for a key, as one of the calls that its buyer may leave unpaid.
   *
   * @throws RpcError where none is left and the work costs money: it goes on, and is charged
   */
  async #leaveUnpaid(task: Task, leave: () => Promise<Task | null>): Promise<Task | null> {
    const { accountId, paidBy, state } = task;
    if (state !== 'working' || paidBy !== 'key' || accountId === null) return leave();
    const { freeHangUps, shelf } = this.#parts;
    const call = { id: randomUUID(), accountId };
    const isFree = await freeHangUps.use(call);
    const service = serviceOf(shelf, task);
    if (!isFree && service !== undefined && service.costsMoney) throw notFree();
    const left = await leave();
    if (left === null) await freeHangUps.giveBack(call.id);
    return left;
  }
}

const isGiven = (input: unknown) => input !== null && input !== undefined;

function inputFor(service: Service, given: unknown, known: Task | null): string | null {
  if (isGiven(given)) return JSON.stringify(given);
  // Another skill than before, without an input of its own, is asked with none.
  if (known === null || known.service !== service.path) return '{}';
  return known.input;
}

/** Gathers an answer that leaves in pieces. */
function streamTo(pieces: (event: Buffer) => Promise<'sent' | 'lost'>, closed: Promise<void> | undefined) {
  let headers: Record<string, string> = {};
  let last: Buffer | null = null;
  return {
    open(head: StreamHead): StreamReader {
      headers = { ...head.headers };
      return {
        write: pieces,
        async end(event) {
          last = event;
        },
        cut() {},
        closed: closed ?? new Promise(() => {}),
      };
    },
    /** The last event has the whole answer, or why there is none. */
    whole(answer: PaidAnswer): PaidAnswer {
      const [event] = eventsOf((last ?? Buffer.alloc(0)).toString());
      const { left: _left, ...rest } = answer;
      const own = { ...headers, 'content-type': 'application/json; charset=utf-8' };
      return { ...rest, headers: own, body: JSON.stringify(event?.data ?? {}) };
    },
  };
}

/** A key is sent with every message. A word in a task whose price is known, such as a refusal, is no order by it. */
function isOnlyWords({ skill, input }: Wish, credential: Credential | null, known: Task): boolean {
  if (credential?.by !== 'key' || skill !== null || isGiven(input)) return false;
  return known.paidWith === null;
}

function isOver({ state }: Task): boolean {
  return state === 'completed' || state === 'failed' || state === 'canceled';
}

/** The sender by which a message is known when it comes again: a key or a payment; null: by nobody. */
function senderOf({ accountId }: Asker, credential: Credential | null): string | null {
  if (credential === null) return null;
  if (credential.by === 'x402') return `x402:${credential.digest.toString('hex')}:${accountId ?? ''}`;
  return accountId === null ? null : `account:${accountId}`;
}

function noTask(): RpcError {
  return new RpcError(
    'TASK_NOT_FOUND',
    'There is no such task, or it is not yours. A task that a key made is seen with that key.',
  );
}

function notCancelable(): RpcError {
  return new RpcError(
    'TASK_NOT_CANCELABLE',
    'It is too late to cancel this task: it has ended, or it is being charged. tasks/get tells which.',
    { charged: null },
  );
}

function notFree(): RpcError {
  return new RpcError(
    'TASK_NOT_CANCELABLE',
    `This task goes on and is charged when it is answered: ${FREE_HANG_UPS_A_DAY} calls were canceled or left unpaid today (UTC), and no more are free. tasks/get has its answer.`,
    { charged: null },
  );
}

function otherPayment(): Problem {
  return new Problem(
    409,
    'TASK_BUSY',
    'Another payment may have been taken for this task. Send the message that carried it again, or begin another task.',
    { details: { charged: false } },
  );
}
