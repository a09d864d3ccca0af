import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { UpstreamDefinition } from '../upstreams/define.ts';
import type { UpstreamHealth } from '../upstreams/http.ts';
import { UPSTREAMS, type UpstreamName } from '../upstreams/index.ts';
import { CHAINS, type ChainName } from '../words/chain-names.ts';
import { type Capability, type Service, TAGS } from './define.ts';

/** The folder below `services/` for code that several services share; it contains no services. */
const SHARED_FOLDER = 'shared';

/**
 * Loads every service: each `services/<tag>/<path>.ts`. To add a service, add its file; there is no list to keep.
 *
 * @param root the folder that holds a folder for each tag
 * @returns the services in catalog order: by tag, then by price, then by path
 * @throws when a file of a tag's folder is no service, is in the folder of another tag, or contradicts itself, and when
 *   two share a path
 */
export async function loadServices(root = import.meta.dirname): Promise<readonly Service[]> {
  const services: Service[] = [];
  for (const folder of readdirSync(root, { withFileTypes: true })) {
    if (!folder.isDirectory() || folder.name === SHARED_FOLDER) continue;
    for (const file of readdirSync(join(root, folder.name))) {
      if (!file.endsWith('.ts') || /\.(test|fixture)\.ts$/.test(file)) continue;
      const module: { default?: unknown } = await import(pathToFileURL(join(root, folder.name, file)).href);
      services.push(checkedService(module.default, folder.name, file));
    }
  }
  const paths = new Set<string>();
  for (const { path } of services) {
    if (paths.has(path)) throw new Error(`two services have the path ${path}`);
    paths.add(path);
  }
  return services.sort(
    (a, b) =>
      TAGS.indexOf(a.tag) - TAGS.indexOf(b.tag) ||
      Number(a.priceUsd) - Number(b.priceUsd) ||
      a.path.localeCompare(b.path),
  );
}

function isService(value: unknown): value is Service {
  return (
    typeof value === 'object' && value !== null && 'path' in value && 'run' in value && 'priceUsd' in value
  );
}

/** The folder of a tag: its words in lower case, with dashes between them. */
export function tagFolder(tag: string): string {
  return tag.toLowerCase().replace(/[^a-z0-9]+/g, '-');
}

function checkedService(service: unknown, folder: string, file: string): Service {
  const wrong = (what: string) => new Error(`services/${folder}/${file}: ${what}`);
  if (!isService(service))
    throw wrong(`its default export must be a service; what several services need goes to ${SHARED_FOLDER}/`);
  if (folder !== tagFolder(service.tag))
    throw wrong(`services with the tag ${service.tag} stand in ${tagFolder(service.tag)}/`);
  if (file !== `${service.path}.ts`)
    throw wrong(`the file of ${service.path} must be named ${service.path}.ts`);
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(service.path))
    throw wrong('the path must be lower-case words and dashes');
  if (!/^\d+\.\d{2,6}$/.test(service.priceUsd)) throw wrong('priceUsd must look like "0.25"');
  if (service.summary.length > 200) throw wrong('the summary must be at most 200 characters');
  const example = service.input.safeParse(service.example);
  if (!example.success) throw wrong(`the example does not fit the input: ${example.error.message}`);
  for (const field of Object.values(service.aliases)) {
    if (!(field in service.input.shape)) throw wrong(`an alias points to ${field}, which is not an input`);
  }
  return service;
}

/** Whether a service may be sold now, by the health of what it needs. */
export interface Availability {
  available: boolean;
  /** `not_configured`, `upstream_down` or `out_of_gas`; null when available. */
  reason: 'not_configured' | 'upstream_down' | 'out_of_gas' | null;
  message: string | null;
  retryAfterMs: number;
  /** Of the chains whose nodes it asks, those that can be asked now. */
  chains: readonly ChainName[];
}

const FOR_SALE = { available: true, reason: null, message: null, retryAfterMs: 0 } as const;

/** What an operator sets to have a capability. */
const CAPABILITY_VARIABLES: Record<Capability, string> = {
  custody: 'WALLET_ENCRYPTION_KEY',
  identities: 'IDENTITY_REGISTRAR_KEY',
  lists: 'UPSTREAM_OFAC_BASE_URL',
  devices: 'DEVICE_RETENTION_DAYS',
  keySales: 'it needs no variable, and is left out of this server',
  pictures: 'PICTURE_LINK_HOURS',
};
/** What is not configured stays so until the next start. */
const NOT_CONFIGURED_RETRY_MS = 3_600_000;
/** Until somebody fills the key. */
const UNABLE_RETRY_MS = 300_000;

/** It is asked with every request, and a declaration does not change. */
const chainsKnown = new WeakMap<Pick<Service, 'needs' | 'uses'>, readonly ChainName[]>();

/** The chains whose nodes a service asks, in their order; none for most services. */
export function chainsAskedBy(service: Pick<Service, 'needs' | 'uses'>): readonly ChainName[] {
  const known = chainsKnown.get(service);
  if (known !== undefined) return known;
  const asked = new Set<UpstreamName>([...service.needs.flat(), ...service.uses]);
  const chains = CHAINS.filter((chain) => asked.has(chain));
  chainsKnown.set(service, chains);
  return chains;
}

/** Whether running a service may cost the operator money: one of the upstreams that it asks charges for every request. */
export function costsMoney({ needs, uses }: Pick<Service, 'needs' | 'uses'>): boolean {
  const asked: readonly UpstreamName[] = [...needs.flat(), ...uses];
  return asked.some((name) => (UPSTREAMS[name] as UpstreamDefinition<unknown>).costsMoney === true);
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
 * @param configured whether a capability is; a service that requires another one is not for sale
 * @param unable why a capability cannot be used now; null: it can
 */
export function availabilityOf(
  service: Service,
  health: (name: UpstreamName) => UpstreamHealth,
  configured: (capability: Capability) => boolean = () => false,
  unable: (capability: Capability) => string | null = () => null,
): Availability {
  const asked = chainsAskedBy(service);
  const chains = asked.length === 0 ? asked : asked.filter((chain) => health(chain).state === 'up');
  const { available, reason, message, retryAfterMs } = saleOf(service, health, configured, unable);
  return { available, reason, message, retryAfterMs, chains };
}

function saleOf(
  service: Service,
  health: (name: UpstreamName) => UpstreamHealth,
  configured: (capability: Capability) => boolean,
  unable: (capability: Capability) => string | null,
): Omit<Availability, 'chains'> {
  if (service.requires.length > 0) {
    const refused = refusedFor(service, configured, unable);
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
      message: `${service.name} is not for sale now: ${states.map(({ name, reason }) => `${name} is ${reason}`).join('; ')}.`,
      retryAfterMs: soonest.retryAfterMs,
    };
  }
  return FOR_SALE;
}

/** Why a service's capabilities keep it from being sold; null when they do not. */
function refusedFor(
  service: Service,
  configured: (capability: Capability) => boolean,
  unable: (capability: Capability) => string | null,
): Omit<Availability, 'chains'> | null {
  const missing = service.requires.filter((capability) => !configured(capability));
  if (missing.length > 0) {
    return {
      available: false,
      reason: 'not_configured',
      message: `${service.name} is not for sale now: ${missing.map((capability) => `${capability} is not configured (${CAPABILITY_VARIABLES[capability]})`).join('; ')}.`,
      retryAfterMs: NOT_CONFIGURED_RETRY_MS,
    };
  }
  const reasons = service.requires.flatMap((capability) => unable(capability) ?? []);
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
