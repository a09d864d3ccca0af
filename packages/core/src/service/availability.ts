/** Whether a service can be sold now: what it needs is up, and what it requires is configured. */
import { CHAINS, type ChainName } from '../words/chain-names.ts';
import type { Service } from './define.ts';
import type { SourceHealth } from './sources.ts';
import { type Supply, supplyOf } from './supply.ts';

/** Whether a service may be sold now, by the health of what it needs. */
export interface Availability {
  available: boolean;
  /** `not_configured`, `upstream_down` or `out_of_gas`; null when available. */
  reason: 'not_configured' | 'upstream_down' | 'out_of_gas' | null;
  message: string | null;
  retryAfterMs: number;
  /** The chains whose nodes it asks that can be asked now. */
  chains: readonly ChainName[];
  /** How often an hour it can answer anew; absent or null: no budget of a source bounds it. */
  supply?: Supply | null;
}

const FOR_SALE = { available: true, reason: null, message: null, retryAfterMs: 0 } as const;

/** Whether a capability can be used. */
export interface CapabilityStanding {
  configured: boolean;
  /** The variables that an operator sets to have it. */
  setBy: string;
  /** Why it cannot be used now although it is configured; null: it can. */
  unable: string | null;
}

/** A capability that no part of the server provides. */
export const NO_CAPABILITY: CapabilityStanding = {
  configured: false,
  setBy: 'no part of this server provides it',
  unable: null,
};
/** The wait told for what is not configured, which stays so until the next start. */
const NOT_CONFIGURED_RETRY_MS = 3_600_000;
/** The wait told until somebody fills the key. */
const UNABLE_RETRY_MS = 300_000;

/** It is asked with every request, and a declaration does not change. */
const chainsKnown = new WeakMap<Pick<Service, 'needs' | 'uses'>, readonly ChainName[]>();

/** The chains whose nodes a service asks, in their order; none for most services. */
export function chainsAskedBy(service: Pick<Service, 'needs' | 'uses'>): readonly ChainName[] {
  const known = chainsKnown.get(service);
  if (known !== undefined) return known;
  const asked = new Set<string>([...service.needs.flat(), ...service.uses]);
  const chains = CHAINS.filter((chain) => asked.has(chain));
  chainsKnown.set(service, chains);
  return chains;
}

/** The chains that some service on sale can read now. */
export function chainsOnSale(
  services: readonly Pick<Availability, 'available' | 'chains'>[],
): readonly ChainName[] {
  const onSale = services.filter(({ available }) => available);
  return CHAINS.filter((chain) => onSale.some(({ chains }) => chains.includes(chain)));
}

/**
 * Decides from health alone, without asking anybody: cheap enough to be asked about every service with every request.
 *
 * @param standing whether a capability can be used; a service that requires another one is not for sale
 */
export function availabilityOf(
  service: Service,
  health: (name: string) => SourceHealth,
  standing: (capability: string) => CapabilityStanding = () => NO_CAPABILITY,
): Availability {
  const { available, reason, message, retryAfterMs } = saleOf(service, health, standing);
  const supply = supplyOf(service, health);
  return { available, reason, message, retryAfterMs, chains: chainsUp(service, health), supply };
}

/** Decides the same, without a reason and how often it can answer: what lists ask of every service. */
export function onSaleNow(
  service: Service,
  health: (name: string) => SourceHealth,
  standing: (capability: string) => CapabilityStanding,
): Pick<Availability, 'available' | 'chains'> {
  return {
    available: saleOf(service, health, standing).available,
    chains: chainsUp(service, health),
  };
}

function chainsUp(service: Service, health: (name: string) => SourceHealth): readonly ChainName[] {
  const asked = chainsAskedBy(service);
  return asked.length === 0 ? asked : asked.filter((chain) => health(chain).state === 'up');
}

function saleOf(
  service: Service,
  health: (name: string) => SourceHealth,
  standing: (capability: string) => CapabilityStanding,
): Omit<Availability, 'chains' | 'supply'> {
  if (service.requires.length > 0) {
    const refused = refusedFor(service, standing);
    if (refused !== null) return refused;
  }
  for (const need of service.needs) {
    if (typeof need === 'string' && health(need).state === 'up') continue;
    const states = (typeof need === 'string' ? [need] : need).map(health);
    if (states.some(({ state }) => state === 'up')) continue;
    const soonest = states.reduce((best, state) => (state.retryAfterMs < best.retryAfterMs ? state : best));
    return {
      available: false,
      reason: states.some(({ state }) => state === 'down') ? 'upstream_down' : 'not_configured',
      message: `${service.name} is not for sale now: ${states.map(({ name, reason }) => `${name} is ${forCustomers(reason)}`).join('; ')}.`,
      retryAfterMs: soonest.retryAfterMs,
    };
  }
  return FOR_SALE;
}

/** A source's reason without what only the operator can do about it. */
function forCustomers(reason: string | null): string {
  return (reason ?? 'away').replace(/^not configured(: set .*)?$/s, 'not connected in this shop');
}

/** Why a service's capabilities keep it from being sold; null when they do not. */
function refusedFor(
  service: Service,
  standing: (capability: string) => CapabilityStanding,
): Omit<Availability, 'chains' | 'supply'> | null {
  const standings = service.requires.map((capability) => ({ capability, ...standing(capability) }));
  const missing = standings.filter(({ configured }) => !configured);
  if (missing.length > 0) {
    return {
      available: false,
      reason: 'not_configured',
      message: `${service.name} is not for sale now: ${missing.map(({ capability }) => `this shop does not offer ${capability}`).join('; ')}.`,
      retryAfterMs: NOT_CONFIGURED_RETRY_MS,
    };
  }
  const reasons = standings.flatMap(({ unable }) => unable ?? []);
  if (reasons.length > 0) {
    return {
      available: false,
      reason: 'out_of_gas',
      message: `${service.name} is not for sale now: ${reasons.join('; ')}.`,
      retryAfterMs: UNABLE_RETRY_MS,
    };
  }
  return null;
}
