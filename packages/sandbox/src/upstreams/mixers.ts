/** A list of mixing services, such as an operator may choose. */
import type { FastifyInstance } from 'fastify';
import { dayOf, mixerAddress } from './listed.ts';
import type { World } from './world.ts';

export function mixers(app: FastifyInstance, { nowMs }: World): void {
  app.get('/mixers.json', () => ({
    date: dayOf(nowMs()).iso,
    entries: [1, 2].map((number) => ({
      id: `mixer-${number}`,
      name: `SANDBOX LISTED MIXER ${number}`,
      addresses: [mixerAddress(number)],
    })),
  }));
}
