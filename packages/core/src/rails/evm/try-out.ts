/**
 * Simulates a payment on the chain before it is sent. Our own settler pays the gas, so it must know which code runs
 * when the payment settles: that of the asset alone, or code of the payer's as well.
 */
import type { OnChainPayment, PaymentRefused } from '../../paid-call/rail.ts';
import type { Relayer } from '../../relayer/relayer.ts';
import { refuse } from '../on-chain/refusals.ts';
import type { EvmChain, PayersCode } from './chain.ts';
import { evidenceOf } from './evidence.ts';
import type { LostGas, Party } from './lost-gas.ts';
import { MAX_GAS } from './settlement-call.ts';

/**
 * One and a half times what the asset's transfer uses, rounded up; 68,600 were measured. What needs more is estimated
 * each time.
 */
const PLAIN_GAS_LIMIT = 120_000n;
const LEAST_GAS = 50_000n;

/** How our own settler sends a payment. */
export interface Sending {
  /** Absent: estimated when the transaction is sent. */
  gasLimit?: bigint;
  maxCostWei?: bigint;
  /** Against whom a failure counts. */
  party?: Party;
  runsPayersCode: boolean;
}
const MEASURED: Sending = { runsPayersCode: false };

/** What our settler does for wallets whose own code runs when they pay. */
export interface PayersWallets {
  /** The factories that may be called to deploy a wallet, in lower case. */
  factories: ReadonlySet<string>;
  lostGas: LostGas;
  /** The gas budget in wei that this many units of the asset pay for. */
  worthWei(units: bigint): bigint;
}

/** Why a payment would fail now, and how our own settler may send it. */
export interface TriedOut {
  refusal: PaymentRefused | null;
  sending: Sending;
}

/** Simulates a payment as a facilitator would send it. Its gas is not our cost. */
export async function tryPlainly(chain: EvmChain, payment: OnChainPayment): Promise<TriedOut> {
  const { authorization, signature } = evidenceOf(payment);
  return { refusal: await chain.whyNot(authorization, signature), sending: MEASURED };
}

/** Simulates a payment as our own settler would send it. */
export async function tryAsSent(
  chain: EvmChain,
  own: Relayer,
  wallets: PayersWallets,
  payment: OnChainPayment,
): Promise<TriedOut> {
  const { authorization, signature } = evidenceOf(payment);
  // What the settler asks the node is asked now, beside the simulation.
  own.prepare();
  const [code, isPlain] = await Promise.all([
    chain.codeOf(authorization, signature),
    signature.length === 132 &&
      chain.whyNot(authorization, signature, PLAIN_GAS_LIMIT).then((refusal) => refusal === null),
  ]);
  const party = partyOf(payment, code);
  const tooOften = await wallets.lostGas.refusal(party);
  if (tooOften !== null) return { refusal: tooOften, sending: MEASURED };
  if (code.is === 'none')
    return isPlain
      ? { refusal: null, sending: { ...MEASURED, gasLimit: PLAIN_GAS_LIMIT, party } }
      : { refusal: await chain.whyNot(authorization, signature), sending: { ...MEASURED, party } };

  return tryPayersCode(chain, own, wallets, payment, code);
}

/**
 * The payer's own code runs at our cost. It may cost no more than the price is worth, and is simulated exactly as it is
 * sent.
 */
async function tryPayersCode(
  chain: EvmChain,
  own: Relayer,
  wallets: PayersWallets,
  payment: OnChainPayment,
  code: PayersCode,
): Promise<TriedOut> {
  const { authorization, signature } = evidenceOf(payment);
  if (code.is === 'factory' && !wallets.factories.has(code.address))
    return {
      refusal: refuse('PAYMENT_WALLET_NOT_DEPLOYED', { factory: code.address }),
      sending: MEASURED,
    };
  const from = own.payer;
  if (from === undefined) throw new Error('a settler without a key');
  const fees = await own.fees();
  const maxCostWei = wallets.worthWei(payment.amountUnits);
  const affordable = maxCostWei / (fees.maxFeePerGas === 0n ? 1n : fees.maxFeePerGas);
  const gasLimit = affordable < MAX_GAS ? affordable : MAX_GAS;
  const sending: Sending = { maxCostWei, party: partyOf(payment, code), runsPayersCode: true };
  const as = { from, ...fees };
  const tooDear = { refusal: refuse('PAYMENT_GAS_ABOVE_PRICE'), sending };
  // This is less than any settlement needs, and a node would not even simulate it.
  if (gasLimit < LEAST_GAS) return tooDear;
  const refusal = await chain.whyNot(authorization, signature, gasLimit, as);
  if (refusal === null || gasLimit === MAX_GAS) return { refusal, sending };
  const withMore = await chain.whyNot(authorization, signature, MAX_GAS, as);
  return withMore === null ? tooDear : { refusal, sending };
}

function partyOf(payment: OnChainPayment, code: PayersCode): Party {
  return {
    network: payment.network,
    payer: payment.payer,
    factory: code.is === 'factory' ? code.address : null,
  };
}
