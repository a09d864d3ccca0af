/**
 * Reads server-sent events (WHATWG HTML, 9.2) as they go by. Nothing is kept of the stream but the event that is not ended yet, up to
 * a bound.
 */

/** An event with more data than this is not the last one. It is far above the data of any such event. */
const MOST_EVENT_BYTES = 4_096;
const LF = 0x0a;
const CR = 0x0d;

export class EventReader {
  readonly #mostBytes: number;
  readonly #read: (data: string) => void;
  /** The bytes of the line that has not ended. Null: it is too long to be looked at. */
  #line: Buffer[] | null = [];
  #lineBytes = 0;
  #isFirstLine = true;
  #isAfterReturn = false;
  /** The data of the event that has not ended. Null: it is too long to be looked at. */
  #data: string[] | null = [];
  #dataBytes = 0;

  /**
   * @param mostBytes events with more data are passed over
   * @param read gets the data of each event that has ended
   */
  constructor(mostBytes: number, read: (data: string) => void) {
    this.#mostBytes = mostBytes;
    this.#read = read;
  }

  /** Looks at the next bytes. */
  see(chunk: Buffer): void {
    let from = 0;
    for (let at = nextBreak(chunk, 0); at !== -1; at = nextBreak(chunk, at + 1)) {
      // A line ends by CR LF, LF or CR, and one CR LF may come in two pieces.
      const isSecondHalf = chunk[at] === LF && at === from && this.#isAfterReturn;
      if (!isSecondHalf) {
        this.#take(chunk.subarray(from, at));
        this.#endLine();
      }
      this.#isAfterReturn = chunk[at] === CR;
      from = at + 1;
    }
    if (from < chunk.length) {
      this.#take(chunk.subarray(from));
      this.#isAfterReturn = false;
    }
  }

  #take(bytes: Buffer): void {
    if (this.#line === null || bytes.length === 0) return;
    this.#lineBytes += bytes.length;
    // A copy, so that the piece it came in is not held.
    if (this.#lineBytes > this.#mostBytes) this.#line = null;
    else this.#line.push(Buffer.from(bytes));
  }

  #endLine(): void {
    const line = this.#line === null ? null : Buffer.concat(this.#line).toString('utf8');
    this.#line = [];
    this.#lineBytes = 0;
    const text = this.#isFirstLine ? (line?.replace(/^\ufeff/, '') ?? null) : line;
    this.#isFirstLine = false;
    if (text === '') {
      const data = this.#data;
      this.#data = [];
      this.#dataBytes = 0;
      if (data !== null && data.length > 0) this.#read(data.join('\n'));
      return;
    }
    if (text === null) {
      this.#data = null;
      return;
    }
    const data = /^data(?:: ?(.*))?$/s.exec(text);
    if (data === null || this.#data === null) return;
    const [, value = ''] = data;
    this.#dataBytes += value.length + 1;
    if (this.#dataBytes > this.#mostBytes) this.#data = null;
    else this.#data.push(value);
  }
}

/** Tells whether the event came that ends a whole stream. */
export class LastEventWatch {
  readonly #reader: EventReader;
  #hasSeen = false;

  /** @param wanted the data of the event that ends a whole stream */
  constructor(wanted: string) {
    this.#reader = new EventReader(MOST_EVENT_BYTES, (data) => {
      if (data === wanted) this.#hasSeen = true;
    });
  }

  /** Whether the last event came. What comes behind it does not matter. */
  get hasSeen(): boolean {
    return this.#hasSeen;
  }

  /** Looks at the next bytes. */
  see(chunk: Buffer): void {
    if (!this.#hasSeen) this.#reader.see(chunk);
  }
}

/** Where the next line ends, or -1. */
function nextBreak(chunk: Buffer, from: number): number {
  const lf = chunk.indexOf(LF, from);
  const cr = chunk.subarray(from, lf === -1 ? chunk.length : lf).indexOf(CR);
  return cr === -1 ? lf : from + cr;
}
