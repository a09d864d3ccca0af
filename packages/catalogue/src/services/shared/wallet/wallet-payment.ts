import { noAnswer } from '@farebox/core/words/failure';
import {
  type Address,
  BaseError,
  encodeAbiParameters,
  encodeFunctionData,
  erc20Abi,
  formatUnits,
  isAddressEqual,
  keccak256,
  numberToHex,
  serializeTransaction,
  zeroAddress,
} from 'viem';
import type { EvmChain } from '../../../upstreams/adapters/evm.ts';
import type { EvmChainName } from '../../../upstreams/adapters/evm-chains.ts';
import { SOLANA_USDC_MINT } from '../../../upstreams/adapters/solana.ts';
import { type AskedAmount, inSmallestUnit } from '../chain/token-amount.ts';
import { isSanctioned } from './wallet-sanctions.ts';
import {
  type Call,
  currentFees,
  type Fees,
  gasLimit,
  type Trial,
  tryCall,
  unsigned,
} from './wallet-transaction.ts';

export const CURRENCY = 'USDC';
const SOLANA_USDC_DECIMALS = 6;
/** An address without an owner, for estimating a transfer before the payer is known. */
const TRIAL_PAYER: Address = '0x000000000000000000000000000000000000fa7e';
/** Where Circle's FiatToken keeps balances (`balanceAndBlacklistStates`); bsc has another token. */
const BALANCES_SLOT = 9n;
const WITHOUT_FIAT_TOKEN: readonly EvmChainName[] = ['bsc'];

/** Of the chain's USDC, by its contract; viem's errors where there is none. */
export function usdcDecimals(chain: EvmChain): Promise<number> {
  return chain.client.readContract({ address: chain.usdc, abi: erc20Abi, functionName: 'decimals' });
}

/**
 * A USDC payment on an EVM chain, ready to be signed as far as its payer is known.
 *
 * @param asked how much, in one of the two units
 * @param payer null: the gas is tried out with a pretended payer
 * @throws noAnswer when the recipient cannot or must not be paid, or the amount is finer than the token
 */
export async function evmPayment(
  chain: EvmChain,
  asked: AskedAmount,
  recipient: Address,
  payer: Address | null,
) {
  const contract = chain.usdc;
  if (isAddressEqual(recipient, zeroAddress) || isAddressEqual(recipient, contract)) {
    throw noAnswer('RECIPIENT_UNUSABLE', 'A payment to this address would be lost.', 'recipient');
  }
  const [decimals, fees, recipientSanctioned, payerSanctioned, nonce] = await Promise.all([
    usdcDecimals(chain).catch((error: unknown) => {
      if (!(error instanceof BaseError)) throw error;
      throw noAnswer('CURRENCY_NOT_SUPPORTED', `There is no ${CURRENCY} on ${chain.name}.`, 'chain');
    }),
    currentFees(chain),
    isSanctioned(chain, recipient),
    payer === null ? null : isSanctioned(chain, payer),
    payer === null ? 0 : chain.client.getTransactionCount({ address: payer, blockTag: 'pending' }),
  ]);
  if (recipientSanctioned === true || payerSanctioned === true) {
    const [field, who] = recipientSanctioned === true ? ['recipient', 'recipient'] : ['fromAddress', 'payer'];
    throw noAnswer(
      'ADDRESS_SANCTIONED',
      `The Chainalysis oracle on ${chain.name} lists the ${who} as sanctioned.`,
      field,
    );
  }
  const notes: string[] = [];
  if (recipientSanctioned === null) {
    notes.push(`recipientSanctioned is null: ${chain.name} has no sanctions oracle that answers here.`);
  }

  const amountRaw = inSmallestUnit(asked, decimals, CURRENCY);
  const data = encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [recipient, amountRaw] });
  const from = payer ?? TRIAL_PAYER;
  const call: Call = { from, to: contract, value: 0n, data };
  const trial = payer === null ? await tryPretended(chain, call, amountRaw) : await tryCall(chain, call);
  if (payer === null) {
    notes.push('Without fromAddress the transfer lacks its sender and nonce.');
    notes.push(
      trial.success
        ? 'The gas was measured with a pretended payer.'
        : `The gas could not be measured with a pretended payer: ${trial.revertReason}.`,
    );
  } else if (!trial.success) {
    notes.push('The transfer would fail for this payer; unsignedSerialized and gas are left out.');
  }
  const gas = trial.success ? gasLimit(trial.gas) : null;
  return {
    amount: formatUnits(amountRaw, decimals),
    amountRaw: String(amountRaw),
    recipientSanctioned,
    ...transferFor(chain, call, payer, nonce, gas, fees),
    paymentUri: `ethereum:${contract}@${chain.chainId}/transfer?address=${recipient}&uint256=${amountRaw}`,
    simulation: payer === null ? null : { success: trial.success, revertReason: trial.revertReason },
    paymentOptions: [{ currency: CURRENCY, chain: chain.name, contract, decimals, payTo: recipient }],
    serialized: serializeTransaction({ type: 'eip1559', chainId: chain.chainId, to: contract, data }),
    trial,
    call,
    fees,
    notes,
  };
}

/** The transfer as far as it is known: complete with a payer for whom it works. */
function transferFor(
  chain: EvmChain,
  call: Call,
  payer: Address | null,
  nonce: number,
  gas: bigint | null,
  fees: Fees,
) {
  const made = unsigned(chain, call, nonce, gas ?? 0n, fees);
  if (payer !== null && gas !== null) return made;
  const { from, nonce: _, gas: __, ...rest } = made.transaction;
  return {
    transaction: {
      ...rest,
      ...(payer === null ? {} : { from, nonce }),
      ...(gas === null ? {} : { gas: numberToHex(gas) }),
    },
    unsignedSerialized: null,
  };
}

/** A payment by Solana Pay, from which the payer's wallet makes the transaction. https://docs.solanapay.com/spec */
export function solanaPayment(asked: AskedAmount, recipient: string) {
  const amountRaw = inSmallestUnit(asked, SOLANA_USDC_DECIMALS, CURRENCY);
  const amount = formatUnits(amountRaw, SOLANA_USDC_DECIMALS);
  return {
    amount,
    amountRaw: String(amountRaw),
    recipient,
    chain: 'solana' as const,
    // The amount is in whole units there.
    paymentUri: `solana:${recipient}?amount=${amount}&spl-token=${SOLANA_USDC_MINT}`,
    paymentOptions: [
      {
        currency: CURRENCY,
        chain: 'solana' as const,
        contract: SOLANA_USDC_MINT,
        decimals: SOLANA_USDC_DECIMALS,
        payTo: recipient,
      },
    ],
  };
}

/**
 * Simulates a payment with twice its amount in the hands of a fictitious payer: because some balance remains, the
 * transfer uses the gas that most transfers use.
 */
async function tryPretended(chain: EvmChain, call: Call, amountRaw: bigint): Promise<Trial> {
  if (WITHOUT_FIAT_TOKEN.includes(chain.name)) {
    const revertReason = `where ${CURRENCY} keeps its balances on ${chain.name} is not known here`;
    return { success: false, gas: null, revertReason };
  }
  const slot = keccak256(
    encodeAbiParameters([{ type: 'address' }, { type: 'uint256' }], [call.from, BALANCES_SLOT]),
  );
  const stateDiff = [{ slot, value: numberToHex(2n * amountRaw, { size: 32 }) }];
  return tryCall(chain, call, [{ address: chain.usdc, stateDiff }]);
}
