import { type Configured, declare, list, url, type Variable } from '@farebox/core/declared';
import { nearest } from '@farebox/core/words/nearest';
import { upstreamBaseUrlVariable, variablePrefix } from '@farebox/core/words/upstream-variables';
import { z } from 'zod';
import {
  needsAgreement,
  type ReadDocumentation,
  type SourceTerms,
  type UpstreamDefinition,
} from './define.ts';
import type { UpstreamConfig } from './http.ts';
import { UPSTREAM_NAMES, UPSTREAMS, type UpstreamName } from './index.ts';

/** The variable that says where the official pages of laws are read. They are no source: nothing of them is sold. */
const LAW_PAGES = 'LAW_PAGES_BASE_URL';
const DIRECT = 'direct';

const address = z.string().transform((value, context) => {
  if (value === 'none') return null;
  const parsed = url.safeParse(value);
  if (parsed.success) return parsed.data;
  context.addIssue({ code: 'custom', message: 'must be an http(s) address' });
  return z.NEVER;
});

function variablesOf(name: UpstreamName): (Variable<string | null> & { of: keyof UpstreamConfig })[] {
  const definition = UPSTREAMS[name] as unknown as UpstreamDefinition<never>;
  const { title, baseUrl, key, keyFrom, settings = {} } = definition;
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
            name: `${variablePrefix(name)}_API_KEY`,
            describe: `Key for ${title}${key === 'required' ? ', which needs one' : ', if you have one'}${keyFrom === undefined ? '' : ` (from ${keyFrom})`}`,
            shape: z.string(),
            fallback: null,
            secret: true as const,
            renewed: true as const,
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

/** The shape of an upstream's own setting. A rate that the operator agreed with the upstream replaces ours. */
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

const lawPages: Variable<string | null> = {
  name: LAW_PAGES,
  describe:
    'Where the official pages are read that the rules of `compliance-consultation` lead to, each about once a week: `direct` at their own addresses, `none` nowhere, or the address of a mirror that has `https://HOST/PATH` at `/HOST/PATH` ([more](lists.md#official-pages-of-laws))',
  shape: z.literal(DIRECT).or(address),
  fallback: DIRECT,
};

/** One variable for each setting of each upstream, derived from the definitions of the upstreams; and the pages of laws. */
export const SOURCES = declare({
  name: 'sources',
  variables: {
    ...(Object.fromEntries(
      BY_UPSTREAM.flatMap(({ variables }) => variables.map((each) => [each.name, each] as const)),
    ) as Readonly<Record<string, Variable<string | null>>>),
    [LAW_PAGES]: lawPages,
  } as Readonly<Record<string, Variable<string | null>>>,
  problems: (values) => UPSTREAM_NAMES.flatMap((name) => missingOf(name, values)),
});

/** A source of the operator's own that has an address is meant to be used: what it lacks is a slip. */
function missingOf(name: UpstreamName, values: Partial<Readonly<Record<string, string | null>>>): string[] {
  const { baseUrl, settings = {} } = UPSTREAMS[name] as unknown as UpstreamDefinition<never>;
  const address = upstreamBaseUrlVariable(name);
  if (baseUrl !== null || values[address] == null) return [];
  return Object.keys(settings).flatMap((setting) =>
    settings[setting]?.required === true && values[setting] === null
      ? [`${setting} is needed with ${address}`]
      : [],
  );
}

const termsOf = (name: UpstreamName): SourceTerms => UPSTREAMS[name].terms;

/** The sources from which nothing is sold before the operator declares that they have agreed to the terms. */
export const SOURCES_TO_AGREE_WITH: readonly UpstreamName[] = UPSTREAM_NAMES.filter((name) =>
  needsAgreement(termsOf(name)),
);

/** A source with its terms, as the operator's page and the documents list it. */
export interface ListedTerms extends SourceTerms {
  name: UpstreamName;
  title: string;
  licence: string;
  /** Null when no agreement is needed. */
  isAgreedTo: boolean | null;
  /** Null: none of its provider's documentation could be read. */
  documentation: ReadDocumentation | null;
}

/** The terms of every source. @param isOpen whether a source needs an agreement that nobody has declared */
export function termsOfSources(isOpen: (name: UpstreamName) => boolean): readonly ListedTerms[] {
  return UPSTREAM_NAMES.map((name) => {
    const {
      title,
      licence,
      terms,
      documentation,
    }: Pick<UpstreamDefinition<never>, 'title' | 'licence' | 'terms' | 'documentation'> = UPSTREAMS[name];
    const isAgreedTo = needsAgreement(terms) ? !isOpen(name) : null;
    return { name, title, licence, ...terms, isAgreedTo, documentation: documentation ?? null };
  });
}

const sourceName = z.string().superRefine((value, context) => {
  if (UPSTREAM_NAMES.some((name) => name === value)) return;
  const near = nearest(value, UPSTREAM_NAMES, 3).join(', ');
  context.addIssue({
    code: 'custom',
    message: `"${value}" is no source. The nearest names are ${near}; docs/sources.md lists all`,
  });
});

/** The terms that the operator has agreed to. */
export const TERMS = declare({
  name: 'terms',
  variables: {
    accepted: {
      name: 'SOURCE_TERMS_ACCEPTED',
      describe:
        'Names of sources whose terms you have agreed to, comma-separated. Without it a source that wants an agreement is not used, and what cannot do without it is not sold: [the list](sources.md)',
      shape: list(sourceName, UPSTREAM_NAMES.length),
      fallback: '',
    },
  },
});

/** Where the official pages of laws are read; null: nowhere. */
export function lawPagesAt({
  settings,
}: Pick<Configured<typeof SOURCES.variables>, 'settings'>): 'direct' | { mirror: string } | null {
  const at = (settings as Readonly<Record<string, string | null>>)[LAW_PAGES] ?? null;
  return at === null || at === DIRECT ? at : { mirror: at };
}

/** How each upstream is reached. @param accepted the names of the sources whose terms were agreed to */
export function upstreamsOf(
  { settings, secrets }: Configured<typeof SOURCES.variables>,
  accepted: readonly string[],
): Record<UpstreamName, UpstreamConfig> {
  const all: Readonly<Record<string, string | null>> = settings;
  const secret = (name: string) => (secrets.reveal() as Readonly<Record<string, string | null>>)[name];
  const configs = BY_UPSTREAM.map(({ name, variables }) => [
    name,
    {
      baseUrl: all[upstreamBaseUrlVariable(name)] ?? null,
      // A key may be another one whenever it is asked for.
      get apiKey() {
        return secret(`${variablePrefix(name)}_API_KEY`) ?? undefined;
      },
      settings: Object.fromEntries(
        variables.flatMap((each) =>
          each.of === 'settings' ? [[each.name, all[each.name] ?? undefined]] : [],
        ),
      ),
      isTermsOpen: needsAgreement(termsOf(name)) && !accepted.includes(name),
    },
  ]);
  return Object.fromEntries(configs) as Record<UpstreamName, UpstreamConfig>;
}
