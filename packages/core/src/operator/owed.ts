/** Lists the money that has to be sent by hand, of all parts one after the other, a page at a time. */
import type { Owed, Part } from '../part.ts';

/** Lines of a page. */
const MOST = 100;

/** @param page.skip so many lines are left out, which the pages before had */
export async function owedBy(
  parts: readonly Pick<Part, 'owes'>[],
  { skip }: { skip: number },
): Promise<{ owed: readonly Owed[]; total: number }> {
  const owed: Owed[] = [];
  let total = 0;
  for (const part of parts) {
    if (part.owes === undefined) continue;
    const page = { skip: Math.max(0, skip - total), most: MOST - owed.length };
    const found = await part.owes(page);
    owed.push(...found.owed);
    total += found.total;
  }
  return { owed, total };
}
