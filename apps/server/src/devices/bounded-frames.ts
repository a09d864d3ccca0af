/** A connection whose MQTT packets have a bound: a larger one ends it before it is read. Brokers take 256 MB otherwise. */
import { Duplex } from 'node:stream';

/** A packet's length has at most so many bytes (MQTT 3.1.1, 2.2.3). */
const MAX_LENGTH_BYTES = 4;

class PacketTooLarge extends Error {
  constructor() {
    super('a packet is larger than it may be');
    this.name = 'PacketTooLarge';
  }
}

/** Follows packets through a stream of bytes, whatever pieces they come in. */
export class FrameMeter {
  readonly #maxBytes: number;
  /** Of the packet at hand: bytes that are left of it; null while its head is being read. */
  #left: number | null = null;
  #length = 0;
  /** Of the head: 0 before the first byte, then how many bytes of the length were read, and one. */
  #headBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
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
export function boundedFrames(socket: Duplex, maxBytes: number): Duplex {
  const meter = new FrameMeter(maxBytes);
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
    if (!meter.follow(chunk)) bounded.destroy(new PacketTooLarge());
    else if (!bounded.push(chunk)) socket.pause();
  });
  socket.on('end', () => bounded.push(null));
  socket.on('error', (error) => bounded.destroy(error));
  socket.on('close', () => bounded.destroy());
  return bounded;
}
