import { type Thread, ThreadError } from '@farebox/core/threads/thread';
import { ServiceFailure } from '@farebox/core/words/failure';

/**
 * Runs a service's calculation in a thread.
 *
 * @throws ServiceFailure 503 when too many calculations wait or one takes too long; nothing is charged
 */
export async function offThread<Input, Output>(thread: Thread<Input, Output>, input: Input): Promise<Output> {
  try {
    return await thread.run(input);
  } catch (error) {
    if (!(error instanceof ThreadError) || error.trouble === 'failed') throw error;
    throw new ServiceFailure({
      status: 503,
      code: 'BUSY',
      message:
        error.trouble === 'busy'
          ? 'Too many calculations wait already; try again shortly.'
          : 'The calculation took too long.',
      retryAfterMs: 5_000,
      cause: error,
    });
  }
}
