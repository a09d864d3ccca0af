/** Asks the sandbox's Solana from another process. */

/** Passing time for years takes a while on a busy machine. */
const TIMEOUT_MS = 60_000;

/**
 * Calls a method of the node.
 *
 * @returns its result, which is what the method promises
 * @throws Error if the node is silent or refuses
 */
export async function askSolana<Result>(
  rpcUrl: string,
  method: string,
  ...params: unknown[]
): Promise<Result> {
  const response = await fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const reply: { result: Result; error?: { message: string } } = JSON.parse(await response.text());
  if (reply.error !== undefined) throw new Error(`${method}: ${reply.error.message}`);
  return reply.result;
}
