import { z } from 'zod';
import { defineUpstream } from '../define.ts';

const results = z
  .looseObject({
    nbHits: z.number().int().nonnegative(),
    hits: z.array(
      z.looseObject({
        objectID: z.string(),
        title: z.string().nullish(),
        url: z.string().nullish(),
        points: z.number().nullish(),
        created_at_i: z.number().int(),
      }),
    ),
  })
  .transform(({ nbHits, hits }) => ({
    total: nbHits,
    stories: hits.flatMap(({ objectID, title, url, points, created_at_i }) =>
      title == null || title === ''
        ? []
        : [
            {
              title: title.slice(0, 300),
              url:
                url != null && /^https?:\/\//.test(url)
                  ? url
                  : `https://news.ycombinator.com/item?id=${encodeURIComponent(objectID)}`,
              points: points ?? 0,
              atMs: created_at_i * 1_000,
            },
          ],
    ),
  }));

const STEP_SECONDS = 600;

/** Stories of Hacker News, by Algolia's search. https://hn.algolia.com/api */
export const hackernews = defineUpstream({
  name: 'hackernews',
  title: 'Hacker News search',
  baseUrl: 'https://hn.algolia.com/api/v1',
  licence: 'Hacker News search by Algolia',
  terms: {
    commercialUse: 'allowed',
    note: null,
    attribution: null,
    url: 'https://hn.algolia.com/api',
  },
  key: 'none',
  requestsPerMinute: 100,
  open: (http) => ({
    /** The newest stories on a phrase since a time, at most 100 of them, newest first. */
    storiesOn: (phrase: string, sinceMs: number) =>
      http.get({
        path: '/search_by_date',
        query: {
          query: `"${phrase.replace(/"/g, ' ').trim()}"`,
          tags: 'story',
          advancedSyntax: true,
          numericFilters: `created_at_i>${Math.floor(sinceMs / 1_000 / STEP_SECONDS) * STEP_SECONDS}`,
          hitsPerPage: 100,
        },
        schema: results,
        freshMs: 600_000,
        staleMs: 600_000,
      }),
  }),
  probe: (api, nowMs) => api.storiesOn('bitcoin', nowMs - 604_800_000),
});
