/** The public status: services, ways to pay and chains now, and their incidents of the last 90 days. */
import type { Pages } from '../discovery/pages.ts';
import { type Published, publishJson, sendPublished } from '../discovery/published.ts';
import { untilNoneIsDue } from '../jobs/schedule.ts';
import type { House, Part } from '../part.ts';
import { STATUS_OPERATIONS } from './operations.ts';
import { type Component, type StatusDocument, statusDocument, statusPage } from './page.ts';
import { forgetSpells, noteDown, readSpells, SERVER } from './spells.ts';

const LOOK_EVERY_MS = 60_000;
const FORGET_EVERY_MS = 3_600_000;
const FORGOTTEN_AT_ONCE = 1_000;
const PAGE_SECONDS = 15;
const MADE_EVERY_MS = PAGE_SECONDS * 1_000;

/** The status, ready to be sent. */
interface Shown {
  json: Published;
  page: Published;
}

export interface StatusNeeds {
  pages: Pages;
  /** The services of the catalog, and whether each is for sale now. */
  sales: { catalog(): readonly { path: string; name: string; available: boolean }[] };
  parts(): readonly Part[];
}

/** Everything that callers use, and whether they can now. While the shop is shut they can use nothing. */
export function componentsOf({ sales, parts }: Pick<StatusNeeds, 'sales' | 'parts'>): Component[] {
  const open = parts().every((part) => (part.shut?.() ?? null) === null);
  const services = sales.catalog().map(({ path, name, available }) => ({
    id: `service:${path}`,
    kind: 'service' as const,
    name,
    up: open && available,
  }));
  const rails = parts().flatMap((part) => {
    const chains = part.railStandings?.() ?? [];
    if (chains.length === 0) return [];
    const rail = { id: `rail:${part.name}`, kind: 'rail' as const, name: part.name };
    return [
      { ...rail, up: open && chains.some(({ offered }) => offered) },
      ...chains.map(({ network, offered }) => ({
        id: `chain:${network}:${part.name}`,
        kind: 'chain' as const,
        name: `${network} by ${part.name}`,
        up: open && offered,
      })),
    ];
  });
  return [...services, ...rails];
}

/** Opens it. What it says of now is this process's own knowledge; what it says of the past is the database's. */
export function openStatus(house: House, { pages, sales, parts }: StatusNeeds): Part {
  const { pools, nowMs, logger } = house;
  const document = async (): Promise<StatusDocument> => {
    const shown = componentsOf({ sales, parts });
    const known = [SERVER, ...shown.map(({ id }) => id)];
    const spells = await readSpells(pools.sql, known, nowMs()).catch((error: unknown) => {
      logger.warn({ err: error }, 'incidents could not be read');
      return null;
    });
    return statusDocument(shown, spells, { nowMs: nowMs(), version: house.version });
  };
  let made: { atMs: number; shown: Promise<Shown> } | null = null;
  /** The same for all who come within a few seconds: made, compressed and read from the database once. */
  const shown = (): Promise<Shown> => {
    if (made !== null && nowMs() - made.atMs < MADE_EVERY_MS) return made.shown;
    const now = document().then((status) => ({
      json: publishJson(status),
      page: pages.made(statusPage(status)),
    }));
    made = { atMs: nowMs(), shown: now };
    return now;
  };
  return {
    name: 'status',
    operations: [STATUS_OPERATIONS],
    jobs: [
      {
        name: 'note-status',
        intervalMs: LOOK_EVERY_MS,
        run: () =>
          noteDown(
            pools.sql,
            componentsOf({ sales, parts }).flatMap(({ id, up }) => (up ? [] : [id])),
            nowMs(),
          ),
      },
      {
        name: 'forget-status',
        intervalMs: FORGET_EVERY_MS,
        run: async (stopping) => {
          await untilNoneIsDue(FORGOTTEN_AT_ONCE, () => forgetSpells(pools.sql, nowMs()), stopping);
        },
      },
    ],
    routes(http) {
      http.get('/status.json', async (request, reply) =>
        sendPublished(request, reply, (await shown()).json, PAGE_SECONDS),
      );
      http.get('/status', async (request, reply) => {
        reply.headers(pages.headers);
        return sendPublished(request, reply, (await shown()).page, PAGE_SECONDS);
      });
    },
  };
}
