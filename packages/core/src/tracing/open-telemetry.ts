/** Sends spans to a collector of OpenTelemetry, by its official libraries, which are loaded here and nowhere else. */
import type { Span } from '@opentelemetry/api';
import type { OpenSpan, SpanFacts } from './traced.ts';

const EXPORT_TIMEOUT_MS = 5_000;
/** A collector that is away costs this much memory and no more: what comes then is dropped. */
const MOST_QUEUED = 2_048;

export interface TracingSettings {
  /** The collector's OTLP address over HTTP; `/v1/traces` follows. */
  endpoint: string;
  /** The headers that the collector wants; may be others whenever spans are sent. */
  headers(): Readonly<Record<string, string>>;
  /** The part of all calls that is traced, from 0 to 1. */
  sampled: number;
  version: string;
}

/** @returns what begins the span of a call, and how to end all of it */
export async function openTracing(
  settings: TracingSettings,
): Promise<{ begin(name: string): OpenSpan | null; close(): Promise<void> }> {
  const [api, sdk, { OTLPTraceExporter }, { resourceFromAttributes }] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace-base'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
  ]);
  const exporter = new OTLPTraceExporter({
    url: `${settings.endpoint}/v1/traces`,
    headers: async () => ({ ...settings.headers() }),
    timeoutMillis: EXPORT_TIMEOUT_MS,
  });
  const provider = new sdk.BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'farebox', 'service.version': settings.version }),
    spanProcessors: [
      new sdk.BatchSpanProcessor(exporter, {
        maxQueueSize: MOST_QUEUED,
        exportTimeoutMillis: EXPORT_TIMEOUT_MS,
      }),
    ],
  });
  const tracer = provider.getTracer('farebox', settings.version);
  const { ROOT_CONTEXT, SpanStatusCode, trace } = api;
  const opened = (span: Span): OpenSpan => {
    const below = trace.setSpan(ROOT_CONTEXT, span);
    return {
      begin(name, startTime) {
        return opened(tracer.startSpan(name, startTime === undefined ? {} : { startTime }, below));
      },
      end(facts, failed) {
        span.setAttributes(attributesOf(facts));
        if (failed !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failed });
        span.end();
      },
    };
  };
  return {
    // Chosen before anything is made of a span, and whatever a caller says of its own trace.
    begin: (name) =>
      Math.random() < settings.sampled ? opened(tracer.startSpan(name, { root: true }, ROOT_CONTEXT)) : null,
    close: () => provider.shutdown().catch(() => {}),
  };
}

function attributesOf(facts: SpanFacts): Record<string, string | number> {
  return Object.fromEntries(Object.entries(facts).map(([name, value]) => [`farebox.${name}`, value]));
}
