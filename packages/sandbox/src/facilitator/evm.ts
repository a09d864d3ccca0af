/** The facilitator's signer on the EVM chain: the reference library calls it, and it sends from several keys. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ExactEvmScheme } from '@x402/evm/exact/facilitator';
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/facilitator';
import {
  type Address,
  BaseError,
  concatHex,
  createPublicClient,
  createWalletClient,
  defineChain,
  encodeFunctionData,
  type Hex,
  HttpRequestError,
  http,
  keccak256,
  TimeoutError,
  type VerifyTypedDataParameters,
} from 'viem';
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { currentAttempt, noteNodeFailure, noteSettlement, noteUnconfirmed } from './attempt.ts';

export const EVM_NETWORK = 'eip155:8453';
export const EVM_NETWORK_V1 = 'base';
const CHAIN_ID = 8453;
/** viem's own wait looks for a receipt every four seconds and cannot be ended. */
const RECEIPT_POLL_MS = 50;
const RECEIPT_TIMEOUT_MS = 30_000;
const RPC_TIMEOUT_MS = 10_000;
const MAX_KEYS = 16;

/**
 * The factories that may be called to put a counterfactual wallet (ERC-6492) on the chain; the reference library
 * calls none that is not listed, because the call runs under the facilitator's own key.
 */
const SMART_WALLET_FACTORIES: readonly Address[] = [
  // The deterministic deployment proxy, which every anvil node contains: it creates any wallet whose code the payer names.
  '0x4e59b44847b379578588920cA78FbF26c0B4956C',
  // Coinbase Smart Wallet 1.0 and 1.1.
  '0x0BA5ED0c6AA8c49038F819E587E2633c4A9F428a',
  '0xBA5ED110eFDBa3D005bfC882d75358ACBbB85842',
  // Safe 1.4.1.
  '0x4e1DCf7AD4e460CfD30791CCC4F9c8a4f820ec67',
];

export interface EvmOptions {
  rpcUrl: string;
  privateKeys: readonly Hex[];
  /** Told the hash of each transaction that has gone to the node. */
  onBroadcast: (hash: Hex) => void;
  /** Ends the waits for receipts. */
  stopping: AbortSignal;
}

export interface EvmSchemes {
  v1: ExactEvmSchemeV1;
  v2: ExactEvmScheme;
}

type Signer = ConstructorParameters<typeof ExactEvmScheme>[0];

/**
 * Opens the two generations of the `exact` scheme over one set of keys, which take turns.
 * @throws Error if the node is not there or its chain id is not 8453.
 */
export async function openEvm({
  rpcUrl,
  privateKeys,
  onBroadcast,
  stopping,
}: EvmOptions): Promise<EvmSchemes> {
  if (privateKeys.length === 0 || privateKeys.length > MAX_KEYS) {
    throw new Error(`the facilitator needs 1 to ${MAX_KEYS} EVM keys`);
  }
  const chain = defineChain({
    id: CHAIN_ID,
    name: 'Base',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
  });
  // viem must not repeat a failed request by itself: for a transaction, this would hide what became of it.
  const transport = http(rpcUrl, { timeout: RPC_TIMEOUT_MS, retryCount: 0 });
  const client = createPublicClient({ chain, transport });
  const chainId = await client.getChainId();
  if (chainId !== CHAIN_ID) throw new Error(`the node at ${rpcUrl} is on chain ${chainId}, not ${CHAIN_ID}`);

  const senders = privateKeys.map((key) => openSender(privateKeyToAccount(key)));
  let turn = 0;

  /** Sends from the key whose turn it is. */
  async function send(to: Address, data: Hex): Promise<Hex> {
    const sender = senders[turn % senders.length];
    turn += 1;
    if (sender === undefined) throw new Error('no key to send with');
    const hash = await watched(sender.send(to, data));
    onBroadcast(hash);
    return hash;
  }

  /**
   * Each key has a queue: a transaction asks for its nonce only when the node has the transaction before it. No nonce is
   * remembered between them, so a transaction whose gas estimate fails leaves no gap in the nonces.
   */
  function openSender(account: PrivateKeyAccount) {
    const wallet = createWalletClient({ account, chain, transport });
    let last: Promise<unknown> = Promise.resolve();

    async function broadcast(to: Address, data: Hex): Promise<Hex> {
      const nonce = await client.getTransactionCount({ address: account.address, blockTag: 'pending' });
      const request = await wallet.prepareTransactionRequest({ to, data, nonce, type: 'eip1559' });
      const serializedTransaction = await wallet.signTransaction(request);
      try {
        return await wallet.sendRawTransaction({ serializedTransaction });
      } catch (error) {
        // Without the node's answer the transaction may still be in the node's pool. Its receipt will show it.
        if (!isNodeFailure(error)) throw error;
        return keccak256(serializedTransaction);
      }
    }

    return {
      address: account.address,
      send(to: Address, data: Hex): Promise<Hex> {
        const sent = last.then(() => broadcast(to, data));
        last = sent.catch(() => undefined);
        return sent;
      },
    };
  }

  async function receiptOf(hash: Hex) {
    const deadlineMs = performance.now() + RECEIPT_TIMEOUT_MS;
    while (currentAttempt()?.blind !== true && !stopping.aborted && performance.now() < deadlineMs) {
      try {
        return await client.getTransactionReceipt({ hash });
      } catch {
        // The transaction is not mined yet, or the node is in trouble. Both can pass.
      }
      await sleep(RECEIPT_POLL_MS, undefined, { signal: stopping }).catch(() => undefined);
    }
    noteUnconfirmed();
    throw new Error(`no receipt for ${hash} in time`);
  }

  const signer: Signer = {
    getAddresses: () => senders.map(({ address }) => address),
    readContract: (call) => watched(client.readContract(call)),
    // The library does not handle a rejection here, which would end the process. A missing answer is only noted, and
    // `verdicts.ts` then does not pass on the library's verdict.
    getCode: ({ address }) => watched(client.getCode({ address })).catch(() => undefined),
    // The library asks for this and never calls it: it checks signatures through getCode and readContract.
    verifyTypedData: (typedData) => watched(client.verifyTypedData(typedData as VerifyTypedDataParameters)),
    async writeContract({ address, dataSuffix, ...call }) {
      const data = encodeFunctionData(call);
      const hash = await send(address, dataSuffix === undefined ? data : concatHex([data, dataSuffix]));
      noteSettlement(hash);
      return hash;
    },
    sendTransaction: ({ to, data }) => send(to, data),
    waitForTransactionReceipt: ({ hash }) => receiptOf(hash),
  };
  const eip6492AllowedFactories = [...SMART_WALLET_FACTORIES];
  return {
    v2: new ExactEvmScheme(signer, { eip6492AllowedFactories }),
    // Without a simulation a used nonce comes back as the node's own text instead of a reason.
    v1: new ExactEvmSchemeV1(signer, { eip6492AllowedFactories, simulateInSettle: true }),
  };
}

/** Passes the outcome on. Notes it when the node did not answer. */
async function watched<T>(outcome: Promise<T>): Promise<T> {
  try {
    return await outcome;
  } catch (error) {
    if (isNodeFailure(error)) noteNodeFailure(error);
    throw error;
  }
}

/** Distinguishes a node that did not answer from one that refused. */
function isNodeFailure(error: unknown): boolean {
  if (!(error instanceof BaseError)) return false;
  return error.walk((cause) => cause instanceof HttpRequestError || cause instanceof TimeoutError) !== null;
}
