/**
 * Works around transactions that a node (anvil) overlooks. A transaction that arrives while the block with its
 * predecessor is being made may be put aside as if its predecessor were still missing. The node then never looks at it
 * again, neither for the next block nor when the same transaction is sent once more. Real nodes have no such problem. The
 * sandbox therefore removes such transactions from the node and sends them again.
 */

type Ask = (method: string, ...params: unknown[]) => Promise<unknown>;

interface Pooled {
  hash: string;
  nonce: string;
}

/** The transactions by sender, and then by nonce. */
type Pool = Record<string, Record<string, Pooled>>;

const MAX_SENDERS = 50;

export class StuckTransactions {
  readonly #ask: Ask;
  /**
   * The hashes of the stuck transactions at the last look. A transaction is stuck when it was put aside although its nonce
   * is the next one of its sender.
   */
  #seen: ReadonlySet<string> = new Set();

  /** @param ask calls a method of the node, and throws when the node refuses */
  constructor(ask: Ask) {
    this.#ask = ask;
  }

  /**
   * Looks once. For each transaction that is stuck now and was stuck at the last look, all waiting transactions of its
   * sender are sent again.
   *
   * @returns how many transactions were sent again
   */
  async free(): Promise<number> {
    const status = (await this.#ask('txpool_status')) as { queued: string };
    if (Number(status.queued) === 0) {
      this.#seen = new Set();
      return 0;
    }
    const { pending, queued } = (await this.#ask('txpool_content')) as { pending: Pool; queued: Pool };
    const now = new Set<string>();
    let freed = 0;
    for (const [sender, aside] of Object.entries(queued).slice(0, MAX_SENDERS)) {
      const [first] = inOrder(aside);
      const next = Number(await this.#ask('eth_getTransactionCount', sender, 'latest'));
      if (first === undefined || Number(first.nonce) !== next) continue;
      now.add(first.hash);
      if (!this.#seen.has(first.hash)) continue;
      const raws = [];
      for (const { hash } of inOrder({ ...pending[sender], ...aside }))
        raws.push(await this.#ask('eth_getRawTransactionByHash', hash));
      await this.#ask('anvil_removePoolTransactions', sender);
      for (const raw of raws) {
        // If somebody else has sent the transaction meanwhile, the node refuses it because it already has it.
        await this.#ask('eth_sendRawTransaction', raw).catch(() => undefined);
        freed += 1;
      }
    }
    this.#seen = now;
    return freed;
  }
}

function inOrder(transactions: Record<string, Pooled>): Pooled[] {
  return Object.values(transactions).toSorted((a, b) => Number(a.nonce) - Number(b.nonce));
}
