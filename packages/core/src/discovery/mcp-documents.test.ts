import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mcpDocument, mcpIntegrationDocument, mcpServerDocument, webToolsDocument } from './mcp-documents.ts';
import { sampleContext } from './sample.fixture.ts';

test('documents that lead a client to MCP recommend the core of tools', () => {
  const context = sampleContext();
  const core = `${context.baseUrl}/mcp?toolset=core`;
  assert.equal(mcpDocument(context)?.transport.url, core);
  assert.equal(new URL(mcpDocument(context)?.transport.endpoint ?? '', context.baseUrl).href, core);
  assert.equal(mcpServerDocument(context)?.remotes[0]?.url, core);
  assert.equal(mcpIntegrationDocument(context)?.paths.pathA.url, core);
  assert.equal(webToolsDocument(context)?.mcpServers.farebox?.url, core);
});
