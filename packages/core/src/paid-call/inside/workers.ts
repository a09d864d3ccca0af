/** After so long a round takes nothing more: the next one begins with what has become due meanwhile. */
const ROUND_MS = 10_000;

/**
 * Does work with so many workers until nothing is left, the round is over or the process is to end. An item that fails keeps no
 * other from its turn.
 *
 * @param work.next takes one item; undefined: there is none
 * @param work.act does it. @returns how many it brought further
 * @returns how many were brought further
 * @throws the first failure, once all workers are done
 */
export async function withWorkers<Item>(
  workers: number,
  work: { next(): Promise<Item | undefined>; act(item: Item): Promise<number> },
  stopping: AbortSignal | undefined,
): Promise<number> {
  const untilMs = performance.now() + ROUND_MS;
  const failures: unknown[] = [];
  let further = 0;
  const worker = async () => {
    while (stopping?.aborted !== true && performance.now() < untilMs) {
      const item = await work.next();
      if (item === undefined) return;
      try {
        const brought = await work.act(item);
        further += brought;
      } catch (error) {
        failures.push(error);
      }
    }
  };
  // A worker that can take nothing ends. The others do what they have: a round is over when nothing is under way any more.
  const ended = await Promise.allSettled(Array.from({ length: workers }, worker));
  for (const each of ended) if (each.status === 'rejected') failures.push(each.reason);
  if (failures.length > 0) throw failures[0];
  return further;
}
