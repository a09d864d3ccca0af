/** Which hosts a request may name, where a browser must not be used by the page of another site. */
import type { FastifyRequest } from 'fastify';
import ipaddr from 'ipaddr.js';
import { Problem } from './problem.ts';

/** Names by which a machine calls itself: no other site can be reached by them. */
const THIS_MACHINE = ['localhost', '127.0.0.1', '::1'];

export interface OwnHosts {
  names: ReadonlySet<string>;
  /** The name that the open internet reaches this server by, under which pages of any site may ask; null without one. */
  openName: string | null;
}

/**
 * @param publicUrl the address of this server
 * @param names host names beside that and those of this machine
 */
export function ownHosts(publicUrl: string, names: readonly string[]): OwnHosts {
  const name = hostNameOf(publicUrl);
  const isOpen = publicUrl.startsWith('https:') && isOnOpenInternet(name);
  return { names: new Set([...THIS_MACHINE, name, ...names]), openName: isOpen ? name : null };
}

/** Names without a dot, and those that are kept for networks of one's own, lead to no server of the internet. */
function isOnOpenInternet(name: string): boolean {
  if (ipaddr.isValid(name)) return ipaddr.process(name).range() === 'unicast';
  return name.includes('.') && !/\.(localhost|local|internal|lan|home|corp|home\.arpa|test)\.?$/.test(name);
}

/**
 * Refuses a request whose `Host` or `Origin` names another host. A page of another site that makes a browser ask a machine in
 * its own network is known by the names it uses. Under the name of a server of the open internet the page may be any site's:
 * a browser adds nothing there that its visitor alone could have.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#security-warning
 *
 * @param variable by which the operator allows further names
 * @throws Problem 403
 */
export function refuseForeign(
  { headers: { host, origin } }: FastifyRequest,
  hosts: OwnHosts,
  variable: string,
): void {
  const asked = host === undefined ? undefined : hostNameOf(`http://${host}`);
  const isOpen = asked !== undefined && asked === hosts.openName;
  for (const [name, named] of [
    ['Host', asked],
    ['Origin', origin === undefined || isOpen ? undefined : hostNameOf(origin)],
  ] as const) {
    if (named === undefined || hosts.names.has(named)) continue;
    throw new Problem(403, 'FOREIGN_HOST', `${name} names a host that this address does not serve.`, {
      details: {
        hint: `Use the public address of this server. Its operator can allow further names with ${variable}.`,
        charged: false,
      },
    });
  }
}

/** The name of a host without brackets and port; empty for what is no address, such as the origin `null`. */
function hostNameOf(url: string): string {
  return (URL.parse(url)?.hostname ?? '').replace(/^\[|\]$/g, '').toLowerCase();
}
