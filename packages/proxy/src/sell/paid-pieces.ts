/**
 * The pieces of an upstream's answer, in the order of their payment: each leaves as it comes, but the last, which waits for the price.
 */
import { LastEventWatch } from '../wire/event-watch.ts';
import type { UpstreamFailure } from '../wire/outcome.ts';
import { UpstreamBroke, type UpstreamStream } from '../wire/upstream.ts';

/** The most that waits with a last event, if something comes behind it. */
const MOST_HELD_BYTES = 65_536;
const NOTHING = Buffer.alloc(0);

/**
 * Yields the pieces that may leave at once, and returns the one that completes the answer. Which one that is, is told by the
 * answer's length, by its last event, or by an end that comes with it. Where none of them tells it, the bare end waits: without
 * it no reader takes the answer for whole.
 *
 * @param about.lastEvent the data of the server-sent event that ends a whole stream; null: none does
 * @param about.failed what is thrown for a body that is not whole
 */
export async function* piecesOf(
  { pieces, headers, ended }: Pick<UpstreamStream, 'pieces' | 'headers' | 'ended'>,
  { lastEvent, failed }: { lastEvent: string | null; failed(failure: UpstreamFailure): Error },
): AsyncGenerator<Buffer, Buffer> {
  const watch = lastEvent === null ? null : new LastEventWatch(lastEvent);
  const length = headers['content-length'];
  let leftBytes = length === undefined ? Number.POSITIVE_INFINITY : Number(length);
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  let held: Buffer | null = null;
  try {
    for await (const piece of pieces) {
      leftBytes -= piece.length;
      const wasComplete = watch?.hasSeen === true;
      watch?.see(piece);
      if (held !== null && wasComplete && held.length + piece.length <= MOST_HELD_BYTES) {
        held = Buffer.concat([held, piece]);
        continue;
      }
      if (held !== null) yield held;
      held = null;
      if (isOver || leftBytes <= 0 || watch?.hasSeen === true) held = piece;
      else yield piece;
    }
  } catch (error) {
    throw error instanceof UpstreamBroke ? failed(error.failure) : error;
  }
  return held ?? NOTHING;
}
