import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { readParameters } from '../http/parameters.ts';
import { Problem } from '../http/problem.ts';
import type { AccountRecords } from './accounts.ts';
import { actAsJson } from './act-routes.ts';
import type { Acts } from './acts.ts';
import { accountOf, id } from './address-fields.ts';

const searchQuery = z.object({
  q: z
    .string()
    .max(200)
    .regex(/^\P{Cc}*$/u, 'must not hold control characters')
    .default(''),
  after: id.optional(),
});
/** Routes by which operators look things up: keys, accounts, and whatever a customer names an id of. */
export function accountRecordRoutes(
  admin: FastifyInstance,
  { records, acts }: { records: AccountRecords; acts: Pick<Acts, 'list'> },
): void {
  admin.get('/keys', async (request) => {
    const { q, after } = readParameters(searchQuery, request.query);
    return inTime(records.search(q, after ?? null));
  });

  admin.get('/find', async (request) => {
    const { q } = readParameters(searchQuery, request.query);
    return { found: await inTime(records.find(q)) };
  });

  admin.get<{ Params: { call: string } }>('/calls/:call', async (request) => {
    const callId = readParameters(z.uuid(), request.params.call).toLowerCase();
    const { account } = readParameters(z.object({ account: id.optional() }), request.query);
    const story = await inTime(records.call(account ?? null, callId));
    if (story === null) throw new Problem(404, 'NO_SUCH_CALL', 'There is no such call.');
    return story;
  });

  admin.get('/accounts/:account', async (request) => {
    const accountId = accountOf(request);
    const account = await inTime(records.account(accountId));
    if (account === null) throw new Problem(404, 'NO_SUCH_ACCOUNT', 'There is no such account.');
    return { ...account, acts: (await acts.list({ accountId, after: null })).map(actAsJson) };
  });
}

/** Answers a reading that took too long with an error that asks to narrow it. */
async function inTime<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === '57014')) throw error;
    throw new Problem(503, 'TOOK_TOO_LONG', 'This took more than 5 s to look up. Ask for less.', {
      headers: { 'retry-after': '5' },
      cause: error,
    });
  }
}
