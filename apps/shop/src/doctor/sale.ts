/** Looks at what is for sale: which services are not, and why; and by which chains they can be paid for. */
import { statfs } from 'node:fs/promises';
import { NETWORKS, type NetworkName } from '@farebox/core/rails/x402/networks';
import { z } from 'zod';
import { type Finding, findingsOf, type Look } from './finding.ts';

const MOST_LISTED = 100;
const LEAST_FREE_BYTES = 1_000_000_000;
const LEAST_FREE_SHARE = 0.05;

const catalog = z.object({
  services: z.array(
    z.object({ id: z.string(), available: z.boolean(), unavailableMessage: z.string().nullish() }),
  ),
});
const manifest = z.looseObject({});

export function lookAtSale({ url, networks }: { url: string; networks: readonly NetworkName[] }): Look[] {
  const says = findingsOf('sale');
  return [
    {
      step: 'sale',
      async look(signal) {
        const { services } = catalog.parse(await jsonAt('/x402/catalog', signal));
        const closed = services.filter(({ available }) => !available);
        const first =
          closed.length === services.length
            ? says.mend('nothing is for sale', 'Mend what the lines below say.')
            : says.fine(`${services.length - closed.length} of ${services.length} services are for sale`);
        const listed = closed
          .slice(0, MOST_LISTED)
          .map(
            ({ id, unavailableMessage }): Finding =>
              says.note(`${id}: ${unavailableMessage ?? 'not for sale'}`),
          );
        return [first, ...listed];
      },
    },
    {
      step: 'sale',
      async look(signal) {
        if (networks.length === 0) return says.off('no chain is offered');
        const text = JSON.stringify(manifest.parse(await jsonAt('/x402/payment-manifest.json', signal)));
        const missing = NETWORKS.filter(
          ({ name, id }) => networks.includes(name) && !text.includes(`"${id}"`),
        );
        return missing.length === 0
          ? says.fine(`USDC is taken on ${networks.join(', ')}`)
          : says.mend(
              `USDC cannot be paid now on ${missing.map(({ name }) => name).join(', ')}`,
              'Mend its node, its settler or its gas; the offer follows within a minute.',
            );
      },
    },
  ];

  async function jsonAt(path: string, signal: AbortSignal): Promise<unknown> {
    return (await fetch(new URL(path, url), { signal, redirect: 'manual' })).json();
  }
}

/** Whether the folder of all state, and with it an embedded database, has room. */
export function lookAtDisk({ folder, isEmbedded }: { folder: string; isEmbedded: boolean }): Look {
  const says = findingsOf('disk');
  return {
    step: 'disk',
    async look() {
      const room = await statfs(folder).catch(() => null);
      if (room === null)
        return isEmbedded
          ? says.mend(`${folder} is not there`, 'Set FAREBOX_DATA_DIR, or start the server once.')
          : says.off('all state is in the database, whose disk cannot be seen from here');
      const free = room.bavail * room.bsize;
      const told = `${Math.floor(free / 1e6)} MB are free at ${folder}`;
      return free < LEAST_FREE_BYTES || room.bavail < room.blocks * LEAST_FREE_SHARE
        ? says.mend(told, 'Make room: calls fail, uncharged, when it is full.')
        : says.fine(told);
    },
  };
}
