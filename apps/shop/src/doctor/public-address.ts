/** Looks at the server from outside, at the address that callers use: its name, its certificate, and what the proxies in front do. */
import { connect } from 'node:tls';
import { z } from 'zod';
import { type Finding, findingsOf, type Look } from './finding.ts';

const CERTIFICATE_GOOD_FOR_DAYS = 14;
const DAY_MS = 86_400_000;
/** Addresses that are documentation's own (RFC 5737): nobody has them, so a server that believes one believes its callers. */
const FORGED = ['203.0.113.77', '198.51.100.78'] as const;
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

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

const sold = z.object({ services: z.array(z.object({ path: z.string().startsWith('/x402/') })) });
const caller = z.object({
  address: z.string(),
  peer: z.string(),
  by: z.enum(['socket', 'header', 'peer']),
  ignored: z.array(z.string()),
});

/** Whether callers can choose their own address, and whether the proxy in front names them at all. */
export function lookAtProxies(parts: PublicAddressParts): Look {
  const { url, isPublic, proxyHeader, hasProxies, operatorToken } = parts;
  const says = findingsOf('proxy');
  return {
    step: 'proxy',
    async look(signal) {
      // Who asks where the server listens may stand where its proxies do, and is believed then.
      if (!isPublic) return says.off('no proxy is passed on the way from here');
      if (await believesForged(signal))
        return says.mend(
          `callers choose their own address: one wrote another into ${proxyHeader} and was believed`,
          'Have the nearest proxy set that header anew, or append to it, with every request.',
        );
      const { protocol } = new URL(url);
      if (protocol === 'https:' && !hasProxies)
        return says.mend(
          'something in front speaks TLS, and TRUSTED_PROXIES names no proxy: all callers count as one',
          'Name the addresses of the proxies in TRUSTED_PROXIES.',
        );
      return operatorToken === null ? unseen() : asDerived(operatorToken, signal);
    },
  };

  function unseen(): Finding {
    return says.note(
      'a forged address is not believed; how callers are named cannot be seen without ADMIN_TOKENS',
      'Set ADMIN_TOKENS, and look again.',
    );
  }

  /**
   * Whether the server believes an address that this caller wrote itself. One that is believed has made no request yet, so that its limit
   * is whole but for this one; of this caller's own at least one is counted by then.
   */
  async function believesForged(signal: AbortSignal): Promise<boolean> {
    const path = await somethingSold(signal);
    if (path === null) return false;
    const isFirst = async (headers: Record<string, string>) => {
      const response = await fetch(new URL(path, url), { signal, redirect: 'manual', headers });
      const limit = response.headers.get('ratelimit-limit');
      const left = response.headers.get('ratelimit-remaining');
      return limit !== null && left !== null && Number(left) === Number(limit) - 1;
    };
    const forged = (address: string) => ({
      [proxyHeader]: proxyHeader === 'forwarded' ? `for=${address}` : address,
    });
    await isFirst({});
    return (await isFirst(forged(FORGED[0]))) && (await isFirst(forged(FORGED[1])));
  }

  /** The address of a paid call: without a payment it costs nothing, and tells how often it may be asked. */
  async function somethingSold(signal: AbortSignal): Promise<string | null> {
    const response = await fetch(new URL('/x402/catalog', url), { signal, redirect: 'manual' });
    const told = sold.safeParse(await response.json().catch(() => null)).data;
    return told?.services[0]?.path ?? null;
  }

  async function asDerived(token: string, signal: AbortSignal): Promise<Finding> {
    const { protocol, hostname } = new URL(url);
    if (protocol !== 'https:' && !LOOPBACK.test(hostname)) return unseen();
    const response = await fetch(new URL('/admin/api/caller', url), {
      signal,
      redirect: 'manual',
      headers: { authorization: `Bearer ${token}` },
    });
    const told = caller.safeParse(await response.json().catch(() => null)).data;
    if (told === undefined)
      return says.mend(
        `/admin/api/caller answers ${response.status}`,
        'See that ADMIN_TOKENS is that of the running server.',
      );
    if (told.by === 'peer')
      return says.mend(
        `a trusted proxy names no caller in ${proxyHeader}: its own address stands for all`,
        'Have the proxy set that header, or name in PROXY_HEADER the one that it sets.',
      );
    if (told.by === 'socket' && told.ignored.length > 0)
      return says.mend(
        `a proxy that is not trusted names callers in ${told.ignored.join(', ')}`,
        `Name its address (${told.peer}) in TRUSTED_PROXIES if it is yours.`,
      );
    return says.fine(
      `this machine comes as ${told.address}, by ${told.by === 'socket' ? 'its connection' : proxyHeader}`,
    );
  }
}
