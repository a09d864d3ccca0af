/** A look that comes later than this is no use to somebody who waits. */
const LONGEST_WAIT_MS = 60_000;

/**
 * Looks at something again and again until it is decided, with pauses that are given, and then gives up. When the page
 * is shown again or the network is back it looks at once.
 *
 * @param {() => Promise<{ done: boolean, retryAfterMs?: number }>} look says what it saw by itself; never throws
 * @param {{ pausesMs: readonly number[], onGivenUp: () => void }} limits how long to wait after each look
 * @returns {() => void} ends it
 */
export function lookAgain(look, { pausesMs, onGivenUp }) {
  let looks = 0;
  let timer;
  let isLooking = false;
  let isOver = false;

  function end() {
    isOver = true;
    clearTimeout(timer);
    removeEventListener('online', lookNow);
    removeEventListener('pageshow', lookNow);
    document.removeEventListener('visibilitychange', lookNow);
  }

  async function lookNow() {
    if (isLooking || isOver || document.visibilityState === 'hidden') return;
    clearTimeout(timer);
    isLooking = true;
    const { done, retryAfterMs = 0 } = await look();
    isLooking = false;
    if (isOver) return;
    if (done) return end();
    const pauseMs = pausesMs[looks];
    looks += 1;
    if (pauseMs === undefined) {
      end();
      return onGivenUp();
    }
    timer = setTimeout(lookNow, Math.min(Math.max(pauseMs, retryAfterMs), LONGEST_WAIT_MS));
  }

  addEventListener('online', lookNow);
  addEventListener('pageshow', lookNow);
  document.addEventListener('visibilitychange', lookNow);
  void lookNow();
  return end;
}

/** How long an answer asks to be left alone, in milliseconds. */
export function retryAfterMsOf(response) {
  const seconds = Number(response.headers.get('retry-after'));
  return Number.isFinite(seconds) ? seconds * 1_000 : 0;
}
