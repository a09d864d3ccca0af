/**
 * A connection whose MQTT packets the broker gets one report at a time. What comes faster waits here and then in the
 * sender's own socket, so that nobody is cut off for being quick; pings are answered meanwhile. A connection ends when what
 * was said on it has left.
 */
import { Duplex } from 'node:stream';

/** A packet's length has at most so many bytes (MQTT 3.1.1, 2.2.3). */
const MAX_LENGTH_BYTES = 4;
/** Read of one connection and not yet given to the broker. A ping behind more than that is not seen in time. */
const READ_AHEAD_BYTES = 262_144;
/** The time that the last packet has to leave, and that a connection which its device left has to be dealt with. */
const LINGER_MS = 5_000;
/** The types of packets that a client of MQTT 3.1.1 sends (2.2.1), as bits. */
const FROM_CLIENTS = [1, 3, 4, 5, 6, 7, 8, 10, 12, 14].reduce((types, type) => types | (1 << type), 0);
const PUBLISH = 3;
const PINGREQ = Buffer.from([0xc0, 0]);

/** A packet that ends the connection. The message is for whoever owns the device. */
export class BrokenPacket extends Error {
  readonly code: 'PACKET_TOO_LARGE' | 'PACKET_BROKEN';
  constructor(code: BrokenPacket['code'], message: string) {
    super(message);
    this.name = 'BrokenPacket';
    this.code = code;
  }
}

/** Cuts a stream of bytes into packets, whatever pieces they come in. */
export class PacketCutter {
  readonly #maxBytes: number;
  #bytes: Buffer = Buffer.alloc(0);

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes that are no whole packet yet, or that nobody has asked for. */
  get held(): number {
    return this.#bytes.length;
  }

  add(bytes: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? bytes : Buffer.concat([this.#bytes, bytes]);
  }

  /** @returns the next packet; null until all of it is there @throws BrokenPacket as soon as it can be seen */
  next(): Buffer | null {
    const bytes = this.#bytes;
    if (bytes.length === 0) return null;
    if ((FROM_CLIENTS & (1 << ((bytes[0] ?? 0) >> 4))) === 0)
      throw new BrokenPacket('PACKET_BROKEN', 'A packet is of a type that no client sends.');
    let length = 0;
    for (let at = 1; at <= MAX_LENGTH_BYTES; at++) {
      const byte = bytes[at];
      if (byte === undefined) return null;
      length += (byte & 0x7f) * 128 ** (at - 1);
      if (length > this.#maxBytes)
        throw new BrokenPacket('PACKET_TOO_LARGE', `A packet may have ${this.#maxBytes} bytes.`);
      if ((byte & 0x80) !== 0) continue;
      const end = at + 1 + length;
      if (bytes.length < end) return null;
      this.#bytes = bytes.subarray(end);
      return bytes.subarray(0, end);
    }
    throw new BrokenPacket('PACKET_BROKEN', 'The length of a packet does not end.');
  }
}

/** The bytes that connections read ahead together. */
export interface ReadAhead {
  bytesLeft: number;
}

export interface QueueBounds {
  /** The size of a packet, without its head. */
  maxBytes: number;
  /** Packets of whatever kind. More are read later. */
  packetsPerMinute: number;
  readAhead: ReadAhead;
}

/** The connection, as the broker gets it. */
export class PacketQueue extends Duplex {
  readonly #socket: Duplex;
  readonly #bounds: QueueBounds;
  readonly #cutter: PacketCutter;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** Counted in what all read ahead. */
  #countedBytes = 0;
  /** How many packets may still be looked at now; grows with the time. */
  #allowance: { packets: number; atMs: number };
  #timer: NodeJS.Timeout | null = null;
  /** The next thing for the broker to do: the CONNECT, anything, one report, or nothing more. */
  #state: 'connecting' | 'free' | 'busy' | 'over' = 'connecting';
  #isConnectGiven = false;
  #hasEnded = false;
  #fault: BrokenPacket | null = null;
  readonly #stopping = new AbortController();
  #onIdle: (() => void)[] = [];

  constructor(socket: Duplex, bounds: QueueBounds) {
    super({ allowHalfOpen: true });
    this.#socket = socket;
    this.#bounds = bounds;
    this.#cutter = new PacketCutter(bounds.maxBytes);
    this.#allowance = { packets: bounds.packetsPerMinute, atMs: performance.now() };
    socket.on('data', this.#hear);
    socket.on('error', () => {});
    // What it sent before it left is dealt with: of QoS 0 there is nothing but that.
    for (const event of ['end', 'close'] as const) socket.once(event, () => this.#end());
  }

  readonly #hear = (bytes: Buffer) => {
    this.#cutter.add(bytes);
    this.#turn();
  };

  /** Aborted when no report is to be begun any more, and none is to be waited with. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Called once the device was let in: what it has said since then is looked at. */
  open(): void {
    if (this.#state === 'connecting') this.#state = 'free';
    this.#turn();
  }

  /** Called once the report at hand is dealt with. */
  settled(): void {
    // What the broker says to it is written within this turn of the event loop.
    setImmediate(() => {
      if (this.#state === 'busy') this.#state = 'free';
      for (const each of this.#onIdle.splice(0)) each();
      this.#turn();
    });
  }

  /** Begins no more reports, and waits for the one at hand. */
  async finish(): Promise<void> {
    const isBusy = this.#state === 'busy';
    this.#stop();
    if (isBusy) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  override _read(): void {
    this.#turn();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (this.#socket.destroyed || this.#socket.write(chunk)) {
      done();
      return;
    }
    const go = () => {
      this.#socket.off('drain', go).off('close', go);
      done();
    };
    this.#socket.on('drain', go).on('close', go);
  }

  override _final(done: () => void): void {
    this.#socket.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#stop();
    for (const each of this.#onIdle.splice(0)) each();
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#bounds.readAhead.bytesLeft += this.#countedBytes;
    this.#countedBytes = 0;
    endAfterLastWords(this.#socket);
    done(error);
  }

  #stop(): void {
    this.#state = 'over';
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#socket.off('data', this.#hear).pause();
    this.#stopping.abort();
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    setTimeout(() => this.destroy(), LINGER_MS).unref();
    this.#turn();
  }

  /** Gives the broker what it may have of what has come. */
  #turn(): void {
    if (this.#state === 'over') return;
    while (this.#isDue()) {
      const packet = this.#waiting.shift();
      if (packet === undefined) break;
      this.#waitingBytes -= packet.length;
      this.#give(packet);
    }
    this.#look();
    if (this.#isDue() && this.#waiting.length === 0) {
      if (this.#fault !== null) return void this.destroy(this.#fault);
      if (this.#hasEnded && this.#timer === null) return void this.push(null);
    }
    this.#count();
  }

  /** Whether the broker may have the next packet. */
  #isDue(): boolean {
    return this.#state === 'free' || (this.#state === 'connecting' && !this.#isConnectGiven);
  }

  #give(packet: Buffer): void {
    this.#isConnectGiven = true;
    if (this.#state === 'free' && (packet[0] ?? 0) >> 4 === PUBLISH) this.#state = 'busy';
    this.push(packet);
  }

  /** Cuts what has come into packets. A ping is answered while reports wait, and everything else in its turn. */
  #look(): void {
    while (this.#fault === null && this.#waitingBytes < READ_AHEAD_BYTES) {
      if (!this.#isAllowed()) return;
      try {
        const packet = this.#cutter.next();
        if (packet === null) return;
        this.#allowance.packets -= 1;
        if (this.#isDue()) this.#give(packet);
        else if (this.#state === 'busy' && packet.equals(PINGREQ)) this.push(packet);
        else {
          this.#waiting.push(packet);
          this.#waitingBytes += packet.length;
        }
      } catch (error) {
        if (!(error instanceof BrokenPacket)) throw error;
        this.#fault = error;
      }
    }
  }

  /** Whether a packet may be looked at now; when not, it will be looked at later. */
  #isAllowed(): boolean {
    const { packetsPerMinute } = this.#bounds;
    const nowMs = performance.now();
    const grown = ((nowMs - this.#allowance.atMs) * packetsPerMinute) / 60_000;
    const packets = Math.min(packetsPerMinute, this.#allowance.packets + grown);
    this.#allowance = { packets, atMs: nowMs };
    if (packets >= 1) return true;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#turn();
    }, 60_000 / packetsPerMinute);
    return false;
  }

  /** Counts what is held, and reads on as long as there is room; of one packet there always is. */
  #count(): void {
    const { readAhead, maxBytes } = this.#bounds;
    const held = this.#waitingBytes + this.#cutter.held;
    readAhead.bytesLeft += this.#countedBytes - held;
    this.#countedBytes = held;
    const isRoom =
      held < maxBytes + 1 + MAX_LENGTH_BYTES || (held < READ_AHEAD_BYTES && readAhead.bytesLeft > 0);
    if (isRoom && this.#fault === null && this.#timer === null) this.#socket.resume();
    else this.#socket.pause();
  }
}

/** Lets what was written leave, and what still comes pass, so that the other side can read to the end. */
function endAfterLastWords(socket: Duplex): void {
  if (socket.destroyed) return;
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  timer.unref();
  socket.once('close', () => clearTimeout(timer));
  socket.end();
  socket.resume();
}
