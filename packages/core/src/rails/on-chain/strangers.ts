/**
 * In a sandbox, tells payers whose wallet is not the sandbox's. All money there comes from its faucet. A wallet that
 * never received any may hold real money elsewhere, and its owner should know where they nearly paid.
 */
import type { Rpc } from '../../chain-rpc/json-rpc.ts';
import { type OnChainPayment, PaymentRefused } from '../../paid-call/rail.ts';
import type { NetworkPayments } from './payments.ts';
import { refuse } from './refusals.ts';

const TOPIC_TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

/**
 * The same payments, whose refusals name a foreign wallet as one. Where money is real, the payments are returned
 * unchanged.
 *
 * @param hasReceived whether the payer has ever received money on this chain; true when that cannot be told
 */
export function tellingStrangers(
  sandbox: boolean,
  payments: NetworkPayments,
  hasReceived: (payment: OnChainPayment) => Promise<boolean>,
): NetworkPayments {
  if (!sandbox) return payments;
  return {
    ...payments,
    async verify(payment) {
      try {
        await payments.verify(payment);
      } catch (error) {
        if (error instanceof PaymentRefused && !(await hasReceived(payment)))
          throw refuse('NOT_A_SANDBOX_WALLET');
        throw error;
      }
    },
  };
}

/** On an EVM chain or Tempo: decided by the transfers of the token that the payment names. */
export async function hasEverReceived(
  rpc: Pick<Rpc, 'call'>,
  { asset, payer }: OnChainPayment,
): Promise<boolean> {
  const to = `0x${payer.slice(2).toLowerCase().padStart(64, '0')}`;
  const filter = { address: asset, fromBlock: 'earliest', topics: [TOPIC_TRANSFER, null, to] };
  const logs = await rpc.call('eth_getLogs', [filter]).catch(() => null);
  return !Array.isArray(logs) || logs.length > 0;
}

/** On Solana: whoever received the token has a token account, and it stays. */
export async function hasTokenAccount(rpc: Pick<Rpc, 'call'>, payment: OnChainPayment): Promise<boolean> {
  const { source } = payment.evidence;
  const config = { encoding: 'base64', commitment: 'confirmed' };
  const found = (await rpc.call('getAccountInfo', [source, config]).catch(() => null)) as {
    value: unknown;
  } | null;
  return found === null || found.value !== null;
}
