/** The services as tools of MCP: what `tools/list` answers, rendered once and again when the availability of one changes. */
import type { Service } from '../services/define.ts';
import { inputSchemaOf } from '../services/json-schema.ts';
import type { Availability } from '../services/registry.ts';
import { toolNameOf } from '../services/tool-name.ts';

/** Of a page of `tools/list`, as JSON. */
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
function toolOf(service: Service, { available, message }: Availability): Tool {
  const { name, summary, priceUsd, effect, tag, timeoutMs, mediaType } = service;
  const forSale = available ? '' : ` ${message ?? 'It is not for sale now.'}`;
  return {
    name: toolNameOf(service),
    title: name,
    description: `${summary} Costs ${priceUsd} USD a call, charged only with an answer.${forSale}`,
    inputSchema: { type: 'object', ...inputSchemaOf(service) },
    annotations: {
      title: name,
      readOnlyHint: effect === 'read',
      destructiveHint: false,
      // The same arguments buy again, unless the same payment or idempotency key is sent again.
      idempotentHint: false,
      openWorldHint: true,
    },
    _meta: {
      'farebox/service': service.path,
      'farebox/price': { amountUsd: priceUsd, currency: 'USD' },
      'farebox/tag': tag,
      'farebox/available': available,
      'farebox/answer': mediaType,
      'farebox/timeoutMs': timeoutMs,
    },
  };
}

export interface ToolList {
  /**
   * A page of tools.
   *
   * @param cursor `nextCursor` of the page before; undefined: the first
   * @returns null for a cursor that no page had
   */
  page(cursor: string | undefined): ToolPage | null;
  /** The service that is bought by a tool of this name. */
  serviceOf(tool: string): Service | null;
  /** The path of the service that there is, that a tool of this name would buy, and that is not sold here. */
  leftOutOf(tool: string): string | null;
}

/**
 * The list of all tools: free ones first, then the services in catalog order.
 *
 * @param leftOut paths of services that there are and that are not sold here
 * @throws Error when two tools have one name
 */
export function createToolList(
  services: readonly Service[],
  free: readonly Tool[],
  availability: (service: Service) => Availability,
  leftOut: readonly string[] = [],
): ToolList {
  const byTool = new Map(services.map((service) => [toolNameOf(service), service]));
  const names = [...free.map(({ name }) => name), ...services.map(toolNameOf)];
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`two tools are named ${twice}`);
  let known: { fingerprint: string; pages: readonly ToolPage[] } | null = null;

  function pages(): readonly ToolPage[] {
    const states = services.map((service) => availability(service));
    const fingerprint = states.map(({ available, message }) => (available ? '' : message)).join('|');
    if (known?.fingerprint !== fingerprint) {
      const sold = services.map((service, index) => toolOf(service, states[index] ?? availability(service)));
      known = { fingerprint, pages: pagesOf([...free, ...sold]) };
    }
    return known.pages;
  }

  return {
    page: (cursor) => pages()[cursor === undefined ? 0 : numberOf(cursor)] ?? null,
    serviceOf: (tool) => byTool.get(tool) ?? null,
    leftOutOf: (tool) => leftOut.find((path) => toolNameOf({ path }) === tool) ?? null,
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
