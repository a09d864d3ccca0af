import { chainsOnSale } from '@farebox/core/service/availability';
import { countedOf } from '@farebox/core/service/counted';
import { answer } from '@farebox/core/words/answer';
import { CHAINS } from '@farebox/core/words/chain-names';
import { z } from 'zod';
import { defineService } from '../define.ts';

export default defineService({
  path: 'ping',
  name: 'Ping/Echo Service',
  tag: 'Discovery',
  priceUsd: '0.25',
  mpp: true,
  featured: true,
  summary:
    'Echoes a message, and tells the version and how many services are on sale: a check of the whole paid path.',
  keywords:
    'health alive status up working reachable test connection echo hello check server uptime online respond latency',
  input: z.object({
    message: z.string().max(1_000).optional().describe('Text to echo; "pong" is answered when there is none'),
  }),
  output: z.object({
    service: z.string().describe('Name of this platform'),
    version: z.string().describe('Version of the server'),
    echo: z.string().describe('The message, as it came'),
    chains: z.array(z.enum(CHAINS)).describe('Chains that a service on sale can read now'),
    servicesAvailable: z.number().int().describe('How many services are on sale now'),
    documentation: z.string().describe('Where to read more'),
  }),
  example: { message: 'hello' },
  async run({ message }, { catalog, baseUrl, version }) {
    const onSale = catalog().filter(({ available }) => available);
    return answer(
      {
        service: 'Farebox',
        version,
        echo: message ?? 'pong',
        chains: [...chainsOnSale(onSale)],
        servicesAvailable: countedOf(onSale).length,
        documentation: `${baseUrl}/docs`,
      },
      { method: 'Answered by this server itself.' },
    );
  },
});
