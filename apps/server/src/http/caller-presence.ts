/** Whether the caller of a request still waits for its answer. */
import type { Socket } from 'node:net';

/** The presence of one caller, by its connection. However many ask about it, the connection has one listener. */
export class CallerPresence {
  readonly #socket: Socket;
  readonly #listeners = new Set<() => void>();
  #hasLeft = false;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.once('close', this.leave);
  }

  readonly gone = (): boolean => this.#hasLeft || this.#socket.destroyed;

  /** Calls back once when the caller leaves, at once if it has left. @returns how to stop listening */
  readonly onGone = (left: () => void): (() => void) => {
    if (this.gone()) left();
    else this.#listeners.add(left);
    return () => this.#listeners.delete(left);
  };

  /** Takes the caller for gone: its connection has closed, or it has said that it wants no answer. */
  readonly leave = (): void => {
    this.#hasLeft = true;
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const left of listeners) left();
  };

  /** Stops watching a connection that may bring other requests. */
  end(): void {
    this.#socket.off('close', this.leave);
    this.#listeners.clear();
  }
}
