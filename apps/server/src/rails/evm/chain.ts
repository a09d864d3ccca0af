/** What an EVM chain says about payments in its USDC. Reads only; nothing here moves money. */
import {
  decodeErrorResult,
  encodeFunctionData,
  isErc6492Signature,
  parseAbi,
  parseErc6492Signature,
} from 'viem';
import { type Rpc, RpcRefusal } from '../../chain-rpc/json-rpc.ts';
import type { ChainVerdict, Finality, PaymentRefused } from '../../paid-call/rail.ts';
import { asMined, type MinedTransaction } from '../../relayer/node-reply.ts';
import { refuse } from '../on-chain/refusals.ts';
import {
  type Authorization,
  authorizationDigest,
  type Hex,
  stateCalldata,
  TOPIC_CANCELED,
  TOPIC_TRANSFER,
  TOPIC_USED,
  topicOf,
  transferCalldata,
} from './eip3009.ts';
import type { EvmNetwork } from './network.ts';
import { recoverAddress } from './recover.ts';

const MULTICALL3 = '0xcA11bde05977b3631167028862bE2a173976CA11';
const AGGREGATE = parseAbi([
  'function aggregate3((address target, bool allowFailure, bytes callData)[] calls) payable returns ((bool success, bytes returnData)[])',
]);
const EIP1271 = parseAbi(['function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)']);
const EIP1271_MAGIC = '0x1626ba7e';
const ERROR_STRING = parseAbi(['error Error(string)']);
/** In blocks, the longest first. */
const LOG_WINDOWS = [9_000n, 1_900n, 450n];
const MAX_LOG_WINDOWS = 200;
/** An authorization that is taken lives an hour at most, give or take clocks that differ. */
const LONGEST_LIFE_S = 7_200n;
/** A node whose newest block is older than this does not see what happens now. */
const MAX_HEAD_AGE_MS = 120_000;
const HEAD_FRESH_MS = 3_000;
/** What a settlement may use: a wallet's creation and its first payment. Whoever signs decides what runs, and we pay for it. */
export const MAX_GAS = 1_000_000n;
/** How far the chain's clock must be past `validBefore` before an authorization is believed to be dead. */
const DEAD_MARGIN_S = 15n;

export interface Head {
  number: bigint;
  /** Seconds since 1970. */
  timestamp: bigint;
}

/** What must be sent to move the money: straight to the asset, or through Multicall3 behind the wallet's creation. */
export interface SettlementCall {
  to: Hex;
  data: Hex;
}

/** Who sends a transaction, and the fees that it is sent with. */
export interface SentAs {
  from: Hex;
  maxFeePerGas: bigint;
  maxPriorityFeePerGas: bigint;
}

export type PayersCode = { is: 'none' } | { is: 'wallet' } | { is: 'factory'; address: Hex };

export interface EvmChain {
  readonly network: EvmNetwork;
  /** A recent head. @throws when the node does not answer */
  head(): Promise<Head>;
  /** Whether the node can be believed about what happens now. */
  isBehind(head: Head): boolean;
  /**
   * Whether `from` signed: an account by its key, a smart wallet by its own word (EIP-1271), and one that is not
   * deployed yet (ERC-6492) by trying to pay.
   */
  isSignedByPayer(authorization: Authorization, signature: Hex): Promise<boolean>;
  settlementCall(authorization: Authorization, signature: Hex): Promise<SettlementCall>;
  /**
   * Whether the chain would move the money now, with so much gas at most; null when it would.
   *
   * @param as who would send it, and for which fees: a wallet's code sees both
   * @throws when the node does not say
   */
  whyNot(
    authorization: Authorization,
    signature: Hex,
    gasLimit?: bigint,
    as?: SentAs,
  ): Promise<PaymentRefused | null>;
  /** What runs of the payer's own when it settles: nothing, its wallet, or first the factory that makes its wallet. */
  codeOf(authorization: Authorization, signature: Hex): Promise<PayersCode>;
  look(authorization: Authorization): Promise<ChainVerdict>;
  /** Whether a mined transaction used this authorization to pay. */
  paidBy(mined: MinedTransaction, authorization: Authorization): boolean;
  receipt(hash: string): Promise<MinedTransaction | null>;
  finality(hash: string, authorization: Authorization | null): Promise<Finality>;
}

export function openEvmChain(network: EvmNetwork, rpc: Rpc, nowMs: () => number): EvmChain {
  const asset = network.asset.toLowerCase();
  let cached: { head: Head; atMs: number } | null = null;

  async function newestHead(): Promise<Head> {
    const block = (await rpc.call('eth_getBlockByNumber', ['latest', false])) as Record<
      string,
      string
    > | null;
    if (typeof block?.number !== 'string' || typeof block.timestamp !== 'string')
      throw new Error('the node sent no block');
    const head = { number: BigInt(block.number), timestamp: BigInt(block.timestamp) };
    cached = { head, atMs: performance.now() };
    return head;
  }

  async function currentHead(): Promise<Head> {
    if (cached !== null && performance.now() - cached.atMs < HEAD_FRESH_MS) return cached.head;
    return newestHead();
  }

  async function hasCode(address: Hex): Promise<boolean> {
    const code = await rpc.call('eth_getCode', [address, 'latest']);
    return typeof code === 'string' && code.length > 2;
  }

  async function settlementCall(authorization: Authorization, signature: Hex): Promise<SettlementCall> {
    if (!isErc6492Signature(signature))
      return { to: network.asset, data: transferCalldata(authorization, signature) };
    const wrapped = parseErc6492Signature(signature);
    const pay = transferCalldata(authorization, wrapped.signature);
    if (wrapped.address === undefined || wrapped.data === undefined || (await hasCode(authorization.from)))
      return { to: network.asset, data: pay };
    // The wallet and its first payment in one transaction. Neither call has any right of ours.
    const calls = [
      { target: wrapped.address, allowFailure: true, callData: wrapped.data },
      { target: network.asset, allowFailure: false, callData: pay },
    ];
    return {
      to: MULTICALL3,
      data: encodeFunctionData({ abi: AGGREGATE, functionName: 'aggregate3', args: [calls] }),
    };
  }

  async function whyNot(
    authorization: Authorization,
    signature: Hex,
    gasLimit: bigint = MAX_GAS,
    as: SentAs | null = null,
  ): Promise<PaymentRefused | null> {
    const call = await settlementCall(authorization, signature);
    try {
      await rpc.call('eth_call', [
        {
          to: call.to,
          data: call.data,
          gas: hexOf(gasLimit),
          ...(as === null
            ? { from: MULTICALL3 }
            : {
                from: as.from,
                maxFeePerGas: hexOf(as.maxFeePerGas),
                maxPriorityFeePerGas: hexOf(as.maxPriorityFeePerGas),
              }),
        },
        'latest',
      ]);
      return null;
    } catch (error) {
      const revert = revertText(error);
      if (revert === null) throw error;
      return refusalOf(revert);
    }
  }

  function paidBy(mined: MinedTransaction, { from, to, value, nonce }: Authorization): boolean {
    if (mined.status !== 'success') return false;
    // The asset marks the authorization as used and moves its money with nothing in between. A transfer elsewhere in the
    // transaction may be for something else, or for two authorizations at once.
    const used = mined.logs.findIndex(
      ({ address, topics }) =>
        address === asset && topics[0] === TOPIC_USED && topics[1] === topicOf(from) && topics[2] === nonce,
    );
    const moved = used === -1 ? undefined : mined.logs[used + 1];
    return (
      moved !== undefined &&
      moved.address === asset &&
      moved.topics[0] === TOPIC_TRANSFER &&
      moved.topics[1] === topicOf(from) &&
      moved.topics[2] === topicOf(to) &&
      BigInt(moved.data) === value
    );
  }

  async function receipt(hash: string): Promise<MinedTransaction | null> {
    return asMined(await rpc.call('eth_getTransactionReceipt', [hash]));
  }

  /** The transaction that used or cancelled the authorization, looked for from the head back to before it was signed. */
  async function useOf(
    authorization: Authorization,
    head: Head,
  ): Promise<{ topic: string; hash: string } | null> {
    const topics = [[TOPIC_USED, TOPIC_CANCELED], topicOf(authorization.from), authorization.nonce];
    let last = head.number;
    let width = 0;
    for (let windows = 0; windows < MAX_LOG_WINDOWS; windows++) {
      const window = LOG_WINDOWS[width] ?? 0n;
      const first = last > window ? last - window : 0n;
      try {
        const [log] = (await rpc.call('eth_getLogs', [
          { address: network.asset, topics, fromBlock: hexOf(first), toBlock: hexOf(last) },
        ])) as { topics: string[]; transactionHash: string }[];
        if (log !== undefined)
          return { topic: log.topics[0]?.toLowerCase() ?? '', hash: log.transactionHash };
      } catch (error) {
        // Public nodes allow windows of different length, and say so in different words.
        if (!(error instanceof RpcRefusal) || width === LOG_WINDOWS.length - 1) throw error;
        width += 1;
        continue;
      }
      const block = (await rpc.call('eth_getBlockByNumber', [hexOf(first), false])) as {
        timestamp: string;
      } | null;
      if (
        first === 0n ||
        block === null ||
        BigInt(block.timestamp) < authorization.validBefore - LONGEST_LIFE_S
      )
        return null;
      last = first - 1n;
    }
    return null;
  }

  return {
    network,
    settlementCall,
    whyNot,
    paidBy,
    receipt,

    async codeOf(authorization, signature) {
      if (await hasCode(authorization.from)) return { is: 'wallet' };
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
      if (await hasCode(authorization.from)) {
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
      const refusal = await whyNot(authorization, signature);
      return refusal === null || refusal.code === 'PAYMENT_INSUFFICIENT_FUNDS';
    },

    async look(authorization) {
      try {
        // The head first: what the state is read from is then at least as new.
        const head = await newestHead();
        const state = await rpc.call('eth_call', [
          { to: network.asset, data: stateCalldata(authorization) },
          'latest',
        ]);
        if (BigInt(String(state)) === 0n) {
          return head.timestamp > authorization.validBefore + DEAD_MARGIN_S
            ? { status: 'dead', refusal: refuse('PAYMENT_EXPIRED') }
            : { status: 'open' };
        }
        const use = await useOf(authorization, head);
        if (use === null) return { status: 'unknown' };
        if (use.topic === TOPIC_CANCELED)
          return { status: 'dead', refusal: refuse('PAYMENT_AUTHORIZATION_USED') };
        const mined = await receipt(use.hash);
        if (mined === null) return { status: 'unknown' };
        return paidBy(mined, authorization)
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
        if (authorization !== null && !paidBy(mined, authorization)) return 'gone';
        return head.number - mined.blockNumber >= BigInt(network.finalAfterBlocks) ? 'final' : 'waiting';
      } catch {
        return 'unknown';
      }
    },
  };
}

function hexOf(value: bigint): Hex {
  return `0x${value.toString(16)}`;
}

/** The text of a revert; null when the node failed for another reason. */
function revertText(error: unknown): string | null {
  if (!(error instanceof RpcRefusal)) return null;
  const data =
    typeof error.data === 'string' ? error.data : (error.data as { data?: unknown } | null | undefined)?.data;
  if (typeof data === 'string' && data.startsWith('0x08c379a0')) {
    try {
      return String(decodeErrorResult({ abi: ERROR_STRING, data: data as Hex }).args[0]);
    } catch {
      return '';
    }
  }
  return error.code === 3 || /revert|out of gas|invalid opcode/i.test(error.message) ? error.message : null;
}

/** Circle's revert texts, and what they mean here. */
function refusalOf(revert: string): PaymentRefused {
  if (/authorization is used or canceled/i.test(revert)) return refuse('PAYMENT_AUTHORIZATION_USED');
  if (/authorization is expired/i.test(revert)) return refuse('PAYMENT_EXPIRED');
  if (/authorization is not yet valid/i.test(revert)) return refuse('PAYMENT_NOT_YET_VALID');
  if (/exceeds balance/i.test(revert)) return refuse('PAYMENT_INSUFFICIENT_FUNDS');
  if (/invalid signature/i.test(revert)) return refuse('PAYMENT_SIGNATURE_INVALID');
  if (/blacklisted/i.test(revert)) return refuse('PAYMENT_PAYER_BLOCKED');
  return refuse('PAYMENT_VERIFICATION_FAILED');
}
