import {
  isoDate,
  latitude,
  longitude,
  numberBetween,
  outsiderText,
  text,
} from '@farebox/core/service/fields';
import { answer, type Source } from '@farebox/core/words/answer';
import { noAnswer, UpstreamUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import type { Granule } from '../../upstreams/adapters/cmr.ts';
import { defineService, type RunContext } from '../define.ts';
import { dayOf, daysBetween, daysFrom, invalid } from '../shared/earth/observation-day.ts';

const IMAGERY = ['HLSS30', 'HLSL30'];
const IMAGERY_DAYS = 60;
const MAX_CLOUD_PERCENT = 30;

const milestone = z.object({
  name: text(200, 'What is to be done'),
  complete: z.boolean().optional().describe('Whether it is done'),
  percentComplete: numberBetween(
    0,
    100,
    'How much of it is done, in percent; stands before complete',
  ).optional(),
  weight: numberBetween(0, 1e6, 'How much it counts; 1 unless given').optional(),
  plannedStart: isoDate.optional(),
  dueDate: isoDate.optional(),
  budget: numberBetween(0, 1e12, 'What it may cost').optional(),
  actualCost: numberBetween(0, 1e12, 'What it has cost so far').optional(),
});
type Milestone = z.output<typeof milestone>;

/** The forms in which progress can be told, each with a value that would do. No projects are kept here, so none are listed. */
const WAYS_TO_TELL = [
  {
    field: 'milestones',
    value: [
      { name: 'Foundation', complete: true },
      { name: 'Structure', complete: false },
    ],
    about: 'Which are done. Yours in place of these',
  },
  {
    field: 'milestones',
    value: [
      { name: 'Foundation', percentComplete: 100, weight: 2 },
      { name: 'Structure', percentComplete: 60, weight: 5 },
    ],
    about: 'How far each is, and how much it counts. Yours in place of these',
  },
  {
    field: 'milestones',
    value: [{ name: 'Structure', percentComplete: 60, plannedStart: '2026-04-01', dueDate: '2026-12-01' }],
    about: 'With dates, for the schedule. Yours in place of these',
  },
  {
    field: 'milestones',
    value: [{ name: 'Structure', percentComplete: 60, budget: 900_000, actualCost: 500_000 }],
    about: 'With money, for earned value. Yours in place of these',
  },
];

export default defineService({
  path: 'construction-progress',
  name: 'Construction Progress',
  tag: 'Real Estate',
  priceUsd: '1.50',
  summary:
    'How far a construction project is by its own milestones: percent, schedule, earned value, and dates of satellite pictures.',
  keywords:
    'construction building site build project schedule behind late delay delayed on time milestone milestones contractor progress percent complete finished earned value tower bridge road crane monitor works renovation builder subcontractor foundation crane handover',
  input: z.object({
    projectId: text(100, 'Your own name for the project, given back'),
    milestones: z
      .array(milestone)
      .max(200)
      .default([])
      .describe('What the project consists of; without any there is no answer'),
    lat: latitude.optional(),
    lon: longitude.optional(),
    projectDescription: text(4_000, 'Its words, which are not read').optional(),
  }),
  output: z.object({
    data: z
      .object({
        projectId: z.string().describe('As given'),
        completionPercentage: z.number().describe('Mean of the milestones by weight, in percent'),
        currentPhase: z.string().nullable().describe('First milestone that is not done; null when all are'),
        completedMilestones: z.array(z.string()).describe('Those at 100 percent'),
        upcomingMilestones: z.array(z.string()).describe('Those below, in the order given'),
        overdueMilestones: z.array(z.string()).describe('Those below whose due date has passed'),
        timeline: z
          .object({
            plannedPercentage: z
              .number()
              .nullable()
              .describe('What the dates ask for today, in percent; null without due dates'),
            onSchedule: z
              .boolean()
              .nullable()
              .describe('Whether the dated milestones are that far; null without due dates'),
            dueDate: z.string().nullable().describe('The latest due date; null without one'),
            estimatedCompletion: z
              .string()
              .nullable()
              .describe('At the pace since the earliest plannedStart; null without one or without progress'),
            daysAhead: z
              .number()
              .int()
              .nullable()
              .describe('dueDate less estimatedCompletion in days; null without both'),
          })
          .describe('Against the calendar'),
        earnedValue: z
          .object({
            budgetAtCompletion: z.number().describe('Sum of the budgets'),
            earnedValue: z.number().describe('Each budget by its percent done'),
            plannedValue: z
              .number()
              .nullable()
              .describe('Each budget by its planned percent today; null without due dates'),
            actualCost: z.number().nullable().describe('Sum of the costs; null without any'),
            schedulePerformanceIndex: z
              .number()
              .nullable()
              .describe('earnedValue by plannedValue; null by zero'),
            costPerformanceIndex: z.number().nullable().describe('earnedValue by actualCost; null by zero'),
            estimateAtCompletion: z
              .number()
              .nullable()
              .describe('budgetAtCompletion by costPerformanceIndex; null by zero'),
          })
          .nullable()
          .describe('Null unless each milestone has a budget'),
        imagery: z
          .array(
            z.object({
              date: z.string().describe('When the picture was taken (ISO 8601)'),
              satellite: outsiderText(200).nullable().describe('Satellite; null where the file does not say'),
              cloudCover: z
                .number()
                .nullable()
                .describe('Percent of the whole picture; null where it does not say'),
              previewUrl: outsiderText(2000)
                .nullable()
                .describe('Address of a preview; null where there is none'),
              resolutionM: z.number().describe('Side of a pixel in meters'),
            }),
          )
          .nullable()
          .describe(
            'Pictures with few clouds of the last 60 days that hold the point; null without lat and lon',
          ),
        cannotSee: z.array(z.string()).describe('What this answer does not know'),
      })
      .describe('The project by its milestones'),
    poweredBy: z.string().describe('Whose data it is'),
  }),
  example: {
    projectId: 'tower-7',
    lat: 40.71,
    lon: -74.01,
    milestones: [
      {
        name: 'Foundation',
        complete: true,
        weight: 2,
        plannedStart: '2026-01-10',
        dueDate: '2026-04-01',
        budget: 400_000,
        actualCost: 420_000,
      },
      {
        name: 'Structure',
        percentComplete: 60,
        weight: 5,
        plannedStart: '2026-04-01',
        dueDate: '2026-12-01',
        budget: 900_000,
        actualCost: 500_000,
      },
      {
        name: 'Fit-out',
        complete: false,
        weight: 3,
        plannedStart: '2026-12-01',
        dueDate: '2027-05-01',
        budget: 600_000,
        actualCost: 0,
      },
    ],
  },
  choices: WAYS_TO_TELL,
  aliases: { latitude: 'lat', longitude: 'lon', lng: 'lon' },
  uses: ['cmr'],
  async run({ projectId, milestones, lat, lon }, context) {
    if (milestones.length === 0 || milestones.every(({ weight }) => weight === 0)) {
      throw noAnswer(
        'NO_MILESTONES',
        'Progress is measured by milestones: send at least one whose weight is above 0.',
        'milestones',
        WAYS_TO_TELL,
      );
    }
    if ((lat === undefined) !== (lon === undefined))
      throw invalid(lat === undefined ? 'lat' : 'lon', 'lat and lon belong together.');
    for (const [at, { plannedStart, dueDate }] of milestones.entries()) {
      if (plannedStart !== undefined && dueDate !== undefined && plannedStart > dueDate)
        throw invalid(
          `milestones.${at}.plannedStart`,
          `plannedStart ${plannedStart} is after dueDate ${dueDate}.`,
        );
    }
    const today = dayOf(context.nowMs());
    const pictures =
      lat === undefined || lon === undefined ? null : await picturesOf({ lat, lon }, today, context);
    const open = milestones.filter((one) => doneOf(one) < 100);
    return answer(
      {
        data: {
          projectId,
          completionPercentage: tenths(meanOf(milestones, doneOf)),
          currentPhase: open[0]?.name ?? null,
          completedMilestones: milestones.filter((one) => doneOf(one) === 100).map(({ name }) => name),
          upcomingMilestones: open.map(({ name }) => name),
          overdueMilestones: open
            .filter(({ dueDate }) => dueDate !== undefined && dueDate < today)
            .map(({ name }) => name),
          timeline: timelineOf(milestones, today),
          earnedValue: earnedValueOf(milestones, today),
          imagery: pictures?.imagery ?? null,
          cannotSee: [
            'The site: all percentages are those that were given, and no picture was looked into.',
            'Single buildings: pixels of 30 meters show cleared ground and large roofs at most.',
            'Quality of the work, and costs that were not given.',
          ],
        },
        poweredBy:
          pictures === null ? 'The milestones given' : 'The milestones given, NASA HLS (Sentinel-2, Landsat)',
      },
      {
        method:
          'Percent done by weight. A milestone’s planned percent grows evenly from plannedStart to dueDate, or steps to 100 on dueDate. The estimate goes on at the pace since the earliest plannedStart. Earned value: EV = Σ budget × done, PV = Σ budget × planned, SPI = EV / PV, CPI = EV / AC, EAC = BAC / CPI.',
        sources: pictures?.source == null ? [] : [pictures.source],
        notes: pictures?.notes ?? ['imagery is null: lat and lon were not given.'],
      },
    );
  },
});

/** Percent. */
function doneOf({ percentComplete, complete }: Milestone): number {
  return percentComplete ?? (complete === true ? 100 : 0);
}

/** Percent that the dates ask for on a day; null without a due date. */
function plannedOf({ plannedStart, dueDate }: Milestone, today: string): number | null {
  if (dueDate === undefined) return null;
  if (today >= dueDate) return 100;
  if (plannedStart === undefined || today <= plannedStart) return 0;
  return (100 * daysBetween(plannedStart, today)) / daysBetween(plannedStart, dueDate);
}

/** Mean by weight; 0 when nothing has a weight. */
function meanOf(milestones: readonly Milestone[], value: (one: Milestone) => number): number {
  const weight = milestones.reduce((sum, one) => sum + (one.weight ?? 1), 0);
  return weight === 0 ? 0 : milestones.reduce((sum, one) => sum + (one.weight ?? 1) * value(one), 0) / weight;
}

function timelineOf(milestones: readonly Milestone[], today: string) {
  const dated = milestones.filter(({ dueDate }) => dueDate !== undefined);
  const planned = dated.length === 0 ? null : meanOf(dated, (one) => plannedOf(one, today) ?? 0);
  const dueDate =
    dated
      .map((one) => one.dueDate ?? '')
      .toSorted()
      .at(-1) ?? null;
  const start = milestones.flatMap(({ plannedStart }) => plannedStart ?? []).toSorted()[0];
  const done = meanOf(milestones, doneOf);
  const elapsed = start === undefined ? 0 : daysBetween(start, today);
  // An estimate of more than a thousand years is left out.
  const estimated =
    start === undefined || elapsed <= 0 || done === 0 ? null : Math.round((elapsed * 100) / done);
  const completion =
    start === undefined || estimated === null || estimated > 36_500 ? null : daysFrom(start, estimated);
  return {
    plannedPercentage: planned === null ? null : tenths(planned),
    onSchedule: planned === null ? null : meanOf(dated, doneOf) >= planned,
    dueDate,
    estimatedCompletion: completion,
    daysAhead: completion === null || dueDate === null ? null : daysBetween(completion, dueDate),
  };
}

function earnedValueOf(milestones: readonly Milestone[], today: string) {
  if (milestones.some(({ budget }) => budget === undefined)) return null;
  const sum = (value: (one: Milestone) => number) => milestones.reduce((total, one) => total + value(one), 0);
  const ratio = (a: number, b: number | null) =>
    b === null || b === 0 ? null : Math.round((1_000 * a) / b) / 1_000;
  const cents = (value: number) => Math.round(value * 100) / 100;
  const budget = sum((one) => one.budget ?? 0);
  const earned = sum((one) => ((one.budget ?? 0) * doneOf(one)) / 100);
  const planned = milestones.some(({ dueDate }) => dueDate === undefined)
    ? null
    : sum((one) => ((one.budget ?? 0) * (plannedOf(one, today) ?? 0)) / 100);
  const cost = milestones.every(({ actualCost }) => actualCost === undefined)
    ? null
    : sum((one) => one.actualCost ?? 0);
  return {
    budgetAtCompletion: cents(budget),
    earnedValue: cents(earned),
    plannedValue: planned === null ? null : cents(planned),
    actualCost: cost,
    schedulePerformanceIndex: ratio(earned, planned),
    costPerformanceIndex: ratio(earned, cost),
    estimateAtCompletion:
      cost === null || cost === 0 || earned === 0 ? null : cents((budget * cost) / earned),
  };
}

/** The dates on which satellites saw the place with few clouds. Without them the milestones are still answered. */
async function picturesOf(
  { lat, lon }: { lat: number; lon: number },
  today: string,
  { upstreams }: RunContext<'cmr'>,
) {
  try {
    const { value, source } = await upstreams.cmr.granules({
      collections: IMAGERY,
      box: { west: lon, south: lat, east: lon, north: lat },
      first: daysFrom(today, -IMAGERY_DAYS),
      last: today,
      platform: null,
      maxCloudCoverPercent: MAX_CLOUD_PERCENT,
      limit: 10,
    });
    const listed = (one: Granule) => ({
      date: one.start,
      satellite: one.platform,
      cloudCover: one.cloudCoverPercent,
      previewUrl: one.browseUrl,
      resolutionM: 30,
    });
    const dated: Source = { ...source, asOf: value.granules[0]?.start ?? null };
    return { imagery: value.granules.map(listed), source: dated, notes: [] };
  } catch (error) {
    if (!(error instanceof UpstreamUnavailable)) throw error;
    return {
      imagery: null,
      source: null,
      notes: ['imagery is null: the search for pictures does not answer at the moment.'],
    };
  }
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10;
}
