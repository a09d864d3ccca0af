/**
 * Spans of a paid call and of its steps. While no collector is configured nothing of it runs but one comparison, and no library is loaded.
 * A span tells names, outcomes and times, and nothing that a caller sent: no key, no payment, no body.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

/** The only things that may be told of a span. */
export interface SpanFacts {
  service?: string;
  rail?: string;
  outcome?: string;
  status?: number;
  upstream?: string;
  network?: string;
  callId?: string;
  requestId?: string;
}

/** A span that has begun. */
export interface OpenSpan {
  /** Begins one below it. @param startedAtMs by the machine's clock; now unless given */
  begin(name: string, startedAtMs?: number): OpenSpan;
  /** Ends it. @param failed the kind of the error, without its message */
  end(facts: SpanFacts, failed?: string): void;
}

const within = new AsyncLocalStorage<OpenSpan | undefined>();
let beginRoot: ((name: string) => OpenSpan | null) | null = null;

/** Turns tracing on, or off with null. @param root begins the span of a call; null for a call that is not traced */
export function traceWith(root: typeof beginRoot): void {
  beginRoot = root;
}

/** Runs a whole call in a span of its own. @param facts asked when it has ended */
export async function tracedCall<Result>(
  name: string,
  run: () => Promise<Result>,
  facts: () => SpanFacts,
): Promise<Result> {
  const span = beginRoot === null ? null : beginRoot(name);
  if (span !== null) return runIn(span, run, facts);
  // A call that is not traced costs no context of its own, unless it has to hide that of a call around it.
  return within.getStore() === undefined ? run() : within.run(undefined, run);
}

/** Runs a step of the call that this belongs to in a span of its own; outside of a traced call it only runs it. */
export async function traced<Result>(
  name: string,
  run: () => Promise<Result>,
  facts: SpanFacts = {},
): Promise<Result> {
  const parent = beginRoot === null ? undefined : within.getStore();
  return parent === undefined ? run() : runIn(parent.begin(name), run, () => facts);
}

/** Notes a step that has just ended. */
export function tracedBefore(name: string, durationMs: number, facts: SpanFacts, failed?: string): void {
  if (beginRoot === null) return;
  within
    .getStore()
    ?.begin(name, performance.timeOrigin + performance.now() - durationMs)
    .end(facts, failed);
}

async function runIn<Result>(
  span: OpenSpan,
  run: () => Promise<Result>,
  facts: () => SpanFacts,
): Promise<Result> {
  try {
    const result = await within.run(span, run);
    span.end(facts());
    return result;
  } catch (error) {
    span.end(facts(), error instanceof Error ? error.name : 'unknown');
    throw error;
  }
}
