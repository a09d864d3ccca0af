/**
 * Connections that come in a crowd, begun a few in each turn of the event loop. Whatever was begun is answered before more is, so
 * that the time that each has to begin in is its own, and not that of all who came with it.
 */
import type { Socket } from 'node:net';

export interface TurnBounds {
  /** Begun in a turn. */
  each: number;
  /** The longest wait: whoever has waited longer has most likely gone, and will come again. */
  waitMs: number;
}

export interface Turns {
  /** @param socket not read from yet */
  wait(socket: Socket): void;
  /** Ends those that wait. */
  close(): void;
}

/** @param begin called with each connection when its turn comes */
export function createTurns({ each, waitMs }: TurnBounds, begin: (socket: Socket) => void): Turns {
  let waiting: { socket: Socket; sinceMs: number }[] = [];
  let isDue = false;

  function turn(): void {
    isDue = false;
    for (const { socket, sinceMs } of waiting.splice(0, each)) {
      if (performance.now() - sinceMs > waitMs) socket.destroy();
      else if (!socket.destroyed) begin(socket);
    }
    next();
  }

  function next(): void {
    if (isDue || waiting.length === 0) return;
    isDue = true;
    setImmediate(turn);
  }

  return {
    wait(socket) {
      // Until its turn nobody else listens to it.
      socket.on('error', () => socket.destroy());
      waiting.push({ socket, sinceMs: performance.now() });
      next();
    },
    close() {
      for (const { socket } of waiting) socket.destroy();
      waiting = [];
    },
  };
}
