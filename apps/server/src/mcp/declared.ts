import { z } from 'zod';
import { declare, list } from '../declared.ts';

export const MCP = declare({
  name: 'mcp',
  variables: {
    allowedHosts: {
      name: 'MCP_ALLOWED_HOSTS',
      describe:
        'Host names, comma-separated, that requests to `/mcp` may name in `Host` and `Origin` beside that of `PUBLIC_URL` and the names of this machine itself, such as an internal name that a proxy passes on or the site of an agent that runs in a browser',
      shape: list(
        z.string().regex(/^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]*[a-z0-9])?$/, {
          error: 'must be host names in lower case, without a scheme or a port',
        }),
      ),
      fallback: '',
    },
  },
});
