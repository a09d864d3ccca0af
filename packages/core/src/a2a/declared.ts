import { declare, hostName, list, whole } from '../declared.ts';
import { A2A_PEOPLE } from './personal-data.ts';

export const A2A = declare({
  name: 'a2a',
  people: A2A_PEOPLE,
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
        'How many A2A tasks that bought nothing may be kept at once (each for an hour), over all replicas. A quarter of them is reserved for messages with a payment or a key, and another quarter for keys alone',
      shape: whole(1, 1_000_000),
      fallback: '20000',
    },
  },
});
