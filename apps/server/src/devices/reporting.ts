/** A report on its way in, by MQTT or by HTTPS: whose it is, whether it may be, and into the time series. */
import type { RateLimit } from '../http/rate-limit.ts';
import type { Readings } from './readings.ts';
import type { Device, DeviceRegistry } from './registry.ts';
import { ReportRefused, readReport } from './report.ts';

export interface Reporting {
  /**
   * Stores a report. When it returns, it is committed.
   *
   * @throws ReportRefused when it will never be taken; any other error when it is to be sent again
   */
  take(device: Device, body: Buffer): Promise<{ stored: number; known: number }>;
}

export function createReporting(parts: {
  registry: Pick<DeviceRegistry, 'refused'>;
  readings: Pick<Readings, 'take'>;
  /** By device. */
  limit: RateLimit;
  backfillMs: number;
  nowMs(): number;
  report(outcome: 'stored' | 'known' | 'refused' | 'failed', count: number): void;
}): Reporting {
  const { registry, readings, limit, backfillMs, nowMs, report } = parts;

  async function taken(device: Device, body: Buffer) {
    if (!limit.take(device.deviceId).allowed)
      throw new ReportRefused('TOO_MANY_REPORTS', 'The device reports more often than it may.');
    const read = readReport(body, { sensors: device.sensors, backfillMs, nowMs: nowMs() });
    const outcome = await readings.take(device.no, read);
    if (outcome === 'revoked') throw new ReportRefused('DEVICE_REVOKED', 'The device was revoked.');
    return outcome;
  }

  return {
    async take(device, body) {
      try {
        const outcome = await taken(device, body);
        report('stored', outcome.stored);
        report('known', outcome.known);
        return outcome;
      } catch (error) {
        const isRefused = error instanceof ReportRefused;
        report(isRefused ? 'refused' : 'failed', 1);
        // What a device does wrong its owner should see. That it cannot be written down changes nothing for the device.
        if (isRefused) await registry.refused(device, `${error.code}: ${error.message}`).catch(() => {});
        throw error;
      }
    },
  };
}
