/**
 * The American Community Survey: it answers tables whose cells are strings. For a tract that it does not know it answers 204
 * with an empty body; without a key, or with one that it does not know, it leads to a page that says so.
 */
import type { FastifyInstance } from 'fastify';
import { homeValue, TRACTS, type Tract } from './homes.ts';
import { listOf, type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const KEY = /^sandbox-[\w-]+$/;
const FIRST_YEAR = 2009;
/** The month of publication, counted from 0: a survey appears in the December after its last year. */
const RELEASE_MONTH = 11;

export function acs(app: FastifyInstance, { seed, nowMs }: World): void {
  app.get<{ Params: { year: string }; Querystring: Query }>('/:year/acs/acs5', ({ params, query }, reply) => {
    const refuse = (message: string, code = 400) => reply.code(code).type('text/plain').send(message);
    const key = textOf(query, 'key') ?? '';
    if (!KEY.test(key)) return reply.redirect(`/data/${key === '' ? 'missing' : 'invalid'}_key.html`, 302);
    const year = Number(params.year);
    if (!(year >= FIRST_YEAR && Date.UTC(year + 1, RELEASE_MONTH) <= nowMs()))
      return refuse('error: unknown dataset', 404);
    const asked = /^tract:(\d{6}) state:(\d{2}) county:(\d{3})$/.exec(
      `${textOf(query, 'for') ?? ''} ${textOf(query, 'in') ?? ''}`,
    );
    if (asked === null) return refuse('error: unknown/unsupported geography hierarchy');
    const [, tract, state, county] = asked;
    const found = TRACTS.find(
      (each) => each.tract === tract && each.state === state && each.county === county,
    );
    if (found === undefined) return reply.code(204).send();
    const names = listOf(textOf(query, 'get'), 50);
    const cells = names.map((name) => cellOf(name, found, seed, year));
    const at = cells.indexOf(undefined);
    if (at !== -1) return refuse(`error: unknown variable '${names[at]}'`);
    return [
      [...names, 'state', 'county', 'tract'],
      [...cells, state, county, tract],
    ];
  });
}

function cellOf(name: string, tract: Tract, seed: number, year: number): string | undefined {
  const { median, margin } = homeValue(seed, tract, year);
  if (name === 'NAME') return `Census Tract ${Number(tract.tract) / 100}; SANDBOX; ${tract.city}`;
  if (name === 'B25077_001E') return String(median);
  if (name === 'B25077_001M') return String(margin);
  return undefined;
}
