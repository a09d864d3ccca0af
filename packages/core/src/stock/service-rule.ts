/** How a service that the shop ships with is sold otherwise: its price, whether it is for sale, and whether MPP buys it. */
import { z } from 'zod';
import { priceInUsd, usdToMicros } from '../ledger/money.ts';
import type { Service } from '../service/define.ts';

/** Null: as it would be without this rule. */
export interface ServiceRule {
  readonly priceMicros: bigint | null;
  readonly isAvailable: boolean | null;
  readonly isSoldByMpp: boolean | null;
}

/** Rules by the paths of services. */
export type ServiceRules = ReadonlyMap<string, ServiceRule>;

const NO_RULES: ServiceRules = new Map();

/** The price of one call in USD, as text: at least a millionth, below a million. */
export const priceText = z
  .string()
  .regex(/^(0|[1-9]\d{0,5})(\.\d{1,6})?$/, 'must be text such as "0.02", in USD with at most six places')
  .refine((usd) => /[1-9]/.test(usd), 'must be above zero');

const written = z.record(
  z.string(),
  z.strictObject({
    price: priceText.optional(),
    available: z.boolean().optional(),
    mpp: z.boolean().optional(),
  }),
);

/** The first of these rules that says something about a matter decides it. */
export function ruledBy(...rules: readonly (ServiceRule | undefined)[]): ServiceRule {
  const first = <Name extends keyof ServiceRule>(name: Name): ServiceRule[Name] | null =>
    rules.find((rule) => rule !== undefined && rule[name] !== null)?.[name] ?? null;
  return {
    priceMicros: first('priceMicros'),
    isAvailable: first('isAvailable'),
    isSoldByMpp: first('isSoldByMpp'),
  };
}

/** A service at the price and by the rails that a rule says; the service itself where the rule changes nothing. */
export function soldUnder({ priceMicros, isSoldByMpp }: ServiceRule, service: Service): Service {
  const priceUsd =
    priceMicros === null || priceMicros === usdToMicros(service.priceUsd)
      ? service.priceUsd
      : priceInUsd(priceMicros);
  const mpp = isSoldByMpp ?? service.mpp;
  return priceUsd === service.priceUsd && mpp === service.mpp ? service : { ...service, priceUsd, mpp };
}

/** Writes rules as they are kept: sorted, and without those that say nothing. */
export function rulesText(rules: ServiceRules): string {
  const lines = [...rules]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([path, rule]) => {
      const shown = ruleAsJson(rule);
      return Object.keys(shown).length === 0 ? [] : [[path, shown]];
    });
  return JSON.stringify(Object.fromEntries(lines));
}

/** Reads rules as they are kept. @throws when they are none */
export function readRules(text: string | null): ServiceRules {
  if (text === null) return NO_RULES;
  return new Map(
    Object.entries(written.parse(JSON.parse(text))).map(([path, { price, available, mpp }]) => [
      path,
      {
        priceMicros: price === undefined ? null : usdToMicros(price),
        isAvailable: available ?? null,
        isSoldByMpp: mpp ?? null,
      },
    ]),
  );
}

/** A rule as people write it, without what it leaves open. */
export function ruleAsJson({ priceMicros, isAvailable, isSoldByMpp }: ServiceRule): Record<string, unknown> {
  return {
    ...(priceMicros === null ? {} : { price: priceInUsd(priceMicros) }),
    ...(isAvailable === null ? {} : { available: isAvailable }),
    ...(isSoldByMpp === null ? {} : { mpp: isSoldByMpp }),
  };
}
