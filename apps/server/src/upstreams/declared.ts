import { z } from 'zod';
import { type Configured, declare, url, type Variable } from '../declared.ts';
import type { UpstreamDefinition } from './define.ts';
import type { UpstreamConfig } from './http.ts';
import { UPSTREAM_NAMES, UPSTREAMS, type UpstreamName } from './index.ts';

/** `AI_BASE_URL` is a name of its own in the field; the others are `UPSTREAM_<NAME>_…`. */
function prefixOf(name: UpstreamName): string {
  return name === 'ai' ? 'AI' : `UPSTREAM_${name.toUpperCase()}`;
}

/** The variable that holds an upstream's address. */
export function upstreamBaseUrlVariable(name: UpstreamName): string {
  return `${prefixOf(name)}_BASE_URL`;
}

const address = z.string().transform((value, context) => {
  if (value === 'none') return null;
  const parsed = url.safeParse(value);
  if (parsed.success) return parsed.data;
  context.addIssue({ code: 'custom', message: 'must be an http(s) address' });
  return z.NEVER;
});

function variablesOf(name: UpstreamName): (Variable<string | null> & { of: keyof UpstreamConfig })[] {
  const definition = UPSTREAMS[name] as unknown as UpstreamDefinition<never>;
  const { title, baseUrl, key, settings = {} } = definition;
  return [
    {
      of: 'baseUrl',
      name: upstreamBaseUrlVariable(name),
      describe: `Address of ${title}${baseUrl === null ? '' : '; `none` to go without'}`,
      shape: address,
      fallback: baseUrl,
    },
    ...(key === 'none'
      ? []
      : [
          {
            of: 'apiKey' as const,
            name: `${prefixOf(name)}_API_KEY`,
            describe: `Key for ${title}${key === 'required' ? ', which needs one' : ', if you have one'}`,
            shape: z.string(),
            fallback: null,
            secret: true as const,
          },
        ]),
    ...Object.entries(settings).map(([setting, { describe, check }]) => ({
      of: 'settings' as const,
      name: setting,
      describe,
      shape: shapeOf(setting, check),
      fallback: null,
    })),
  ];
}

/** Of an upstream's own setting. A rate that was agreed with it stands in place of ours. */
function shapeOf(name: string, check: ((value: string) => string | null) | undefined) {
  return z.string().superRefine((value, context) => {
    const isRate = name.endsWith('_REQUESTS_PER_MINUTE');
    const wrong =
      isRate && !(Number(value) >= 0.1 && Number(value) <= 100_000)
        ? 'must be a number between 0.1 and 100,000'
        : (check?.(value) ?? null);
    if (wrong !== null) context.addIssue({ code: 'custom', message: wrong });
  });
}

const BY_UPSTREAM = UPSTREAM_NAMES.map((name) => ({ name, variables: variablesOf(name) }));

/** Each under its name in the environment: which there are follows from the upstreams. */
export const SOURCES = declare({
  name: 'sources',
  variables: Object.fromEntries(
    BY_UPSTREAM.flatMap(({ variables }) => variables.map((each) => [each.name, each] as const)),
  ) as Readonly<Record<string, Variable<string | null>>>,
});

/** How each upstream is reached. */
export function upstreamsOf({
  settings,
  secrets,
}: Configured<typeof SOURCES.variables>): Record<UpstreamName, UpstreamConfig> {
  const all: Readonly<Record<string, string | null>> = { ...settings, ...secrets.reveal() };
  const configs = BY_UPSTREAM.map(({ name, variables }) => [
    name,
    {
      baseUrl: all[upstreamBaseUrlVariable(name)] ?? null,
      apiKey: all[`${prefixOf(name)}_API_KEY`] ?? undefined,
      settings: Object.fromEntries(
        variables.flatMap((each) =>
          each.of === 'settings' ? [[each.name, all[each.name] ?? undefined]] : [],
        ),
      ),
    },
  ]);
  return Object.fromEntries(configs) as Record<UpstreamName, UpstreamConfig>;
}
