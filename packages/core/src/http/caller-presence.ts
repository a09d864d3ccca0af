/** Whether the caller of a request still waits for its answer, and whether an answer has left. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Something that can leave: a connection, or the caller of whom this one is a part. */
export interface Leaving {
  gone(): boolean;
  /** Calls back once when the caller leaves, at once if it has left. @returns how to stop listening */
  onGone(left: () => void): () => void;
}

/** A connection, which leaves when it closes. */
export function connectionOf(socket: Socket): Leaving {
  return {
    gone: () => socket.destroyed,
    onGone(left) {
      if (socket.destroyed) left();
      else socket.once('close', left);
      return () => socket.off('close', left);
    },
  };
}

/** The presence of one caller. However many ask about it, what it depends on has one listener. */
export class CallerPresence implements Leaving {
  readonly #of: Leaving;
  readonly #listeners = new Set<() => void>();
  readonly #stopListening: () => void;
  #hasLeft = false;

  constructor(of: Leaving) {
    this.#of = of;
    this.#stopListening = of.onGone(this.leave);
  }

  readonly gone = (): boolean => this.#hasLeft || this.#of.gone();

  readonly onGone = (left: () => void): (() => void) => {
    if (this.gone()) left();
    else this.#listeners.add(left);
    return () => this.#listeners.delete(left);
  };

  /** Takes the caller for gone: its connection has closed, or it has said that it wants no answer. */
  leave = (): void => {
    this.#hasLeft = true;
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const left of listeners) left();
  };

  /** Stops watching a connection that may bring other requests. */
  end(): void {
    this.#stopListening();
    this.#listeners.clear();
  }
}

/** Calls back once when a response has been sent whole, or when it never will be. */
export function whenSent(response: ServerResponse, told: (isSent: boolean) => void): void {
  if (response.closed) told(response.writableFinished);
  else response.once('close', () => told(response.writableFinished));
}
