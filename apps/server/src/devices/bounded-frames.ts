/**
 * A connection whose MQTT packets are bounded, in size and in number: one too large or too many ends it before it is read.
 * Brokers take packets of 256 MB otherwise, and two bytes of a ping cost them far more than they cost the sender.
 */
import { Duplex } from 'node:stream';

/** A packet's length has at most so many bytes (MQTT 3.1.1, 2.2.3). */
const MAX_LENGTH_BYTES = 4;
const WINDOW_MS = 60_000;

class OutOfBounds extends Error {
  constructor(what: string) {
    super(what);
    this.name = 'OutOfBounds';
  }
}

export interface FrameBounds {
  maxBytes: number;
  packetsPerMinute: number;
}

/** Follows packets through a stream of bytes, whatever pieces they come in. */
export class FrameMeter {
  readonly #maxBytes: number;
  /** Of the packet at hand: bytes that are left of it; null while its head is being read. */
  #left: number | null = null;
  #length = 0;
  /** Of the head: 0 before the first byte, then how many bytes of the length were read, and one. */
  #headBytes = 0;
  #begun = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** How many packets have begun. */
  get begun(): number {
    return this.#begun;
  }

  /** @returns false once a packet is too large, or its length is none */
  follow(chunk: Uint8Array): boolean {
    let at = 0;
    while (at < chunk.length) {
      if (this.#left !== null) {
        const step = Math.min(this.#left, chunk.length - at);
        at += step;
        this.#left -= step;
        if (this.#left === 0) this.#left = null;
        continue;
      }
      if (!this.#head(chunk[at++] ?? 0)) return false;
    }
    return true;
  }

  #head(byte: number): boolean {
    if (this.#headBytes === 0) {
      this.#begun += 1;
      this.#headBytes = 1;
      this.#length = 0;
      return true;
    }
    if (this.#headBytes > MAX_LENGTH_BYTES) return false;
    this.#length += (byte & 0x7f) * 128 ** (this.#headBytes - 1);
    if (this.#length > this.#maxBytes) return false;
    if ((byte & 0x80) !== 0) {
      this.#headBytes += 1;
      return true;
    }
    this.#headBytes = 0;
    this.#left = this.#length === 0 ? null : this.#length;
    return true;
  }
}

/** The connection, as the broker gets it. */
export function boundedFrames(socket: Duplex, { maxBytes, packetsPerMinute }: FrameBounds): Duplex {
  const meter = new FrameMeter(maxBytes);
  let window = { startedAtMs: performance.now(), begun: 0 };
  const bounded = new Duplex({
    allowHalfOpen: false,
    read: () => void socket.resume(),
    write: (chunk, encoding, done) => void socket.write(chunk, encoding, done),
    final: (done) => void socket.end(done),
    destroy(error, done) {
      socket.destroy();
      done(error);
    },
  });
  socket.on('data', (chunk: Buffer) => {
    if (performance.now() - window.startedAtMs >= WINDOW_MS)
      window = { startedAtMs: performance.now(), begun: meter.begun };
    if (!meter.follow(chunk)) bounded.destroy(new OutOfBounds('a packet is larger than it may be'));
    else if (meter.begun - window.begun > packetsPerMinute)
      bounded.destroy(new OutOfBounds('more packets than a device has to send'));
    else if (!bounded.push(chunk)) socket.pause();
  });
  socket.on('end', () => bounded.push(null));
  socket.on('error', (error) => bounded.destroy(error));
  socket.on('close', () => bounded.destroy());
  return bounded;
}
