/** A route that costs nothing: passed on by the rules and within the bounds of a route that does. */
import { problemOf } from '@farebox/core/http/problem';
import type { MadeAnswer, PaidRequest } from '@farebox/core/paid-call/sale';
import { ServiceFailure } from '@farebox/core/words/failure';
import { askUpstream, type RouteStream } from './ask-upstream.ts';
import { type RouteCall, readRequest, type SentBy } from './route-call.ts';
import type { WrittenCall } from './route-input.ts';

/** All who pay nothing share an upstream's places like one who pays. */
const FREE_CALLERS = 'free';

/** A request for a free route. */
export interface FreeRequest extends WrittenCall {
  requestId: string;
  /** Aborted when the caller leaves. */
  signal: AbortSignal;
  nowMs(): number;
}

/**
 * Passes a request on and returns what its upstream answered.
 *
 * @throws Problem for everything that is no answer
 */
export async function answerFree(
  parts: SentBy,
  request: FreeRequest,
): Promise<MadeAnswer & { status: number }> {
  try {
    const { input } = readRequest(parts, request);
    const { requestId, signal, nowMs } = request;
    const asking = { orderId: requestId, caller: FREE_CALLERS };
    const answered = await askUpstream(parts, input as RouteCall, { ...asking, signal, nowMs });
    const { status = 200, headers = {}, content } = answered;
    return { status, headers: { ...headers }, body: Buffer.from(content) };
  } catch (error) {
    throw error instanceof ServiceFailure ? problemOf(error) : error;
  }
}

/**
 * Passes a request on, and its answer as it comes. One that breaks off is cut off.
 *
 * @param open begins the answer
 * @throws Problem for everything that is no answer
 */
export async function streamFree(
  parts: SentBy & { stream: RouteStream },
  request: FreeRequest,
  open: NonNullable<PaidRequest['openStream']>,
): Promise<void> {
  const { requestId, signal, nowMs } = request;
  const { stream } = parts;
  const begin = async () => {
    const { input } = readRequest(parts, request);
    const made = await stream.run(input, {
      call: { orderId: requestId, caller: FREE_CALLERS },
      signal,
      nowMs,
    });
    return { made, first: await made.pieces.next() };
  };
  const { made, first } = await begin().catch((error: unknown) => {
    throw error instanceof ServiceFailure ? problemOf(error) : error;
  });
  const { status = 200, headers = {}, pieces } = made;
  const reader = open({ status, headers: { ...headers } }, { mayBeat: false, patienceMs: stream.readerMs });
  try {
    let next = first;
    for (; next.done !== true; next = await pieces.next())
      if ((await reader.write(next.value)) === 'lost') return;
    await reader.end(next.value);
  } catch {
    reader.cut();
  } finally {
    await pieces.return(Buffer.alloc(0));
  }
}
