/**
 * Refunds stablecoins on Tempo from a key that holds them, once for each call. The chain guarantees the once: each call
 * has its own nonce key, and the chain accepts each nonce of a key a single time. https://docs.tempo.xyz
 */
import {
  decodeAbiParameters,
  encodeFunctionData,
  erc20Abi,
  type Hex,
  keccak256,
  parseAbi,
  toBytes,
} from 'viem';
import type { Transaction as TempoTransactions } from 'viem/tempo';
import type { Rpc } from '../../chain-rpc/json-rpc.ts';
import type { Refund } from '../../paid-call/rail.ts';
import type {
  EndingChain,
  EndingSender,
  EndingTransaction,
  Fate,
  StoredTransaction,
} from '../../relayer/ending-sender.ts';
import type { GasSource } from '../../relayer/gas-tanks.ts';
import { asMined, quantity } from '../../relayer/node-reply.ts';
import { createSigner, type EvmKey } from '../../relayer/sign.ts';

/** How long a refund may be mined, by the chain's clock. */
const VALID_S = 60n;
/** How far the chain's clock must be past that, because not all nodes know the newest block. */
const OVER_MARGIN_S = 60n;
/** A transfer with a memo uses some 70,000, and the first nonce of a key some 300,000 more. */
const GAS_LIMIT = 2_000_000n;
/** The expected gas of one refund: both together. */
const GAS_EACH = 400_000n;
const WAIT_MS = 6_000;
/** Keys above this are reserved by the network. */
const NONCE_KEY_BITS = 192n;
const NONCES = parseAbi(['function getNonce(address account, uint256 nonceKey) view returns (uint64 nonce)']);

/** `endsAt` is in the chain's clock, in seconds since 1970. */
export function tempoChain(rpc: Rpc): EndingChain {
  async function fateOf({ hash, raw, endsAt }: StoredTransaction, head: bigint): Promise<Fate> {
    const mined = asMined(await rpc.call('eth_getTransactionReceipt', [hash]));
    // A block is final as soon as it exists.
    if (mined !== null) return { status: 'landed', ok: mined.status === 'success', final: true };
    if (head <= endsAt + OVER_MARGIN_S) return { status: 'unseen' };
    // A node may have dropped the receipt, but it never forgets a nonce.
    const { Transaction } = await import('viem/tempo');
    const { from, nonceKey, nonce } = Transaction.deserialize(
      raw as TempoTransactions.TransactionSerializedTempo,
    ) as { from?: Hex; nonceKey?: bigint; nonce?: number };
    if (from === undefined || nonceKey === undefined) throw new Error('not one of our refunds');
    const used = (await nonceOf(rpc, from, nonceKey)) > BigInt(nonce ?? 0);
    return { status: used ? 'unseen' : 'over' };
  }

  return {
    async fates(transactions) {
      // The head is read first, so that the receipts are asked of a chain that is at least as long.
      const head = await clockOf(rpc);
      return Promise.all(transactions.map((each) => fateOf(each, head)));
    },
    async cost({ hash }) {
      const { costWei } = asMined(await rpc.call('eth_getTransactionReceipt', [hash])) ?? {};
      if (costWei === undefined || costWei === null) throw new Error('the receipt does not say');
      return unitsOf(costWei);
    },
    send: (raw) => rpc.call('eth_sendRawTransaction', [raw]),
  };
}

/** @param currency the stablecoin that is refunded; it also pays the fee */
export function tempoGas(rpc: Rpc, currency: Hex): GasSource {
  return {
    async balanceOf(address) {
      const data = encodeFunctionData({ abi: erc20Abi, functionName: 'balanceOf', args: [address as Hex] });
      const said = await rpc.call('eth_call', [{ to: currency, data }, 'latest']);
      const [units] = decodeAbiParameters([{ type: 'uint256' }], said as Hex);
      return units;
    },
    cost: async () => unitsOf(GAS_EACH * quantity(await rpc.call('eth_gasPrice', []))),
  };
}

/**
 * Gas is priced in 10^-18 USD and paid in the token's units of a millionth of a dollar, rounded up.
 * https://docs.tempo.xyz
 */
function unitsOf(attoUsd: bigint): bigint {
  return (attoUsd + 10n ** 12n - 1n) / 10n ** 12n;
}

/** @param parts.key holds the stablecoin, which also pays the fee */
export function tempoRefunds(parts: { rpc: Rpc; sender: EndingSender; chainId: number; key: EvmKey }) {
  const { rpc, sender, chainId } = parts;
  const signer = createSigner(parts.key);

  /** @returns null when the refund would fail now, or when an earlier one may have been mined */
  async function make(id: string, refund: Refund): Promise<EndingTransaction | null> {
    const asset = refund.asset as Hex;
    const nonceKey = BigInt(keccak256(toBytes(id))) & ((1n << NONCE_KEY_BITS) - 1n);
    const [head, nonce, failed, gasPrice] = await Promise.all([
      clockOf(rpc),
      nonceOf(rpc, signer.address, nonceKey),
      sender.failed(id),
      rpc.call('eth_gasPrice', []),
    ]);
    // Every refund that was mined and failed has used one nonce. If more were used, one was mined whose outcome we do
    // not know.
    if (nonce !== BigInt(failed)) return null;
    const { Abis, Transaction } = await import('viem/tempo');
    const data = encodeFunctionData({
      abi: Abis.tip20,
      functionName: 'transferWithMemo',
      args: [refund.payee as Hex, refund.amountUnits, memoOf(refund.callId)],
    });
    // A failing transaction costs a fee each time. The simulation finds a wallet without funds at no cost.
    await rpc.call('eth_call', [{ from: signer.address, to: asset, data }, 'latest']);
    const validBefore = head + VALID_S;
    const transaction = {
      type: 'tempo',
      chainId,
      calls: [{ to: asset, data }],
      nonceKey,
      nonce: Number(nonce),
      gas: GAS_LIMIT,
      maxFeePerGas: quantity(gasPrice) * 2n,
      maxPriorityFeePerGas: 0n,
      validBefore: Number(validBefore),
      feeToken: asset,
    } as const;
    const signature = await signer.signatureOf((await Transaction.serialize(transaction)) as Hex);
    const raw = (await Transaction.serialize(transaction, signature)) as Hex;
    return { hash: keccak256(raw), raw, endsAt: validBefore, paidBy: signer.address };
  }

  return {
    /** @returns the transaction; null: ask again later */
    async refund(refund: Refund): Promise<string | null> {
      const id = `refund:${refund.callId}`;
      try {
        const delivered = await sender.deliver(
          { id, once: false, make: () => make(id, refund), until: 'final' },
          WAIT_MS,
        );
        return delivered?.fate.status === 'landed' && delivered.fate.ok ? delivered.hash : null;
      } catch {
        return null;
      }
    },
  };
}

/** The call's id, which has 16 bytes, as a memo of 32 bytes. */
function memoOf(callId: string): Hex {
  return `0x${callId.replaceAll('-', '').padStart(64, '0')}`;
}

/** The time of the newest block, in seconds since 1970. */
async function clockOf(rpc: Rpc): Promise<bigint> {
  const block = (await rpc.call('eth_getBlockByNumber', ['latest', false])) as { timestamp: string };
  return BigInt(block.timestamp);
}

async function nonceOf(rpc: Rpc, account: Hex, nonceKey: bigint): Promise<bigint> {
  const { Addresses } = await import('viem/tempo');
  const data = encodeFunctionData({ abi: NONCES, functionName: 'getNonce', args: [account, nonceKey] });
  const said = await rpc.call('eth_call', [{ to: Addresses.nonceManager, data }, 'latest']);
  const [nonce] = decodeAbiParameters([{ type: 'uint64' }], said as Hex);
  return nonce;
}
