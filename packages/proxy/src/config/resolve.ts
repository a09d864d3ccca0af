/** Makes the server's configuration of the written one, and finds what a schema cannot see. */

import { usdToMicros } from '@farebox/core/ledger/money';
import { nearest } from '@farebox/core/words/nearest';
import type { z } from 'zod';
import type { FieldPath } from './problem.ts';
import type { HouseServiceRule, ProxyConfig, Route } from './proxy-config.ts';
import { resolveGate } from './resolve-gate.ts';
import { resolveRoute } from './resolve-route.ts';
import { resolvePlans } from './resolve-terms.ts';
import { type Complain, type Environment, resolveUpstream } from './resolve-upstream.ts';
import { type RouteKey, shapeOf } from './route-key.ts';
import type { configSchema } from './schema.ts';

/** The server's part in a check: what it knows and the file does not say. */
export interface Surroundings {
  /** Where secrets are looked up. */
  env: Environment;
  /** The paths of the services that the server ships with; null: not known, and any may be named. */
  serviceNames: readonly string[] | null;
  /** Why the server cannot sell by this key, such as because it has that path itself; null: it can. */
  refusedKey?(key: RouteKey): string | null;
}

/**
 * Resolves a configuration that fits the schema.
 *
 * @param lineOf the line of a field, for problems that name two places; null where there are no lines
 * @returns the configuration, frozen. It may be used only if nothing was complained about
 */
export function resolveConfig(
  input: z.output<typeof configSchema>,
  surroundings: Surroundings,
  lineOf: (path: FieldPath) => number | null,
  complain: Complain,
): ProxyConfig {
  const upstreams = new Map(
    Object.entries(input.upstreams ?? {}).map(([name, each]) => [
      name,
      resolveUpstream(name, each, surroundings.env, complain),
    ]),
  );
  const plans = resolvePlans(input.plans ?? {}, complain);
  const gates = new Map(
    Object.entries(input.gates ?? {}).map(([name, each]) => [
      name,
      resolveGate(name, each, surroundings.env, complain),
    ]),
  );
  const routes = Object.entries(input.routes ?? {}).flatMap(([key, each]) => {
    const route = resolveRoute(key, each, { upstreams, gates, plans }, complain);
    if (route === null) return [];
    const refused = surroundings.refusedKey?.(route) ?? null;
    if (refused !== null) complain(['routes', key], refused);
    return [route];
  });
  refuseTwins(routes, lineOf, complain);
  const services = servicesOf(input.services ?? {}, surroundings.serviceNames, complain);
  if (upstreams.size === 0 && gates.size === 0 && routes.length === 0 && services.size === 0)
    complain([], 'sells nothing: write "upstreams" and "routes", or "services"');
  const written = JSON.stringify({ ...input, $schema: undefined });
  const opened = { upstreams: [...upstreams.values()], gates: [...gates.values()] };
  return frozen({ ...opened, routes, services, written });
}

/** Refuses routes that match the same addresses: which of two prices holds would be a matter of luck. */
function refuseTwins(
  routes: readonly Route[],
  lineOf: (path: FieldPath) => number | null,
  complain: Complain,
): void {
  const seen = new Map<string, Route>();
  for (const route of routes) {
    const shape = `${route.method} ${shapeOf(route.path)}`;
    const twin = seen.get(shape);
    if (twin === undefined) {
      seen.set(shape, route);
      continue;
    }
    const line = lineOf(['routes', twin.key]);
    complain(
      ['routes', route.key],
      `matches the same addresses as "${twin.key}"${line === null ? '' : ` on line ${line}`}: remove one`,
    );
  }
}

type ServicesInput = NonNullable<z.output<typeof configSchema>['services']>;

function servicesOf(
  input: ServicesInput,
  names: readonly string[] | null,
  complain: Complain,
): Map<string, HouseServiceRule> {
  return new Map(
    Object.entries(input).map(([name, { price, available, mpp }]) => {
      if (names !== null && !names.includes(name)) {
        const [best] = nearest(name, names, 1);
        complain(
          ['services', name],
          best === undefined
            ? 'the server has no services'
            : `there is no such service; did you mean "${best}"?`,
        );
      }
      if (price !== undefined && usdToMicros(price) === 0n)
        complain(['services', name, 'price'], 'must be above zero');
      return [
        name,
        {
          priceMicros: price === undefined ? null : usdToMicros(price),
          isAvailable: available ?? null,
          isSoldByMpp: mpp ?? null,
        },
      ];
    }),
  );
}

/** Freezes plain objects and lists all the way down. Maps are read-only by their type. */
function frozen<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  const parts = value instanceof Map ? [...value.values()] : Object.values(value);
  for (const part of parts) frozen(part);
  return value;
}
