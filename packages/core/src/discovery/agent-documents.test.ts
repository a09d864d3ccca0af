import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toolNameOf } from '../service/tool-name.ts';
import {
  agentDocument,
  agentRegistrationDocument,
  agentsDocument,
  agentWebInterfaceDocument,
  aiPluginDocument,
  apiCatalogDocument,
  llmsFullText,
  securityText,
  sitemapXml,
} from './agent-documents.ts';
import { mcpDocument, mcpIntegrationDocument, mcpServerDocument, webToolsDocument } from './mcp-documents.ts';
import { openapiDocument } from './openapi.ts';
import { SAMPLE_ROUTES, SAMPLE_SERVICES, sampleContext } from './sample.fixture.ts';

const context = sampleContext();
const withoutMcp = sampleContext({ routes: SAMPLE_ROUTES.filter(({ path }) => path !== '/mcp') });
const declared = new Map(SAMPLE_SERVICES.map(({ path, priceUsd }) => [path, priceUsd]));

test('each document sells the same services at the same prices', () => {
  const sold = {
    agent: agentDocument(context).skills.map(({ id, pricing }) => [id, pricing.amount]),
    awi: agentWebInterfaceDocument(context).capabilities.map(({ id, price }) => [id, price.amount]),
    mcp: mcpIntegrationDocument(context)?.mcpServiceMap.map(({ serviceId, priceUsd }) => [
      serviceId,
      priceUsd,
    ]),
  };
  for (const [name, pairs] of Object.entries(sold))
    assert.deepEqual(new Map(pairs as [string, string][]), declared, name);
  const tools = SAMPLE_SERVICES.map(toolNameOf);
  assert.deepEqual(
    webToolsDocument(context)?.tools.map(({ name }) => name),
    tools,
  );
  assert.deepEqual(
    mcpIntegrationDocument(context)?.mcpServiceMap.map(({ mcpTool }) => mcpTool),
    tools,
  );
  assert.deepEqual(
    agentsDocument(context).flows.map(({ id }) => id),
    [...declared.keys()],
  );
});

test('every flow names an operation that OpenAPI has', () => {
  const { paths } = JSON.parse(JSON.stringify(openapiDocument(context)));
  const known = new Set(
    Object.values<Record<string, { operationId?: string }>>(paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    ),
  );
  for (const { actions } of agentsDocument(context).flows)
    for (const { operationId } of actions) assert.ok(known.has(operationId), operationId);
});

test('no document mentions MCP where it is not served', () => {
  for (const document of [mcpDocument, mcpServerDocument, mcpIntegrationDocument, webToolsDocument])
    assert.equal(document(withoutMcp), null);
  for (const text of [
    JSON.stringify(agentWebInterfaceDocument(withoutMcp)),
    JSON.stringify(agentRegistrationDocument(withoutMcp)),
    llmsFullText(withoutMcp),
  ])
    assert.ok(!text.includes('/mcp'), text.slice(0, 200));
});

test("the registry's entry fits the registry's rules", () => {
  const entry = mcpServerDocument(context) ?? assert.fail();
  assert.match(entry.name, /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/);
  assert.equal(entry.name, 'test.farebox/farebox');
  assert.ok(entry.description.length <= 100);
});

test('security.txt has the two fields that it must have, and ends within a year', () => {
  const text = securityText(context) ?? assert.fail();
  assert.match(text, /^Contact: mailto:operator@farebox\.test$/m);
  const expires = Date.parse(/^Expires: (.+)$/m.exec(text)?.[1] ?? '');
  const days = (expires - context.nowMs()) / 86_400_000;
  assert.ok(days > 90 && days < 365, String(days));
  assert.equal(securityText(sampleContext({ shop: { ...context.shop, contactEmail: null } })), null);
});

test('the set of links, the plug-in manifest and the map lead to this server alone', () => {
  for (const text of [
    JSON.stringify(apiCatalogDocument(context)),
    JSON.stringify(aiPluginDocument(context)),
    sitemapXml(context),
  ])
    for (const [url] of text.matchAll(/https?:\/\/[^"<]+/g))
      assert.ok(
        [context.baseUrl, 'http://www.sitemaps.org/', context.shop.logoUrl ?? '-'].some((own) =>
          url.startsWith(own),
        ),
        url,
      );
  assert.equal([...sitemapXml(context).matchAll(/<loc>/g)].length, 2 + SAMPLE_SERVICES.length);
});

test('agent.json is a card that a client of A2A 0.2 reads, with the fields it had before beside it', () => {
  const card = agentDocument(context) as ReturnType<typeof agentDocument> & Record<string, unknown>;
  const at = new URL(card.url);
  assert.equal(at.pathname, '/a2a');
  for (const field of ['name', 'description', 'version']) assert.equal(typeof card[field], 'string', field);
  assert.deepEqual([card.protocolVersion, card.preferredTransport], ['0.2.6', 'JSONRPC']);
  assert.ok(Array.isArray(card.defaultInputModes) && Array.isArray(card.defaultOutputModes));
  assert.equal((card.capabilities as { streaming: boolean }).streaming, true);
  // Its fields differ from those of the card that is signed, and A2A 0.2 knows no signatures.
  assert.ok(!('signatures' in card));
  for (const skill of card.skills as unknown as Record<string, unknown>[]) {
    for (const field of ['id', 'name', 'description', 'tags', 'examples']) assert.ok(skill[field], field);
    for (const field of ['endpoint', 'method', 'pricing', 'inputSchema', 'outputSchema'])
      assert.ok(skill[field], field);
  }
  const without = { ...context, routes: context.routes.filter(({ path }) => path !== '/a2a') };
  const plain = agentDocument(without);
  assert.equal(new URL(plain.url).pathname, '/');
  assert.ok(!('protocolVersion' in plain));
});
