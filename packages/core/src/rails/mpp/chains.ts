/** The chains behind MPP payments: Tempo, and the EVM chain on which another rail settles authorizations. */
import { connectRpc } from '../../chain-rpc/json-rpc.ts';
import type { Database } from '../../db/connection.ts';
import { unavailable } from '../../http/problem.ts';
import { type Chains, type OnChainPayment, PaymentRefused } from '../../paid-call/rail.ts';
import { createEndingSender } from '../../relayer/ending-sender.ts';
import type { GasTanks } from '../../relayer/gas-tanks.ts';
import { addressOf, type EvmKey } from '../../relayer/sign.ts';
import type { Hex } from '../evm/eip3009.ts';
import { type PaidSince, paidSince } from '../evm/paid-since.ts';
import type { AuthorizationSettler } from '../evm/settler.ts';
import { type BalanceOf, tokenBalanceOn } from '../on-chain/balances.ts';
import type { NetworkPayments } from '../on-chain/payments.ts';
import type { Seen } from '../on-chain/standing.ts';
import { hasEverReceived, tellingStrangers } from '../on-chain/strangers.ts';
import { DECIMALS, RPC_TIMEOUT_MS, TEMPO, TEMPO_CHAIN_ID } from './methods.ts';
import { forgottenTempoPayment, tempoPayments } from './tempo-payments.ts';
import { tempoChain, tempoGas, tempoRefunds } from './tempo-refunds.ts';

/** A node whose newest block is older than this cannot tell what is happening now. */
const MAX_HEAD_AGE_MS = 120_000;
/** A key that cannot pay the fees of this many refunds counts as unable to refund. */
const LEAST_REFUNDS = 20n;

/** Tempo, as far as payments need it. */
export interface OpenTempo {
  payments: NetworkPayments;
  /** Whether somebody could pay there now. @throws when the node does not answer */
  look(): Promise<Seen>;
  balanceOf: BalanceOf;
  /** Whether money can be sent back on Tempo now. */
  canRefund(): boolean;
  /** What came to a recipient since a time. @throws when the node does not say */
  paidSince(recipient: string, sinceMs: number): Promise<PaidSince>;
  resume(): Promise<unknown>;
  close(): Promise<void>;
}

export interface TempoNeeds {
  sql: Database;
  /** Whether the money is that of a sandbox. */
  sandbox: boolean;
  /** Where the gas of our keys is monitored. */
  gas: GasTanks;
  nowMs(): number;
  report(network: string, step: 'verify' | 'settle', outcome: string): void;
}

export function openTempo(
  { rpcUrl, currency, refundKey }: { rpcUrl: string; currency: Hex; refundKey: EvmKey | null },
  needs: TempoNeeds,
): OpenTempo {
  const { sql, sandbox, gas, nowMs, report } = needs;
  const rpc = connectRpc(rpcUrl, { timeoutMs: RPC_TIMEOUT_MS });
  const sender = createEndingSender({ sql, network: TEMPO, chain: tempoChain(rpc), nowMs });
  const refunds =
    refundKey === null ? null : tempoRefunds({ rpc, sender, chainId: TEMPO_CHAIN_ID, key: refundKey });
  const payments = tellingStrangers(
    sandbox,
    tempoPayments({ rpc, refunds, nowMs, report: (step, outcome) => report(TEMPO, step, outcome) }),
    (payment) => hasEverReceived(rpc, payment),
  );
  const tank =
    refundKey === null
      ? null
      : gas.open({
          network: TEMPO,
          duty: 'refund',
          addresses: [addressOf(refundKey)],
          token: { symbol: 'USD', decimals: DECIMALS },
          source: tempoGas(rpc, currency),
          least: (cost) => LEAST_REFUNDS * cost,
        });
  return {
    payments,
    async look() {
      const { timestamp } = (await rpc.call('eth_getBlockByNumber', ['latest', false])) as {
        timestamp: string;
      };
      const isBehind = Number(timestamp) * 1_000 < nowMs() - MAX_HEAD_AGE_MS;
      return { offered: !isBehind, reason: isBehind ? 'its node is behind' : null };
    },
    balanceOf: tokenBalanceOn(rpc),
    canRefund: () => payments.canRefund && tank?.isAble !== false,
    paidSince: (recipient, sinceMs) =>
      paidSince(
        {
          title: 'Tempo',
          rpc,
          asset: currency.toLowerCase(),
          payTo: recipient.toLowerCase(),
          refunders: refundKey === null ? [] : [addressOf(refundKey)],
          paymentOf: (moved) =>
            forgottenTempoPayment({ network: TEMPO, asset: currency, payTo: recipient }, moved),
        },
        sinceMs,
      ),
    resume: () => sender.resume(),
    close: () => rpc.close(),
  };
}

/** @param validate the library's checks of a payment, run in the request that presented it */
export function mppChains(
  tempo: OpenTempo | null,
  evm: AuthorizationSettler | null,
  validate: (payment: OnChainPayment) => Promise<void>,
): Chains {
  const on = (network: string) => (network === TEMPO ? tempo?.payments : evm?.chains);
  const chains: Chains = {
    async verify(payment) {
      try {
        const validated = validate(payment);
        // Both checks run at once. Ours is awaited first, because its refusal names the problem more precisely.
        validated.catch(() => {});
        if (payment.network === TEMPO) await tempo?.payments.verify(payment);
        await validated;
        if (payment.network !== TEMPO) await evm?.chains.verify(payment);
      } catch (error) {
        // The payment may have settled already: its payer sent it, or nobody saw the outcome. Then it buys what it paid
        // for.
        if (error instanceof PaymentRefused && (await chains.look(payment)).status === 'settled') return;
        throw error;
      }
    },
    async balanceOf(payment) {
      const balanceOf = payment.network === TEMPO ? tempo?.balanceOf : evm?.chains.balanceOf;
      if (balanceOf === undefined)
        throw unavailable('CHAIN_UNAVAILABLE', 'The chain of this payment is not configured here.', 60_000);
      return balanceOf(payment);
    },
    settle: async (payment) => on(payment.network)?.settle(payment) ?? { status: 'unknown' },
    asksIfKept: (payment) => payment.network !== TEMPO && evm?.chains.asksIfKept?.(payment) === true,
    look: async (payment) => on(payment.network)?.look(payment) ?? { status: 'unknown' },
    finality: async (payment, transaction) =>
      on(payment.network)?.finality(payment, transaction) ?? 'unknown',
    canRefund: (network) =>
      network === TEMPO ? tempo?.canRefund() === true : evm?.chains.canRefund(network) === true,
    canEverRefund: (network) =>
      (network === TEMPO ? tempo?.payments.canRefund : evm?.chains.canEverRefund(network)) === true,
    refund: async (refund) => (await on(refund.network)?.refund(refund)) ?? null,
  };
  return chains;
}
