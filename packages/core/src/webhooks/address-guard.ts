/**
 * Where a webhook may lead: to the open internet and nowhere else, unless it is configured otherwise. What a name stands
 * for is looked at when the connection is made, and the connection goes to the very address that was looked at: a name
 * that stands for something else a moment later gains nothing by it.
 */
import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { isInternal } from '../http/caller-address.ts';

const MAX_URL_CHARACTERS = 500;
/** The time for one question to one name server, and below it how often each is asked. */
const QUESTION_MS = 2_000;
const TRIES = 2;
/** Then a look-up is given up, however many name servers there are. */
const LOOK_UP_MS = 6_000;
/** Ports below are those of the house's and the internet's own services, which must not be knocked at. */
const FIRST_FREE_PORT = 1_024;
/** All of IPv6 that is given out to hosts (RFC 4291, IANA). */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3');

/** The address that was looked up is not one of the open internet. */
export class PrivateAddress extends Error {
  constructor() {
    super('the address is not on the open internet');
    this.name = 'PrivateAddress';
  }
}

/** How a name is looked up: all its addresses. */
export type LookUpAll = (
  hostname: string,
  done: (error: Error | null, addresses: readonly LookupAddress[]) => void,
) => void;

/**
 * Asks the name servers, and not the system: what the system looks up holds a thread of the whole process for as long as its
 * name servers take, and cannot be given up. So names of the hosts file are unknown here; none of them is on the open internet.
 *
 * @param servers the system's name servers unless given
 */
export function byNameServers(servers?: readonly string[]): LookUpAll {
  return (hostname, done) => {
    // A new one each time: it reads which name servers there are.
    const resolver = new Resolver({ timeout: QUESTION_MS, tries: TRIES });
    if (servers !== undefined) resolver.setServers(servers);
    const end = setTimeout(() => resolver.cancel(), LOOK_UP_MS);
    void Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]).then(([v4, v6]) => {
      clearTimeout(end);
      const addresses = [
        ...(v4.status === 'fulfilled' ? v4.value.map((address) => ({ address, family: 4 })) : []),
        ...(v6.status === 'fulfilled' ? v6.value.map((address) => ({ address, family: 6 })) : []),
      ];
      if (addresses.length > 0 || v4.status === 'fulfilled') return done(null, addresses);
      done(v4.reason, []);
    });
  };
}

/** Whether an address, written in any way, is one of the open internet. */
export function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address) || isInternal(address)) return false;
  const parsed = ipaddr.process(address);
  return parsed.kind() === 'ipv4' || parsed.match(GLOBAL_IPV6);
}

/**
 * Says what is wrong with the address of a webhook, in words that follow the field's name; null: nothing, as far as can be said
 * before anybody is asked.
 */
export function refusedAddress(text: string, allowPrivate: boolean): string | null {
  const tooLong = `must have at most ${MAX_URL_CHARACTERS} characters, those outside ASCII written out`;
  if (text.length > MAX_URL_CHARACTERS) return tooLong;
  if (!URL.canParse(text)) return 'must be an address such as https://example.com/farebox';
  const url = new URL(text);
  // As it is stored and asked for: a letter outside ASCII takes six characters or more.
  if (url.href.length > MAX_URL_CHARACTERS) return tooLong;
  if (url.protocol !== 'https:' && !(allowPrivate && url.protocol === 'http:'))
    return 'must begin with https://';
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or a password';
  if (url.hash !== '') return 'must not end in a fragment';
  if (allowPrivate) return null;
  const port = url.port === '' ? 443 : Number(url.port);
  if (port !== 443 && port < FIRST_FREE_PORT) return 'must use port 443, or one from 1024 on';
  const host = hostOf(url);
  if (isIP(host) !== 0 && !isPublic(host)) return 'must lead to the open internet';
  if (/(^|\.)(localhost|local|internal|home\.arpa)$/.test(host)) return 'must lead to the open internet';
  return null;
}

/** The host of an address, without the brackets of IPv6 and the dot that may end a name. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}

/**
 * A lookup for connections. It refuses a name as soon as one of its addresses is not public: who has both means to get by.
 *
 * @param lookUp by the name servers unless given
 */
export function guardedLookup(lookUp: LookUpAll = byNameServers()): LookupFunction {
  return (hostname, options, done) => {
    lookUp(hostname, (error, addresses) => {
      const [first] = addresses;
      if (error !== null || first === undefined)
        return done(error ?? new Error('there is no such host'), '', 0);
      if (addresses.some(({ address }) => !isPublic(address))) return done(new PrivateAddress(), '', 0);
      if (options.all === true) return done(null, [...addresses]);
      done(null, first.address, first.family);
    });
  };
}
