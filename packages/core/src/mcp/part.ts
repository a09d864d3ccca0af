/** The services as tools of MCP: a door to the paid call like those over HTTP. */

import type { FastifyInstance } from 'fastify';
import type { Configured } from '../declared.ts';
import { SANDBOX_NOTICE } from '../http/sandbox-notice.ts';
import type { Keys } from '../keys/keys.ts';
import type { Sales } from '../paid-call/part.ts';
import type { Rail } from '../paid-call/rail.ts';
import type { House, Part } from '../part.ts';
import type { MppRail } from '../rails/mpp/rail.ts';
import { countedOf } from '../service/counted.ts';
import { CALL_TOOL } from './calling.ts';
import { Cancelling } from './cancelling.ts';
import { MCP } from './declared.ts';
import { mcpDoor } from './door.ts';
import { createFreeTools } from './free-tools.ts';
import { mcpRoutes } from './http.ts';
import { askInside } from './inside.ts';
import { MCP_OPERATIONS } from './operations.ts';
import { createReadings } from './readings.ts';
import { createMcpServer } from './server.ts';
import { createToolList } from './tools.ts';
import { listedOf, type Toolset } from './toolsets.ts';

export { MCP };

/** `/mcp`: everything on sale, by every rail, and what is free beside it. */
export function openMcp(
  house: House,
  { settings }: Configured<typeof MCP.variables>,
  needs: {
    sales: Sales;
    keys: Keys;
    /** Null where it is off. */
    mpp: MppRail | null;
    x402: Rail;
    credits: Rail;
  },
): Part {
  const { baseUrl, version, sandbox, shop, shelf, logger, addressOf } = house;
  const { sales, keys, mpp, x402, credits } = needs;
  let server: FastifyInstance | null = null;
  const ask = askInside(() => {
    if (server === null) throw new Error('the server is not put together yet');
    return server;
  });
  const rails = [...(mpp === null ? [] : [mpp.rail]), x402, credits];
  const free = createFreeTools(ask, shelf, sales.catalog, baseUrl);
  const tools = createToolList(shelf, free.tools, CALL_TOOL, sales.availability);
  const parts = {
    version,
    shopName: shop.name,
    docUrlOf: house.docUrlOf,
    shelf,
    instructions: (toolset: Toolset) =>
      instructionsOf(countedOf(shelf.services).length, listedOf(toolset, shelf.services).hasCall, sandbox),
    mppMethods: (mpp?.methods ?? []).map(({ method }) => method),
    tools,
    free,
    readings: createReadings(ask, sales.catalog),
    paidCall: sales.open({
      rails,
      door: mcpDoor(mpp, x402, { baseUrl, trialsOpen: sales.promisesTrials }),
    }),
  };
  return {
    name: 'mcp',
    refuses: tools.refuses,
    operations: [MCP_OPERATIONS],
    requestHeaders: ['Mcp-Protocol-Version', 'Mcp-Session-Id', 'Mcp-Method', 'Mcp-Name', 'Last-Event-ID'],
    routes(http) {
      server = http;
      mcpRoutes(http, {
        serve: (caller) => createMcpServer(parts, caller),
        publicUrl: baseUrl,
        hosts: settings.allowedHosts,
        tags: () => Object.keys(shelf.tags),
        addressLimit: house.limitByAddress(),
        addressOf,
        cancelling: new Cancelling(sales.followedCalls, keys),
        failed: (error) => logger.warn({ err: error }, 'mcp'),
      });
    },
  };
}

function instructionsOf(services: number, hasCall: boolean, sandbox: boolean): string {
  return [
    hasCall
      ? `${services} services, each at its own price, charged only with an answer. search_services finds one with its price and input, call_service buys it.`
      : `${services} services, each a tool that costs what its description says, charged only with an answer.`,
    'search_services finds one, service_recipe describes it, credit_balance shows what is left. These are free.',
    'Pay with an API key in the header X-API-KEY of this connection (get_trial_key gives a free one), with an x402 payment in _meta["x402/payment"], or with an MPP credential in _meta["org.paymentauth/credential"]. An unpaid call costs nothing and tells the price.',
    'The same payment sent again gets the same answer and is not charged again. With an API key, _meta["farebox/idempotencyKey"] makes a call repeatable.',
    ...(sandbox ? [SANDBOX_NOTICE] : []),
  ].join('\n');
}
