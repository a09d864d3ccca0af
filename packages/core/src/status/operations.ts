import { answered, type Described } from '../http/operation.ts';

/** How the status is described. */
export const STATUS_OPERATIONS = {
  operations: [
    {
      method: 'GET',
      path: '/status.json',
      operation: {
        operationId: 'getStatus',
        tags: ['Free'],
        summary: 'What can be used now, and what could not be in the last 90 days',
        security: [],
        responses: {
          200: answered('The status', {
            state: 'up',
            version: '0.1.0',
            asOf: '2026-11-29T00:00:00.000Z',
            services: [{ id: 'service:ping', name: 'Ping', state: 'up' }],
            rails: [{ id: 'rail:x402', name: 'x402', state: 'up' }],
            chains: [{ id: 'chain:eip155:8453:x402', name: 'eip155:8453 by x402', state: 'up' }],
            incidents: [],
            incidentsTotal: 0,
            incidentsOfDays: 90,
          }),
        },
      },
    },
  ],
  untold: [{ path: '/status', because: 'It is a page.' }],
} as const satisfies Described;
