/** What an operator sees and sets of what is sold: each service's price by default, by the file and by the operators, and the history. */
import type { Transaction } from '../db/connection.ts';
import { Problem } from '../http/problem.ts';
import { priceInUsd, usdToMicros } from '../ledger/money.ts';
import type { Service } from '../service/define.ts';
import type { Shelf } from '../service/shelf.ts';
import type { StockKeeper } from './keeper.ts';
import { readRules, ruleAsJson, ruledBy, rulesText, type ServiceRule } from './service-rule.ts';
import { StockRefused, type StockSource } from './source.ts';
import type { Standing, VersionHead, VersionStore } from './version-store.ts';

/** A change of an operator's rule: null takes a matter back, undefined leaves it as it is. */
export type RuleChange = {
  readonly [Name in keyof ServiceRule]: ServiceRule[Name] | undefined;
};

export interface StockDesk {
  /**
   * Each service that the shop ships with, as it is sold and by whose word.
   *
   * @param more what else is told of each, at the price in force; null where it is not sold
   */
  services(
    more?: (service: Service, price: string | null) => Record<string, unknown>,
  ): Record<string, unknown>[];
  /** What is in force here and elsewhere, and what is refused. */
  state(): Promise<Record<string, unknown>>;
  /** The newest versions first, 50 at a time. `after`: the number of the last one seen. */
  versions(after: bigint | null): Promise<Record<string, unknown>[]>;
  /** A version with its content. @throws Problem 404 */
  version(number: bigint): Promise<Record<string, unknown>>;
  /**
   * Changes the operators' rule for a service, within the transaction of the act.
   *
   * @throws Problem 404 for a service that there is not, 409 for what could not be sold so
   */
  set(
    transaction: Transaction,
    by: { actId: string; actor: string },
    change: { path: string; rule: RuleChange },
  ): Promise<void>;
  /** Has the newest versions in force here. */
  follow(): Promise<void>;
}

export function createStockDesk({
  keeper,
  store,
  source,
  shelf,
}: {
  keeper: StockKeeper;
  store: VersionStore;
  source: StockSource;
  shelf: Shelf;
}): StockDesk {
  return {
    services: (more) =>
      source.own.map((service) => ({
        ...serviceAsJson(service.path, { keeper, source, shelf }),
        ...more?.(service, shelf.find(service.path)?.priceUsd ?? null),
      })),
    async state() {
      const { served, newest, refusal } = keeper;
      return {
        fileName: source.file?.name ?? null,
        inForce: numbersOf(served),
        newest: numbersOf(newest),
        refused:
          refusal === null
            ? null
            : {
                version: textOf(refusal.version),
                reason: refusal.reason,
                at: new Date(refusal.atMs).toISOString(),
              },
        replicas: (await store.standings()).map(standingAsJson),
      };
    },
    versions: async (after) => (await store.list(after)).map(headAsJson),
    async version(number) {
      const found = await store.byNumber(number);
      if (found === null) throw new Problem(404, 'NO_SUCH_VERSION', 'There is no such version.');
      return { ...headAsJson(found), content: JSON.parse(found.content) as unknown };
    },
    async set(transaction, by, { path, rule }) {
      if (!source.own.some((service) => service.path === path))
        throw new Problem(404, 'NO_SUCH_SERVICE', 'The server ships with no such service.');
      await store.addRules(transaction, by, (before) => {
        const rules = new Map(readRules(before));
        rules.set(path, changed(ruledBy(rules.get(path)), rule));
        refuseUnsellable(keeper, rules);
        return rulesText(rules);
      });
    },
    follow: () => keeper.follow(),
  };
}

function changed(before: ServiceRule, change: RuleChange): ServiceRule {
  const { priceMicros, isAvailable, isSoldByMpp } = change;
  return {
    priceMicros: priceMicros === undefined ? before.priceMicros : priceMicros,
    isAvailable: isAvailable === undefined ? before.isAvailable : isAvailable,
    isSoldByMpp: isSoldByMpp === undefined ? before.isSoldByMpp : isSoldByMpp,
  };
}

function refuseUnsellable(keeper: StockKeeper, rules: ReadonlyMap<string, ServiceRule>): void {
  try {
    keeper.assertAcceptable(rules);
  } catch (error) {
    if (!(error instanceof StockRefused)) throw error;
    throw new Problem(409, 'CANNOT_BE_SOLD_SO', error.message);
  }
}

/** A price as an operator writes it. @returns null: it is taken back */
export function micros(price: string | null): bigint | null {
  return price === null ? null : usdToMicros(price);
}

function serviceAsJson(
  path: string,
  { keeper, source, shelf }: { keeper: StockKeeper; source: StockSource; shelf: Shelf },
): Record<string, unknown> {
  const own = source.own.find((service) => service.path === path);
  const sold = shelf.find(path);
  const shown = (rule: ServiceRule | undefined) => {
    const json = rule === undefined ? {} : ruleAsJson(rule);
    return Object.keys(json).length === 0 ? null : json;
  };
  return {
    service: path,
    name: own?.name,
    tag: own?.tag,
    byDefault: { price: own === undefined ? null : priceInUsd(usdToMicros(own.priceUsd)), mpp: own?.mpp },
    byFile: shown(keeper.fileRules.get(path)),
    byOperator: shown(keeper.rules.get(path)),
    inForce:
      sold === undefined ? { available: false } : { price: sold.priceUsd, available: true, mpp: sold.mpp },
  };
}

function headAsJson(head: VersionHead): Record<string, unknown> {
  const { number, kind, sha256, madeAtMs, madeBy, reason, actId } = head;
  return {
    version: String(number),
    kind,
    sha256,
    at: new Date(madeAtMs).toISOString(),
    by: madeBy,
    reason,
    actId,
  };
}

function standingAsJson(standing: Standing): Record<string, unknown> {
  const { replica, host, refused, reason } = standing;
  return {
    replica: String(replica),
    host,
    ...numbersOf(standing),
    refused: reason === null ? null : { version: textOf(refused), reason },
  };
}

function numbersOf({ file, rules }: { file: bigint | null; rules: bigint | null }) {
  return { file: textOf(file), rules: textOf(rules) };
}

const textOf = (number: bigint | null) => (number === null ? null : String(number));
