/** The lines of the list that services are handed: which services there are, and which are on sale now. */
import type { CatalogLine, Service } from '../../service/define.ts';
import type { ChainName } from '../../words/chain-names.ts';

/**
 * Makes the line of a service, and keeps it while nothing of it changes: each turn of the event loop asks for all of them.
 *
 * @param onSale asked each time
 */
export function catalogLines(
  onSale: (service: Service) => Pick<CatalogLine, 'available' | 'chains'>,
): (service: Service) => CatalogLine {
  const lines = new WeakMap<Service, CatalogLine>();
  return (service) => {
    const { available, chains } = onSale(service);
    const known = lines.get(service);
    const isSame = (of: readonly ChainName[]) => of === chains || of.join() === chains.join();
    if (known?.available === available && isSame(known.chains)) return known;
    const { path, name, tag, priceUsd, summary, example, featured, aliasOf = null } = service;
    const line = { path, name, tag, priceUsd, summary, example, featured, available, aliasOf, chains };
    lines.set(service, line);
    return line;
  };
}
