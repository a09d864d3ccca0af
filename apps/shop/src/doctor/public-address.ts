/** Looks at the server from outside, at the address that callers use: its name, its certificate, and what the proxies in front do. */
import { connect } from 'node:tls';
import { findingsOf, type Look } from './finding.ts';

const CERTIFICATE_GOOD_FOR_DAYS = 14;
const DAY_MS = 86_400_000;
export const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

export interface Names {
  /** @throws when there is no such name */
  addressesOf(host: string): Promise<readonly string[]>;
  /** Texts of a name; none when there is no such name. @throws when nobody answers */
  textsOf(name: string): Promise<readonly string[]>;
}

export interface PublicAddressParts {
  /** Where callers come, or where the server listens while `PUBLIC_URL` is not set. */
  url: string;
  isPublic: boolean;
  /** The header in which proxies name the caller, and whether any proxy is trusted. */
  proxyHeader: string;
  hasProxies: boolean;
  /** A token for the operator's page; null without one. */
  operatorToken: string | null;
  names: Names;
  nowMs(): number;
}

export function lookAtDomain({ url, isPublic, names }: PublicAddressParts): Look {
  const says = findingsOf('domain');
  return {
    step: 'domain',
    async look() {
      if (!isPublic)
        return says.note(`PUBLIC_URL is not set, so the server is looked at where it listens: ${url}`);
      const { hostname } = new URL(url);
      const addresses = await names.addressesOf(hostname).catch(() => []);
      return addresses.length === 0
        ? says.mend(
            `${hostname} has no address`,
            'Make an A or AAAA record for it, and wait until it is known.',
          )
        : says.fine(`${hostname} is ${addresses.slice(0, 4).join(', ')}`);
    },
  };
}

export function lookAtTls({ url, nowMs }: PublicAddressParts): Look {
  const says = findingsOf('tls');
  return {
    step: 'tls',
    async look(signal) {
      const { protocol, hostname, port } = new URL(url);
      if (protocol !== 'https:')
        return LOOPBACK.test(hostname)
          ? says.off(`${url} is this machine alone`)
          : says.mend(
              `${url} is not of https: keys travel in the open`,
              'Put a proxy with TLS in front, and https in PUBLIC_URL.',
            );
      const certificate = await certificateOf({ host: hostname, port: Number(port || 443) }, signal);
      if (typeof certificate === 'string')
        return says.mend(
          `the certificate is not accepted: ${certificate}`,
          'Serve a valid certificate with its whole chain.',
        );
      const days = Math.floor((certificate.endsAtMs - nowMs()) / DAY_MS);
      return days < CERTIFICATE_GOOD_FOR_DAYS
        ? says.mend(
            `the certificate ends in ${days} days`,
            'Renew it, and see why nothing renews it by itself.',
          )
        : says.fine(`the certificate is good for ${days} days`);
    },
  };
}

/** @returns when it ends, or why it is not accepted */
function certificateOf(
  { host, port }: { host: string; port: number },
  signal: AbortSignal,
): Promise<{ endsAtMs: number } | string> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, servername: host });
    const end = (told: { endsAtMs: number } | string) => {
      socket.destroy();
      resolve(told);
    };
    signal.addEventListener('abort', () => end('nobody answers'));
    socket.on('secureConnect', () => end({ endsAtMs: Date.parse(socket.getPeerCertificate().valid_to) }));
    socket.on('error', (error) => end('code' in error ? String(error.code) : 'no connection'));
  });
}

export function lookAtServer({ url }: PublicAddressParts): Look {
  const says = findingsOf('server');
  return {
    step: 'server',
    async look(signal) {
      const response = await fetch(new URL('/health/ready', url), { signal, redirect: 'manual' }).catch(
        () => null,
      );
      if (response === null)
        return says.mend(
          `nobody answers at ${url}`,
          'Start the server, and see that the proxy in front leads to it.',
        );
      return response.status === 200
        ? says.fine('it is ready for calls')
        : says.mend(
            `/health/ready answers ${response.status}`,
            'Read the log of the server and of the proxy.',
          );
    },
  };
}
