/**
 * Finds out who is calling, as far as the network can tell. Limits, trials and lock-outs go by it, so a caller must not be able to
 * choose it: one header is believed, from the proxies that are named, and every other is as good as not there.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Range = [Address, number];

/** Longest chain of proxies that is followed. */
const MAX_HOPS = 16;
/** A range that holds more than so much of the internet names no proxies; `fc00::/7` is the widest that does. */
const SHORTEST_PREFIX = { ipv4: 8, ipv6: 7 } as const;

/** Headers by which proxies tell whom they speak for. One is believed; of the others it is noticed that they came. */
const KNOWN_HEADERS = [
  ...['x-forwarded-for', 'forwarded', 'x-real-ip', 'cf-connecting-ip', 'true-client-ip', 'fly-client-ip'],
  ...['x-client-ip', 'x-cluster-client-ip', 'x-azure-clientip', 'fastly-client-ip'],
];

/** The proxies to believe, and the header to read. */
export interface ProxyTrust {
  proxies: readonly Range[];
  /** In lower case. `forwarded` is read by RFC 7239, any other as addresses with commas between them, the nearest last. */
  header: string;
}

/**
 * Reads a list of trusted proxies.
 *
 * @param list addresses and CIDR ranges, comma-separated; `loopback` and `private` stand for their ranges
 * @throws on anything else, and on a range so wide that its members could be anybody
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
      if (item.includes('/')) {
        const range = ipaddr.parseCIDR(item);
        if (range[1] < SHORTEST_PREFIX[range[0].kind()]) throw new Error(`${item} trusts everybody`);
        return [range];
      }
      const address = ipaddr.parse(item);
      return [[address, address.kind() === 'ipv4' ? 32 : 128]];
    });
}

/** One hop of the header: as it was written, and whether it is a proxy of ours. Null: it is no address. */
export interface Hop {
  written: string;
  trusted: boolean | null;
}

/** How a caller's address came about. */
export interface Derivation {
  address: string;
  /** The address at the other end of the socket. */
  peer: string;
  /**
   * - socket: the peer is no proxy of ours, so what it writes into headers is not looked at.
   * - header: the peer is one, and the address is what its header says.
   * - peer: it is one, and its header does not say: the proxy's own address stands for all who come so.
   */
  by: 'socket' | 'header' | 'peer';
  header: string;
  /** The hops that the header names, the nearest first, as far as it was looked at. */
  hops: readonly Hop[];
  /** Headers of other proxies, which came and were not looked at. */
  ignored: readonly string[];
}

/**
 * The address of whoever called, and how it came about: the socket's, unless that is a trusted proxy; then the last
 * address in the one header that is believed which is not one. In its shortest form; IPv4 also where it came mapped into
 * IPv6.
 */
export function deriveAddress(request: IncomingMessage, trust: ProxyTrust): Derivation {
  const { proxies, header } = trust;
  const { headers } = request;
  const peer = peerAddress(request.socket);
  const ignored = KNOWN_HEADERS.filter((name) => name !== header && headers[name] !== undefined);
  if (proxies.length === 0 || !isTrusted(ipaddr.process(peer), proxies)) {
    if (headers[header] !== undefined) ignored.unshift(header);
    return { address: peer, peer, by: 'socket', header, hops: [], ignored };
  }
  const hops: Hop[] = [];
  let address = peer;
  for (const written of hopsOf(header, headers[header]).slice(-MAX_HOPS).reverse()) {
    const hop = parseHop(written);
    const trusted = hop === null ? null : isTrusted(hop, proxies);
    hops.push({ written, trusted });
    if (hop === null) break;
    address = hop.toString();
    if (!trusted) break;
  }
  const by = hops.some(({ trusted }) => trusted !== null) ? 'header' : 'peer';
  return { address, peer, by, header, hops, ignored };
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

/** The hops that a header names; the nearest last. */
function hopsOf(header: string, value: string | string[] | undefined): string[] {
  const joined = Array.isArray(value) ? value.join(',') : (value ?? '');
  if (joined.trim() === '') return [];
  if (header !== 'forwarded') return joined.split(',').map((hop) => hop.trim());
  return splitOutsideQuotes(joined, ',').map((element) => {
    const named = splitOutsideQuotes(element, ';').flatMap((pair) => {
      const [, quoted, token] = /^\s*for\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s"]*))\s*$/i.exec(pair) ?? [];
      return quoted ?? token ?? [];
    });
    // RFC 7239: each parameter at most once.
    return named.length === 1 && named[0] !== undefined ? named[0] : '';
  });
}

/**
 * Splits from the right: what stands there was written by the nearest proxy, and a quote that a caller opens on the left
 * and never closes must not swallow it.
 */
function splitOutsideQuotes(text: string, separator: string): string[] {
  const parts: string[] = [];
  let end = text.length;
  let quoted = false;
  for (let index = text.length - 1; index >= 0; index -= 1) {
    const character = text[index];
    if (character === '"') {
      const backslashes = /\\*$/.exec(text.slice(Math.max(0, index - MAX_HOPS), index))?.[0].length ?? 0;
      if (backslashes % 2 === 0) quoted = !quoted;
    } else if (character === separator && !quoted) {
      parts.push(text.slice(index + 1, end));
      end = index;
    }
  }
  parts.push(text.slice(0, end));
  return parts.reverse();
}

/** @returns null for what is no address, such as `unknown`, a name, or a number that only looks like one */
function parseHop(hop: string): Address | null {
  const bare = withoutPort(hop);
  // Four decimal parts and nothing else: `010.0.0.1` and `167772161` mean different addresses to different readers.
  if (ipaddr.IPv4.isValidFourPartDecimal(bare)) return ipaddr.IPv4.parse(bare);
  return ipaddr.IPv6.isValid(bare) && !bare.includes('%') ? ipaddr.process(bare) : null;
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
 * The name under which an address is limited: the address itself, or its /64 for IPv6, because a single
 * household holds that many.
 */
export function claimantOf(address: string): string {
  return address.includes(':') ? networkOf(address, 64) : address;
}

/**
 * The site that an IPv6 address is of, its /48: whoever rents a server gets one for the asking, and 65,536 networks with
 * it. Null for IPv4, where an address is worth what a site is here.
 */
export function siteOf(address: string): string | null {
  return address.includes(':') && ipaddr.process(address).kind() === 'ipv6' ? networkOf(address, 48) : null;
}

/** How much more a site may do than one of its networks. */
export const SITE_FACTOR = 16;

function networkOf(address: string, bits: number): string {
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${parsed.toString()}/${bits}`).toString()}/${bits}`;
}
