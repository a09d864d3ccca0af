import { z } from 'zod';
import { declare, list, url } from '../declared.ts';

export const OPERATIONS = declare({
  name: 'operations',
  variables: {
    metricsToken: {
      name: 'METRICS_TOKEN',
      describe:
        'Bearer token for `/metrics`. Without it `/metrics` is closed if `PUBLIC_URL` is set or a proxy stands in front, and otherwise open to internal addresses',
      shape: z.string().min(16, 'must have at least 16 characters'),
      fallback: null,
      secret: true,
      renewed: true,
    },
    tracesEndpoint: {
      name: 'TRACES_OTLP_ENDPOINT',
      describe:
        'Collector of OpenTelemetry traces, such as `http://127.0.0.1:4318`: spans go to `/v1/traces` below it. Without it there is no [tracing](metrics.md#traces)',
      shape: url,
      fallback: null,
    },
    tracesSampled: {
      name: 'TRACES_SAMPLED',
      describe: 'The part of all calls that is traced, from 0 to 1',
      shape: z
        .string()
        .regex(/^(0(\.\d{1,6})?|1(\.0+)?)$/, 'must be a number from 0 to 1')
        .transform(Number),
      fallback: '0.01',
    },
    tracesHeaders: {
      name: 'TRACES_OTLP_HEADERS',
      describe: 'Headers that the collector wants, `name=value`, comma-separated',
      shape: list(
        z
          .string()
          .regex(/^[\w-]{1,60}=[\x21-\x7e][\x20-\x7e]{0,999}$/, 'must be name=value')
          .transform((value): [string, string] => [
            value.slice(0, value.indexOf('=')),
            value.slice(value.indexOf('=') + 1),
          ]),
      ).transform((headers): Readonly<Record<string, string>> => Object.fromEntries(headers)),
      fallback: '',
      secret: true,
      renewed: true,
    },
  },
});
