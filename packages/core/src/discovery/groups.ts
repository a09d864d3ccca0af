/** The groups in which the catalog shows services. */
import type { Service } from '../service/define.ts';

export interface Groups {
  /** The group of a service; its tag where it stands in none. */
  of(service: Service): string;
  /** The groups of some services, in their order: those of the shop, then tags. */
  among(services: readonly Service[]): readonly string[];
}

/** @param groups paths of services by the names of their groups, in the order of the catalog */
export function groupsFrom(groups: Readonly<Record<string, readonly string[]>>): Groups {
  const byPath = new Map(
    Object.entries(groups).flatMap(([group, paths]) => paths.map((path) => [path, group] as const)),
  );
  const of = ({ path, tag }: Service) => byPath.get(path) ?? tag;
  return {
    of,
    among(services) {
      const used = new Set(services.map(of));
      const own = Object.keys(groups).filter((group) => used.has(group));
      return [...new Set([...own, ...used])];
    },
  };
}
