/** Holds the routes of a configuration against the addresses of this server itself, which win. */
import { type PathPattern, RESERVED_FIRST_SEGMENTS } from '../config/route-key.ts';
import { readAddress } from '../wire/path.ts';

/** An address of this server as it is registered, such as `/pages/:service` and `/x402/*`. */
export interface OwnAddress {
  readonly path: string;
  readonly methods: readonly string[];
}

/** The calls of a route that this server's own addresses take. */
export interface TakenOfRoute {
  /** The own address that takes every call of the route, so that none would reach it; null: none does. */
  readonly whole: string | null;
  /** Own addresses that the route's pattern covers too. They answer by themselves. */
  readonly parts: readonly string[];
}

/** An address of this server, in its parts. */
interface ReadAddress extends OwnAddress {
  /** Without the wildcard at its end. */
  readonly segments: readonly { readonly text: string; readonly isParameter: boolean }[];
}

/** A server's own addresses, read once for all routes that are held against them. */
export interface OwnAddresses {
  /** By how many parts they have. */
  readonly byLength: ReadonlyMap<number, readonly ReadAddress[]>;
  /** Those that take whatever is below them. */
  readonly wildcards: readonly ReadAddress[];
}

/** Reads addresses as they are registered. */
export function readOwnAddresses(own: readonly OwnAddress[]): OwnAddresses {
  const byLength = new Map<number, ReadAddress[]>();
  const wildcards: ReadAddress[] = [];
  for (const { path, methods } of own) {
    const segments = path
      .split('/')
      .slice(1)
      .map((text) => ({ text, isParameter: text.startsWith(':') }));
    if (segments.at(-1)?.text === '*') {
      wildcards.push({ path, methods, segments: segments.slice(0, -1) });
      continue;
    }
    const others = byLength.get(segments.length) ?? [];
    others.push({ path, methods, segments });
    byLength.set(segments.length, others);
  }
  return { byLength, wildcards };
}

/** Tells which of a server's own addresses answer what a route would. */
export function takenOfRoute(
  { method, path }: { readonly method: string; readonly path: PathPattern },
  own: OwnAddresses,
): TakenOfRoute {
  const theirs = path.segments.map((each) => (each.kind === 'literal' ? each.text : null));
  // A slash at the end makes no other address of this server's own.
  if (theirs.length > 1 && theirs.at(-1) === '') theirs.pop();
  const parts: string[] = [];
  const below = own.wildcards.filter(({ segments }) => segments.length < theirs.length);
  for (const { path: address, methods, segments } of [...(own.byLength.get(theirs.length) ?? []), ...below]) {
    const meets = segments.every(
      ({ text, isParameter }, index) => isParameter || theirs[index] === null || theirs[index] === text,
    );
    if (!meets || !methods.includes(method)) continue;
    if (segments.every(({ text, isParameter }, index) => isParameter || theirs[index] === text))
      return { whole: address, parts: [] };
    // A parameter is never empty, so that `/:name` does not cover `/`.
    if (segments.every(({ text }) => text !== '')) parts.push(address);
  }
  return { whole: null, parts: parts.sort() };
}

/** Whether an address is below those that are always this server's own, whether something is there or not. */
export function isReserved(url: string): boolean {
  const address = readAddress(url);
  const first = 'refused' in address ? undefined : address.segments[0]?.text.toLowerCase();
  return first !== undefined && RESERVED_FIRST_SEGMENTS.includes(first);
}
