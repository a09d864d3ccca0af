/** The cost of a metered answer: what is counted in it, by the upstream's own bytes and never by the caller's word. */
import type { MeterRule } from '../config/proxy-config.ts';
import { MOST_KEPT_BYTES } from '../config/schema.ts';
import { EventReader } from '../wire/event-watch.ts';
import { fieldAt } from '../wire/outcome.ts';

/** An event with more data is passed over. It is far above the data of an event that tells what was used. */
const MOST_EVENT_BYTES = 65_536;

/** Counts one answer as it comes. */
export interface Meter {
  see(piece: Buffer): void;
  /** Tells the cost of all that was seen so far, in micro-USD. */
  costMicros(): bigint;
}

/** @param mediaType of the answer; null if it has none */
export function openMeter(rule: MeterRule, mediaType: string | null): Meter {
  const { measure } = rule;
  if (measure.kind === 'bytes') return meterOf(rule, ofBytes());
  const isOfEvents = measure.kind === 'usage' && mediaType === 'text/event-stream';
  return meterOf(rule, isOfEvents ? ofEvents(measure.path) : ofJson(measure));
}

/** Counts in an answer: undefined as long as it does not tell, and whatever else it told. */
interface Counter {
  see(piece: Buffer): void;
  count(): unknown;
}

function meterOf(rule: MeterRule, counter: Counter): Meter {
  return {
    see: (piece) => counter.see(piece),
    costMicros: () => costOf(rule, counter.count()),
  };
}

/** The cost of a count: rounded up to a micro-USD, and never above the ceiling. What is no count has a price of its own. */
function costOf({ priceMicros, per, atMostMicros, whenUnmeasuredMicros }: MeterRule, count: unknown): bigint {
  if (typeof count !== 'number' || !Number.isSafeInteger(count) || count < 0) return whenUnmeasuredMicros;
  const micros = (BigInt(count) * priceMicros + per - 1n) / per;
  return micros < atMostMicros ? micros : atMostMicros;
}

function ofBytes(): Counter {
  let bytes = 0;
  return {
    see(piece) {
      bytes += piece.length;
    },
    count: () => bytes,
  };
}

/** The number that the last event tells which has the field. Some servers send it as null until they know it. */
function ofEvents(path: readonly string[]): Counter {
  const [outermost = ''] = path;
  let told: unknown;
  const reader = new EventReader(MOST_EVENT_BYTES, (data) => {
    if (!data.includes(outermost)) return;
    told = fieldAt(parsed(data), path) ?? told;
  });
  return { see: (piece) => reader.see(piece), count: () => told };
}

/** A field of a JSON answer, or the length of a list in it. An answer that is not whole, or larger than is kept, tells nothing. */
function ofJson({ kind, path }: Extract<MeterRule['measure'], { path: readonly string[] }>): Counter {
  let pieces: Buffer[] | null = [];
  let bytes = 0;
  return {
    see(piece) {
      bytes += piece.length;
      if (bytes > MOST_KEPT_BYTES) pieces = null;
      pieces?.push(piece);
    },
    count() {
      const found = pieces === null ? undefined : fieldAt(parsed(Buffer.concat(pieces).toString()), path);
      if (kind === 'usage') return found;
      return Array.isArray(found) ? found.length : undefined;
    },
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
