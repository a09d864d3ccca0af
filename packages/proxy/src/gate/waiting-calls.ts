/** The calls that run in this process and wait for the word of a guest, which may reach any replica. */
import type { AskedGuest, GuestWord } from '../sell/gate-service.ts';
import type { GateStore, StoredWord } from './gate-store.ts';

/** How often a process looks for words that reached another one, while calls wait here. */
const LOOK_MS = 200;

/** A word about a call, and whether whoever said it waits here for what becomes of it. */
export interface Heard {
  readonly word: GuestWord;
  readonly isAwaitedHere: boolean;
}

interface Waiting<Ended> {
  readonly gate: string;
  hear(heard: Heard): void;
  /** The end of the paid call. It never rejects. */
  readonly ended: Promise<Ended>;
}

/** @typeParam Ended what becomes of a paid call */
export class WaitingCalls<Ended> {
  readonly #store: GateStore;
  readonly #waiting = new Map<string, Waiting<Ended>>();
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;

  constructor(store: GateStore) {
    this.#store = store;
  }

  /**
   * Waits for the word about a call until its time is over; its caller is told that then.
   *
   * @param begun called when whichever replica is told of an answer will find the call
   */
  async wait(
    { runId, timeoutMs, signal }: AskedGuest,
    call: Pick<Waiting<Ended>, 'gate' | 'ended'>,
    begun: () => void,
  ): Promise<Heard> {
    await this.#store.begin(runId, call.gate, timeoutMs);
    return new Promise((resolve) => {
      const hear = (heard: Heard) => {
        signal.removeEventListener('abort', over);
        this.#waiting.delete(runId);
        if (this.#waiting.size === 0) this.#stopLooking();
        resolve(heard);
      };
      const over = () => hear(givenUp('its time is over'));
      if (signal.aborted) return over();
      signal.addEventListener('abort', over, { once: true });
      this.#waiting.set(runId, { ...call, hear });
      this.#timer ??= setInterval(() => void this.#look(), LOOK_MS).unref();
      begun();
    });
  }

  /** The call, if it waits in this process. */
  find(runId: string, gate: string): Pick<Waiting<Ended>, 'hear' | 'ended'> | null {
    const found = this.#waiting.get(runId);
    return found?.gate === gate ? found : null;
  }

  /** Gives up all calls that wait. @returns when each has ended */
  async close(): Promise<void> {
    const all = [...this.#waiting.values()];
    for (const { hear } of all) hear(givenUp('this server ends'));
    await Promise.all(all.map(({ ended }) => ended));
  }

  #stopLooking(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** While the database is away nothing is heard, and calls end with their time. */
  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      for (const { runId, said, body } of await this.#store.hear([...this.#waiting.keys()])) {
        this.#waiting.get(runId)?.hear({ word: wordOf(said, body), isAwaitedHere: false });
      }
    } catch {
      // The next look will tell.
    } finally {
      this.#isLooking = false;
    }
  }
}

export function givenUp(why: string): Heard {
  return { word: { kind: 'release', why }, isAwaitedHere: false };
}

/** A word as the paid call reads it. */
export function wordOf(said: StoredWord, body: Buffer): GuestWord {
  if (said.kind === 'release') return said;
  const headers: Record<string, string[]> = {};
  for (let index = 0; index + 1 < said.headers.length; index += 2) {
    const name = (said.headers[index] ?? '').toLowerCase();
    // A name such as `__proto__` is none of a header that anybody reads.
    if (Object.hasOwn(headers, name)) headers[name]?.push(said.headers[index + 1] ?? '');
    else if (/^[a-z0-9!#$%&'*+.^`|~-]+$/.test(name)) headers[name] = [said.headers[index + 1] ?? ''];
  }
  return { kind: 'answer', status: said.status, headers, body, callerLeft: said.callerLeft };
}
