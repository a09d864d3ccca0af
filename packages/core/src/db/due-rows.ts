/**
 * Works what is due, each row in a transaction of its own, page after page: past what fails and past what somebody else holds,
 * so that neither keeps the others from their turn. It is for money: the lock on the row is the lease, and ends with the commit.
 *
 * @param work.pageAfter lists what is due after a row, or from the first one on
 * @param work.pageSize a shorter page is the last
 * @param work.act returns whether it brought the row further: not if somebody else holds it, or has done it
 * @returns how many it brought further
 * @throws the first failure, after the others had their turn
 */
export async function eachDueRow<Row>(work: {
  pageAfter(last: Row | undefined): Promise<readonly Row[]>;
  pageSize: number;
  act(row: Row): Promise<boolean>;
}): Promise<number> {
  let further = 0;
  const failures: unknown[] = [];
  for (let last: Row | undefined, more = true; more; ) {
    const due = await work.pageAfter(last);
    for (const row of due) {
      try {
        if (await work.act(row)) further += 1;
      } catch (error) {
        failures.push(error);
      }
    }
    last = due.at(-1);
    more = due.length === work.pageSize;
  }
  if (failures.length > 0) throw failures[0];
  return further;
}
