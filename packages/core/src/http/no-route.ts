/** Answers a request that leads to no route: the methods that its address takes, or how the address is written. */
import type { FastifyInstance } from 'fastify';
import { Problem } from './problem.ts';

/** In the order in which `Allow` names them. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
/** The longest address that is looked up. */
const MOST_CHARACTERS_LOOKED_UP = 500;
const MOST_CHARACTERS_REPEATED = 200;
/** Headers of a refusal: an address that is switched on later must not stay unknown to a cache. */
const NOT_KEPT = { 'cache-control': 'no-store' };

/** An address with the methods that it takes. */
export interface TakenAddress {
  readonly path: string;
  readonly methods: readonly string[];
}

/** Looks an address up in a list, whatever its case; null: it is not there. */
export type FindInList = (path: string) => TakenAddress | null;

/** The addresses that have a route. `path` comes without a query everywhere. */
export interface KnownAddresses {
  /** All of them as they were registered, such as `/api/devices/:deviceId` and `/x402/*`, told or not. */
  all(): readonly TakenAddress[];
  /** Adds addresses that a wildcard's handler answers by a list of its own, which may change. */
  addList(find: FindInList): void;
  /** The methods that an address takes, as `Allow` names them; null if it is unknown. Each takes OPTIONS too. */
  allow(path: string): string | null;
  /** The 405 for an address that takes other methods; null if it takes this one, or is unknown. */
  otherMethod(method: string, path: string): Problem | null;
  /**
   * The answer to a request that led to no route.
   *
   * @returns `problem` is the 405 of `otherMethod` or a 404; `meant` is the address whose case or slashes are other ones,
   *   null if there is none
   */
  noRoute(method: string, path: string): { problem: Problem; meant: string | null };
}

/** An address as it was registered, such as `/api/devices/:deviceId`. */
interface KnownAddress {
  /** The text between its parameters: always one more than there are parameters. */
  readonly literals: readonly string[];
  /** Captures the parameters, in any case. */
  readonly pattern: RegExp;
  readonly routes: { readonly methods: readonly string[]; isTold(): boolean }[];
}

/** An address that a request may have meant. */
interface Meant {
  /** With the spelling of what is known. */
  readonly written: string;
  readonly methods: readonly string[];
  readonly parameters: number;
}

/**
 * Notes the routes that are added to `app` from now on, in plugins too. An address that ends in a wildcard is never what was
 * meant: such a route is how a part answers for what it does not know.
 */
export function noteRoutes(app: FastifyInstance): KnownAddresses {
  const known = new Map<string, KnownAddress>();
  const wildcards = new Map<string, string[]>();
  const lists: FindInList[] = [];
  app.addHook('onRoute', (route) => {
    const { url } = route;
    const methods = [route.method].flat().filter((each) => METHODS.includes(each));
    if (methods.length === 0) return;
    if (url.includes('*')) {
      wildcards.set(url, [...(wildcards.get(url) ?? []), ...methods]);
      return;
    }
    const address = known.get(url) ?? knownAddress(url);
    // Read when it is asked: a hook of the route's own plugin, which runs later, may have set it.
    address.routes.push({ methods, isTold: () => route.config?.isTold?.() ?? true });
    known.set(url, address);
  });

  const meantBy = (path: string) => addressesMeant(path, [...known.values()], lists);

  function allow(path: string): string | null {
    const exact = meantBy(path).filter(({ written }) => written === path.replace(/(?<=.)\/$/, ''));
    const methods = METHODS.filter((each) => exact.some((one) => one.methods.includes(each)));
    return methods.length === 0 ? null : methods.join(', ');
  }

  function otherMethod(method: string, path: string): Problem | null {
    const taken = allow(path);
    if (taken === null || taken.split(', ').includes(method)) return null;
    return new Problem(405, 'METHOD_NOT_ALLOWED', `This address takes ${taken}, not ${method}.`, {
      details: { charged: false },
      headers: { allow: taken, ...NOT_KEPT },
    });
  }

  return {
    all: () => [
      ...[...known].map(([path, { routes }]) => ({
        path,
        methods: routes.flatMap(({ methods }) => methods),
      })),
      ...[...wildcards].map(([path, methods]) => ({ path, methods })),
    ],
    addList: (find) => void lists.push(find),
    allow,
    otherMethod,
    noRoute(method, path) {
      const other = otherMethod(method, path);
      if (other !== null) return { problem: other, meant: null };
      // What has fewer parameters was more likely meant: `/api/keys/me` rather than `/api/keys/:keyId`.
      const [likeliest] = meantBy(path).toSorted((a, b) => a.parameters - b.parameters);
      const meant = likeliest?.written ?? null;
      const details = {
        hint:
          meant === null
            ? 'GET / tells what there is.'
            : `Did you mean ${meant}? Upper case, lower case and double slashes matter.`,
        ...(meant === null ? {} : { knownPaths: [meant] }),
        charged: false,
      };
      const message = `There is nothing at ${method} ${shortened(path)}.`;
      return {
        problem: new Problem(404, 'NOT_FOUND', message, { details, headers: NOT_KEPT }),
        meant,
      };
    },
  };
}

/** The addresses that a request may have meant: those that were registered, and those of lists. */
function addressesMeant(
  path: string,
  known: readonly KnownAddress[],
  lists: readonly FindInList[],
): readonly Meant[] {
  if (path.length > MOST_CHARACTERS_LOOKED_UP) return [];
  const asked = path.replace(/\/{2,}/g, '/').replace(/(?<=.)\/$/, '');
  const registered = known.flatMap((address): Meant | [] => {
    const written = writtenAs(address, asked);
    const methods = written === null ? [] : toldMethods(address);
    if (written === null || methods.length === 0) return [];
    return { written, methods, parameters: address.literals.length - 1 };
  });
  const listed = lists.flatMap((find): Meant | [] => {
    const address = find(asked);
    return address === null ? [] : { written: address.path, methods: address.methods, parameters: 0 };
  });
  return [...registered, ...listed];
}

function toldMethods({ routes }: KnownAddress): readonly string[] {
  return routes.filter((route) => route.isTold()).flatMap(({ methods }) => methods);
}

function knownAddress(url: string): KnownAddress {
  const literals = url.split(/:\w+/);
  const pattern = literals.map((literal) => literal.replace(/[.+?^${}()|[\]\\]/g, '\\$&')).join('([^/]+)');
  return { literals, pattern: new RegExp(`^${pattern}$`, 'i'), routes: [] };
}

/** `asked` with the registered spelling of everything but the parameters; null if it is another address. */
function writtenAs({ literals, pattern }: KnownAddress, asked: string): string | null {
  const parameters = pattern.exec(asked)?.slice(1);
  if (parameters === undefined) return null;
  return literals.map((literal, at) => literal + (parameters[at] ?? '')).join('');
}

function shortened(path: string): string {
  return path.length > MOST_CHARACTERS_REPEATED ? `${path.slice(0, MOST_CHARACTERS_REPEATED)}…` : path;
}
