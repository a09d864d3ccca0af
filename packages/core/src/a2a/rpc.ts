/** The operations of both versions of A2A: which there are, and what each answers. https://a2a-protocol.org */
import { setTimeout as sleep } from 'node:timers/promises';
import { unavailable } from '../http/problem.ts';
import { RpcError } from './errors.ts';
import { eventsOf, type SentEvent } from './events.ts';
import { type Message, readListing, readMessage, readTaskId, X402 } from './messages.ts';
import { pieceOfAnswer, type Showing } from './showing.ts';
import type { Asker, Received, TaskRunner, Watcher } from './task-runner.ts';
import { isCursor, type Task, type TaskState, type Tasks } from './tasks.ts';
import {
  isAtRest,
  isTerminal,
  type ShownState,
  type ShownTask,
  type Version,
  WIRES,
  type Wire,
} from './wire.ts';

export type Operation =
  | 'send'
  | 'stream'
  | 'get'
  | 'cancel'
  | 'subscribe'
  | 'list'
  | 'push'
  | 'extended card';

const METHODS: Readonly<Record<string, readonly [Version, Operation]>> = {
  'message/send': ['0.3', 'send'],
  'message/stream': ['0.3', 'stream'],
  'tasks/get': ['0.3', 'get'],
  'tasks/cancel': ['0.3', 'cancel'],
  'tasks/resubscribe': ['0.3', 'subscribe'],
  'tasks/pushNotificationConfig/set': ['0.3', 'push'],
  'tasks/pushNotificationConfig/get': ['0.3', 'push'],
  'tasks/pushNotificationConfig/list': ['0.3', 'push'],
  'tasks/pushNotificationConfig/delete': ['0.3', 'push'],
  'agent/getAuthenticatedExtendedCard': ['0.3', 'extended card'],
  SendMessage: ['1.0', 'send'],
  SendStreamingMessage: ['1.0', 'stream'],
  GetTask: ['1.0', 'get'],
  CancelTask: ['1.0', 'cancel'],
  SubscribeToTask: ['1.0', 'subscribe'],
  ListTasks: ['1.0', 'list'],
  CreateTaskPushNotificationConfig: ['1.0', 'push'],
  GetTaskPushNotificationConfig: ['1.0', 'push'],
  ListTaskPushNotificationConfigs: ['1.0', 'push'],
  DeleteTaskPushNotificationConfig: ['1.0', 'push'],
  GetExtendedAgentCard: ['1.0', 'extended card'],
};

/** Whether a method sends a message, which may buy. */
export function isSending(method: string): boolean {
  const operation = Object.hasOwn(METHODS, method) ? METHODS[method]?.[1] : undefined;
  return operation === 'send' || operation === 'stream';
}

const DEFAULT_PAGE = 50;
/** Answers may be large: with them a page is short. */
const MAX_PAGE_WITH_ANSWERS = 10;
/** How often a subscriber's task is looked at, and for how long at most. */
const LOOKED_AT_EVERY_MS = 400;
const SUBSCRIBED_FOR_MS = 120_000;
const MAX_SUBSCRIBERS = 200;
/** The most of those by one account or, without a key, one address. */
const MAX_SUBSCRIBED_BY_ONE = 20;
/** The end of the year 9999. */
const LAST_MS = 253_402_300_799_999;

/** The reader of a stream. */
export interface Reader {
  write(result: Record<string, unknown>): Promise<'sent' | 'lost'>;
  closed: Promise<void>;
}

/** The reply to a request: one result, or several as they come. */
export type Reply = { result: Record<string, unknown> } | { stream(reader: Reader): Promise<void> };

/** A caller, as long as its connection stands. */
export interface Caller extends Asker {
  gone(): boolean;
}

export interface RpcParts {
  runner: TaskRunner;
  tasks: Tasks;
  show: Showing;
  nowMs(): number;
  /** Goes on with work that nobody waits for. @returns false where there is no time for that any more */
  background(work: () => Promise<unknown>): boolean;
}

export class Rpc {
  readonly #parts: RpcParts;
  /** How many each has now. */
  readonly #subscribers = new Map<string, number>();
  #subscribed = 0;

  constructor(parts: RpcParts) {
    this.#parts = parts;
  }

  async #send(message: Message, wire: Wire, caller: Caller): Promise<Reply> {
    const { task, work } = await this.#parts.runner.receive(message, caller);
    if (work === null) return { result: wire.sent(repeated(await this.#parts.show(task, caller))) };
    const unwatched: Watcher = { gone: () => false, verified() {} };
    // What is handed over again is there at once.
    const mayWait = !message.isBlocking && task.state !== 'completed';
    if (mayWait && this.#parts.background(() => this.#parts.runner.work(work, caller, unwatched)))
      return { result: wire.sent(await this.#parts.show(task, caller)) };
    const done = await this.#parts.runner.work(work, caller, { gone: caller.gone, verified() {} });
    const shown = await this.#parts.show(done.task, caller, done);
    return { result: wire.sent(done.isRepeat ? repeated(shown) : shown) };
  }

  /** The task, then what happens to it, until it rests. */
  async #relay({ task, work }: Received, wire: Wire, caller: Caller, reader: Reader): Promise<void> {
    const shown = await this.#parts.show(task, caller);
    const first = work === null ? repeated(shown) : shown;
    await reader.write(wire.taskEvent(first));
    if (work === null) return;
    let pieces = 0;
    const artifact = { id: 'pieces', name: work.service.path };
    const done = await this.#parts.runner.work(work, caller, {
      gone: caller.gone,
      closed: reader.closed,
      verified: () => {
        const metadata = { ...first.metadata, [X402.status]: 'payment-verified' };
        void reader.write(wire.statusEvent({ ...first, metadata, atMs: this.#parts.nowMs() }));
      },
      pieces(event) {
        pieces += 1;
        const piece = { isFirst: pieces === 1, isLast: false };
        return reader.write(
          wire.artifactEvent(
            task,
            { ...artifact, parts: [pieceOfAnswer(work.service, pieceOf(event))] },
            piece,
          ),
        );
      },
    });
    const ended = await this.#parts.show(done.task, caller, done);
    const last = done.isRepeat ? repeated(ended) : ended;
    for (const each of last.artifacts) await reader.write(wire.artifactEvent(last, each));
    await reader.write(wire.statusEvent(last));
  }

  async #subscribe(id: string, wire: Wire, caller: Caller): Promise<Reply> {
    const first = await this.#parts.show(await this.#parts.runner.find(id, caller), caller);
    if (isTerminal(first) && wire.version === '1.0')
      throw new RpcError('UNSUPPORTED_OPERATION', 'This task has ended. GetTask has all of it.');
    const who = caller.accountId === null ? `address ${caller.address}` : `account ${caller.accountId}`;
    const own = () => this.#subscribers.get(who) ?? 0;
    if (this.#subscribed >= MAX_SUBSCRIBERS || own() >= MAX_SUBSCRIBED_BY_ONE)
      throw unavailable('BUSY', 'Too many tasks are subscribed to. Ask for the task instead.', 5_000);
    return {
      stream: async (reader) => {
        this.#subscribed += 1;
        this.#subscribers.set(who, own() + 1);
        try {
          await reader.write(wire.taskEvent(first));
          if (!isAtRest(first)) await this.#follow(first, wire, caller, reader);
        } finally {
          this.#subscribed -= 1;
          if (own() > 1) this.#subscribers.set(who, own() - 1);
          else this.#subscribers.delete(who);
        }
      },
    };
  }

  /** Tells of a task that somebody works on, on whichever replica, once it rests. */
  async #follow({ id }: ShownTask, wire: Wire, caller: Caller, reader: Reader): Promise<void> {
    const untilMs = this.#parts.nowMs() + SUBSCRIBED_FOR_MS;
    while (this.#parts.nowMs() < untilMs && !caller.gone()) {
      await Promise.race([sleep(LOOKED_AT_EVERY_MS), reader.closed]);
      const now = await this.#parts.show(await this.#parts.runner.find(id, caller), caller);
      if (!isAtRest(now)) continue;
      for (const artifact of now.artifacts) await reader.write(wire.artifactEvent(now, artifact));
      await reader.write(wire.statusEvent(now));
      return;
    }
  }

  async #list(params: unknown, wire: Wire, caller: Caller): Promise<Reply> {
    const asked = readListing(params);
    const { accountId } = caller;
    if (accountId === null)
      throw new RpcError(
        'INVALID_REQUEST',
        'Tasks are listed for the key that made them: send it in X-API-KEY. One that was made without a key is asked for by its id.',
      );
    const { pageToken = '', includeArtifacts = false, pageSize = DEFAULT_PAGE, statusTimestampAfter } = asked;
    if (pageToken !== '' && !isCursor(pageToken))
      throw new RpcError('INVALID_PARAMS', 'params.pageToken must be the nextPageToken of the page before.');
    const most = includeArtifacts ? Math.min(pageSize, MAX_PAGE_WITH_ANSWERS) : pageSize;
    const page = await this.#parts.tasks.list(accountId, {
      contextId: asked.contextId,
      states: statesOf(asked.status, wire),
      changedSinceMs: statusTimestampAfter === undefined ? null : storableMs(statusTimestampAfter),
      after: pageToken === '' ? null : pageToken,
      most,
    });
    const shown: ShownTask[] = [];
    for (const task of page.tasks)
      shown.push(await this.#parts.show(task, caller, { inList: true, withAnswer: includeArtifacts }));
    return {
      result: {
        tasks: shown.map(wire.task),
        nextPageToken: page.next ?? '',
        pageSize: most,
        totalSize: page.total,
      },
    };
  }

  /**
   * Answers a request of JSON-RPC.
   *
   * @param version as the header `A2A-Version` has it; the method says which one it is
   * @throws RpcError; Problem for what is wrong with us
   */
  async answer(
    { method, params }: { method: string; params: unknown },
    version: string | undefined,
    caller: Caller,
  ): Promise<Reply> {
    spokenBy(version);
    const [spoken, operation] = (Object.hasOwn(METHODS, method) ? METHODS[method] : undefined) ?? [];
    if (spoken === undefined || operation === undefined)
      throw new RpcError('METHOD_NOT_FOUND', `There is no method ${method.slice(0, 80)}.`, {
        methods: Object.keys(METHODS),
      });
    return this.perform(operation, params, WIRES[spoken], caller);
  }

  /**
   * Does what is asked, in whichever binding.
   *
   * @throws RpcError; Problem for what is wrong with us
   */
  async perform(operation: Operation, params: unknown, wire: Wire, caller: Caller): Promise<Reply> {
    const spoken = wire.version;
    const shown = async (task: Promise<Task>): Promise<Reply> => ({
      result: wire.task(await this.#parts.show(await task, caller)),
    });
    switch (operation) {
      case 'send':
        return this.#send(readMessage(params, spoken), wire, caller);
      case 'stream': {
        const received = await this.#parts.runner.receive(readMessage(params, spoken), caller);
        return { stream: (reader) => this.#relay(received, wire, caller, reader) };
      }
      case 'get':
        return shown(this.#parts.runner.find(readTaskId(params), caller));
      case 'cancel':
        return shown(this.#parts.runner.cancel(readTaskId(params), caller));
      case 'subscribe':
        return this.#subscribe(readTaskId(params), wire, caller);
      case 'list':
        return this.#list(params, wire, caller);
      case 'push':
        throw new RpcError(
          'PUSH_NOTIFICATION_NOT_SUPPORTED',
          'This agent sends no notifications. Subscribe to the task, or ask for it.',
        );
      case 'extended card':
        throw new RpcError(
          spoken === '0.3' ? 'EXTENDED_CARD_NOT_CONFIGURED' : 'UNSUPPORTED_OPERATION',
          'The public agent card is all there is.',
        );
    }
  }
}

/** A message that came again is told so, as HTTP tells it. */
function repeated(task: ShownTask): ShownTask {
  const call = task.metadata['farebox/call'];
  if (task.state !== 'completed' || typeof call !== 'object') return task;
  return { ...task, metadata: { ...task.metadata, 'farebox/call': { ...call, replayed: 'true' } } };
}

function statesOf(status: string | undefined, wire: Wire): readonly TaskState[] | null {
  if (status === undefined || status === '' || status === 'TASK_STATE_UNSPECIFIED') return null;
  const shown: readonly ShownState[] = ['input-required', 'working', 'completed', 'failed', 'canceled'];
  const state = shown.find((each) => wire.state(each) === status);
  // States that nothing here is ever in.
  if (state === undefined) return [];
  return state === 'working' ? ['working', 'charging'] : [state];
}

function pieceOf(event: Buffer): SentEvent {
  return eventsOf(event.toString())[0] ?? { event: 'message', data: null };
}

/** A time that is before or after all that a database can hold says the same as the first or last one. */
function storableMs(time: string): number {
  return Math.min(Math.max(Date.parse(time), 0), LAST_MS);
}

/**
 * @param version as the header `A2A-Version` has it; without one it is the older
 * @throws RpcError for a version that is not spoken here
 */
export function spokenBy(version = ''): Version {
  const [, spoken] = /^(0\.3|1\.0)(?:\.\d{1,4})?$/.exec(version.trim()) ?? [];
  if (version.trim() === '' || spoken === '0.3') return '0.3';
  if (spoken === '1.0') return '1.0';
  throw new RpcError('VERSION_NOT_SUPPORTED', 'A2A is spoken here in the versions 0.3 and 1.0.', {
    supported: Object.keys(WIRES),
  });
}
