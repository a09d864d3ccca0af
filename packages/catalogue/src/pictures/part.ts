import type { Configured } from '@farebox/core/declared';
import type { House, Part } from '@farebox/core/part';
import type { Secrets } from '@farebox/core/secrets/secrets';
import { openThread } from '@farebox/core/threads/thread';
import type { MapPictures } from '../services/map-pictures.ts';
import { gibs as GIBS } from '../upstreams/adapters/gibs.ts';
import type { ConnectedUpstreams } from '../upstreams/index.ts';
import { PICTURES } from './declared.ts';
import type { Drawing, Drawn } from './draw.ts';
import { createPictureLinks } from './links.ts';
import { createPictureMetrics } from './metrics.ts';
import { PICTURE_OPERATIONS } from './operations.ts';
import { createPictures } from './pictures.ts';
import { LOOKS_PER_ADDRESS_PER_MINUTE, pictureRoutes } from './routes.ts';

export { PICTURES };

/** A picture is drawn in less than a tenth of a second; the rest is for the start of the thread. */
const DRAWING = { timeoutMs: 15_000, maxWaiting: 32, maxMemoryMb: 128 };

/** Maps with a marker, for people who look at what a service answered about a place. */
export function openPictures(
  house: House,
  { settings }: Configured<typeof PICTURES.variables>,
  { secrets, upstreams }: { secrets: Secrets; upstreams: Pick<ConnectedUpstreams, 'apis' | 'health'> },
): Part {
  const { baseUrl, nowMs, addressOf } = house;
  const { gibs } = upstreams.apis;
  const metrics = createPictureMetrics();
  const drawing = openThread<Drawing, Drawn>(new URL('./draw-program.ts', import.meta.url), DRAWING);
  const links = createPictureLinks({ secrets, baseUrl, linkMs: settings.linkMs, nowMs });
  const pictures = createPictures({
    gibs,
    drawing,
    cacheBytes: settings.cacheBytes,
    nowMs,
    report: metrics.look,
    requestsPerMinute: GIBS.requestsPerMinute / 2,
  });
  const forServices: MapPictures = {
    linkTo: (picture) => (upstreams.health('gibs').state === 'not_configured' ? null : links.linkTo(picture)),
  };
  return {
    name: 'pictures',
    operations: [PICTURE_OPERATIONS],
    metrics: metrics.registry,
    capabilities: [
      {
        name: 'pictures',
        configured: true,
        setBy: 'PICTURE_LINK_HOURS',
        forPayer: () => forServices,
      },
    ],
    routes: (http) =>
      pictureRoutes(http, {
        links,
        pictures,
        addressOf,
        nowMs,
        limit: house.limitByAddress(LOOKS_PER_ADDRESS_PER_MINUTE),
      }),
    close: () => drawing.close(),
  };
}
