/** A report on its way in, by MQTT or by HTTPS: whose it is, whether it may be, and into the time series. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RateLimit, ReturningLimit } from '@farebox/core/http/rate-limit';
import type { Readings } from './readings.ts';
import type { Refusals } from './refusals.ts';
import type { Device, DeviceRegistry } from './registry.ts';
import { type Reading, ReportRefused, readReport } from './report.ts';

interface Taken {
  stored: number;
  known: number;
}

/** How fast a connection may report once its device has reported as often as it may. */
export interface Pace {
  /** Within this the device promised a sign of life, and expects one. */
  keepAliveMs: number;
  /** When it last reported something new, or connected; by `performance.now()`. */
  spentAtMs: number;
}

export interface Reporting {
  /**
   * Stores a report. When it returns, it is committed.
   *
   * @throws ReportRefused when it will not be taken; any other error when it is to be sent again
   */
  take(device: Device, body: Buffer): Promise<Taken>;
  /**
   * The same for a device that cannot be told why, and that reports faster than it may: it waits until the device may
   * report again, at most half of what it promised between two signs of life, and keeps what it cannot take.
   *
   * @throws ReportRefused when its connection is to end; any other error when the report is to be sent again
   */
  takeInTurn(device: Device, body: Buffer, pace: Pace, stopping: AbortSignal): Promise<void>;
}

/** The codes of a report in which no reading could ever be found, and of a device that may not report. */
const NOT_KEPT: ReadonlySet<string> = new Set(['REPORT_TOO_LARGE', 'DEVICE_REVOKED']);

interface ReportingParts {
  registry: Pick<DeviceRegistry, 'find' | 'refused'>;
  readings: Pick<Readings, 'take'>;
  refusals: Pick<Refusals, 'keep'>;
  /** The rate limit by device. */
  limit: ReturningLimit;
  backfillMs: number;
  nowMs(): number;
  report(outcome: 'stored' | 'known' | 'refused' | 'failed', count: number): void;
}

export function createReporting(parts: ReportingParts): Reporting {
  const { registry, refusals, limit } = parts;

  /** Tells the owner of a device's fault. A failure to write it down changes nothing for the device. */
  async function tell(device: Device, error: unknown): Promise<void> {
    if (error instanceof ReportRefused)
      await registry.refused(device, `${error.code}: ${error.message}`).catch(() => {});
  }

  return {
    async take(device, body) {
      try {
        const { allowed, resetSeconds } = limit.take(device.deviceId);
        const outcome = await counted(parts, () => {
          if (!allowed) throw new TooManyReports(resetSeconds);
          return store(parts, device, body);
        });
        if (outcome.stored === 0) limit.giveBack(device.deviceId);
        return outcome;
      } catch (error) {
        await tell(device, error);
        throw error;
      }
    },

    async takeInTurn(device, body, pace, stopping) {
      const isCounted = await room(limit, device.deviceId, pace, stopping);
      try {
        const outcome = await counted(parts, () => store(parts, device, body));
        if (outcome.stored > 0) pace.spentAtMs = performance.now();
        else if (isCounted) limit.giveBack(device.deviceId);
      } catch (error) {
        pace.spentAtMs = performance.now();
        if (!(error instanceof ReportRefused)) throw error;
        if (!NOT_KEPT.has(error.code)) {
          await refusals.keep(device, body, error);
          return;
        }
        await tell(device, error);
        throw error;
      }
    },
  };
}

async function store(parts: ReportingParts, device: Device, body: Buffer): Promise<Taken> {
  const outcome = await parts.readings.take(device.no, await read(parts, device, body));
  if (outcome === 'revoked') throw new ReportRefused('DEVICE_REVOKED', 'The device was revoked.');
  return outcome;
}

/** Reads a report. A device that is connected may have got a sensor meanwhile. */
async function read(
  { registry, backfillMs, nowMs }: ReportingParts,
  device: Device,
  body: Buffer,
): Promise<Reading[]> {
  const readFor = ({ sensors }: Device) => readReport(body, { sensors, backfillMs, nowMs: nowMs() });
  try {
    return readFor(device);
  } catch (error) {
    if (!(error instanceof ReportRefused) || error.sensor === null) throw error;
    const now = await registry.find(device.deviceId);
    if (now === null || now.no !== device.no) throw error;
    device.sensors = now.sensors;
    return readFor(device);
  }
}

async function counted({ report }: ReportingParts, work: () => Promise<Taken>): Promise<Taken> {
  try {
    const outcome = await work();
    report('stored', outcome.stored);
    report('known', outcome.known);
    return outcome;
  } catch (error) {
    report(error instanceof ReportRefused ? 'refused' : 'failed', 1);
    throw error;
  }
}

/**
 * Waits until a device may report.
 *
 * @returns whether it was counted; not where the pace alone lets it pass
 */
async function room(
  limit: RateLimit,
  deviceId: string,
  { spentAtMs, keepAliveMs }: Pace,
  stopping: AbortSignal,
): Promise<boolean> {
  for (;;) {
    stopping.throwIfAborted();
    const { allowed, resetSeconds } = limit.take(deviceId);
    if (allowed) return true;
    const dueInMs = spentAtMs + keepAliveMs / 2 - performance.now();
    if (dueInMs <= 0) return false;
    await sleep(Math.min(dueInMs, resetSeconds * 1_000), undefined, { signal: stopping });
  }
}

/** A refusal that ends with time. */
export class TooManyReports extends ReportRefused {
  readonly resetSeconds: number;
  constructor(resetSeconds: number) {
    super('TOO_MANY_REPORTS', 'The device reports more often than it may.');
    this.resetSeconds = resetSeconds;
  }
}
