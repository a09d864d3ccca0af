/**
 * The client of an x402 facilitator: a server that verifies and settles payments. Its statements about money are hints;
 * the chain is asked afterwards. https://github.com/coinbase/x402/blob/main/specs/x402-specification-v2.md
 */
import { Agent, request } from 'undici';
import { z } from 'zod';

const supportedReply = z.object({
  kinds: z
    .array(
      z.object({
        x402Version: z.number(),
        scheme: z.string().max(60),
        network: z.string().max(100),
        extra: z.record(z.string(), z.unknown()).nullish(),
      }),
    )
    .max(500),
});
const verifyReply = z.object({ isValid: z.boolean(), invalidReason: z.string().max(2_000).nullish() });
const settleReply = z.object({
  success: z.boolean(),
  errorReason: z.string().max(2_000).nullish(),
  transaction: z.string().max(200).nullish(),
});

export interface PaymentForFacilitator {
  x402Version: 1 | 2;
  paymentPayload: Record<string, unknown>;
  paymentRequirements: Record<string, unknown>;
}

export type SupportedKinds = z.output<typeof supportedReply>['kinds'];

export type FacilitatorVerdict =
  | { status: 'valid' }
  | { status: 'invalid'; reason: string }
  /** `reached`: whether the facilitator may have read the request. */
  | { status: 'unavailable'; reached: boolean };

export type FacilitatorSettlement =
  | { status: 'settled'; transaction: string }
  | { status: 'failed'; reason: string; transaction: string | null }
  | { status: 'unavailable'; reached: boolean };

export interface Facilitator {
  readonly url: string;
  /** @throws when it does not answer */
  supported(): Promise<SupportedKinds>;
  /** Never throws. */
  verify(payment: PaymentForFacilitator): Promise<FacilitatorVerdict>;
  /** Never throws. */
  settle(payment: PaymentForFacilitator): Promise<FacilitatorSettlement>;
  close(): Promise<void>;
}

const VERIFY_TIMEOUT_MS = 8_000;
/** A settlement may wait for a block. One that takes longer is looked up on the chain. */
const SETTLE_TIMEOUT_MS = 12_000;
const MAX_REPLY_BYTES = 200_000;
/** Error codes of a connection that was never made, so nothing was read. */
const NOT_REACHED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** @param authorization the token now, sent with each request, for facilitators that require it; null: none is sent */
export function connectFacilitator(url: string, authorization: () => string | null): Facilitator {
  const agent = new Agent({ connections: 64, maxResponseSize: MAX_REPLY_BYTES, connect: { timeout: 2_000 } });

  async function ask(
    path: string,
    body: unknown,
    timeoutMs: number,
  ): Promise<{ status: number; json: unknown }> {
    const token = authorization();
    const reply = await request(`${url}${path}`, {
      dispatcher: agent,
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        'content-type': 'application/json',
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      signal: AbortSignal.timeout(timeoutMs),
    });
    return { status: reply.statusCode, json: JSON.parse(await reply.body.text()) };
  }

  const reached = (error: unknown) =>
    !(error instanceof Error && 'code' in error && NOT_REACHED.has(String(error.code)));

  return {
    url,
    async supported() {
      const { json } = await ask('/supported', undefined, VERIFY_TIMEOUT_MS);
      return supportedReply.parse(json).kinds;
    },
    async verify(payment) {
      try {
        const { json } = await ask('/verify', payment, VERIFY_TIMEOUT_MS);
        const reply = verifyReply.safeParse(json);
        // A reply of any status may carry a verdict. One without a verdict is a failure of the facilitator, not of the
        // payment.
        if (!reply.success) return { status: 'unavailable', reached: true };
        if (reply.data.isValid) return { status: 'valid' };
        return { status: 'invalid', reason: reply.data.invalidReason ?? '' };
      } catch (error) {
        return { status: 'unavailable', reached: reached(error) };
      }
    },
    async settle(payment) {
      try {
        const { json } = await ask('/settle', payment, SETTLE_TIMEOUT_MS);
        const reply = settleReply.safeParse(json);
        if (!reply.success) return { status: 'unavailable', reached: true };
        const transaction = reply.data.transaction || null;
        if (reply.data.success && transaction !== null) return { status: 'settled', transaction };
        return { status: 'failed', reason: reply.data.errorReason ?? '', transaction };
      } catch (error) {
        return { status: 'unavailable', reached: reached(error) };
      }
    },
    close: () => agent.destroy(),
  };
}
