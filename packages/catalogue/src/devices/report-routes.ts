/** Reports by HTTPS: signed, so that neither a wrong device nor an old recording is believed. */

import { Problem, unavailable } from '@farebox/core/http/problem';
import { admit, type RateLimit } from '@farebox/core/http/rate-limit';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isSignedBy, signedText } from './credential.ts';
import type { Exports } from './exports.ts';
import type { DeviceRegistry } from './registry.ts';
import { CLOCK_SKEW_MS, MAX_REPORT_BYTES, ReportRefused } from './report.ts';
import { type Reporting, TooManyReports } from './reporting.ts';
import { DEVICE_ID } from './routes.ts';

export const REPORTS_PER_ADDRESS_PER_MINUTE = 60_000;
export const REPORT_HEADERS = ['X-Device-Timestamp', 'X-Device-Signature'];

/** The HTTP statuses of refusals that are not just a bad report. */
const STATUSES: Readonly<Record<string, number>> = {
  REPORT_TOO_LARGE: 413,
  TOO_MANY_REPORTS: 429,
  DEVICE_REVOKED: 403,
};

const retryIn = ({ resetSeconds }: TooManyReports) => ({ 'retry-after': String(resetSeconds) });

export interface ReportRouteParts {
  registry: Pick<DeviceRegistry, 'find'>;
  reporting: Pick<Reporting, 'take'>;
  exports: Pick<Exports, 'find'>;
  limit: RateLimit;
  addressOf(request: FastifyRequest): string;
  nowMs(): number;
}

export function reportRoutes(app: FastifyInstance, parts: ReportRouteParts): void {
  const { registry, reporting, nowMs } = parts;

  /** The one answer to a report whose signature does not fit: it tells nothing else. */
  const notSigned = () =>
    new Problem(
      401,
      'SIGNATURE_INVALID',
      'X-Device-Signature must be the Ed25519 signature, in hex, of the device’s id, the timestamp and the body, with a line feed after each of the first two.',
    );

  app.post(
    '/api/devices/:deviceId/readings',
    // More than a report may have is not read to its end.
    { bodyLimit: 2 * MAX_REPORT_BYTES },
    async (request: FastifyRequest<{ Params: { deviceId: string } }>, reply: FastifyReply) => {
      admit(parts.limit, parts.addressOf(request), reply);
      const { deviceId } = request.params;
      const { 'x-device-timestamp': timestamp, 'x-device-signature': signature } = request.headers;
      if (typeof timestamp !== 'string' || typeof signature !== 'string') throw notSigned();
      const signedAtMs = /^\d{1,15}$/.test(timestamp) ? Number(timestamp) * 1_000 : Number.NaN;
      if (!(Math.abs(signedAtMs - nowMs()) <= CLOCK_SKEW_MS)) {
        throw new Problem(
          401,
          'SIGNATURE_TOO_OLD',
          'X-Device-Timestamp must be the time in seconds since 1970, and less than five minutes from ours.',
          { details: { serverTime: Math.floor(nowMs() / 1_000) } },
        );
      }
      const device = DEVICE_ID.test(deviceId) ? await registry.find(deviceId) : null;
      const body = request.body instanceof Buffer ? request.body : Buffer.alloc(0);
      if (device === null || !isSignedBy(device.publicKey, signedText(deviceId, timestamp, body), signature))
        throw notSigned();
      try {
        return { success: true, ...(await reporting.take(device, body)) };
      } catch (error) {
        if (error instanceof ReportRefused)
          throw new Problem(STATUSES[error.code] ?? 400, error.code, error.message, {
            ...(error instanceof TooManyReports ? { headers: retryIn(error) } : {}),
          });
        throw unavailable(
          'REPORT_NOT_STORED',
          'The report may not be stored. Send it again.',
          2_000,
          {},
          error,
        );
      }
    },
  );

  app.get(
    '/api/device-exports/:exportId',
    async (request: FastifyRequest<{ Params: { exportId: string } }>, reply) => {
      admit(parts.limit, parts.addressOf(request), reply);
      const { exportId } = request.params;
      const file = /^[0-9a-f]{32}$/.test(exportId) ? await parts.exports.find(exportId) : null;
      if (file === null)
        throw new Problem(404, 'EXPORT_NOT_FOUND', 'There is no such file, or it has expired.');
      return reply
        .headers({
          'content-type': file.mediaType,
          'content-disposition': `attachment; filename="${file.fileName}"`,
          'x-content-type-options': 'nosniff',
          'cache-control': 'private, no-store',
        })
        .send(file.content);
    },
  );
}
