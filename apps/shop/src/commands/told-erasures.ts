/** What commands say of persons who were erased again in a restored database. */
import type { Reapplied } from '@farebox/core/people/erasure';

/** @param path of the list of erasures */
export function reapplied({ erased, obstacles, unreadable, listed }: Reapplied, path: string): string {
  return [
    listed === 0
      ? `No erased person is listed in ${path}. If there is such a list elsewhere, name it by FAREBOX_ERASURES_FILE and run npm run person -- reapply --by NAME.`
      : `${listed} erasures are listed in ${path}: ${erased} persons of them stood in the database again, and were erased.`,
    ...obstacles,
    ...(obstacles.length === 0 ? [] : ['Run npm run person -- reapply --by NAME once that has ended.']),
    ...(unreadable === 0
      ? []
      : [
          `${unreadable} erasures were listed under a secret that FAREBOX_SECRET does not name any more: give it beside the others, and run npm run person -- reapply --by NAME.`,
        ]),
    '',
  ].join('\n');
}
