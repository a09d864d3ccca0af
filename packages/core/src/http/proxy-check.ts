/**
 * Says when the proxies in front and what this server was told of them do not fit: at the start as far as it can be known
 * then, and once for each kind of misfit when a request shows it.
 */
import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { type Derivation, deriveAddress, isInternal, type ProxyTrust } from './caller-address.ts';

export interface ProxyNotice {
  level: 'info' | 'warn';
  message: string;
}

/**
 * How callers will be told apart, and what of it cannot work.
 *
 * @param setting.host the address that the server listens on
 * @param setting.publicUrl null while it is the server's own
 */
export function proxyNotices(
  trust: ProxyTrust,
  setting: { host: string; publicUrl: string | null },
): ProxyNotice[] {
  const { proxies, header } = trust;
  const warn = (message: string): ProxyNotice => ({ level: 'warn', message });
  if (proxies.length === 0) {
    return [
      {
        level: 'info',
        message: 'callers are told apart by the address of their socket: no proxy is trusted',
      },
      ...(setting.publicUrl?.startsWith('https:') === true
        ? [
            warn(
              'PUBLIC_URL is https and this server speaks HTTP, so something stands in front of it; without TRUSTED_PROXIES all callers have its address, and share one limit',
            ),
          ]
        : []),
      ...(header !== 'x-forwarded-for'
        ? [warn(`PROXY_HEADER is ${header} and TRUSTED_PROXIES is empty: the header is not looked at`)]
        : []),
    ];
  }
  const told: ProxyNotice = {
    level: 'info',
    message: `callers are told apart by ${header} of ${proxies.length} trusted ranges, and by nothing else`,
  };
  return canComeFrom(setting.host, trust)
    ? [told]
    : [
        told,
        warn(
          `HOST is ${setting.host}, where only this machine can connect, and TRUSTED_PROXIES does not name it: no proxy can ever be believed`,
        ),
      ];
}

/** Whether any trusted proxy could be at the other end of a socket. */
function canComeFrom(host: string, { proxies }: ProxyTrust): boolean {
  const address = host === 'localhost' ? '127.0.0.1' : host;
  if (ipaddr.process(address).range() !== 'loopback') return true;
  const loopback = ipaddr.process(isIPv6(address) ? '::1' : '127.0.0.1');
  return proxies.some(([range]) => range.kind() === loopback.kind() && range.range() === 'loopback');
}

export interface AddressReader {
  /** The caller's address. */
  addressOf(request: IncomingMessage): string;
  /** The same, with how it came about. */
  explain(request: IncomingMessage): Derivation;
}

/** @param onMisfit told once for each kind */
export function createAddressReader(trust: ProxyTrust, onMisfit: (message: string) => void): AddressReader {
  const told = new Set<string>();
  const tell = (kind: string, message: string) => {
    if (told.has(kind)) return;
    told.add(kind);
    onMisfit(message);
  };

  function check({ by, peer, header, hops, ignored }: Derivation): void {
    const names = ignored.join(', ');
    if (by === 'socket' && ignored.length > 0 && isInternal(peer)) {
      tell(
        by,
        `${peer} sends ${names} and is not one of TRUSTED_PROXIES: if it is a proxy, all who come through it share its address`,
      );
    }
    if (by === 'peer' && (hops.length > 0 || ignored.length > 0)) {
      const why = hops.length > 0 ? `${header} without an address in it` : `${names} and no ${header}`;
      tell(by, `the trusted proxy ${peer} sends ${why}: PROXY_HEADER must name what it sets`);
    }
  }

  return {
    addressOf(request) {
      const derived = deriveAddress(request, trust);
      if (derived.by !== 'header') check(derived);
      return derived.address;
    },
    explain: (request) => deriveAddress(request, trust),
  };
}
