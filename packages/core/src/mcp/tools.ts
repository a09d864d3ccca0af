/**
 * The services as tools of MCP: what `tools/list` answers, rendered once, and again when other services are sold or the availability of
 * one changes.
 */
import type { Availability } from '../service/availability.ts';
import type { Service } from '../service/define.ts';
import type { Shelf } from '../service/shelf.ts';
import { toolNameOf } from '../service/tool-name.ts';
import { toolSchemaOf } from '../service/tool-schema.ts';
import { aboutTool, titleOf } from '../service/tool-words.ts';
import { listedOf, type Toolset } from './toolsets.ts';

/** The size of a page of `tools/list`, as JSON. */
export const MAX_PAGE_BYTES = 60_000;

/** A tool as `tools/list` shows it. https://modelcontextprotocol.io/specification/2025-11-25/server/tools */
export interface Tool {
  name: string;
  title: string;
  description: string;
  inputSchema: { type: 'object' } & Record<string, unknown>;
  annotations: Record<string, boolean | string>;
  _meta: Record<string, unknown>;
}

export interface ToolPage {
  tools: readonly Tool[];
  nextCursor?: string;
}

/**
 * A service as a tool. There is no `outputSchema`: clients of the first SDK hold it against every result, a price
 * among them, and would refuse that instead of showing it.
 */
function toolOf(service: Service, availability: Availability): Tool {
  const { priceUsd, tag, timeoutMs, mediaType } = service;
  const title = titleOf(service);
  return {
    name: toolNameOf(service),
    title,
    description: aboutTool(service, availability),
    inputSchema: toolSchemaOf(service),
    annotations: { title, ...PAID },
    _meta: {
      'farebox/service': service.path,
      'farebox/price': { amountUsd: priceUsd, currency: 'USD' },
      'farebox/tag': tag,
      'farebox/available': availability.available,
      'farebox/answer': mediaType,
      'farebox/timeoutMs': timeoutMs,
    },
  };
}

/** It spends: clients do not ask their person about a tool that says it only reads. */
export const PAID = {
  readOnlyHint: false,
  destructiveHint: false,
  // The same arguments buy again, unless the same payment or idempotency key is sent again.
  idempotentHint: false,
  openWorldHint: true,
} as const;

export interface ToolList {
  /**
   * A page of tools.
   *
   * @param toolset which tools are listed. Others can be called all the same
   * @param cursor `nextCursor` of the page before; undefined: the first
   * @returns null for a cursor that no page of the toolset had
   */
  page(toolset: Toolset, cursor: string | undefined): ToolPage | null;
  /** The service that is bought by a tool of this name. */
  serviceOf(tool: string): Service | null;
  /** The service that a tool of this name bought and that is sold no more; null: there was none. */
  goneOf(tool: string): Service | null;
  /** The path of the service that there is, that a tool of this name would buy, and that is not sold here. */
  leftOutOf(tool: string): string | null;
  /** Names two tools that would have one name; null: all names differ. */
  refuses(services: readonly Service[]): string | null;
}

/** Pages of so many toolsets are kept. There are more than anybody uses. */
const MAX_KEPT = 50;

/**
 * The list of all tools: free ones first, then the services in catalog order.
 *
 * @param anyCall the tool that buys any service by its name
 * @throws Error when two tools have one name
 */
export function createToolList(
  shelf: Pick<Shelf, 'services' | 'leftOut' | 'soldBefore'>,
  free: readonly Tool[],
  anyCall: Tool,
  availability: (service: Service) => Availability,
): ToolList {
  const refuses = (services: readonly Service[]) => {
    const names = new Set([anyCall.name, ...free.map(({ name }) => name)]);
    const twice = services.map(toolNameOf).find((name) => names.size === names.add(name).size);
    return twice === undefined ? null : `two tools are named ${twice}`;
  };
  const refused = refuses(shelf.services);
  if (refused !== null) throw new Error(refused);
  let known: {
    services: readonly Service[];
    fingerprint: string;
    pages: Map<string, readonly ToolPage[]>;
  } | null = null;
  let named: { services: readonly Service[]; byTool: ReadonlyMap<string, Service> } | null = null;

  function byTool(): ReadonlyMap<string, Service> {
    const { services } = shelf;
    if (named?.services !== services)
      named = { services, byTool: new Map(services.map((service) => [toolNameOf(service), service])) };
    return named.byTool;
  }

  function pagesFor(asked: Toolset): readonly ToolPage[] {
    const { services } = shelf;
    const toolset = listedOf(asked, services);
    const states = services.map((service) => availability(service));
    const fingerprint = states.map(({ available, message }) => (available ? '' : message)).join('|');
    if (known?.services !== services || known.fingerprint !== fingerprint || known.pages.size > MAX_KEPT)
      known = { services, fingerprint, pages: new Map() };
    const kept = known.pages.get(toolset.key);
    if (kept !== undefined) return kept;
    const sold = services.flatMap((service, index) =>
      toolset.tags?.has(service.tag) !== false
        ? [toolOf(service, states[index] ?? availability(service))]
        : [],
    );
    const pages = pagesOf([...free, ...(toolset.hasCall ? [anyCall] : []), ...sold]);
    known.pages.set(toolset.key, pages);
    return pages;
  }

  return {
    page: (toolset, cursor) => pagesFor(toolset)[cursor === undefined ? 0 : numberOf(cursor)] ?? null,
    serviceOf: (tool) => byTool().get(tool) ?? null,
    goneOf: (tool) => shelf.soldBefore.find((each) => toolNameOf(each) === tool) ?? null,
    leftOutOf: (tool) => shelf.leftOut.find((path) => toolNameOf({ path }) === tool) ?? null,
    refuses,
  };
}

function pagesOf(tools: readonly Tool[]): ToolPage[] {
  const pages: Tool[][] = [];
  let bytes = MAX_PAGE_BYTES;
  for (const tool of tools) {
    const size = Buffer.byteLength(JSON.stringify(tool)) + 1;
    if (bytes + size > MAX_PAGE_BYTES) {
      pages.push([]);
      bytes = 0;
    }
    pages.at(-1)?.push(tool);
    bytes += size;
  }
  return pages.map((page, index) =>
    index + 1 < pages.length ? { tools: page, nextCursor: cursorOf(index + 1) } : { tools: page },
  );
}

const cursorOf = (page: number) => `page-${page}`;

function numberOf(cursor: string): number {
  const digits = /^page-([1-9]\d{0,3})$/.exec(cursor)?.[1];
  return digits === undefined ? -1 : Number(digits);
}
