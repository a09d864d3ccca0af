import { answered, type Described } from '../http/operation.ts';

/** The operations that a load balancer asks. */
export const HEALTH_OPERATIONS = {
  operations: [
    {
      method: 'GET',
      path: '/health/live',
      operation: {
        operationId: 'getLive',
        tags: ['Free'],
        summary: 'Whether the process runs',
        security: [],
        responses: { 200: answered('It runs', { status: 'ok' }) },
      },
    },
    {
      method: 'GET',
      path: '/health/ready',
      operation: {
        operationId: 'getReady',
        tags: ['Free'],
        summary: 'Whether calls can be taken now',
        security: [],
        responses: { 200: answered('Ready', { status: 'ok' }), 503: { description: 'Not ready' } },
      },
    },
  ],
  untold: [{ path: '/metrics', because: 'It is for the operator.' }],
} as const satisfies Described;
