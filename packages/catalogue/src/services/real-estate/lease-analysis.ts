import { numberBetween, text } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { noAnswer } from '@farebox/core/words/failure';
import { z } from 'zod';
import { leaseSchedule } from '../../quant/lease-schedule.ts';
import { defineService } from '../define.ts';

const MAX_AMOUNT = 1e9;
const amount = (description: string) => numberBetween(0, MAX_AMOUNT, description);
const months = (most: number, description: string) =>
  z
    .preprocess(
      (value) => (typeof value === 'string' ? Number(value) : value),
      z.number().int().min(0).max(most),
    )
    .describe(description);

/** Other names for the terms, as leases and clients have them. */
const TERM_NAMES: Readonly<Record<string, string>> = {
  term: 'termMonths',
  termLength: 'termMonths',
  leaseTermMonths: 'termMonths',
  rent: 'monthlyRent',
  baseRent: 'monthlyRent',
  escalation: 'escalationPct',
  annualEscalation: 'escalationPct',
  escalationRate: 'escalationPct',
  securityDeposit: 'deposit',
  freeRent: 'freeRentMonths',
  sqft: 'squareFeet',
  squareFootage: 'squareFeet',
  camMonthly: 'cam',
};

const terms = z.object({
  monthlyRent: amount('Base rent of a month in the first year').optional(),
  annualRent: amount('Base rent of the first year, where monthlyRent is not given').optional(),
  termMonths: months(600, 'Length in months, 1 to 600').optional(),
  escalationPct: numberBetween(-50, 50, 'Percent by which the rent changes after each 12 months').optional(),
  freeRentMonths: months(600, 'Months at the beginning without base rent').optional(),
  cam: amount('Operating costs of a month on top of the rent').optional(),
  tenantImprovement: amount('What the landlord pays toward fitting out, once').optional(),
  deposit: amount('Security deposit, given back at the end').optional(),
  squareFeet: amount('Area in square feet').optional(),
  breakMonth: months(600, 'Month after which the tenant may end it').optional(),
  breakFeeMonths: numberBetween(0, 60, 'Fee for ending it, in months of the rent then due').optional(),
  leaseType: text(60, 'Such as "gross", "net" or "triple net"').optional(),
  currency: text(10, 'ISO code; USD unless given').optional(),
  renewalOptions: z
    .array(z.unknown())
    .max(20)
    .optional()
    .describe('Options to renew, counted and not judged'),
  terminationClause: text(4_000, 'Its words, which are not read').optional(),
});

const money = (what: string) => z.number().describe(`${what}, in the lease’s currency`);

export default defineService({
  path: 'lease-analysis',
  name: 'Lease Analysis',
  tag: 'Real Estate',
  priceUsd: '1.00',
  summary:
    'Effective rent, escalations, present value and break cost of a lease, each step with its formula and figures.',
  keywords:
    'lease rent rental tenancy tenant landlord office shop commercial contract terms escalation break clause sign signing agreement renting premises evaluate expensive space deposit',
  input: z.object({
    leaseTerms: terms.describe('The terms; they may stand at the top of the body too'),
    marketData: z
      .object({
        rentPerSqft: amount('Yearly market rent of a square foot').optional(),
        discountRate: numberBetween(
          0,
          100,
          'Percent a year for the present value; 8 unless given',
        ).optional(),
      })
      .optional()
      .describe('What the lease is held against'),
    propertyId: text(100, 'Your own name for the property, given back').optional(),
  }),
  output: z.object({
    data: z
      .object({
        propertyId: z.string().nullable().describe('As given; null without one'),
        leaseSummary: z
          .object({
            termLength: z.number().int().describe('Months'),
            monthlyRent: money('Base rent of a month in the first year'),
            securityDeposit: z
              .number()
              .nullable()
              .describe('Deposit in the lease’s currency; null when not given'),
            leaseType: z.string().nullable().describe('As given; null without one'),
            currency: z.string().describe('ISO code'),
          })
          .describe('The terms that were used'),
        schedule: z
          .array(
            z.object({
              year: z.number().int().describe('Year of the lease, from 1'),
              months: z.number().int().describe('Months of it in this year'),
              monthlyRent: money('Base rent of a month in this year'),
              baseRent: money('Base rent paid in this year, free months left out'),
              operatingCosts: money('Operating costs paid in this year'),
              total: money('Both together'),
            }),
          )
          .describe('Year by year'),
        financialAnalysis: z
          .object({
            totalValue: money('All that is paid over the term, less what the landlord contributes'),
            annualCost: money('totalValue by the years of the term'),
            effectiveMonthlyRent: money('Base rent less contribution, by all months, free ones included'),
            presentValue: money('Payments discounted to the beginning'),
            discountRatePct: z.number().describe('Percent a year that was used'),
            costPerSqFt: z.number().nullable().describe('annualCost by the area; null without squareFeet'),
            effectiveRentPerSqFt: z
              .number()
              .nullable()
              .describe('Effective rent of a year by the area; null without squareFeet'),
            marketDifferencePct: z
              .number()
              .nullable()
              .describe('Percent by which effectiveRentPerSqFt is above the market’s; null without both'),
            breakCost: z
              .object({
                month: z.number().int().describe('After which the lease ends'),
                fee: money('Fee'),
                paidUntilThen: money('Rent and operating costs until then'),
                savedAfter: money('Rent and operating costs that are not paid then'),
              })
              .nullable()
              .describe('Of ending it early; null without breakMonth and breakFeeMonths'),
          })
          .describe('The figures'),
        steps: z
          .array(
            z.object({
              result: z.string().describe('Which figure it gives'),
              formula: z.string().describe('In the names of the terms'),
              figures: z.string().describe('The same with the figures put in'),
              value: z.number().describe('What comes out'),
            }),
          )
          .describe('How each figure was calculated'),
        riskFactors: z
          .array(
            z.object({
              risk: z.string().describe('What stands out'),
              severity: z.enum(['low', 'medium', 'high']).describe('How much it weighs, by the rule'),
              rule: z.string().describe('The rule that found it'),
            }),
          )
          .describe('By stated rules; empty when none applies'),
        riskScore: z
          .number()
          .int()
          .describe('0 to 100: 10, 20 and 35 points for each risk of low, medium and high severity'),
        missingTerms: z.array(z.string()).describe('Terms that were not given and would change the figures'),
        disclaimer: z.string().describe('What this is not'),
      })
      .describe('The lease in figures'),
  }),
  example: {
    leaseTerms: {
      monthlyRent: 5_000,
      termMonths: 60,
      escalationPct: 3,
      freeRentMonths: 3,
      squareFeet: 2_000,
      breakMonth: 36,
      breakFeeMonths: 4,
    },
  },
  adapt(body) {
    const { leaseTerms, marketData, propertyId, leaseText: _, ...rest } = body;
    const given = leaseTerms === undefined && Object.keys(rest).length > 0 ? rest : leaseTerms;
    return {
      ...(given === undefined ? {} : { leaseTerms: named(given) }),
      ...(marketData === undefined ? {} : { marketData }),
      ...(propertyId === undefined ? {} : { propertyId }),
    };
  },
  async run({ leaseTerms: lease, marketData, propertyId }) {
    const { termMonths } = lease;
    const monthlyRent =
      lease.monthlyRent ?? (lease.annualRent === undefined ? undefined : lease.annualRent / 12);
    if (monthlyRent === undefined)
      throw noAnswer(
        'NO_RENT',
        'leaseTerms names no rent: give monthlyRent or annualRent.',
        'leaseTerms.monthlyRent',
      );
    if (termMonths === undefined || termMonths < 1)
      throw noAnswer('NO_TERM', 'leaseTerms names no length: give termMonths.', 'leaseTerms.termMonths');
    const figures = leaseSchedule({
      monthlyRent,
      termMonths,
      escalationPct: lease.escalationPct ?? 0,
      freeRentMonths: lease.freeRentMonths ?? 0,
      operatingCosts: lease.cam ?? 0,
      contribution: lease.tenantImprovement ?? 0,
      discountRatePct: marketData?.discountRate ?? 8,
      breakMonth: lease.breakMonth ?? null,
      breakFeeMonths: lease.breakFeeMonths ?? null,
    });
    const area = lease.squareFeet === undefined || lease.squareFeet === 0 ? null : lease.squareFeet;
    const effectivePerSqFt = area === null ? null : (figures.effectiveMonthlyRent * 12) / area;
    const market =
      marketData?.rentPerSqft === undefined || marketData.rentPerSqft === 0 ? null : marketData.rentPerSqft;
    const difference =
      effectivePerSqFt === null || market === null ? null : (effectivePerSqFt / market - 1) * 100;
    const missing = [
      'escalationPct',
      'freeRentMonths',
      'cam',
      'deposit',
      'squareFeet',
      'breakMonth',
      'breakFeeMonths',
    ].filter((name) => lease[name as keyof typeof lease] === undefined);
    const risks = risksOf({ lease, termMonths, difference });
    return answer(
      {
        data: {
          propertyId: propertyId ?? null,
          leaseSummary: {
            termLength: termMonths,
            monthlyRent: cents(monthlyRent),
            securityDeposit: lease.deposit ?? null,
            leaseType: lease.leaseType ?? null,
            currency: lease.currency ?? 'USD',
          },
          schedule: figures.years.map((year) => ({
            ...year,
            monthlyRent: cents(year.monthlyRent),
            baseRent: cents(year.baseRent),
            operatingCosts: cents(year.operatingCosts),
            total: cents(year.baseRent + year.operatingCosts),
          })),
          financialAnalysis: {
            totalValue: cents(figures.total),
            annualCost: cents(figures.annualCost),
            effectiveMonthlyRent: cents(figures.effectiveMonthlyRent),
            presentValue: cents(figures.presentValue),
            discountRatePct: marketData?.discountRate ?? 8,
            costPerSqFt: area === null ? null : cents(figures.annualCost / area),
            effectiveRentPerSqFt: effectivePerSqFt === null ? null : cents(effectivePerSqFt),
            marketDifferencePct: difference === null ? null : cents(difference),
            breakCost:
              figures.breakCost === null
                ? null
                : {
                    month: figures.breakCost.month,
                    fee: cents(figures.breakCost.fee),
                    paidUntilThen: cents(figures.breakCost.paidUntilThen),
                    savedAfter: cents(figures.breakCost.savedAfter),
                  },
          },
          steps: figures.steps.map((step) => ({ ...step, value: cents(step.value) })),
          riskFactors: risks,
          riskScore: Math.min(
            100,
            risks.reduce((sum, { severity }) => sum + POINTS[severity], 0),
          ),
          missingTerms: missing,
          disclaimer:
            'Arithmetic on the terms that you sent. The words of the lease were not read, and this is not advice.',
        },
      },
      {
        method:
          'Rent steps up after each 12 months; free months come first; payments at the beginning of each month; the present value by a monthly rate of (1 + yearly rate)^(1/12) - 1.',
        notes: missing.length === 0 ? [] : [`Not given, and taken as none: ${missing.join(', ')}.`],
      },
    );
  },
});

const POINTS = { low: 10, medium: 20, high: 35 } as const;
type Risk = { risk: string; severity: keyof typeof POINTS; rule: string };

function risksOf({
  lease,
  termMonths,
  difference,
}: {
  lease: z.output<typeof terms>;
  termMonths: number;
  difference: number | null;
}): Risk[] {
  const risks: Risk[] = [];
  const escalation = lease.escalationPct ?? 0;
  if (escalation > 3)
    risks.push({
      risk: `The rent rises by ${escalation} % a year.`,
      severity: escalation > 5 ? 'high' : 'medium',
      rule: 'escalationPct above 3 is medium, above 5 high',
    });
  if (termMonths > 60 && lease.breakMonth === undefined)
    risks.push({
      risk: `${termMonths} months without a way out.`,
      severity: termMonths > 120 ? 'high' : 'medium',
      rule: 'more than 60 months without breakMonth is medium, more than 120 high',
    });
  if (difference !== null && difference > 10)
    risks.push({
      risk: `The effective rent is ${Math.round(difference)} % above the market’s.`,
      severity: difference > 25 ? 'high' : 'medium',
      rule: 'more than 10 % above marketData.rentPerSqft is medium, more than 25 % high',
    });
  if (lease.cam === undefined && /net/i.test(lease.leaseType ?? ''))
    risks.push({
      risk: 'A net lease without a figure for operating costs.',
      severity: 'medium',
      rule: 'leaseType with "net" and no cam is medium',
    });
  if ((lease.renewalOptions ?? []).length === 0)
    risks.push({ risk: 'No option to renew was named.', severity: 'low', rule: 'no renewalOptions is low' });
  return risks;
}

/** Terms by the names that are used here. What is no object is left for the schema to refuse. */
function named(given: unknown): unknown {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return given;
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      const camel = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
      return [TERM_NAMES[camel] ?? camel, value];
    }),
  );
}

function cents(value: number): number {
  return Math.round(value * 100) / 100;
}
