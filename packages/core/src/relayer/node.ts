/** Hands transactions to an EVM node, and asks it what became of them. */
import { type Rpc, RpcRefusal } from '../chain-rpc/json-rpc.ts';
import { asMined, type MinedTransaction, quantity } from './node-reply.ts';

const SEND_TIMEOUT_MS = 8_000;

export class EvmNode {
  readonly rpc: Rpc;
  /** Whether the node knows `eth_sendRawTransactionSync`; null until it was asked once. */
  #sendsAndWaits: boolean | null = null;

  constructor(rpc: Rpc) {
    this.rpc = rpc;
  }

  /** Sends a signed transaction. Never throws: its receipt tells whether a node has it, and a later round sends it again. */
  async send(raw: string): Promise<void> {
    await this.rpc.call('eth_sendRawTransaction', [raw]).catch(() => {});
  }

  /** Sends as `send` does, and waits for its block where the node can. @returns null when the node did not tell of one */
  async sendAndWait(raw: string): Promise<MinedTransaction | null> {
    if (this.#sendsAndWaits !== false) {
      try {
        const receipt = await this.rpc.call('eth_sendRawTransactionSync', [raw], {
          timeoutMs: SEND_TIMEOUT_MS,
        });
        this.#sendsAndWaits = true;
        return asMined(receipt);
      } catch (error) {
        if (isUnknownMethod(error)) this.#sendsAndWaits = false;
      }
    }
    // Every nonce after this one waits for it, so it is sent the plain way as well. A node that has it already says so.
    await this.send(raw);
    return null;
  }

  /** The receipt of the first of these hashes that is in a block; null: none is. @throws when the node does not say */
  async receiptOf(hashes: readonly string[]): Promise<MinedTransaction | null> {
    for (const hash of hashes) {
      const receipt = asMined(await this.rpc.call('eth_getTransactionReceipt', [hash]));
      if (receipt !== null) return receipt;
    }
    return null;
  }

  /** How many nonces of an address are used: in blocks, or with those that wait for one. @throws when the node does not say */
  async noncesUsed(address: string, counted: 'latest' | 'pending'): Promise<bigint> {
    return quantity(await this.rpc.call('eth_getTransactionCount', [address, counted]));
  }

  /**
   * Whether a call would fail by now. A node that refuses to try it, or does not answer, has not said so.
   *
   * @param call.from who would send it
   */
  async wouldRevert(call: { from: string; to: string; data: string; gas: bigint }): Promise<boolean> {
    return this.rpc
      .call('eth_call', [{ ...call, gas: `0x${call.gas.toString(16)}` }, 'latest'])
      .then(() => false)
      .catch(isRevert);
  }
}

function isUnknownMethod(error: unknown): boolean {
  return (
    error instanceof RpcRefusal &&
    (error.code === -32601 || /method not found|not supported|does not exist/i.test(error.message))
  );
}

/** Whether the node ran the call and it failed. A limit of the node's own says nothing about the transaction. */
function isRevert(error: unknown): boolean {
  return error instanceof RpcRefusal && (error.code === 3 || /revert/i.test(error.message));
}
