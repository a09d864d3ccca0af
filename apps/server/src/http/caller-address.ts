import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Range = [Address, number];

/** Longest chain of proxies that is followed. */
const MAX_HOPS = 16;

/**
 * Reads a list of trusted proxies.
 *
 * @param list addresses and CIDR ranges, comma-separated; `loopback` and `private` stand for their ranges
 * @throws on anything else
 */
export function parseTrustedProxies(list: string): Range[] {
  return list
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
    .flatMap((item): Range[] => {
      if (item === 'loopback') return [ipaddr.parseCIDR('127.0.0.0/8'), ipaddr.parseCIDR('::1/128')];
      if (item === 'private') {
        return ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'].map((range) =>
          ipaddr.parseCIDR(range),
        );
      }
      if (item.includes('/')) return [ipaddr.parseCIDR(item)];
      const address = ipaddr.parse(item);
      return [[address, address.kind() === 'ipv4' ? 32 : 128]];
    });
}

/**
 * The address of whoever called: the socket's, unless that is a trusted proxy; then the last address in `Forwarded`
 * or `X-Forwarded-For` that is not one. A header that did not come through a trusted proxy is not looked at.
 *
 * @returns the address in its shortest form; IPv4 also where it came mapped into IPv6
 */
export function callerAddress(request: IncomingMessage, trusted: readonly Range[]): string {
  if (trusted.length === 0) return peerAddress(request.socket);
  let caller = ipaddr.process(peerAddress(request.socket));
  if (!isTrusted(caller, trusted)) return caller.toString();
  for (const hop of forwardedHops(request).slice(-MAX_HOPS).reverse()) {
    if (!ipaddr.isValid(hop)) break;
    caller = ipaddr.process(hop);
    if (!isTrusted(caller, trusted)) break;
  }
  return caller.toString();
}

/** A connection's address does not change, and is asked for with every request on it. */
const peers = new WeakMap<Socket, string>();

function peerAddress(socket: Socket): string {
  let address = peers.get(socket);
  if (address === undefined) {
    address = ipaddr.process(socket.remoteAddress ?? '0.0.0.0').toString();
    peers.set(socket, address);
  }
  return address;
}

/** The hops named by `Forwarded` (RFC 7239), else by `X-Forwarded-For`; the nearest last. */
function forwardedHops(request: IncomingMessage): string[] {
  const forwarded = request.headers.forwarded;
  if (forwarded !== undefined) {
    return forwarded.split(',').map((element) => {
      const value = /(?:^|;)\s*for\s*=\s*(?:"([^"]*)"|([^;\s]*))/i.exec(element);
      return withoutPort(value?.[1] ?? value?.[2] ?? '');
    });
  }
  const list = request.headers['x-forwarded-for'];
  const joined = Array.isArray(list) ? list.join(',') : (list ?? '');
  return joined === '' ? [] : joined.split(',').map((hop) => withoutPort(hop.trim()));
}

function withoutPort(hop: string): string {
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(hop);
  if (bracketed?.[1] !== undefined) return bracketed[1];
  const v4 = /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(hop);
  return v4?.[1] ?? hop;
}

function isTrusted(address: Address, trusted: readonly Range[]): boolean {
  return trusted.some(([range, bits]) => range.kind() === address.kind() && address.match(range, bits));
}

/** Whether an address belongs to no place on the open internet: such callers get no trial. */
export function isInternal(address: string): boolean {
  return ipaddr.process(address).range() !== 'unicast';
}

/**
 * What an address counts as when something is given out once to each: the address itself, or its /64 for IPv6,
 * because a single household holds that many.
 */
export function claimantOf(address: string): string {
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  const [network] = ipaddr.parseCIDR(`${parsed.toString()}/64`);
  const masked = ipaddr.IPv6.networkAddressFromCIDR(`${network.toString()}/64`);
  return `${masked.toString()}/64`;
}
