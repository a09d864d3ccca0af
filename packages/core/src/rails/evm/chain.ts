/** What an EVM chain says about payments in its USDC. All of it only reads; nothing here moves money. */
import { encodeFunctionData, isErc6492Signature, parseAbi, parseErc6492Signature } from 'viem';
import type { Rpc } from '../../chain-rpc/json-rpc.ts';
import type { ChainVerdict, Finality, PaymentRefused } from '../../paid-call/rail.ts';
import { asMined, type MinedTransaction } from '../../relayer/node-reply.ts';
import { refuse } from '../on-chain/refusals.ts';
import { type Head, isUsed, paidBy, readHead, useOf } from './authorization-use.ts';
import { type Authorization, authorizationDigest, type Hex, TOPIC_CANCELED } from './eip3009.ts';
import type { EvmNetwork } from './network.ts';
import { recoverAddress } from './recover.ts';
import {
  hasCode,
  hexOf,
  MAX_GAS,
  revertText,
  type SentAs,
  type SettlementCall,
  settlementCall,
  whyNot,
} from './settlement-call.ts';

const EIP1271 = parseAbi(['function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)']);
const EIP1271_MAGIC = '0x1626ba7e';
/** A node whose newest block is older than this cannot tell what is happening now. */
const MAX_HEAD_AGE_MS = 120_000;
const HEAD_FRESH_MS = 3_000;
/** How far the chain's clock must be past `validBefore` before an authorization counts as dead. */
const DEAD_MARGIN_S = 15n;

export type PayersCode = { is: 'none' } | { is: 'wallet' } | { is: 'factory'; address: Hex };

export interface EvmChain {
  readonly network: EvmNetwork;
  /** A recent head block. @throws when the node does not answer */
  head(): Promise<Head>;
  /** Whether the node is too far behind to tell what is happening now. */
  isBehind(head: Head): boolean;
  /**
   * Whether `from` signed. An account is checked by its key, a smart wallet by asking its contract (EIP-1271), and a
   * wallet that is not deployed yet (ERC-6492) by simulating the payment.
   */
  isSignedByPayer(authorization: Authorization, signature: Hex): Promise<boolean>;
  settlementCall(authorization: Authorization, signature: Hex): Promise<SettlementCall>;
  /**
   * Why the chain would not move the money now, with at most so much gas; null when it would.
   *
   * @param as the sender and the fees of the transaction: the wallet's code can see both
   * @throws when the node does not say
   */
  whyNot(
    authorization: Authorization,
    signature: Hex,
    gasLimit?: bigint,
    as?: SentAs,
  ): Promise<PaymentRefused | null>;
  /**
   * Which code of the payer's runs when the payment settles: none, that of its wallet, or also that of the factory that
   * deploys its wallet.
   */
  codeOf(authorization: Authorization, signature: Hex): Promise<PayersCode>;
  look(authorization: Authorization): Promise<ChainVerdict>;
  /** Whether a mined transaction paid by using this authorization. */
  paidBy(mined: MinedTransaction, authorization: Authorization): boolean;
  receipt(hash: string): Promise<MinedTransaction | null>;
  finality(hash: string, authorization: Authorization | null): Promise<Finality>;
}

export function openEvmChain(network: EvmNetwork, rpc: Rpc, nowMs: () => number): EvmChain {
  const node = { network, rpc };
  const asset = network.asset.toLowerCase();
  let cached: { head: Head; atMs: number } | null = null;

  async function newestHead(): Promise<Head> {
    const head = await readHead(rpc);
    cached = { head, atMs: performance.now() };
    return head;
  }

  async function currentHead(): Promise<Head> {
    if (cached !== null && performance.now() - cached.atMs < HEAD_FRESH_MS) return cached.head;
    return newestHead();
  }

  async function receipt(hash: string): Promise<MinedTransaction | null> {
    return asMined(await rpc.call('eth_getTransactionReceipt', [hash]));
  }

  return {
    network,
    settlementCall: (authorization, signature) => settlementCall(node, authorization, signature),
    whyNot: (authorization, signature, gasLimit, as) => whyNot(node, authorization, signature, gasLimit, as),
    paidBy: (mined, authorization) => paidBy(asset, mined, authorization),
    receipt,

    async codeOf(authorization, signature) {
      if (await hasCode(rpc, authorization.from)) return { is: 'wallet' };
      const factory = isErc6492Signature(signature) ? parseErc6492Signature(signature).address : undefined;
      return factory === undefined
        ? { is: 'none' }
        : { is: 'factory', address: factory.toLowerCase() as Hex };
    },

    head: currentHead,

    isBehind: (head) => Number(head.timestamp) * 1_000 < nowMs() - MAX_HEAD_AGE_MS,

    async isSignedByPayer(authorization, signature) {
      const digest = authorizationDigest(network, authorization);
      if (recoverAddress(digest, signature) === authorization.from) return true;
      const wrapped = isErc6492Signature(signature) ? parseErc6492Signature(signature) : null;
      if (await hasCode(rpc, authorization.from)) {
        const data = encodeFunctionData({
          abi: EIP1271,
          functionName: 'isValidSignature',
          args: [`0x${digest.toString('hex')}`, wrapped?.signature ?? signature],
        });
        try {
          const said = await rpc.call('eth_call', [
            { to: authorization.from, data, gas: hexOf(MAX_GAS) },
            'latest',
          ]);
          return typeof said === 'string' && said.slice(0, 10) === EIP1271_MAGIC;
        } catch (error) {
          if (revertText(error) === null) throw error;
          return false;
        }
      }
      if (wrapped === null) return false;
      const refusal = await whyNot(node, authorization, signature);
      return refusal === null || refusal.code === 'PAYMENT_INSUFFICIENT_FUNDS';
    },

    async look(authorization) {
      try {
        const head = await newestHead();
        if (!(await isUsed(node, authorization, 'latest'))) {
          if (head.timestamp <= authorization.validBefore + DEAD_MARGIN_S) return { status: 'open' };
          if (!(await isUsed(node, authorization, head)))
            return { status: 'dead', refusal: refuse('PAYMENT_EXPIRED') };
        }
        const use = await useOf(node, authorization, head);
        if (use === null) return { status: 'unknown' };
        if (use.topic === TOPIC_CANCELED)
          return { status: 'dead', refusal: refuse('PAYMENT_AUTHORIZATION_USED') };
        const mined = await receipt(use.hash);
        if (mined === null) return { status: 'unknown' };
        return paidBy(asset, mined, authorization)
          ? { status: 'settled', transaction: mined.hash, blockNumber: mined.blockNumber }
          : { status: 'dead', refusal: refuse('PAYMENT_AUTHORIZATION_USED') };
      } catch (error) {
        return { status: 'unknown', cause: error };
      }
    },

    async finality(hash, authorization) {
      try {
        const head = await newestHead();
        const mined = await receipt(hash);
        if (mined === null) return this.isBehind(head) ? 'unknown' : 'gone';
        if (authorization !== null && !paidBy(asset, mined, authorization)) return 'gone';
        return head.number - mined.blockNumber >= BigInt(network.finalAfterBlocks) ? 'final' : 'waiting';
      } catch {
        return 'unknown';
      }
    },
  };
}
