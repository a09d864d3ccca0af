/** What a lease costs, by formulas that are handed back with the figures in them. */

export interface LeaseTerms {
  /** Base rent of a month in the first year. */
  monthlyRent: number;
  /** At least 1. */
  termMonths: number;
  /** Percent after each 12 months. */
  escalationPct: number;
  /** At the beginning; those beyond the term count for nothing. */
  freeRentMonths: number;
  /** Of a month, also in free ones. */
  operatingCosts: number;
  /** By the landlord, once, at the beginning. */
  contribution: number;
  /** Percent a year. */
  discountRatePct: number;
  breakMonth: number | null;
  breakFeeMonths: number | null;
}

export interface LeaseYear {
  year: number;
  months: number;
  monthlyRent: number;
  /** Free months left out. */
  baseRent: number;
  operatingCosts: number;
}

export interface LeaseStep {
  result: string;
  formula: string;
  figures: string;
  value: number;
}

/** All amounts in the lease's own currency, not rounded. */
export function leaseSchedule(terms: LeaseTerms) {
  const { monthlyRent, termMonths, escalationPct, operatingCosts, contribution, discountRatePct } = terms;
  const freeMonths = Math.min(terms.freeRentMonths, termMonths);
  const rentOf = (month: number) => monthlyRent * (1 + escalationPct / 100) ** Math.floor(month / 12);
  const payments = Array.from({ length: termMonths }, (_, month) => ({
    base: month < freeMonths ? 0 : rentOf(month),
    costs: operatingCosts,
  }));
  const years = Array.from({ length: Math.ceil(termMonths / 12) }, (_, at): LeaseYear => {
    const own = payments.slice(12 * at, 12 * at + 12);
    return {
      year: at + 1,
      months: own.length,
      monthlyRent: rentOf(12 * at),
      baseRent: sum(own.map(({ base }) => base)),
      operatingCosts: sum(own.map(({ costs }) => costs)),
    };
  });
  const baseRent = sum(payments.map(({ base }) => base));
  const costs = sum(payments.map((payment) => payment.costs));
  const total = baseRent + costs - contribution;
  const annualCost = (total * 12) / termMonths;
  const effectiveMonthlyRent = (baseRent - contribution) / termMonths;
  const monthlyRate = (1 + discountRatePct / 100) ** (1 / 12) - 1;
  const presentValue =
    sum(payments.map((payment, month) => (payment.base + payment.costs) / (1 + monthlyRate) ** month)) -
    contribution;
  const breakCost = breakCostOf(terms, payments, rentOf);
  const totals = { years, baseRent, total, annualCost, effectiveMonthlyRent, presentValue, breakCost };
  return { ...totals, steps: stepsOf({ ...terms, freeRentMonths: freeMonths }, totals, monthlyRate, rentOf) };
}

/** How each figure came about, in the order in which one needs the other. */
function stepsOf(
  terms: LeaseTerms,
  totals: {
    years: readonly LeaseYear[];
    baseRent: number;
    total: number;
    annualCost: number;
    effectiveMonthlyRent: number;
    presentValue: number;
    breakCost: { month: number; fee: number } | null;
  },
  monthlyRate: number,
  rentOf: (month: number) => number,
): LeaseStep[] {
  const { monthlyRent, termMonths, escalationPct, operatingCosts, contribution, discountRatePct } = terms;
  const { years, baseRent, total, annualCost, effectiveMonthlyRent, presentValue, breakCost } = totals;
  const f = (value: number) => String(Math.round(value * 100) / 100);
  return [
    ...years.slice(1).map((year) => ({
      result: `monthly rent in year ${year.year}`,
      formula: 'monthlyRent × (1 + escalationPct / 100)^(year − 1)',
      figures: `${f(monthlyRent)} × (1 + ${escalationPct} / 100)^${year.year - 1}`,
      value: year.monthlyRent,
    })),
    {
      result: 'base rent over the term',
      formula: 'sum of the rent of each month but the free ones',
      figures: `${years.map((year) => f(year.baseRent)).join(' + ')}, ${terms.freeRentMonths} months free`,
      value: baseRent,
    },
    {
      result: 'total value',
      formula: 'base rent + cam × termMonths − tenantImprovement',
      figures: `${f(baseRent)} + ${f(operatingCosts)} × ${termMonths} − ${f(contribution)}`,
      value: total,
    },
    {
      result: 'annual cost',
      formula: 'total value × 12 / termMonths',
      figures: `${f(total)} × 12 / ${termMonths}`,
      value: annualCost,
    },
    {
      result: 'effective monthly rent',
      formula: '(base rent − tenantImprovement) / termMonths',
      figures: `(${f(baseRent)} − ${f(contribution)}) / ${termMonths}`,
      value: effectiveMonthlyRent,
    },
    {
      result: 'present value',
      formula: 'sum of payment / (1 + monthly rate)^month, month from 0, − tenantImprovement',
      figures: `monthly rate (1 + ${discountRatePct} / 100)^(1/12) − 1 = ${monthlyRate.toFixed(6)}, ${termMonths} payments`,
      value: presentValue,
    },
    ...(breakCost === null
      ? []
      : [
          {
            result: 'break fee',
            formula: 'breakFeeMonths × the monthly rent due after breakMonth',
            figures: `${terms.breakFeeMonths} × ${f(rentOf(breakCost.month))}`,
            value: breakCost.fee,
          },
        ]),
  ];
}

/** Of ending the lease after a month within its term; null where it does not say what that costs. */
function breakCostOf(
  { termMonths, breakMonth, breakFeeMonths }: LeaseTerms,
  payments: readonly { base: number; costs: number }[],
  rentOf: (month: number) => number,
) {
  if (breakMonth === null || breakFeeMonths === null || breakMonth < 1 || breakMonth >= termMonths)
    return null;
  const paid = (some: readonly { base: number; costs: number }[]) =>
    sum(some.map(({ base, costs }) => base + costs));
  return {
    month: breakMonth,
    fee: breakFeeMonths * rentOf(breakMonth),
    paidUntilThen: paid(payments.slice(0, breakMonth)),
    savedAfter: paid(payments.slice(breakMonth)),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
