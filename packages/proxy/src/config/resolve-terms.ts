import type { CallBounds } from '@farebox/core/service/route';
import { nearest } from '@farebox/core/words/nearest';
import type { z } from 'zod';
import type { FieldPath } from './problem.ts';
import type { PriceSource, RoutePlan, Sale } from './proxy-config.ts';
import { resolveSale } from './resolve-sale.ts';
import type { Complain } from './resolve-upstream.ts';
import type { RouteKey } from './route-key.ts';
import type { configSchema, PlanOfRouteInput, RouteInput } from './schema.ts';

/** The accounts of each plan, by its name. */
export type Plans = ReadonlyMap<string, readonly string[]>;

/** Resolves the plans of a configuration. An account has one plan at most: which of two prices holds would be a matter of luck. */
export function resolvePlans(
  input: NonNullable<z.output<typeof configSchema>['plans']>,
  complain: Complain,
): Plans {
  const planOf = new Map<number, string>();
  for (const [name, { accounts }] of Object.entries(input))
    for (const [index, account] of accounts.entries()) {
      const other = planOf.get(account);
      if (other !== undefined)
        complain(['plans', name, 'accounts', index], `has the plan "${other}" already: an account has one`);
      planOf.set(account, name);
    }
  return new Map(Object.entries(input).map(([name, { accounts }]) => [name, accounts.map(String)]));
}

const METERED_HAS_NONE =
  'a metered route reserves its most, and a free call nothing: remove this, or write a price in place of metered';

/** Resolves what keys are given beside the list price: to all of them, and to those of each plan. */
export function resolveTerms(
  { key, input, sale }: { key: RouteKey; input: RouteInput; sale: Sale },
  plans: Plans,
  at: FieldPath,
  complain: Complain,
): { bounds: CallBounds; plans: Map<string, RoutePlan> } {
  const { freeCallsPerDay = 0, quota } = input;
  if (sale.kind === 'free')
    for (const field of ['freeCallsPerDay', 'quota', 'plans'] as const)
      if (input[field] !== undefined)
        complain(
          [...at, field],
          'a route that is free is called without a key: remove this, or write a price',
        );
  if (quota !== undefined) refuseIdleQuota(quota, [...at, 'quota'], complain);
  if (sale.kind === 'metered' && freeCallsPerDay > 0) complain([...at, 'freeCallsPerDay'], METERED_HAS_NONE);
  const bounds: CallBounds = { freeCallsPerDay, ...callsOf(quota) };
  const ofAccounts = new Map<string, RoutePlan>();
  for (const [name, written] of Object.entries(input.plans ?? {})) {
    const here = [...at, 'plans', name];
    const accounts = plans.get(name);
    if (accounts === undefined) complain(here, unknownPlan(name, plans));
    if (Object.keys(written).length === 0)
      complain(here, 'changes nothing: write price, freeCallsPerDay or quota');
    const plan = { sale: saleOf(key, written, sale, here, complain), bounds: boundsOf(written, bounds) };
    if (sale.kind === 'metered' && (written.freeCallsPerDay ?? 0) > 0)
      complain([...here, 'freeCallsPerDay'], METERED_HAS_NONE);
    if (written.quota) refuseIdleQuota(written.quota, [...here, 'quota'], complain);
    for (const account of accounts ?? []) ofAccounts.set(account, plan);
  }
  return { bounds, plans: ofAccounts };
}

function boundsOf({ freeCallsPerDay, quota }: PlanOfRouteInput, list: CallBounds): CallBounds {
  const calls = quota === undefined ? list : callsOf(quota === false ? undefined : quota);
  return {
    freeCallsPerDay: freeCallsPerDay ?? list.freeCallsPerDay,
    callsPerMinute: calls.callsPerMinute,
    callsPerDay: calls.callsPerDay,
  };
}

function callsOf(quota: RouteInput['quota']): Omit<CallBounds, 'freeCallsPerDay'> {
  return { callsPerMinute: quota?.perMinute ?? null, callsPerDay: quota?.perDay ?? null };
}

function refuseIdleQuota(
  { perMinute, perDay }: NonNullable<RouteInput['quota']>,
  at: FieldPath,
  complain: Complain,
): void {
  if (perMinute === undefined && perDay === undefined)
    complain(at, 'bounds nothing: write perMinute or perDay');
  if (perMinute !== undefined && perDay !== undefined && perDay < perMinute)
    complain(
      [...at, 'perMinute'],
      `is never reached, as a day has only ${perDay} calls: write less, or remove it`,
    );
}

function saleOf(
  key: RouteKey,
  { price, priceBy }: PlanOfRouteInput,
  list: Sale,
  at: FieldPath,
  complain: Complain,
): Sale {
  if (price === undefined && priceBy === undefined) return list;
  if (list.kind === 'metered')
    complain(at, 'a metered route costs what is counted, for every key: remove the price');
  const sale = resolveSale(key, { price, priceBy }, at, complain);
  // What decides a price must stand in the request once; only of what decides the list price is that held.
  if (sale.kind === 'by' && (list.kind !== 'by' || !isSame(sale.rule.source, list.rule.source)))
    complain([...at, 'priceBy'], 'must be decided by the same thing as priceBy of the route');
  return sale;
}

const isSame = (a: PriceSource, b: PriceSource) => JSON.stringify(a) === JSON.stringify(b);

function unknownPlan(name: string, plans: Plans): string {
  const [best] = nearest(name, [...plans.keys()], 1);
  return best === undefined
    ? 'there are no plans: name one under "plans", with its accounts'
    : `there is no plan ${JSON.stringify(name)}; did you mean "${best}"?`;
}
