/** The tool that buys any service by its name, for clients that have room for few tools. */
import { PAID, type Tool } from './tools.ts';

export const CALL_NAME = 'call_service';

export const CALL_TOOL: Tool = {
  name: CALL_NAME,
  title: 'Buy a call (at the price of the service)',
  description:
    'Buys one call of a service that search_services found. Costs its price, charged only with an answer.',
  inputSchema: {
    type: 'object',
    properties: {
      service: { type: 'string', description: 'Its name' },
      input: { type: 'object', description: 'Fits its inputSchema', additionalProperties: true },
    },
    required: ['service', 'input'],
  },
  annotations: { title: 'Buy a call (at the price of the service)', ...PAID },
  _meta: {},
};
