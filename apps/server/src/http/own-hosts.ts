/** Which hosts a request may name, where a browser must not be used by the page of another site. */
import type { FastifyRequest } from 'fastify';
import { Problem } from './problem.ts';

/** Names by which a machine calls itself: no other site can be reached by them. */
const THIS_MACHINE = ['localhost', '127.0.0.1', '::1'];

/** @param names host names beside those of this machine */
export function ownHosts(names: readonly string[]): ReadonlySet<string> {
  return new Set([...THIS_MACHINE, ...names]);
}

/**
 * Refuses a request whose `Host` or `Origin` names another host. A page of another site that makes a browser ask a machine in
 * its own network is known by the names it uses.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#security-warning
 *
 * @param variable by which the operator allows further names
 * @throws Problem 403
 */
export function refuseForeign(
  { headers: { host, origin } }: FastifyRequest,
  hosts: ReadonlySet<string>,
  variable: string,
): void {
  for (const [name, named] of [
    ['Host', host === undefined ? undefined : hostNameOf(`http://${host}`)],
    ['Origin', origin === undefined ? undefined : hostNameOf(origin)],
  ] as const) {
    if (named === undefined || hosts.has(named)) continue;
    throw new Problem(403, 'FOREIGN_HOST', `${name} names a host that this address does not serve.`, {
      details: {
        hint: `Use the public address of this server. Its operator can allow further names with ${variable}.`,
        charged: false,
      },
    });
  }
}

/** Without brackets and port; empty for what is no address, such as the origin `null`. */
function hostNameOf(url: string): string {
  return (URL.parse(url)?.hostname ?? '').replace(/^\[|\]$/g, '').toLowerCase();
}
