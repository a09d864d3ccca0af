/** The servers that the official pages lie on: each has a connection of its own, so that one that fails stands in no other's way. */
import type { UpstreamDefinition, UpstreamHttp } from '../upstreams/define.ts';
import { connectUpstream, type UpstreamConnection, type UpstreamParts } from '../upstreams/http.ts';

/** The longest of these pages is a regulation of the European Union with some 3 MB. */
const MAX_PAGE_BYTES = 8 * 1024 * 1024;
const PAGE_TIMEOUT_MS = 20_000;
/** All pages of one server may be read in one round. */
const REQUESTS_PER_MINUTE = 60;

/** Where the pages are read: each at its own address, or all of them at a mirror, as `MIRROR/HOST/PATH`. */
export type PagesAt = 'direct' | { mirror: string };

export class PageSites {
  readonly #at: PagesAt;
  readonly #parts: UpstreamParts;
  readonly #connections = new Map<string, UpstreamConnection>();

  constructor(at: PagesAt, parts: UpstreamParts) {
    this.#at = at;
    this.#parts = parts;
  }

  /**
   * Reads a page. Redirections are followed within its own server.
   *
   * @param url starts with `https://`
   * @throws UpstreamUnavailable
   */
  async read(url: string, signal: AbortSignal | undefined): Promise<Buffer> {
    const { protocol, host, pathname, search } = new URL(url);
    if (protocol !== 'https:') throw new Error(`${url} is no address of an official page`);
    const { value } = await this.#connection(host).http.download({
      path: pathname + search,
      maxBytes: MAX_PAGE_BYTES,
      timeoutMs: PAGE_TIMEOUT_MS,
      isOneServer: true,
      signal,
    });
    return value.bytes;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#connections.values()].map((connection) => connection.close()));
    this.#connections.clear();
  }

  #connection(host: string): UpstreamConnection {
    const known = this.#connections.get(host);
    if (known !== undefined) return known;
    const baseUrl = this.#at === 'direct' ? `https://${host}` : `${this.#at.mirror}/${host}`;
    const made = connectUpstream(siteOf(host), { baseUrl }, this.#parts);
    this.#connections.set(host, made);
    return made;
  }
}

/** A server of official pages as an upstream. Nothing of its pages is sold: no more than a hash is kept. */
function siteOf(host: string): UpstreamDefinition<UpstreamHttp> {
  return {
    name: 'lawpages',
    title: host,
    baseUrl: `https://${host}`,
    licence: '',
    terms: { commercialUse: 'allowed', note: null, attribution: null, url: null },
    key: 'none',
    requestsPerMinute: REQUESTS_PER_MINUTE,
    burst: REQUESTS_PER_MINUTE,
    open: (http) => http,
    probe: async () => undefined,
  };
}
