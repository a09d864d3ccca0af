/** Looks at what the proxies in front make of a caller's address: limits and trials go by it. */
import { z } from 'zod';
import { type Finding, findingsOf, type Look } from './finding.ts';
import { LOOPBACK, type PublicAddressParts } from './public-address.ts';

/** Addresses that are documentation's own (RFC 5737): nobody has them, so a server that believes one believes its callers. */
const FORGED = ['203.0.113.77', '198.51.100.78'] as const;
const sold = z.object({ services: z.array(z.object({ path: z.string().startsWith('/x402/') })) });
const caller = z.object({
  address: z.string(),
  peer: z.string(),
  by: z.enum(['socket', 'header', 'peer']),
  ignored: z.array(z.string()),
});

const says = findingsOf('proxy');

/** Whether callers can choose their own address, and whether the proxy in front names them at all. */
export function lookAtProxies(parts: PublicAddressParts): Look {
  const { url, isPublic, proxyHeader, hasProxies, operatorToken } = parts;
  return {
    step: 'proxy',
    async look(signal) {
      // Who asks where the server listens may stand where its proxies do, and is believed then.
      if (!isPublic) return says.off('no proxy is passed on the way from here');
      if (await believesForged(parts, signal))
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
      return operatorToken === null ? unseen() : asDerived(parts, operatorToken, signal);
    },
  };
}

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
async function believesForged(
  { url, proxyHeader }: PublicAddressParts,
  signal: AbortSignal,
): Promise<boolean> {
  const path = await somethingSold(url, signal);
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
async function somethingSold(url: string, signal: AbortSignal): Promise<string | null> {
  const response = await fetch(new URL('/x402/catalog', url), { signal, redirect: 'manual' });
  const told = sold.safeParse(await response.json().catch(() => null)).data;
  return told?.services[0]?.path ?? null;
}

async function asDerived(
  { url, proxyHeader }: PublicAddressParts,
  token: string,
  signal: AbortSignal,
): Promise<Finding> {
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
