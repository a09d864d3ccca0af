/** Bugs in whose devices are whose, what they may report, and how much of it. */
import type { MutantsOfFile } from '../mutant.ts';

export const DEVICES_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/catalogue/src/devices/registry.ts',
    tests: ['apps/shop/test/devices/device-life.test.ts', 'apps/shop/test/devices/devices.test.ts'],
    bugs: [
      ["if ((held?.count ?? 0) >= perAccount) return 'too_many';", ''],
      ["    await holdBound(on, rootBuyer, 'devices');\n", ''],
      ["if (fleet?.owner !== owner) return 'fleet_taken';", ''],
      ["if (former.revokedAtMs === null || !isSame) return 'id_taken';", ''],
      [
        'former.owner === owner && former.simulated === device.simulated',
        'former.simulated === device.simulated',
      ],
      ['if (device.public || device.owner === accountId) return true;', 'return true;'],
    ],
  },
  {
    file: 'packages/catalogue/src/devices/packet-queue.ts',
    tests: ['packages/catalogue/src/devices/packet-queue.test.ts'],
    bugs: [
      ['if (length > this.#maxBytes)', 'if (length > this.#maxBytes * 1_000_000)'],
      ['if (bytes.length < end) return null;', ''],
      ['if ((byte & 0x80) !== 0) continue;', ''],
      ['128 ** (at - 1)', '256 ** (at - 1)'],
      ['if ((FROM_CLIENTS & (1 << ((bytes[0] ?? 0) >> 4))) === 0)', 'if (bytes[0] === 0)'],
      ["if (this.#state === 'free' && (packet[0] ?? 0) >> 4 === PUBLISH) this.#state = 'busy';", ''],
      ['        this.#allowance.packets -= 1;\n', ''],
      ['readAhead.bytesLeft += this.#countedBytes - held;', ''],
      ["else if (this.#state === 'busy' && packet.equals(PINGREQ)) this.push(packet);", ''],
      ['this.#bounds.readAhead.bytesLeft += this.#countedBytes;', ''],
      ["(this.#state === 'connecting' && !this.#isConnectGiven)", "this.#state === 'connecting'"],
    ],
  },
  {
    file: 'packages/catalogue/src/devices/report.ts',
    tests: ['packages/catalogue/src/devices/report.test.ts'],
    bugs: [
      ['if (body.length > MAX_REPORT_BYTES)', 'if (body.length > MAX_REPORT_BYTES * 1_000)'],
      ['if (atMs > nowMs + CLOCK_SKEW_MS)', 'if (atMs > nowMs * 2)'],
      ['if (atMs < cameAtMs - device.backfillMs)', 'if (atMs < 0)'],
      ['!Object.hasOwn(device.sensors, name)', '!(name in device.sensors)'],
      ['if (unknown !== undefined)', 'if (unknown === null)'],
      ['key: key ?? keyOf(at, told)', 'key: keyOf(at, told)'],
      ['.sort(([one], [other]) => (one < other ? -1 : 1))', ''],
      ['JSON.stringify([belowMs, sensors, lat, lon])', 'JSON.stringify([sensors, lat, lon])'],
      ['JSON.stringify([belowMs, sensors, lat, lon])', 'JSON.stringify([belowMs, lat, lon])'],
      ['.min(-90).max(90)', '.min(-900).max(900)'],
    ],
  },
  {
    file: 'packages/catalogue/src/devices/turns.ts',
    tests: ['packages/catalogue/src/devices/turns.test.ts'],
    bugs: [
      ['waiting.splice(0, each)', 'waiting.splice(0)'],
      ['if (performance.now() - sinceMs > waitMs) socket.destroy();\n      else if', 'if'],
      ['else if (!socket.destroyed) begin(socket);', 'else begin(socket);'],
      ['for (const { socket } of waiting) socket.destroy();', ''],
    ],
  },
  {
    file: 'packages/catalogue/src/devices/credential.ts',
    tests: ['apps/shop/test/devices/devices.test.ts'],
    bugs: [
      [
        'SECRET.test(presented) && timingSafeEqual(publicKeyOf(presented), publicKey)',
        'SECRET.test(presented)',
      ],
      [
        'return verify(null, text, key, ',
        'return verify(null, text, key, Buffer.alloc(64)) || verify(null, Buffer.alloc(0), key, ',
      ],
      ['if (!/^[0-9a-f]{128}$/i.test(signature)) return false;', 'if (signature.length > 0) return true;'],
    ],
  },
];
