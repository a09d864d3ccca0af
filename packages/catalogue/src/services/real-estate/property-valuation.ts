import { nameText, numberBetween, outsiderText, text } from '@farebox/core/service/fields';
import type { Source } from '@farebox/core/words/answer';
import { noAnswer } from '@farebox/core/words/failure';
import { z } from 'zod';
import { ACS_YEARS, type TractHomeValue } from '../../upstreams/adapters/acs.ts';
import {
  type CensusTract,
  GEOCODER_MAX_CHARACTERS,
  STATE_LETTERS,
} from '../../upstreams/adapters/censusgeocoder.ts';
import type { StateIndex } from '../../upstreams/adapters/fhfa.ts';
import { defineService, type RunContext } from '../define.ts';
import { pricedAnswer } from '../figures.ts';
import {
  COMPARABLES_METHOD,
  COMPARISON_FIELDS,
  comparisonOf,
  estimateOf,
  hundreds,
  salesAround,
  shownOf,
} from '../shared/homes/comparison.ts';

/** Inputs that may change nothing. */
const NOT_USED = ['propertyType', 'squareFeet', 'bedrooms', 'bathrooms', 'yearBuilt'] as const;
/** What the survey asks no owner about. It knows single homes alone. */
const NO_HOME =
  /\b(commercial|offices?|retail|industrial|warehouses?|land|lots?|farms?|hotels?|shops?|stores?|parking|multi ?family|apartment (building|complex))\b/i;

const usd = (what: string) => z.number().describe(`${what}, in USD`);
const percent = (what: string) =>
  z.number().nullable().describe(`${what}; null where that quarter is missing`);

export default defineService({
  path: 'property-valuation',
  name: 'Property Valuation',
  tag: 'Real Estate',
  priceUsd: '0.75',
  summary:
    'Estimates what a home at a US address is worth: the tract’s median value and, where there are any, comparable sales, moved to today by the state’s price index.',
  keywords:
    'house home houses homes property real estate apartment flat condo value worth price appraisal appraise valuation sell buy buying market estimate zillow address mortgage neighborhood how much villa bungalow townhouse sqft bedrooms comps comparable home',
  input: z.object({
    address: nameText(
      GEOCODER_MAX_CHARACTERS,
      'Address in the United States on one line: house number, street, city and state, or ZIP code',
    ),
    propertyType: text(
      60,
      'Such as "house", "townhouse" or "condo": sales of that kind alone are compared. Other property than homes has no answer',
    ).optional(),
    squareFeet: numberBetween(1, 1e7, 'Area in square feet: what sales are compared by').optional(),
    bedrooms: numberBetween(0, 1_000, 'Number of bedrooms; given back as not used').optional(),
    bathrooms: numberBetween(0, 1_000, 'Number of bathrooms; given back as not used').optional(),
    yearBuilt: numberBetween(1600, 2200, 'Year it was built; given back as not used').optional(),
    propertyId: text(100, 'Your own name for the property, given back').optional(),
  }),
  output: z.object({
    data: z
      .object({
        propertyId: z.string().nullable().describe('As given; null without one'),
        address: outsiderText(300).describe('The address that was found, as the Census Bureau writes it'),
        location: z
          .object({ lat: z.number().describe('Degrees north'), lon: z.number().describe('Degrees east') })
          .describe('Of the address'),
        estimatedValue: usd('The tract’s estimate and what the comparables say, by comparablesWeight'),
        valuationRange: z
          .object({
            low: z.number().nullable().describe('In USD; null where the median has no margin'),
            high: z.number().nullable().describe('In USD; null where the median has no margin'),
          })
          .describe('The tract’s range and the quarter of comparables below and above, by comparablesWeight'),
        currency: z.literal('USD').describe('ISO code'),
        confidenceScore: z
          .number()
          .int()
          .nullable()
          .describe(
            '0 to 70: half of 100 less the half width of the range in percent, by 1 + comparablesWeight / 2, for the home itself was not looked at; null without a range',
          ),
        tract: z
          .object({
            geoId: z.string().describe('FIPS codes of state, county and tract'),
            name: outsiderText(300).describe('What the survey calls it'),
            medianValue: usd('Median value by the survey'),
            marginOfError: z
              .number()
              .nullable()
              .describe('Half the width of its 90 percent interval, in USD; null where there is none'),
            surveyYears: z.string().describe('First and last year of the survey'),
          })
          .describe('The census tract that holds the address'),
        priceIndex: z
          .object({
            state: z.string().describe('Postal letters'),
            indexQuarter: z.string().describe('Newest quarter of the index, such as 2026Q2'),
            factor: z.number().describe('What the median was multiplied by'),
            lowFactor: z.number().describe('Against the one end of where the survey stands on the index'),
            highFactor: z.number().describe('Against the other'),
          })
          .describe('How the median was moved'),
        marketTrends: z
          .object({
            oneYearPct: percent('Change of the state’s index in one year, in percent'),
            fiveYearsPct: percent('Change of the state’s index in five years, in percent'),
          })
          .describe('Of house prices in the state'),
        keyFactors: z
          .array(
            z.object({
              factor: z.string().describe('What the estimate consists of'),
              impact: usd('What it adds to the estimate'),
            }),
          )
          .describe('They add up to estimatedValue'),
        ...COMPARISON_FIELDS,
        inputsNotUsed: z.array(z.enum(NOT_USED)).describe('What was given and changes nothing'),
        disclaimer: z.string().describe('What this is not'),
      })
      .describe('The estimate and how it came about'),
    poweredBy: z.string().describe('Whose data it is'),
  }),
  example: { address: '4600 Silver Hill Rd, Washington, DC 20233', propertyType: 'house', squareFeet: 1_800 },
  aliases: {
    propertyAddress: 'address',
    location: 'address',
    type: 'propertyType',
    squareFootage: 'squareFeet',
    sqft: 'squareFeet',
    beds: 'bedrooms',
    baths: 'bathrooms',
  },
  adapt: (body) => ({
    ...body,
    // Addresses come on several lines too.
    ...(typeof body.address === 'string' ? { address: body.address.replace(/\s+/g, ' ') } : {}),
  }),
  needs: ['censusgeocoder', 'acs', 'fhfa'],
  uses: ['sales'],
  timeoutMs: 25_000,
  async run(input, context) {
    if (NO_HOME.test((input.propertyType ?? '').replaceAll(/[_-]/g, ' ')))
      throw noAnswer(
        'NOT_A_HOME',
        `There is no public data for ${input.propertyType}: the survey knows homes that their owners live in.`,
        'propertyType',
      );
    const { found, tract, source: geocoded } = await find(input.address, context);
    const state = STATE_LETTERS.get(tract.state) ?? tract.state;
    const [{ home, year, source: surveyed }, { value: quarters, source: indexed }, sold] = await Promise.all([
      homeValueOf(tract, context),
      context.upstreams.fhfa.stateIndex(state),
      salesAround(found, context),
    ]);
    const moved = movedBy(quarters, year);
    if (moved === null)
      throw noAnswer(
        'NO_PRICE_INDEX',
        `The index of house prices does not reach from ${year - ACS_YEARS + 1} to ${year} in ${state}.`,
        'address',
      );
    const { latest, factor, lowFactor, highFactor } = moved;
    const ofTract = {
      value: home.medianUsd * factor,
      range:
        home.marginUsd === null
          ? null
          : {
              low: Math.max(0, home.medianUsd - home.marginUsd) * lowFactor,
              high: (home.medianUsd + home.marginUsd) * highFactor,
            },
    };
    const compared = comparisonOf(sold, { ...found, ...input }, { quarters, nowMs: context.nowMs() });
    const { estimate, range, weight } = estimateOf(ofTract, compared.comparables);
    const notUsed = NOT_USED.filter((name) => input[name] !== undefined && !(weight > 0 && isCompared(name)));
    const trends = { oneYearPct: changeOver(1, quarters), fiveYearsPct: changeOver(5, quarters) };
    return pricedAnswer(
      {
        data: {
          propertyId: input.propertyId ?? null,
          address: found.address,
          location: { lat: found.lat, lon: found.lon },
          estimatedValue: estimate,
          valuationRange: range ?? { low: null, high: null },
          currency: 'USD' as const,
          confidenceScore: range === null ? null : scoreOf(range, estimate, weight),
          tract: {
            geoId: `${tract.state}${tract.county}${tract.tract}`,
            name: home.name,
            medianValue: home.medianUsd,
            marginOfError: home.marginUsd,
            surveyYears: `${year - ACS_YEARS + 1}-${year}`,
          },
          priceIndex: {
            state,
            indexQuarter: `${latest.year}Q${latest.quarter}`,
            factor: rounded(factor, 4),
            lowFactor: rounded(lowFactor, 4),
            highFactor: rounded(highFactor, 4),
          },
          marketTrends: trends,
          keyFactors: keyFactorsOf(home.medianUsd, hundreds(ofTract.value), weight > 0 ? estimate : null),
          ...shownOf(compared, weight),
          inputsNotUsed: notUsed,
          disclaimer:
            weight > 0
              ? 'An estimate, not an appraisal: nobody looked at the home itself or its condition.'
              : 'An estimate for homes of the tract, not an appraisal: the home itself, its size and its condition were not looked at.',
        },
        poweredBy: [
          'U.S. Census Bureau, Federal Housing Finance Agency',
          ...(compared.publisher === null ? [] : [compared.publisher.name]),
        ].join(', '),
      },
      {
        method: weight > 0 ? `${TRACT_METHOD} ${COMPARABLES_METHOD}` : TRACT_METHOD,
        sources: [
          { ...surveyed, asOf: `${year}-12-31T00:00:00.000Z` },
          { ...indexed, asOf: endOf(latest) },
          ...(compared.source === null ? [] : [compared.source]),
          geocoded,
        ],
        notes: notesOf({ home, notUsed, trends }),
      },
    );
  },
});

const TRACT_METHOD =
  'The median value of owner-occupied homes in the census tract (ACS table B25077) by the state’s FHFA index of all transactions: newest quarter over the survey. The survey pools five years in dollars of the last one, so it stands on the index between the mean of the five years and the mean of the last: the estimate takes the middle of the two, the range takes each, with the 90 percent margin of the median. Rounded to 100 USD.';

type Needed = 'censusgeocoder' | 'acs' | 'fhfa' | 'sales';

/** @param estimate with comparables; null without them */
function keyFactorsOf(medianUsd: number, tractEstimate: number, estimate: number | null) {
  return [
    { factor: 'Median value of homes in the tract', impact: medianUsd },
    { factor: 'House prices in the state since the survey', impact: tractEstimate - medianUsd },
    ...(estimate === null ? [] : [{ factor: 'Comparable sales', impact: estimate - tractEstimate }]),
  ];
}

/** Whether sales are compared by it. */
function isCompared(name: (typeof NOT_USED)[number]): boolean {
  return name === 'propertyType' || name === 'squareFeet';
}

/** The address and its tract. @throws noAnswer where it is not in the country, not known, or could be several */
async function find(address: string, { upstreams }: RunContext<Needed>) {
  const country = address.split(',').at(-1)?.trim().toLowerCase().replace(/\.$/, '') ?? '';
  if (OTHER_COUNTRIES.has(country))
    throw noAnswer('OUT_OF_COVERAGE', 'Public data covers addresses in the United States only.', 'address');
  const { value, source } = await upstreams.censusgeocoder.addresses(
    address.replace(/,?\s+(?:USA|U\.S\.A\.|US|United States(?: of America)?)\.?$/i, ''),
  );
  const [found] = value;
  if (found === undefined)
    throw noAnswer(
      'OUT_OF_COVERAGE',
      'The Census Geocoder does not find this address in the United States. Give house number, street, city and state, or ZIP code.',
      'address',
    );
  const tracts = new Set(value.map(({ tract }) => JSON.stringify(tract)));
  if (tracts.size > 1) {
    const some = value.slice(0, 5).map((each) => each.address);
    throw noAnswer('AMBIGUOUS_ADDRESS', `The address could be each of these: ${some.join('; ')}.`, 'address');
  }
  if (found.tract === null)
    throw noAnswer('NO_TRACT', `No census tract is known for ${found.address}.`, 'address');
  return { found, tract: found.tract, source };
}

/** The newest survey's value. @throws noAnswer where it has none for the tract */
async function homeValueOf(
  tract: CensusTract,
  { upstreams, nowMs }: RunContext<Needed>,
): Promise<{ home: TractHomeValue & { medianUsd: number }; year: number; source: Source }> {
  // The survey of the year before last is out since December, or a few weeks late.
  const newest = new Date(nowMs()).getUTCFullYear() - 2;
  for (const year of [newest, newest - 1]) {
    const { value, source } = await upstreams.acs.homeValue({ ...tract, year });
    if (value === null) continue;
    const [home] = value;
    if (home?.beyond != null)
      throw noAnswer(
        'VALUE_BEYOND_SCALE',
        `The median value of homes there is ${home.beyond === 'above' ? 'above 2,000,000' : 'below 10,000'} USD: the survey says no more.`,
        'address',
      );
    if (home === undefined || home.medianUsd === null)
      throw noAnswer(
        'NO_VALUE',
        'The survey has no value of homes for the tract of this address.',
        'address',
      );
    return { home: { ...home, medianUsd: home.medianUsd }, year, source };
  }
  throw noAnswer('NO_VALUE', `No survey is published for ${newest - 1} or ${newest}.`, 'address');
}

/** What moves the values of a survey to the newest quarter; null where a quarter of its years is missing. */
function movedBy(quarters: readonly StateIndex[], lastYear: number) {
  const latest = quarters.at(-1);
  const of = (first: number) =>
    quarters.filter(({ year }) => year >= first && year <= lastYear).map(({ index }) => index);
  const [all, last] = [of(lastYear - ACS_YEARS + 1), of(lastYear)];
  if (latest === undefined || all.length !== 4 * ACS_YEARS || last.length !== 4) return null;
  const ends = [mean(all), mean(last)];
  return {
    latest,
    factor: latest.index / mean(ends),
    lowFactor: latest.index / Math.max(...ends),
    highFactor: latest.index / Math.min(...ends),
  };
}

/** Percent over so many years up to the newest quarter; null where the earlier quarter is missing. */
function changeOver(years: number, quarters: readonly StateIndex[]): number | null {
  const latest = quarters.at(-1);
  const before = quarters.find(
    ({ year, quarter }) => year === (latest?.year ?? 0) - years && quarter === latest?.quarter,
  );
  return latest === undefined || before === undefined
    ? null
    : rounded((latest.index / before.index - 1) * 100, 1);
}

function notesOf({
  home,
  notUsed,
  trends,
}: {
  home: TractHomeValue;
  notUsed: readonly string[];
  trends: Record<string, number | null>;
}): string[] {
  const notes: string[] = [];
  if (home.marginUsd === null)
    notes.push('valuationRange and confidenceScore are null: the survey gives the median without a margin.');
  const missing = Object.keys(trends).filter((name) => trends[name] === null);
  if (missing.length > 0) notes.push(`Null, for the index lacks that quarter: ${missing.join(', ')}.`);
  if (notUsed.length > 0) notes.push(`Not used, for no value here depends on them: ${notUsed.join(', ')}.`);
  return notes;
}

function scoreOf({ low, high }: { low: number; high: number }, estimate: number, weight: number): number {
  const halfWidthPct = estimate === 0 ? 100 : ((high - low) / 2 / estimate) * 100;
  return Math.round((Math.max(0, 100 - halfWidthPct) / 2) * (1 + weight / 2));
}

/** English names of countries in lower case. Georgia is left out, because it is also a state. */
const OTHER_COUNTRIES: ReadonlySet<string> = new Set(
  countryNames(['US', 'PR', 'GU', 'VI', 'AS', 'MP', 'UM', 'GE']).concat('uk', 'england', 'scotland', 'wales'),
);

function countryNames(leftOut: readonly string[]): string[] {
  const names = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' });
  const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'];
  return letters
    .flatMap((first) => letters.map((second) => first + second))
    .filter((code) => !leftOut.includes(code))
    .flatMap((code) => names.of(code)?.toLowerCase() ?? []);
}

/** The last moment's day of a quarter (ISO 8601). */
function endOf({ year, quarter }: StateIndex): string {
  return new Date(Date.UTC(year, 3 * quarter, 0)).toISOString();
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function rounded(value: number, places: number): number {
  return Math.round(value * 10 ** places) / 10 ** places;
}
