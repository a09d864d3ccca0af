/**
 * A message on its way: it begins a task or goes on with one, chooses a skill, and is worked on once it is paid for.
 *
 *   no skill ─► input-required, with what there is        no payment ─► input-required, with the price
 *   a payment ─► the task is claimed by it ─► the paid call of the house ─► completed, failed, or to be asked again
 *
 * A task is a view of a call and decides nothing about money: whether a payment buys, and that it buys once, is for the paid
 * call to say. The claim holds one payment to a task; `beginCharging` settles who was first, a cancellation or the charge.
 */
import { Problem, unavailable } from '../http/problem.ts';
import type { CallFollower, EventReader, MadeAnswer, PaidAnswer, PaidRequest } from '../paid-call/sale.ts';
import type { Service } from '../services/define.ts';
import { choose, inputAgain, type Shelf } from './choosing.ts';
import { endingOf } from './endings.ts';
import { RpcError } from './errors.ts';
import { type Credential, credentialOf, type Message, messageKeyOf, wishOf, X402 } from './messages.ts';
import type { AskedBy } from './showing.ts';
import type { Ending, Task, Tasks, Told } from './tasks.ts';

/** Beyond a service's own time: what a settlement may take, and the writing of the end. */
const WORK_GRACE_MS = 60_000;

export interface Asker extends AskedBy {
  headers: PaidRequest['headers'];
  /** Of the key that it presents; null without one that is known here. */
  accountId: bigint | null;
}

/** A task that is claimed, with what pays for it. */
export interface Work {
  task: Task;
  service: Service;
  input: string;
  credential: Credential;
}

/** A task after a message, and the work that there is to do. */
export interface Received {
  task: Task;
  /** Null: there is none. */
  work: Work | null;
}

/** Who watches the work. */
export interface Watcher {
  gone(): boolean;
  verified(): void;
  /** Takes an answer in pieces; absent where nobody reads them. */
  pieces?: (event: Buffer) => Promise<'sent' | 'lost'>;
  /** Settles when the watcher has gone. */
  closed?: Promise<void>;
}

export interface DeskParts extends Shelf {
  tasks: Tasks;
  paidCall: { handle(request: PaidRequest): Promise<PaidAnswer> };
  failed(error: unknown): void;
}

export class Desk {
  readonly #parts: DeskParts;

  constructor(parts: DeskParts) {
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
        return { task: known, work: null };
      throw new RpcError(
        'UNSUPPORTED_OPERATION',
        'This task has ended and takes no more messages. Send one without taskId to begin another.',
      );
    }
    const wish = wishOf(message);
    const skill = wish.skill ?? known?.service ?? null;
    const chosen = choose(this.#parts, { ...wish, skill }, message.text);
    if ('told' in chosen)
      return { task: await this.#putDown(known, message, asker, chosen.told), work: null };
    const { service } = chosen;
    const input = inputFor(service, wish.input, known);
    if (input === null)
      return { task: await this.#putDown(known, message, asker, inputAgain(service), service), work: null };
    const task = await this.#begin(known, { message, asker, service, input, credential });
    if (credential === null || isOver(task)) return { task, work: null };
    const forMs = service.timeoutMs + WORK_GRACE_MS;
    const claimed = await this.#parts.tasks.claim(task.id, {
      by: credential.by,
      digest: credential.digest,
      forMs,
    });
    if (claimed === null) {
      // The same message may have been answered a moment ago, here or on another replica.
      const now = await this.#parts.tasks.find(task.id, asker.accountId);
      if (now !== null && isOver(now) && now.paidWith?.equals(credential.digest))
        return { task: now, work: null };
      // One that failed meanwhile takes no more messages, so this one begins another.
      if (now !== null && isOver(now) && message.taskId === null) return this.receive(message, asker);
      throw otherPayment();
    }
    return { task: claimed, work: { task: claimed, service, input, credential } };
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
    const told = {
      text: 'The price was declined. Nothing was charged.',
      metadata: { [X402.status]: 'payment-rejected' },
    };
    const task = await this.#parts.tasks.leave(known.id, 'failed', told);
    if (task === null) throw notCancelable();
    return task;
  }

  /** A task that waits for what is missing. */
  async #putDown(
    known: Task | null,
    message: Message,
    asker: Asker,
    told: Told,
    service: Service | null = null,
  ): Promise<Task> {
    if (known !== null) {
      const asked = await this.#parts.tasks.ask(known.id, {
        service: known.service,
        input: known.input,
        told,
      });
      if (asked === null) throw otherPayment();
      return asked;
    }
    await this.#assertRoom(false);
    const { accountId } = asker;
    const { contextId } = message;
    const made = {
      accountId,
      contextId,
      service: service?.path ?? null,
      input: null,
      told,
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
        known.service === service.path && known.input === input && known.told?.text === undefined;
      if (isSame || known.paidWith !== null) return known;
      const changed = await this.#parts.tasks.ask(known.id, { service: service.path, input, told: null });
      if (changed === null) throw otherPayment();
      return changed;
    }
    const sender = senderOf(asker, credential);
    await this.#assertRoom(sender !== null);
    const { task } = await this.#parts.tasks.open({
      ...{
        accountId: asker.accountId,
        contextId: message.contextId,
        service: service.path,
        input,
        told: null,
      },
      messageKey: sender === null ? null : messageKeyOf(sender, message.id, [service.path, input]),
    });
    return task;
  }

  async #assertRoom(isPaying: boolean): Promise<void> {
    if (await this.#parts.tasks.hasRoom(isPaying)) return;
    throw unavailable(
      'TOO_MANY_TASKS',
      'Too many tasks wait for a payment here. Send the payment, or a key, with the first message.',
      60_000,
    );
  }

  /** Buys what a claimed task asks for. */
  async work(
    { task, service, input, credential }: Work,
    by: AskedBy,
    watcher: Watcher,
  ): Promise<{ task: Task; isRepeat: boolean; made?: MadeAnswer }> {
    const { pieces } = watcher;
    const stream = pieces === undefined ? null : streamTo(pieces, watcher.closed);
    const follow: CallFollower = {
      verified: watcher.verified,
      stillWanted: () => this.#parts.tasks.beginCharging(task.id),
    };
    const answered = await this.#parts.paidCall.handle({
      ...{ service, headers: credential.headers, rawBody: Buffer.from(input), follow },
      ...{ address: by.address, requestId: by.requestId, gone: watcher.gone, assertMayBuy() {} },
      ...(stream === null ? {} : { openStream: stream.open }),
    });
    const answer = answered.left === true && stream !== null ? stream.whole(answered) : answered;
    const ending = endingOf(answer, credential);
    const made = ending.state === 'completed' ? { made: answer } : {};
    return { task: await this.#write(task, ending), isRepeat: ending.isRepeat, ...made };
  }

  /** What was bought is handed over even while the task cannot be written: the same message finds it in the calls. */
  async #write(task: Task, ending: Ending): Promise<Task> {
    const { state, told, call } = ending;
    try {
      const written = await this.#parts.tasks.end(task.id, ending);
      if (written !== null) return written;
    } catch (error) {
      this.#parts.failed(error);
    }
    return { ...task, state, told, call };
  }

  /** @throws RpcError when there is none that this caller may see */
  async find(id: string, { accountId }: Asker): Promise<Task> {
    const task = await this.#parts.tasks.find(id, accountId);
    if (task === null) throw noTask();
    return task;
  }

  /** @throws RpcError when there is none that this caller may see, and when it is too late */
  async cancel(id: string, { accountId }: Asker): Promise<Task> {
    if ((await this.#parts.tasks.find(id, accountId)) === null) throw noTask();
    const told = { text: 'Canceled. Nothing was charged for this task.' };
    const canceled = await this.#parts.tasks.leave(id, 'canceled', told);
    if (canceled === null) throw notCancelable();
    return canceled;
  }
}

function inputFor(service: Service, given: unknown, known: Task | null): string | null {
  if (given !== null && given !== undefined) return JSON.stringify(given);
  // Another skill than before, without an input of its own, is asked with none.
  if (known === null || known.service !== service.path) return '{}';
  return known.input;
}

/** Gathers an answer that leaves in pieces. */
function streamTo(pieces: (event: Buffer) => Promise<'sent' | 'lost'>, closed: Promise<void> | undefined) {
  let headers: Record<string, string> = {};
  let last: Buffer | null = null;
  return {
    open(sent: Readonly<Record<string, string>>): EventReader {
      headers = { ...sent };
      return {
        write: pieces,
        async end(event) {
          last = event;
        },
        closed: closed ?? new Promise(() => {}),
      };
    },
    /** The last event has the whole answer, or why there is none. */
    whole({ status, accountId }: PaidAnswer): PaidAnswer {
      const text = (last ?? Buffer.alloc(0)).toString();
      const body = /^data: (.*)$/m.exec(text)?.[1] ?? '{}';
      const own = { ...headers, 'content-type': 'application/json; charset=utf-8' };
      return { status, headers: own, body, ...(accountId === undefined ? {} : { accountId }) };
    },
  };
}

function isOver({ state }: Task): boolean {
  return state === 'completed' || state === 'failed' || state === 'canceled';
}

/** By whom a message is known when it comes again: a key or a payment; null: by nobody. */
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

function otherPayment(): Problem {
  return new Problem(
    409,
    'TASK_BUSY',
    'Another payment may have been taken for this task. Send the message that carried it again, or begin another task.',
    { details: { charged: false } },
  );
}
