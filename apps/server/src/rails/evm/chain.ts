/** What an EVM chain says about payments in its USDC. All of it only reads; nothing here moves money. */
import { encodeFunctionData, isErc6492Signature, isHash, parseAbi, parseErc6492Signature } from 'viem';
import type { Rpc } from '../../chain-rpc/json-rpc.ts';
import type { ChainVerdict, Finality, PaymentRefused } from '../../paid-call/rail.ts';
import { asMined, type MinedTransaction, quantity } from '../../relayer/node-reply.ts';
import { refuse } from '../on-chain/refusals.ts';
import { type Head, paidBy, useOf } from './authorization-use.ts';
import {
  type Authorization,
  authorizationDigest,
  type Hex,
  stateCalldata,
  TOPIC_CANCELED,
} from './eip3009.ts';
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
    const block = (await rpc.call('eth_getBlockByNumber', ['latest', false])) as Record<
      string,
      string
    > | null;
    const { number, timestamp, hash } = block ?? {};
    if (
      typeof number !== 'string' ||
      typeof timestamp !== 'string' ||
      typeof hash !== 'string' ||
      !isHash(hash)
    )
      throw new Error('the node sent no block');
    const head = { number: BigInt(number), timestamp: BigInt(timestamp), hash };
    cached = { head, atMs: performance.now() };
    return head;
  }

  async function currentHead(): Promise<Head> {
    if (cached !== null && performance.now() - cached.atMs < HEAD_FRESH_MS) return cached.head;
    return newestHead();
  }

  /** Whether the asset's contract says, in the state after a block, that the authorization was used or cancelled. */
  async function isUsed(authorization: Authorization, block: unknown): Promise<boolean> {
    const call = { to: network.asset, data: stateCalldata(authorization) };
    return quantity(await rpc.call('eth_call', [call, block])) !== 0n;
  }

  /**
   * Whether it was used by that head. One address can be several nodes, of which one stands still: its `latest` may be
   * older than the head that another one named. Asked for a block by its hash (EIP-1898), a node that lacks it refuses.
   */
  function isUsedBy(head: Head, authorization: Authorization): Promise<boolean> {
    return isUsed(authorization, { blockHash: head.hash, requireCanonical: true });
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
        if (!(await isUsed(authorization, 'latest'))) {
          if (head.timestamp <= authorization.validBefore + DEAD_MARGIN_S) return { status: 'open' };
          if (!(await isUsedBy(head, authorization)))
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
