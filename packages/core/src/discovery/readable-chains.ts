import { chainsAskedBy, chainsOnSale } from '../service/availability.ts';
import type { Service } from '../service/define.ts';
import type { DiscoveryContext } from './context.ts';

/** Which of its chains a service can read now, and which not; null for a service that reads no chain. */
export function chainsOf(service: Service, context: DiscoveryContext) {
  const asked = chainsAskedBy(service);
  if (asked.length === 0) return null;
  const { chains } = context.availability(service);
  return { readable: chains, notReadable: asked.filter((chain) => !chains.includes(chain)) };
}

/** The chains that some service on sale can read now. */
export function readableChains({ services, availability }: DiscoveryContext) {
  return chainsOnSale(services.map(availability));
}
