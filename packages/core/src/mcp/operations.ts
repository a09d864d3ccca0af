import type { Described } from '../http/operation.ts';

export const MCP_OPERATIONS = {
  operations: [],
  untold: [{ path: '/mcp', because: 'It speaks MCP, which describes itself: `tools/list`.' }],
} as const satisfies Described;
