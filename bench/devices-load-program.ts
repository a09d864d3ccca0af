/** Devices for (p): each sends a reading a second over a connection of its own, and waits for the PUBACK of every one. */
import { setTimeout as wait } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';
import { answerOrders } from './answering-process.ts';
import { percentile } from './rounds.ts';

export interface LoadDevice {
  deviceId: string;
  secret: string;
}
export type DeviceOrder = { connect: { port: number; devices: LoadDevice[] } } | { seconds: number };
export interface DeviceRound {
  sent: number;
  acknowledged: number;
  /** From the first PUBLISH to the last PUBACK. */
  perSecond: number;
  /** From a PUBLISH to its PUBACK. */
  p50Ms: number;
  p99Ms: number;
  /** How much later than planned the last reading was sent. */
  behindMs: number;
}

/** After the last reading of a round so long is waited for what is still out. */
const PATIENCE_MS = 20_000;
const CONNECTING_AT_ONCE = 50;
/** Devices do not all send at the beginning of the second. */
const TICKS_A_SECOND = 50;
const KEEP_ALIVE_SECONDS = 250;

/** MQTT 3.1.1, 1.5.3: a text with its length. */
function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes]);
}

/** A packet with its length (2.2.3). */
function packet(type: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const head = [type];
  let left = body.length;
  do {
    head.push((left % 128) | (left >= 128 ? 0x80 : 0));
    left = Math.floor(left / 128);
  } while (left > 0);
  return Buffer.concat([Buffer.from(head), body]);
}

function connectPacket({ deviceId, secret }: LoadDevice): Buffer {
  const settings = Buffer.from([4, 0xc2, 0, KEEP_ALIVE_SECONDS]);
  return packet(0x10, text('MQTT'), settings, text(deviceId), text(deviceId), text(secret));
}

function publishPacket(deviceId: string, id: number): Buffer {
  const report = { at: new Date().toISOString(), values: { temperature: (id % 400) / 10 } };
  const topic = text(`devices/${deviceId}/readings`);
  return packet(0x32, topic, Buffer.from([id >> 8, id & 0xff]), Buffer.from(JSON.stringify(report)));
}

class Device {
  readonly #about: LoadDevice;
  /** When each reading left that is still out, by its packet's id. */
  readonly out = new Map<number, number>();
  readonly #answered: (tookMs: number) => void;
  #socket: TLSSocket | undefined;
  #ended: Error | undefined;
  #id = 0;

  constructor(about: LoadDevice, answered: (tookMs: number) => void) {
    this.#about = about;
    this.#answered = answered;
  }

  /** Resolves once the broker has let it in. */
  connect(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () =>
        socket.write(connectPacket(this.#about)),
      );
      this.#socket = socket;
      let rest = Buffer.alloc(0);
      socket.on('data', (chunk) => {
        // Every answer that comes here has four bytes: CONNACK and PUBACK.
        rest = Buffer.concat([rest, chunk]);
        for (; rest.length >= 4; rest = rest.subarray(4)) {
          if (rest[0] === 0x40) this.#acknowledged(rest.readUInt16BE(2));
          else if (rest[0] === 0x20 && rest[3] === 0) resolve();
          else reject(new Error(`refused with ${rest.subarray(0, 4).toString('hex')}`));
        }
      });
      const end = (error: Error) => {
        this.#ended ??= error;
        reject(error);
      };
      socket.on('error', end);
      socket.on('close', () => end(new Error(`the connection of ${this.#about.deviceId} was closed`)));
    });
  }

  #acknowledged(id: number): void {
    const sentAtMs = this.out.get(id);
    if (sentAtMs === undefined) throw new Error('a PUBACK of nothing');
    this.out.delete(id);
    this.#answered(performance.now() - sentAtMs);
  }

  /** @throws why it is not connected any more */
  publish(): void {
    if (this.#ended !== undefined) throw this.#ended;
    this.#id = (this.#id % 0xffff) + 1;
    this.out.set(this.#id, performance.now());
    this.#socket?.write(publishPacket(this.#about.deviceId, this.#id));
  }
}

let devices: Device[] = [];
let tookMs: number[] = [];

async function connectAll(port: number, all: readonly LoadDevice[]): Promise<void> {
  devices = all.map((about) => new Device(about, (ms) => void tookMs.push(ms)));
  for (let at = 0; at < devices.length; at += CONNECTING_AT_ONCE)
    await Promise.all(devices.slice(at, at + CONNECTING_AT_ONCE).map((device) => device.connect(port)));
}

async function round(seconds: number): Promise<DeviceRound> {
  tookMs = [];
  let sent = 0;
  let behindMs = 0;
  const startedAtMs = performance.now();
  for (let tick = 0; tick < seconds * TICKS_A_SECOND; tick++) {
    const dueAtMs = startedAtMs + (tick * 1_000) / TICKS_A_SECOND;
    // Always a turn of the loop: answers come in between.
    await wait(Math.max(0, dueAtMs - performance.now()));
    behindMs = Math.max(0, performance.now() - dueAtMs);
    for (let nth = tick % TICKS_A_SECOND; nth < devices.length; nth += TICKS_A_SECOND) {
      devices[nth]?.publish();
      sent += 1;
    }
  }
  const giveUpAtMs = performance.now() + PATIENCE_MS;
  while (tookMs.length < sent && performance.now() < giveUpAtMs) await wait(5);
  const spentMs = performance.now() - startedAtMs;
  return {
    sent,
    acknowledged: tookMs.length,
    perSecond: tookMs.length / (spentMs / 1_000),
    p50Ms: percentile(tookMs, 0.5),
    p99Ms: percentile(tookMs, 0.99),
    behindMs,
  };
}

answerOrders<DeviceOrder, DeviceRound | null>(async (command) => {
  if ('seconds' in command) return round(command.seconds);
  await connectAll(command.connect.port, command.connect.devices);
  return null;
});
