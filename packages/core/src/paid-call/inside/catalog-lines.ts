/** The list that services are handed: which services there are, and which are on sale now. */
import { type CapabilityStanding, onSaleNow } from '../../service/availability.ts';
import type { CatalogLine, Service } from '../../service/define.ts';
import type { SourceHealth } from '../../service/sources.ts';

interface CatalogParts {
  /** Another list when what is sold has changed. */
  services(): readonly Service[];
  health(source: string): SourceHealth;
  standing(capability: string): CapabilityStanding;
}

/** A list, and everything that decided it. */
interface Kept {
  services: readonly Service[];
  lines: readonly CatalogLine[];
  /** The sources that were asked about, and whether each was up. */
  up: ReadonlyMap<string, boolean>;
  /** The capabilities that were asked about, and whether each could be used. */
  usable: ReadonlyMap<string, boolean>;
}

const isUp = ({ state }: SourceHealth) => state === 'up';
const isUsable = ({ configured, unable }: CapabilityStanding) => configured && unable === null;

/**
 * Makes the list of what is sold, and keeps it until an answer that it was made from is another one: most calls find it as the one
 * before left it, and ask a few dozen sources how they are instead of deciding about each service.
 */
export function catalogLines({ services, health, standing }: CatalogParts): () => readonly CatalogLine[] {
  let kept: Kept | null = null;

  function make(sold: readonly Service[]): Kept {
    const up = new Map<string, boolean>();
    const usable = new Map<string, boolean>();
    const healthNoted = (name: string) => {
      const found = health(name);
      up.set(name, isUp(found));
      return found;
    };
    const standingNoted = (name: string) => {
      const found = standing(name);
      usable.set(name, isUsable(found));
      return found;
    };
    const lines = sold.map((service) => {
      const { path, name, tag, priceUsd, summary, example, featured, aliasOf = null } = service;
      const { available, chains } = onSaleNow(service, healthNoted, standingNoted);
      return { path, name, tag, priceUsd, summary, example, featured, available, aliasOf, chains };
    });
    return { services: sold, lines: Object.freeze(lines), up, usable };
  }

  function isStill({ services: before, up, usable }: Kept, sold: readonly Service[]): boolean {
    if (before !== sold) return false;
    for (const [name, was] of up) if (isUp(health(name)) !== was) return false;
    for (const [name, was] of usable) if (isUsable(standing(name)) !== was) return false;
    return true;
  }

  return () => {
    const sold = services();
    if (kept === null || !isStill(kept, sold)) kept = make(sold);
    return kept.lines;
  };
}
