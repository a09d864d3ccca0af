/** `setup`: what a person writes into the file of a desktop agent. Places for secrets are left open, whatever is set. */

interface Snippet {
  title: string;
  config: unknown;
}

/**
 * @param command how the bridge is started: absolute, since desktop programs have a short PATH
 * @param url of the server
 */
export function setupText(command: { command: string; args: readonly string[] }, url: URL): string {
  const endpoint = url.origin + url.pathname;
  const address = endpoint.replace(/\/mcp$/, '');
  const limits = { FAREBOX_MAX_USD_PER_CALL: '1.00', FAREBOX_MAX_USD_PER_DAY: '10.00' };
  const pay = { FAREBOX_URL: address, FAREBOX_TOOLSET: 'core', FAREBOX_API_KEY: 'fbx_live_…', ...limits };
  const server = { ...command, env: pay };
  const prompted = '$' + '{input:farebox-key}';
  const snippets: Snippet[] = [
    {
      title: 'A client with `mcpServers` in its file: Claude Desktop, Cursor, and most others',
      config: { mcpServers: { farebox: server } },
    },
    {
      title: 'VS Code, in .vscode/mcp.json: it asks for the key and keeps it',
      config: {
        inputs: [{ id: 'farebox-key', type: 'promptString', description: 'API key', password: true }],
        servers: {
          farebox: { type: 'stdio', ...command, env: { ...pay, FAREBOX_API_KEY: prompted } },
        },
      },
    },
    {
      title: 'Claude Code, in .mcp.json: with its environment’s key',
      config: {
        mcpServers: {
          farebox: { type: 'stdio', ...command, env: { ...pay, FAREBOX_API_KEY: '$' + '{FAREBOX_API_KEY}' } },
        },
      },
    },
    {
      title: 'With a wallet in place of the key',
      config: {
        mcpServers: {
          farebox: {
            ...command,
            env: { FAREBOX_URL: address, FAREBOX_TOOLSET: 'core', FAREBOX_EVM_PRIVATE_KEY: '0x…', ...limits },
          },
        },
      },
    },
    {
      title:
        'Without the bridge, for a client that takes an address: set caps on the key first (PATCH /api/keys/me)',
      config: {
        mcpServers: {
          farebox: { type: 'http', url: `${endpoint}?toolset=core`, headers: { 'X-API-KEY': 'fbx_live_…' } },
        },
      },
    },
  ];
  return snippets.map(({ title, config }) => `${title}:\n\n${JSON.stringify(config, null, 2)}\n`).join('\n');
}
