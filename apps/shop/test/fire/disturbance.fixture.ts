/** Something that is out of order for a while: whoever asked for anything meanwhile may have been refused. */
export class Disturbance {
  #running = 0;
  #count = 0;

  /** @returns ends it */
  begin(): () => void {
    this.#running += 1;
    this.#count += 1;
    return () => {
      this.#running -= 1;
    };
  }

  /** @returns tells whether it was out of order at any time since */
  watch(): () => boolean {
    const wasRunning = this.#running > 0;
    const count = this.#count;
    return () => wasRunning || this.#count !== count;
  }
}
