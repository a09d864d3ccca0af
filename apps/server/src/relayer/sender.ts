import { unavailable } from '../http/problem.ts';
import type { Hex, MinedTransaction, Relayer } from './relayer.ts';

/** A relayer with one account, for work that needs each of its transactions mined before it goes on. */
export function senderOf(relayer: Relayer, timeoutMs: number) {
  const [address] = relayer.addresses;
  if (address === undefined) throw new Error('a sender needs a key');
  return {
    address,
    /** @throws Problem (503) when it was not mined in time: the same id finds it again */
    async send(transaction: {
      id: string;
      to: Hex;
      data: Hex;
      gasLimit?: bigint;
    }): Promise<MinedTransaction> {
      const mined = await relayer.send(transaction, timeoutMs);
      if (mined === null) {
        throw unavailable('TRANSACTION_PENDING', 'Our transaction is not in a block yet. Ask again.', 5_000);
      }
      return mined;
    },
  };
}
