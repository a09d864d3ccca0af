import { declare, hostName, list, whole } from '../declared.ts';

export const A2A = declare({
  name: 'a2a',
  variables: {
    allowedHosts: {
      name: 'A2A_ALLOWED_HOSTS',
      describe: 'As `MCP_ALLOWED_HOSTS`, for requests to `/a2a`',
      shape: list(hostName),
      fallback: '',
    },
    maxUnpaidTasks: {
      name: 'A2A_MAX_UNPAID_TASKS',
      describe:
        'Tasks of A2A that bought nothing and are kept for their hour, on all replicas; a quarter of them is for messages that bring a payment or a key, and another one for keys alone',
      shape: whole(1, 1_000_000),
      fallback: '20000',
    },
  },
});
