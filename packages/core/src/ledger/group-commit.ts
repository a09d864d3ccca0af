/** Thrown when more work is waiting than may wait. Nothing was begun. */
export class QueueFull extends Error {
  constructor() {
    super('too much work is waiting for the database');
    this.name = 'QueueFull';
  }
}

/** Thrown when the work's time is over before it could be begun. Nothing was done. */
export class NotBegun extends Error {
  readonly why: 'locked' | 'not sent';

  constructor(why: 'locked' | 'not sent', cause?: unknown) {
    super(
      why === 'locked' ? 'what this changes is locked by somebody else' : 'the database did not take it',
      { cause },
    );
    this.name = 'NotBegun';
    this.why = why;
  }
}

/** Thrown when the deadline passed without an answer: the outcome is unknown. */
export class NoAnswerInTime extends Error {
  constructor(cause?: unknown) {
    super('the database did not answer in time', { cause });
    this.name = 'NoAnswerInTime';
  }
}

interface Item<Work, Result> {
  work: Work;
  lane: Lane<Work, Result>;
  resolve(result: Result): void;
  reject(error: unknown): void;
  /** By the clock of the group. */
  giveUpAtMs: number;
  /** How often the work was sent without an answer. Above zero the outcome is unknown. */
  unanswered: number;
  lastError: unknown;
  isOver: boolean;
}

/** Work that goes together. It is forgotten when nothing of it is left. */
interface Lane<Work, Result> {
  number: number;
  waiting: Item<Work, Result>[];
  /** How many of its batches are at the database. */
  flights: number;
  isScheduled: boolean;
}

/** A lock that somebody else holds, and that is not tried for a while. */
interface Hold {
  untilMs: number;
  foundLocked: number;
}

export interface GroupCommitOptions<Work, Result> {
  /** Does a batch in one statement; answers one result for each piece of work, in order. Must be idempotent. */
  flush(batch: readonly Work[]): Promise<readonly Result[]>;
  /** Two pieces with a key in common are never at the database together: the later one waits. */
  keysOf(work: Work): readonly string[];
  /** The lock that the work needs. A lock held by others delays only the work that needs it. */
  lockOf(work: Work): string;
  /** Whether a result says that somebody else holds the lock, and nothing was done. */
  isLocked(result: Result): boolean;
  /** Which lane the work goes in. A batch holds work of one lane; left out where there is one. */
  laneOf?(work: Work): number;
  maxBatch: number;
  /** Whether the database answered and would not do it, in contrast to not answering: a batch is then taken apart. */
  isRefusal(error: unknown): boolean;
  /** How many batches of a lane may be at the database at once. */
  maxFlights: number;
  maxWaiting: number;
  /** How often work is sent that is not answered. It may have been committed, which is why `flush` is idempotent. */
  maxAttempts: number;
  /** After this its caller is told, whatever is under way. */
  deadlineMs: number;
  /** How long to wait before attempt 2, 3, …; doubles each time. */
  firstBackoffMs: number;
  /** A clock that only goes forward. */
  clockMs?: () => number;
}

/** How soon work is tried again that was found locked; doubles each time. */
const FIRST_LOCK_PAUSE_MS = 5;
const LAST_LOCK_PAUSE_MS = 200;
/** How exactly a deadline is kept. */
const SWEEP_MS = 100;
/**
 * Work that was found locked is not asked for in this last part of its time: nobody would know what became of a question
 * that is still away when its caller has to be told.
 */
const LAST_PART = 1 / 4;

/**
 * Many requests, one statement: what arrives while a batch is at the database goes together in the next one. There is
 * no timer: an idle database is asked at once, a busy one gets larger batches, so the cost of a call falls as load
 * grows.
 *
 * Nobody waits for a stranger's trouble. Work whose lock somebody else holds is put aside, and one piece for each lock asks
 * again; a piece that the database refuses is found by halving its batch; a deadline is kept even while a batch is away.
 */
export class GroupCommit<Work, Result> {
  readonly #options: GroupCommitOptions<Work, Result>;
  readonly #clockMs: () => number;
  readonly #lanes = new Map<number, Lane<Work, Result>>();
  /** Those that are at the database. */
  readonly #away = new Set<Item<Work, Result>>();
  /** No batch leaves before this: the last one found nobody there. */
  #pausedUntilMs = 0;
  readonly #holds = new Map<string, Hold>();
  /** Keys of the batches that are at the database. */
  readonly #busyKeys = new Set<string>();
  #sweeper: NodeJS.Timeout | undefined;
  #sweptAtMs = 0;
  #wake: NodeJS.Timeout | undefined;
  #wakeAtMs = 0;

  constructor(options: GroupCommitOptions<Work, Result>) {
    this.#options = options;
    this.#clockMs = options.clockMs ?? (() => performance.now());
  }

  /** How many pieces of work wait for a batch to leave. */
  get depth(): number {
    let depth = 0;
    for (const { waiting } of this.#lanes.values()) depth += waiting.length;
    return depth;
  }

  /**
   * Adds a piece of work to the next batch.
   *
   * @throws QueueFull at once; NotBegun; NoAnswerInTime, or the database's error, when the outcome is unknown
   */
  submit(work: Work): Promise<Result> {
    const { maxWaiting, deadlineMs, laneOf } = this.#options;
    if (this.depth >= maxWaiting) return Promise.reject(new QueueFull());
    const lane = this.#laneOf(laneOf?.(work) ?? 0);
    return new Promise((resolve, reject) => {
      const giveUpAtMs = this.#clockMs() + deadlineMs;
      lane.waiting.push({
        work,
        lane,
        resolve,
        reject,
        giveUpAtMs,
        unanswered: 0,
        lastError: undefined,
        isOver: false,
      });
      if (this.#sweeper === undefined) {
        this.#sweptAtMs = this.#clockMs();
        this.#sweeper = setInterval(() => this.#sweep(), SWEEP_MS).unref();
      }
      this.#schedule(lane);
    });
  }

  #laneOf(number: number): Lane<Work, Result> {
    const known = this.#lanes.get(number);
    if (known !== undefined) return known;
    const lane: Lane<Work, Result> = { number, waiting: [], flights: 0, isScheduled: false };
    this.#lanes.set(number, lane);
    return lane;
  }

  #scheduleAll(): void {
    for (const lane of this.#lanes.values()) this.#schedule(lane);
  }

  #schedule(lane: Lane<Work, Result>): void {
    if (lane.isScheduled || lane.flights >= this.#options.maxFlights || lane.waiting.length === 0) return;
    const pauseMs = this.#pausedUntilMs - this.#clockMs();
    if (pauseMs > 0) {
      this.#wakeIn(pauseMs);
      return;
    }
    lane.isScheduled = true;
    // Requests that arrive in the same turn of the event loop share the first batch.
    setImmediate(() => {
      lane.isScheduled = false;
      void this.#fly(lane);
    });
  }

  #wakeIn(pauseMs: number): void {
    const atMs = this.#clockMs() + pauseMs;
    if (this.#wake !== undefined && this.#wakeAtMs <= atMs) return;
    clearTimeout(this.#wake);
    this.#wakeAtMs = atMs;
    this.#wake = setTimeout(() => {
      this.#wake = undefined;
      this.#scheduleAll();
    }, pauseMs);
  }

  async #fly(lane: Lane<Work, Result>): Promise<void> {
    const batch = this.#takeBatch(lane);
    if (batch.length === 0) return;
    const keys = batch.flatMap(({ work }) => this.#options.keysOf(work));
    for (const key of keys) this.#busyKeys.add(key);
    for (const item of batch) this.#away.add(item);
    lane.flights += 1;
    await this.#deliver(batch);
    lane.flights -= 1;
    for (const key of keys) this.#busyKeys.delete(key);
    // Work of another lane may have waited for these keys.
    this.#scheduleAll();
    this.#forgetIfIdle(lane);
  }

  #forgetIfIdle({ number, waiting, flights, isScheduled }: Lane<Work, Result>): void {
    if (waiting.length === 0 && flights === 0 && !isScheduled) this.#lanes.delete(number);
  }

  /**
   * Sends a batch, and what of it is refused in halves. Never rejects: whoever is not answered waits again.
   *
   * @returns whether somebody was there
   */
  async #deliver(batch: readonly Item<Work, Result>[]): Promise<boolean> {
    let results: readonly Result[];
    try {
      results = await this.#options.flush(batch.map(({ work }) => work));
      if (results.length !== batch.length)
        throw new Error('the database answered not as many results as were asked');
    } catch (error) {
      const isRefusal = this.#options.isRefusal(error);
      if (!isRefusal || batch.length === 1) {
        this.#notAnswered(batch, error, isRefusal ? 'refused' : 'nobody is there');
        return isRefusal;
      }
      const half = Math.ceil(batch.length / 2);
      if (await this.#deliver(batch.slice(0, half))) return this.#deliver(batch.slice(half));
      this.#again(batch.slice(half));
      return false;
    }
    for (const [index, item] of batch.entries()) {
      this.#away.delete(item);
      const result = results[index] as Result;
      const lock = this.#options.lockOf(item.work);
      if (this.#options.isLocked(result)) this.#putAside(item, lock);
      else {
        this.#holds.delete(lock);
        end(item, () => item.resolve(result));
      }
    }
    return true;
  }

  /** Puts work of one lane that is not over first in line. */
  #again(items: readonly Item<Work, Result>[]): void {
    for (const item of items) this.#away.delete(item);
    const [first] = items;
    if (first !== undefined)
      first.lane.waiting = items.filter(({ isOver }) => !isOver).concat(first.lane.waiting);
  }

  #putAside(item: Item<Work, Result>, lock: string): void {
    const hold = this.#holds.get(lock) ?? { untilMs: 0, foundLocked: 0 };
    const pauseMs = Math.min(FIRST_LOCK_PAUSE_MS * 2 ** Math.min(hold.foundLocked, 10), LAST_LOCK_PAUSE_MS);
    if (this.#clockMs() >= hold.untilMs) {
      hold.untilMs = this.#clockMs() + pauseMs;
      hold.foundLocked += 1;
    }
    this.#holds.set(lock, hold);
    this.#again([item]);
    this.#wakeIn(pauseMs);
  }

  #notAnswered(
    batch: readonly Item<Work, Result>[],
    error: unknown,
    why: 'nobody is there' | 'refused',
  ): void {
    const { maxAttempts, firstBackoffMs } = this.#options;
    let attempts = 1;
    for (const item of batch) {
      item.unanswered += 1;
      item.lastError = error;
      attempts = Math.max(attempts, item.unanswered);
      if (item.unanswered >= maxAttempts) end(item, () => item.reject(error));
    }
    this.#again(batch);
    const pauseMs = firstBackoffMs * 2 ** (attempts - 1);
    const untilMs = this.#clockMs() + pauseMs;
    // Refused work delays no other work.
    if (why === 'nobody is there') this.#pausedUntilMs = untilMs;
    else
      for (const { work } of batch) this.#holds.set(this.#options.lockOf(work), { untilMs, foundLocked: 0 });
    this.#wakeIn(pauseMs);
  }

  #takeBatch(lane: Lane<Work, Result>): Item<Work, Result>[] {
    const { maxBatch, keysOf, lockOf, deadlineMs } = this.#options;
    const taken: Item<Work, Result>[] = [];
    const left: Item<Work, Result>[] = [];
    const keys = new Set<string>();
    const nowMs = this.#clockMs();
    let nextMs = Number.POSITIVE_INFINITY;
    /** Of work that waits for one lock, one piece asks. */
    const asking = new Set<string>();
    for (const item of lane.waiting) {
      if (item.isOver) continue;
      const own = taken.length < maxBatch ? keysOf(item.work) : undefined;
      const lock = this.#holds.size === 0 ? undefined : lockOf(item.work);
      const hold = lock === undefined ? undefined : this.#holds.get(lock);
      if (hold !== undefined && lock !== undefined) {
        if (item.giveUpAtMs - nowMs < deadlineMs * LAST_PART) {
          left.push(item);
          continue;
        }
        nextMs = Math.min(nextMs, hold.untilMs);
        if (hold.untilMs > nowMs || asking.has(lock)) {
          left.push(item);
          continue;
        }
      }
      if (own === undefined || own.some((key) => keys.has(key) || this.#busyKeys.has(key))) left.push(item);
      else {
        if (hold !== undefined && lock !== undefined) asking.add(lock);
        for (const key of own) keys.add(key);
        taken.push(item);
      }
    }
    lane.waiting = left;
    if (taken.length === 0 && Number.isFinite(nextMs)) this.#wakeIn(Math.max(1, nextMs - nowMs));
    return taken;
  }

  /** Tells those whose time is over, wherever their work is. */
  #sweep(): void {
    const nowMs = this.#clockMs();
    const heldUpMs = nowMs - this.#sweptAtMs;
    this.#sweptAtMs = nowMs;
    // A process that was held up itself has answers to read before it gives anybody up.
    if (heldUpMs > 5 * SWEEP_MS) return;
    for (const item of this.#away) {
      if (nowMs >= item.giveUpAtMs) end(item, () => item.reject(new NoAnswerInTime(item.lastError)));
    }
    for (const lane of this.#lanes.values()) this.#sweepWaiting(lane, nowMs);
    for (const [lock, { untilMs }] of this.#holds) {
      if (nowMs - untilMs > this.#options.deadlineMs) this.#holds.delete(lock);
    }
    if (this.depth + this.#away.size + this.#holds.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }

  #sweepWaiting(lane: Lane<Work, Result>, nowMs: number): void {
    let anyOver = false;
    for (const item of lane.waiting) {
      if (nowMs < item.giveUpAtMs) continue;
      anyOver = true;
      const why = this.#holds.has(this.#options.lockOf(item.work)) ? 'locked' : 'not sent';
      end(item, () =>
        item.reject(item.unanswered === 0 ? new NotBegun(why) : new NoAnswerInTime(item.lastError)),
      );
    }
    if (anyOver) lane.waiting = lane.waiting.filter(({ isOver }) => !isOver);
    this.#forgetIfIdle(lane);
  }
}

function end(item: { isOver: boolean }, tell: () => void): void {
  if (item.isOver) return;
  item.isOver = true;
  tell();
}
