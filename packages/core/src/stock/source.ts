/** Where the tables of what is sold come from: the services that the shop ships with, its file, and the operators' rules. */
import { chooseServices } from '../service/choose.ts';
import type { Service } from '../service/define.ts';
import type { Stock } from '../service/shelf.ts';
import { ruledBy, type ServiceRules, soldUnder } from './service-rule.ts';

/** A table that cannot be put in force, with each reason on a line of its own. */
export class StockRefused extends Error {}

/** A table that is made and not in force yet. */
export interface MadeStock {
  readonly stock: Stock;
  /** The rules of its file. */
  readonly fileRules: ServiceRules;
  /** Called in the step that puts it in force. */
  enter(): void;
}

/** The file that says what is sold. */
export interface StockFile {
  /** Its name, without the folder. */
  readonly name: string;
  /** Its content as it was read at the start. */
  readonly atStart: string;
  /** Its state just before it was read at the start. */
  readonly stateAtStart: string | null;
  /**
   * Reads it.
   *
   * @returns its content as versions are compared and kept, without secrets
   * @throws StockRefused with the line of each fault
   */
  read(): Promise<string>;
  /** A word that is another one once the file has changed; null: it cannot be looked at. */
  state(): Promise<string | null>;
  /** When it was changed last; null: it cannot be looked at. */
  changedAtMs(): Promise<number | null>;
}

export interface StockSource {
  /** The services that the shop ships with, as they are sold without any rule. */
  readonly own: readonly Service[];
  /** Null: there is none. */
  readonly file: StockFile | null;
  /** The rules of the file at the start. */
  readonly fileRules: ServiceRules;
  /**
   * Makes a table.
   *
   * @param file the content of a version of the file; null: there is none
   * @throws StockRefused
   */
  make(file: string | null, rules: ServiceRules): MadeStock;
}

/** What a shop without a file sells: these services, under the operators' rules. */
export function sourceWithoutFile({ services, tags, leftOut, elsewhere = [] }: Stock): StockSource {
  // The price of a route is decided by each call, and no rule is about it.
  const own = services.filter(({ route }) => route === null);
  const routes = services.filter(({ route }) => route !== null);
  return {
    own,
    file: null,
    fileRules: new Map(),
    make(_file, rules) {
      const chosen = chosenUnder(own, rules, [], routes);
      const left = [...leftOut, ...chosen.leftOut];
      const stock = { services: chosen.services, tags, leftOut: left, elsewhere };
      return { stock, fileRules: new Map(), enter() {} };
    },
  };
}

/**
 * Chooses what is sold of services: by `SERVICES`, and by the rules.
 *
 * @param rules each as it holds once all is taken together
 * @param entries of `SERVICES`
 * @param beside services that no rule is about
 * @throws StockRefused when that leaves nothing, or an entry fits nothing
 */
export function chosenUnder(
  own: readonly Service[],
  rules: ServiceRules,
  entries: readonly string[],
  beside: readonly Service[] = [],
): Pick<Stock, 'services' | 'leftOut'> {
  const ruled = own.map((service) => ({ service, rule: ruledBy(rules.get(service.path)) }));
  const withheld = ruled.flatMap(({ service, rule }) =>
    rule.isAvailable === false ? [`!${service.path}`] : [],
  );
  const all = [...ruled.map(({ service, rule }) => soldUnder(rule, service)), ...beside];
  const { sold, leftOut, problems } = chooseServices(all, [...entries, ...withheld]);
  if (problems.length > 0)
    throw new StockRefused(problems.map((problem) => `SERVICES: ${problem}`).join('\n'));
  return { services: sold, leftOut };
}
