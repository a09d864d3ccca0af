/**
 * What the libraries know of Tempo. It is loaded when a payment there is first made or read: beside the rest of the libraries it takes
 * 100 MB of memory and a second of processor time, which a server without such payments need not spend.
 */

/** viem's transactions and contracts of Tempo. */
export const viemTempo = () => import('viem/tempo');

/** The method `tempo` of the reference library. */
export async function mppxTempo() {
  const { Store, tempo } = await import('mppx/server');
  return { Store, tempo };
}
