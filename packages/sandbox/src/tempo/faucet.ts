/** Gives sandbox money to a wallet on Tempo. */
import type { Address } from 'viem';
import { Actions } from 'viem/tempo';
import { BUILDERS } from '../chain/accounts.ts';
import { PATH_USD, USDC_E } from './addresses.ts';
import { by, connect } from './node.ts';

/**
 * The balance that the node requires before it accepts a payment without a fee token, although the fee is then taken
 * from the token of the payment. The real Tempo checks only that token.
 */
const PATH_USD_MICROS = 1_000_000n;

/**
 * Sends USDC.e from the faucet and what the node wants to see beside it. Returns the USDC.e that the wallet then holds,
 * in millionths.
 *
 * @throws when the chain does not answer or the faucet has run dry
 */
export async function fundTempo(rpcUrl: string, wallet: Address, usdcMicros: bigint): Promise<bigint> {
  const node = connect(rpcUrl);
  const { faucet } = BUILDERS;
  await Actions.token.transferSync(node, {
    ...by(faucet),
    token: PATH_USD,
    to: wallet,
    amount: PATH_USD_MICROS,
  });
  await Actions.token.transferSync(node, { ...by(faucet), token: USDC_E, to: wallet, amount: usdcMicros });
  return usdcEBalanceMicros(rpcUrl, wallet);
}

async function usdcEBalanceMicros(rpcUrl: string, account: Address): Promise<bigint> {
  const { amount } = await Actions.token.getBalance(connect(rpcUrl), { token: USDC_E, account });
  return amount;
}
