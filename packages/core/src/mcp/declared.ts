import { declare, hostName, list } from '../declared.ts';

export const MCP = declare({
  name: 'mcp',
  variables: {
    allowedHosts: {
      name: 'MCP_ALLOWED_HOSTS',
      describe:
        'Host names, comma-separated, that requests to `/mcp` may name in `Host` and `Origin` beside that of `PUBLIC_URL` and the names of this machine itself, such as an internal name that a proxy passes on or the site of an agent that runs in a browser',
      shape: list(hostName),
      fallback: '',
    },
  },
});
