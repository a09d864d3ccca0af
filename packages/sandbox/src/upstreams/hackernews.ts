/** https://hn.algolia.com/api/v1: the search by date, for stories only. It holds a tenth of the news of the sandbox's world. */
import type { FastifyInstance } from 'fastify';
import { keyOf, uniform } from './noise.ts';
import { countOf, type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const WEEK_MS = 604_800_000;
const SHARE = 0.1;

export function hackernews(app: FastifyInstance, { seed, news, nowMs }: World): void {
  app.get<{ Querystring: Query }>('/search_by_date', ({ query }) => {
    const phrase = (textOf(query, 'query') ?? '').replace(/"/g, '');
    const since = /created_at_i>(\d+)/.exec(textOf(query, 'numericFilters') ?? '')?.[1];
    const fromMs = since === undefined ? nowMs() - WEEK_MS : Number(since) * 1_000;
    const pageSize = countOf(query, 'hitsPerPage', 20, 1, 1_000);
    const found = news
      .on([phrase], Math.max(fromMs, nowMs() - 4 * WEEK_MS), nowMs())
      .map((story) => ({ story, key: keyOf(seed, `hn:${story.url}`) }))
      .filter(({ key }) => uniform(key, 1) < SHARE);
    return {
      hits: found.slice(0, pageSize).map(({ story, key }) => ({
        objectID: String(40_000_000 + (key % 1_000_000)),
        title: story.title,
        url: story.url,
        author: 'sandbox',
        points: Math.floor(120 * uniform(key, 2) ** 4),
        num_comments: Math.floor(60 * uniform(key, 3) ** 3),
        created_at: new Date(story.atMs).toISOString(),
        created_at_i: Math.floor(story.atMs / 1_000),
        _tags: ['story', 'author_sandbox'],
      })),
      nbHits: found.length,
      page: 0,
      nbPages: Math.ceil(found.length / pageSize),
      hitsPerPage: pageSize,
      exhaustiveNbHits: true,
      query: textOf(query, 'query') ?? '',
    };
  });
}
