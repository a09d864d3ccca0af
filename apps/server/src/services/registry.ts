import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { UpstreamHealth } from '../upstreams/http.ts';
import type { UpstreamName } from '../upstreams/index.ts';
import { type Capability, type Service, TAGS } from './define.ts';

/**
 * Loads every service: each `services/<folder>/<path>.ts` whose default export is one. To add a service, add its
 * file; there is no list to keep.
 *
 * @returns the services in catalog order: by tag, then by price, then by path
 * @throws when two share a path, or a declaration contradicts itself
 */
export async function loadServices(): Promise<readonly Service[]> {
  const services: Service[] = [];
  for (const folder of readdirSync(import.meta.dirname, { withFileTypes: true })) {
    if (!folder.isDirectory()) continue;
    for (const file of readdirSync(join(import.meta.dirname, folder.name))) {
      if (!file.endsWith('.ts') || file.endsWith('.test.ts')) continue;
      const module: { default?: unknown } = await import(
        pathToFileURL(join(import.meta.dirname, folder.name, file)).href
      );
      if (!isService(module.default)) continue;
      checkService(module.default, file);
      services.push(module.default);
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

function checkService(service: Service, file: string): void {
  const wrong = (what: string) => new Error(`services/…/${file}: ${what}`);
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
}

/** Whether a service may be sold now, by the health of what it needs. */
export interface Availability {
  available: boolean;
  /** `not_configured` or `upstream_down`; null when available. */
  reason: 'not_configured' | 'upstream_down' | null;
  message: string | null;
  retryAfterMs: number;
}

const FOR_SALE: Availability = { available: true, reason: null, message: null, retryAfterMs: 0 };

/** What an operator sets to have a capability. */
const CAPABILITY_VARIABLES: Record<Capability, string> = {
  custody: 'WALLET_ENCRYPTION_KEY',
  identities: 'IDENTITY_REGISTRAR_KEY',
  lists: 'UPSTREAM_OFAC_BASE_URL',
};
/** What is not configured stays so until the next start. */
const NOT_CONFIGURED_RETRY_MS = 3_600_000;

/**
 * Decides from health alone, without asking anybody: cheap enough for every request.
 *
 * @param capabilities those that are configured; a service that requires another one is not for sale
 */
export function availabilityOf(
  service: Service,
  health: (name: UpstreamName) => UpstreamHealth,
  capabilities: readonly Capability[] = [],
): Availability {
  const missing = service.requires.filter((capability) => !capabilities.includes(capability));
  if (missing.length > 0) {
    return {
      available: false,
      reason: 'not_configured',
      message: `${service.name} is not for sale now: ${missing.map((capability) => `${capability} is not configured (${CAPABILITY_VARIABLES[capability]})`).join('; ')}.`,
      retryAfterMs: NOT_CONFIGURED_RETRY_MS,
    };
  }
  for (const need of service.needs) {
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
