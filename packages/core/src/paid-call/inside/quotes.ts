/** The terms that services are sold for at a door: each made once, and again when a rail's offer changes. */
import { LRUCache } from 'lru-cache';
import { usdToMicros } from '../../ledger/money.ts';
import type { Service } from '../../service/define.ts';
import type { ReadCall } from '../../service/route.ts';
import type { Challenge } from '../challenge.ts';
import type { Door } from '../door.ts';
import type { Quote, Rail } from '../rail.ts';
import type { PaidRequest } from '../sale.ts';
import { streamTerms } from './streams.ts';

/** How many prices and addresses of routes are remembered; a further one takes the place of the one asked for longest ago. */
const MOST_REMEMBERED = 2_000;

/** A service as a door sells it. */
interface Sold {
  quote: Quote;
  challenge: Challenge;
  /** The revision of the rails' offers when the challenge was made. */
  revision: number;
}

export interface QuotesParts {
  rails: readonly Rail[];
  door: Door;
  baseUrl: string;
  maxAnswerBytes: number;
}

/** The quotes of one door. */
export class Quotes {
  readonly #parts: QuotesParts;
  readonly #sold = new WeakMap<Service, Sold>();
  // By size and not by `max`, which takes the memory of all keys at once.
  readonly #ofRoutes = new LRUCache<string, Sold>({ maxSize: MOST_REMEMBERED, sizeCalculation: () => 1 });

  constructor(parts: QuotesParts) {
    this.#parts = parts;
  }

  /**
   * The quote and 402 of a call.
   *
   * @param called the call as its route read it; null: the service without a route, or a call that could not be read
   */
  of(service: Service, called: ReadCall | null): Pick<Sold, 'quote' | 'challenge'> {
    const sold = called === null ? this.#usual(service) : this.#ofRoute(service, called);
    const current = this.#revision;
    if (sold.revision !== current) {
      sold.challenge = this.#parts.door.challenge(sold.quote);
      sold.revision = current;
    }
    return sold;
  }

  #usual(service: Service): Sold {
    const known = this.#sold.get(service);
    if (known !== undefined) return known;
    const sold = this.#make(service, null);
    this.#sold.set(service, sold);
    return sold;
  }

  #ofRoute(service: Service, called: ReadCall): Sold {
    const name = `${service.path} ${called.priceMicros} ${called.address}`;
    const known = this.#ofRoutes.get(name);
    const sold = known?.quote.service === service ? known : this.#make(service, called);
    this.#ofRoutes.set(name, sold);
    return sold;
  }

  #make(service: Service, called: ReadCall | null): Sold {
    const { door, baseUrl, maxAnswerBytes } = this.#parts;
    const quote: Quote = {
      service,
      priceMicros: called?.priceMicros ?? usdToMicros(service.priceUsd),
      ...soldBy(door, service, baseUrl, called),
      ...streamTerms(service, { maxAnswerBytes, isAtRoute: isRouteDoor(door) }),
    };
    return { quote, challenge: door.challenge(quote), revision: this.#revision };
  }

  get #revision(): number {
    return this.#parts.rails.reduce((sum, rail) => sum + (rail.revision ?? 0), 0);
  }
}

/** Whether a door sells at the services' own addresses. */
const isRouteDoor = ({ tool, prefix }: Door): boolean => tool === undefined && prefix === '';

/** The resource that a door sells: the tool URI of x402's MCP transport, a route's own address, or one below the prefix. */
function soldBy(
  { tool, prefix }: Door,
  service: Service,
  baseUrl: string,
  called: ReadCall | null,
): Pick<Quote, 'resourceUrl' | 'tool' | 'atRoute'> {
  const { route } = service;
  if (prefix === '' && route !== null)
    return { resourceUrl: `${baseUrl}${called?.address ?? route.address}`, atRoute: true };
  if (tool === undefined) return { resourceUrl: `${baseUrl}${prefix}/${service.path}` };
  const name = tool(service);
  return { resourceUrl: `mcp://tool/${name}`, tool: name };
}

/** A call as its service's route reads it, or why it cannot be read. Both are null for a service without a route. */
export function readByRoute({ service, rawBody, sent }: PaidRequest): {
  called: ReadCall | null;
  unread: unknown;
} {
  if (service.route === null) return { called: null, unread: null };
  try {
    return { called: service.route.read({ rawBody, http: sent ?? null }), unread: null };
  } catch (error) {
    return { called: null, unread: error };
  }
}
