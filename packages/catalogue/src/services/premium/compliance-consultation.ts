import { text } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { noAnswer } from '@farebox/core/words/failure';
import { z } from 'zod';
import {
  covered,
  inForceOn,
  jurisdictionOf,
  type NamedJurisdiction,
  rulesFor,
  STATES,
  subjectsOf,
} from '../../compliance/consult.ts';
import {
  followedPage,
  JURISDICTIONS,
  type Jurisdiction,
  type Rule,
  type Subject,
} from '../../compliance/rule.ts';
import { RULES_AS_OF } from '../../compliance/rules.ts';
import { defineService } from '../define.ts';
import type { LawPageChange } from '../law-page-changes.ts';

const DISCLAIMER =
  'Information about the rules named, as of the date given. It is not legal advice and not complete: read each rule at its address before you rely on it.';

const DAY_MS = 86_400_000;
/** Older than this, the answer says how old the rule base is. */
const MOST_AGE_DAYS = 180;

const names = (value: unknown) =>
  typeof value === 'string' ? value.split(',').map((name) => name.trim()) : value;

export default defineService({
  path: 'compliance-consultation',
  name: 'Compliance Consultation',
  tag: 'Premium',
  priceUsd: '5.00',
  summary:
    'Published rules that may apply to an operation in a jurisdiction: citation, address, date, trigger and duties of each, from a dated rule base.',
  keywords:
    'law laws legal rule rules regulation regulations regulatory regulator license licence permit allowed jurisdiction country kyc aml gdpr mica bank act duties obligations lawyer advice requirements need sell crypto business startup exchange money transmitter travel europe eu germany tax',
  input: z.object({
    operationType: text(300, 'What is done, such as "crypto-exchange", "custody" or "stablecoin issuance"'),
    jurisdiction: z
      .preprocess(names, z.array(text(60, 'A jurisdiction')).min(1).max(12))
      .describe('Where, such as "US", "EU" or "Singapore"; several as a list or with commas'),
    details: z
      .looseObject({
        amountUsd: z.number().positive().max(1e15).optional().describe('Size of a single transaction in USD'),
      })
      .optional()
      .describe('Facts of the operation; amountUsd is held against the thresholds of rules in USD'),
  }),
  output: z.object({
    operationType: z.string().describe('As asked'),
    subjects: z.array(z.string()).describe('What the rule base takes it for'),
    jurisdictions: z.array(z.string()).describe('Those that were looked at'),
    applicableRegimes: z
      .array(
        z.object({
          id: z.string().describe('Id of the rule here'),
          name: z.string().describe('Name of the rule'),
          jurisdiction: z.string().describe('Where it holds'),
          citation: z.string().describe('Where it stands in the law'),
          url: z.string().describe('The law’s own site, or that of its authority'),
          since: z.string().describe('YYYY, YYYY-MM or YYYY-MM-DD: applies since; of guidance: issued'),
          inForce: z
            .boolean()
            .nullable()
            .describe('False: stands, and does not apply yet. Null: not known, see appliesFrom'),
          appliesFrom: z.string().nullable().describe('From when it applies; null where that has passed'),
          pageChangedOn: z
            .string()
            .nullable()
            .describe(
              'Since when the law’s page, or that of its amendments, has another text; null: not known to',
            ),
          readOn: z.string().describe('When this entry was held against readAt'),
          readAt: z.array(z.string()).describe('Pages that it was held against'),
          trigger: z.string().describe('Whom it concerns: whether that is so is for the reader to say'),
          obligations: z.array(z.string()).describe('What it asks for'),
          threshold: z
            .object({
              amount: z.number().describe('The amount'),
              currency: z.string().describe('ISO 4217'),
              per: z.string().describe('What the amount is counted over'),
              reached: z
                .boolean()
                .nullable()
                .describe('Whether the amount given reaches it; null where it cannot be said'),
            })
            .nullable()
            .describe('From which amount; null without one'),
        }),
      )
      .describe('Rules that may apply'),
    licences: z
      .array(
        z.object({
          jurisdiction: z.string().describe('Where'),
          licence: z.string().describe('The licence'),
          citation: z.string().describe('Where it stands in the law'),
        }),
      )
      .describe('Licences that may be needed'),
    sanctionsNotes: z.array(z.string()).describe('What sanctions ask for'),
    openQuestions: z.array(z.string()).describe('What decides whether a rule applies and is not known here'),
    notCovered: z.array(z.string()).describe('What was asked and no rule here covers'),
    asOf: z.string().describe('When the rule base was last written'),
    disclaimer: z.string().describe('What the answer is not, in a sentence'),
  }),
  example: { operationType: 'crypto-exchange', jurisdiction: ['EU', 'US'], details: { amountUsd: 5_000 } },
  aliases: {
    businessType: 'operationType',
    entityType: 'operationType',
    operation: 'operationType',
    query: 'operationType',
    question: 'operationType',
    jurisdictions: 'jurisdiction',
    country: 'jurisdiction',
    region: 'jurisdiction',
  },
  adapt(body) {
    // Clients send what they want done as a list of services.
    const { services, operationType } = body;
    return operationType === undefined &&
      Array.isArray(services) &&
      services.every((each) => typeof each === 'string')
      ? { ...body, operationType: services.join(', ') }
      : body;
  },
  mayUse: ['lawPages'],
  async run({ operationType, jurisdiction, details }, { nowMs, lawPages }) {
    const subjects = subjectsOf(operationType);
    const holds = covered();
    if (subjects.length === 0) {
      throw noAnswer(
        'SUBJECT_NOT_COVERED',
        `The rule base has no rules on "${operationType}". It covers: ${holds.subjects}.`,
        'operationType',
      );
    }
    const places = jurisdiction.map(jurisdictionOf);
    const known = [
      ...new Set(places.flatMap((place) => (place.jurisdiction === null ? [] : [place.jurisdiction]))),
    ];
    if (known.length === 0) {
      throw noAnswer(
        'JURISDICTION_NOT_COVERED',
        `The rule base has no rules of ${jurisdiction.join(', ')}. It covers: ${holds.jurisdictions}.`,
        'jurisdiction',
      );
    }
    const rules = rulesFor(subjects, known);
    const local = rules.filter((rule) => rule.jurisdiction !== 'INTL');
    if (local.length === 0 && !known.includes('INTL')) {
      throw noAnswer(
        'SUBJECT_NOT_COVERED',
        `For ${known.join(', ')} the rule base has no rules on ${subjects.join(', ')}. It covers, each for some jurisdictions: ${holds.subjects}.`,
        'operationType',
      );
    }
    const silent = known.filter(
      (place) => place !== 'INTL' && !rules.some((rule) => rule.jurisdiction === place),
    );
    const notCovered = notCoveredOf(places, silent, subjects);
    const changes = (await lawPages?.changed()) ?? new Map<string, LawPageChange>();
    const amountUsd = details?.amountUsd ?? null;
    const today = new Date(nowMs()).toISOString().slice(0, 10);
    const ageDays = Math.floor((Date.parse(today) - Date.parse(RULES_AS_OF)) / DAY_MS);
    return answer(
      {
        operationType,
        subjects,
        jurisdictions: known,
        applicableRegimes: rules.map((rule) => regimeOf(rule, amountUsd, today, changes)),
        licences: rules.flatMap(({ jurisdiction: place, licence, citation }) =>
          licence === undefined ? [] : [{ jurisdiction: place, licence, citation }],
        ),
        sanctionsNotes: rules
          .filter(({ subjects: of }) => of.includes('sanctions'))
          .map(({ name, citation, obligations }) => `${name} (${citation}): ${obligations[0]}.`),
        openQuestions: [...new Set(rules.flatMap(({ asks }) => asks))],
        notCovered,
        asOf: RULES_AS_OF,
        disclaimer: DISCLAIMER,
      },
      {
        method: `A rule base last written on ${RULES_AS_OF}, each entry held against the pages in readAt: the operation is taken for one or more of its subjects by its words, and every rule of those subjects in those jurisdictions is listed. Whether a rule's trigger is met is not decided here.`,
        notes: [
          ...statesNote(known),
          ...changedNotes(rules, changes),
          ...unreadNote(details ?? {}),
          ...(notCovered.length === 0 ? [] : ['The answer is silent where notCovered says so.']),
          ...(ageDays <= MOST_AGE_DAYS
            ? []
            : [`The rule base was last written ${ageDays} days ago: rules may have changed since.`]),
        ],
      },
    );
  },
});

/** What was asked and no rule of the base covers, in words. */
function notCoveredOf(
  places: readonly NamedJurisdiction[],
  silent: readonly Jurisdiction[],
  subjects: readonly Subject[],
): string[] {
  return [
    ...places
      .filter((place) => place.jurisdiction === null)
      .map(({ asked }) => `${asked}: not in the rule base`),
    ...places
      .filter(({ memberState }) => memberState)
      .map(({ asked }) => `${asked}: only the law of the European Union is in the rule base, not its own`),
    ...silent.map(
      (place) => `${JURISDICTIONS[place]}: nothing of ${subjects.join(', ')} is in the rule base`,
    ),
  ];
}

function unreadNote(details: object): string[] {
  const unread = Object.keys(details).filter((key) => key !== 'amountUsd');
  return unread.length === 0 ? [] : [`Not considered: details.${unread.join(', details.')}.`];
}

function statesNote(known: readonly Jurisdiction[]): string[] {
  if (!known.some((place) => place === 'US' || STATES.includes(place))) return [];
  return [
    `Each state of the United States has its own law on money transmission and crypto-assets; held are ${STATES.join(', ')}.`,
  ];
}

/** A sentence for each official page that has changed, with the rules that lead to it. */
function changedNotes(rules: readonly Rule[], changes: ReadonlyMap<string, LawPageChange>): string[] {
  return [...Map.groupBy(rules, followedPage)].flatMap(([page, of]) => {
    const change = changes.get(page);
    if (change === undefined) return [];
    const ids = of.map(({ id }) => id).join(', ');
    const [changed, read] = [change.changedAt, change.firstReadAt].map((at) => at.slice(0, 10));
    return [
      `The official page of ${ids} has changed since it was read on ${read}: another text was seen on ${changed} at ${page}. Read it before you rely on the entry.`,
    ];
  });
}

function regimeOf(
  rule: Rule,
  amountUsd: number | null,
  today: string,
  changes: ReadonlyMap<string, LawPageChange>,
) {
  const { id, name, jurisdiction, citation, url, since, begins, trigger, obligations, threshold, read } =
    rule;
  const inForce = inForceOn(rule, today);
  return {
    id,
    name,
    jurisdiction,
    citation,
    url,
    since,
    inForce,
    appliesFrom: begins === undefined || inForce === true ? null : whenOf(begins),
    pageChangedOn: changes.get(followedPage(rule))?.changedAt.slice(0, 10) ?? null,
    readOn: read.on,
    readAt: [...read.at],
    trigger,
    obligations: [...obligations],
    threshold:
      threshold === undefined
        ? null
        : {
            ...threshold,
            reached:
              amountUsd === null || threshold.currency !== 'USD' ? null : amountUsd >= threshold.amount,
          },
  };
}

function whenOf({ date, orEarlier }: NonNullable<Rule['begins']>): string {
  return orEarlier === undefined ? date : `${date}; or ${orEarlier}`;
}
