import { unavailable } from '../http/problem.ts';
import type { MinedTransaction } from './node-reply.ts';
import type { Relayer } from './relayer.ts';
import { type Hex, OutOfGas } from './to-send.ts';

/** A relayer with one account, for work that needs each of its transactions mined before it goes on. */
export function senderOf(relayer: Relayer, timeoutMs: number) {
  const [address] = relayer.addresses;
  if (address === undefined) throw new Error('a sender needs a key');
  return {
    address,
    /** @throws Problem (503) when it was not mined in time, or its key cannot pay: the same id goes on with it */
    async send(transaction: {
      id: string;
      to: Hex;
      data: Hex;
      gasLimit?: bigint;
    }): Promise<MinedTransaction> {
      const mined = await relayer.send(transaction, timeoutMs).catch((error: unknown) => {
        if (!(error instanceof OutOfGas)) throw error;
        throw unavailable(
          'OUT_OF_GAS',
          'Our key for this lacks the gas. Ask again later.',
          60_000,
          {},
          error,
        );
      });
      if (mined === null) {
        throw unavailable('TRANSACTION_PENDING', 'Our transaction is not in a block yet. Ask again.', 5_000);
      }
      return mined;
    },
  };
}
