import type { Described } from '../http/operation.ts';

export const A2A_OPERATIONS = {
  operations: [],
  untold: [{ path: '/a2a*', because: 'It speaks A2A, which describes itself: the agent card.' }],
} as const satisfies Described;
