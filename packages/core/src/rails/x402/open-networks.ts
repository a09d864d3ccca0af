/**
 * What each configured network needs to take payments: its node, its settler, its refunds, and monitoring of the gas of
 * our keys.
 */
import { connectRpc, type NodeRpc, type Rpc } from '../../chain-rpc/json-rpc.ts';
import type { Database } from '../../db/connection.ts';
import { createEndingSender } from '../../relayer/ending-sender.ts';
import { evmGas } from '../../relayer/evm-gas.ts';
import type { Duty, GasTank, GasTanks } from '../../relayer/gas-tanks.ts';
import { createRelayer, type Relayer } from '../../relayer/relayer.ts';
import { addressOf, type EvmKey } from '../../relayer/sign.ts';
import { type EvmChain, openEvmChain } from '../evm/chain.ts';
import type { Hex } from '../evm/eip3009.ts';
import { type LostGas, openLostGas } from '../evm/lost-gas.ts';
import { evmPayments } from '../evm/payments.ts';
import { accountBalanceOn, type BalanceOf, tokenBalanceOn } from '../on-chain/balances.ts';
import type { NetworkPayments, Report } from '../on-chain/payments.ts';
import { hasEverReceived, hasTokenAccount, tellingStrangers } from '../on-chain/strangers.ts';
import type { Facilitators } from './facilitators.ts';
import {
  type NamedEvmNetwork,
  NETWORKS,
  type Network,
  type NetworkName,
  type SolanaNetwork,
} from './networks.ts';
import { readSolanaKey, type SolanaKey } from './solana-key.ts';
import { LEAST_REFUND_LAMPORTS, REFUND_LAMPORTS, solanaRefunds } from './solana-refunds.ts';
import { solanaChain, solanaGas } from './solana-sending.ts';
import { LEAST_SETTLER_LAMPORTS, type SolanaSettler, solanaSettler } from './solana-settler.ts';
import { SETTLEMENT_LAMPORTS } from './solana-terms.ts';
import { isPoor, svmPayments } from './svm-payments.ts';

/** The gas of one settlement, a little more than was measured. */
const SETTLEMENT_GAS = 70_000n;
/** A key that cannot pay for this many settlements takes no more payments. */
const LEAST_SETTLEMENTS = 20n;
const RPC_TIMEOUT_MS = 5_000;
/** What failed settlements of wallets' own code may cost us in a day on one chain, though they passed a simulation. */
const LOST_GAS_MICROS_PER_DAY = 5_000_000n;
/** For a chain whose currency has no configured price: a price that is too high rather than too low. */
const DEAREST_GAS_TOKEN_USD = 10_000;

export interface X402Config {
  networks: readonly NetworkName[];
  /** Null when EVM chains are not offered. */
  recipient: Hex | null;
  /** The owner of the token account, not the account itself. Null when Solana is not offered. */
  recipientSolana: string | null;
  /** Null for a chain whose node is not configured, which is then not offered. */
  rpcUrls: Readonly<Record<NetworkName, string | null>>;
  facilitatorUrls: readonly string[];
  facilitatorToken(): string | null;
  /** Keys of our own settler; empty: facilitators settle. */
  relayerKeys: readonly EvmKey[];
  /** Keys that hold USDC and gas for refunds. */
  refundKeys: readonly EvmKey[];
  /** The factories that our settler may call to deploy a wallet (ERC-6492). */
  walletFactories: readonly Hex[];
  /** The assumed price of one unit of each chain's own currency, in whole USD. */
  gasTokenUsd: Readonly<Partial<Record<NetworkName, number>>>;
  /** In the form that `readSolanaKey` takes. Null: facilitators settle on Solana. */
  relayerKeySolana: string | null;
  /** A key that holds USDC and SOL for refunds. */
  refundKeySolana: string | null;
}

/** What opening a network needs beside the configuration. */
export interface NetworkNeeds {
  sql: Database;
  /** Whether the money is that of a sandbox. */
  sandbox: boolean;
  /** Where the gas of our keys is monitored. */
  gas: GasTanks;
  facilitators: Facilitators;
  nowMs(): number;
  report(network: string, step: 'verify' | 'settle', outcome: string): void;
}

/** One of our relayers, and what is known of its gas. */
interface Sending {
  relayer: Relayer;
  tank: GasTank;
}

interface OpenNetwork {
  rpc: NodeRpc;
  /** The recipient, as the chain writes it. */
  payTo: string;
  payments: NetworkPayments;
  balanceOf: BalanceOf;
  /** The senders of our own transactions, which resume pending ones. */
  senders: readonly { resume(): Promise<unknown> }[];
  close(): Promise<unknown>;
}

export type Opened = OpenNetwork &
  (
    | {
        network: NamedEvmNetwork;
        /** `payTo` as it was configured. */
        recipient: Hex;
        chain: EvmChain;
        settling: Sending | null;
        refunding: Sending | null;
      }
    | {
        network: SolanaNetwork;
        recipient: string;
        settler: SolanaSettler;
        refunding: { tank: GasTank } | null;
        /** The address of the key for refunds; null: there is none. */
        refunder: string | null;
      }
  );

export interface OpenNetworks {
  /** By CAIP-2 name, in order of preference. */
  all: ReadonlyMap<string, Opened>;
  /** How much of the chain's own currency this many micro-USD buy. */
  worthWei(network: Network, micros: bigint): bigint;
  lostGas: LostGas;
}

/** Opens the networks that are configured: those with a name, a node and a recipient. */
export function openNetworks(config: X402Config, needs: NetworkNeeds): OpenNetworks {
  const worthWei = (network: Network, micros: bigint) =>
    (micros * 10n ** 12n) / BigInt(config.gasTokenUsd[network.name] ?? DEAREST_GAS_TOKEN_USD);
  const lostGas = openLostGas(needs.sql, needs.nowMs, (id) => {
    const network = NETWORKS.find((each) => each.id === id);
    return network === undefined ? 0n : worthWei(network, LOST_GAS_MICROS_PER_DAY);
  });
  const all = new Map<string, Opened>();
  for (const network of NETWORKS) {
    const rpcUrl = config.rpcUrls[network.name];
    if (!config.networks.includes(network.name) || rpcUrl === null) continue;
    const opened =
      network.kind === 'evm'
        ? openEvm(network, rpcUrl, config, { ...needs, worthWei, lostGas })
        : openSolana(network, rpcUrl, config, needs);
    if (opened !== null) all.set(network.id, opened);
  }
  return { all, worthWei, lostGas };
}

function openEvm(
  network: NamedEvmNetwork,
  rpcUrl: string,
  config: X402Config,
  needs: NetworkNeeds & Pick<OpenNetworks, 'worthWei' | 'lostGas'>,
): Opened | null {
  const { recipient } = config;
  if (recipient === null) return null;
  const rpc = connectRpc(rpcUrl, { timeoutMs: RPC_TIMEOUT_MS });
  const { lostGas, worthWei } = needs;
  const chain = openEvmChain(network, rpc, needs.nowMs);
  // Sending waits for blocks. It has its own connections, so that reads never wait for it.
  const sending = connectRpc(rpcUrl, { timeoutMs: RPC_TIMEOUT_MS });
  const settling = sendingWith(network, sending, 'settle', config.relayerKeys, needs);
  const refunding = sendingWith(network, sending, 'refund', config.refundKeys, needs);
  const payments = evmPayments({
    chain,
    relayer: settling?.relayer ?? null,
    refunds: refunding?.relayer ?? null,
    ...settledBy(network, needs),
    wallets: {
      factories: new Set(config.walletFactories.map((address) => address.toLowerCase())),
      lostGas,
      worthWei: (units) => worthWei(network, units),
    },
  });
  return {
    network,
    rpc,
    recipient,
    payTo: recipient.toLowerCase(),
    chain,
    payments: tellingStrangers(needs.sandbox, payments, (payment) => hasEverReceived(rpc, payment)),
    balanceOf: tokenBalanceOn(rpc),
    settling,
    refunding,
    senders: [settling, refunding].flatMap((each) => each?.relayer ?? []),
    close: () => Promise.all([rpc.close(), sending.close()]),
  };
}

function sendingWith(
  { id, chainId, gasToken }: NamedEvmNetwork,
  rpc: Rpc,
  duty: Duty,
  keys: readonly EvmKey[],
  { sql, gas, nowMs }: NetworkNeeds,
): Sending | null {
  if (keys.length === 0) return null;
  const tank = gas.open({
    network: id,
    duty,
    token: gasToken,
    addresses: keys.map(addressOf),
    source: evmGas({ sql, rpc, network: id, gasEach: SETTLEMENT_GAS, nowMs }),
    least: (cost) => LEAST_SETTLEMENTS * cost,
  });
  return { relayer: createRelayer({ sql, rpc, network: id, chainId, keys, tank, nowMs }), tank };
}

function openSolana(
  network: SolanaNetwork,
  rpcUrl: string,
  config: X402Config,
  needs: NetworkNeeds,
): Opened | null {
  const recipient = config.recipientSolana;
  if (recipient === null) return null;
  const rpc = connectRpc(rpcUrl, { timeoutMs: RPC_TIMEOUT_MS });
  const { sql, gas, nowMs } = needs;
  const sender = createEndingSender({ sql, network: network.id, chain: solanaChain(rpc, nowMs), nowMs });
  const keyOf = (text: string | null) => (text === null ? null : readSolanaKey(text));
  const [key, refundKey] = [keyOf(config.relayerKeySolana), keyOf(config.refundKeySolana)];
  const tankOf = (duty: Duty, { address }: SolanaKey, lamports: { each: bigint; least: bigint }) =>
    gas.open({
      network: network.id,
      duty,
      token: network.gasToken,
      addresses: [address],
      source: solanaGas(rpc, lamports.each),
      least: () => lamports.least,
    });
  const settler = solanaSettler({
    rpc,
    sender,
    key,
    nowMs,
    tank:
      key === null
        ? null
        : tankOf('settle', key, { each: SETTLEMENT_LAMPORTS, least: LEAST_SETTLER_LAMPORTS }),
    isPoor: (payment) => isPoor(rpc, payment),
  });
  const refunds = refundKey === null ? null : solanaRefunds({ rpc, sender, key: refundKey, nowMs });
  const payments = svmPayments({ network, rpc, nowMs, settler, refunds, ...settledBy(network, needs) });
  return {
    network,
    rpc,
    recipient,
    payTo: recipient,
    payments: tellingStrangers(needs.sandbox, payments, (payment) => hasTokenAccount(rpc, payment)),
    balanceOf: accountBalanceOn(rpc),
    settler,
    refunding:
      refundKey === null
        ? null
        : { tank: tankOf('refund', refundKey, { each: REFUND_LAMPORTS, least: LEAST_REFUND_LAMPORTS }) },
    refunder: refundKey?.address ?? null,
    senders: [sender],
    close: () => rpc.close(),
  };
}

/** The facilitators that settle a network, and the report of their outcomes. */
function settledBy(network: Network, { facilitators, report }: NetworkNeeds) {
  return {
    facilitators: (version: 1 | 2) => facilitators.settling(network, version),
    report: ((step, outcome) => report(network.id, step, outcome)) satisfies Report,
  };
}
