/** What hosts of models read of a running server: tools that providers accept, wherever they are listed, and typed lists. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { TAGS } from '../../../../packages/catalogue/src/services/tags.ts';
import { breaches } from '../../../../packages/core/src/mcp/provider-rules.fixture.ts';
import { toolsetName } from '../../../../packages/core/src/mcp/toolsets.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { EVERYTHING_ON } from '../everything-on.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

let database: TestDatabase;
let server: TestServer;
before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({ pools: database, environment: EVERYTHING_ON });
});
after(async () => {
  await server?.close();
  await database?.close();
});

interface Listed {
  name: string;
  description: string;
  inputSchema: object;
}

/** Every tool that an address of MCP lists, page by page. */
async function toolsAt(toolset: string): Promise<Listed[]> {
  const tools: Listed[] = [];
  let cursor: string | undefined;
  do {
    const params = cursor === undefined ? {} : { cursor };
    const response = await fetch(`${server.url}/mcp?toolset=${toolset}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params }),
    });
    const text = await response.text();
    const { result } = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text);
    tools.push(...result.tools);
    cursor = result.nextCursor;
  } while (cursor !== undefined);
  return tools;
}

const read = (path: string) => jsonOf(fetch(server.url + path));

test('providers accept every tool that any toolset of MCP lists', async () => {
  const toolsets = ['', 'all', 'core', 'core,all', ...TAGS.map(toolsetName)];
  for (const toolset of toolsets) {
    const tools = await toolsAt(toolset);
    assert.ok(tools.length > 1, toolset);
    assert.deepEqual(tools.flatMap(breaches), [], toolset);
  }
  assert.ok((await toolsAt('core,all')).length > 70);
});

test('providers accept what documents hand to models as tools: WebMCP, the list of services, and the skills of A2A', async () => {
  const skills = (await read('/.well-known/agent.json')).skills as { id: string; description: string }[];
  const listed: Record<string, Listed[]> = {
    webmcp: (await read('/.well-known/webmcp.json')).tools,
    '/mcp/services': (await read('/mcp/services')).mcpServiceMap.map(
      ({ mcpTool, inputSchema }: { mcpTool: string; inputSchema: object }) => ({
        name: mcpTool,
        description: 'Has none of its own.',
        inputSchema,
      }),
    ),
    'agent.json': skills.map((skill) => ({ ...skill, name: skill.id }) as unknown as Listed),
  };
  for (const [document, tools] of Object.entries(listed)) {
    assert.ok(tools.length > 60, document);
    assert.deepEqual(tools.flatMap(breaches), [], document);
  }
});

/** The places of lists that do not say what they hold, as the rule `array-items` of a linter finds them. */
function untypedLists(node: unknown, place = ''): string[] {
  if (typeof node !== 'object' || node === null) return [];
  const { type, items } = node as { type?: unknown; items?: unknown };
  const isList = type === 'array' || (Array.isArray(type) && type.includes('array'));
  const isTyped = typeof items === 'object' && items !== null && !Array.isArray(items);
  const found = isList && !isTyped ? [place] : [];
  const below = Object.entries(node).filter(([name]) => name !== 'example');
  return [...found, ...below.flatMap(([name, each]) => untypedLists(each, `${place}/${name}`))];
}

test('each list in OpenAPI says what it holds', async () => {
  for (const path of ['/openapi.json', '/openapi/core.json'])
    assert.deepEqual(untypedLists(await read(path)), [], path);
  assert.deepEqual(untypedLists({ a: { type: 'array' }, b: { type: 'array', items: {} } }), ['/a']);
});

test('documents that name one address of MCP name the one with few tools', async () => {
  const { services } = await read('/.well-known/agent-registration.json');
  const ofMcp = services.find(({ name }: { name: string }) => name === 'MCP');
  const { entrypoints } = await read('/.well-known/awi.json');
  for (const address of [ofMcp.endpoint, entrypoints.mcp])
    assert.match(address, /\/mcp\?toolset=core$/, address);
});
