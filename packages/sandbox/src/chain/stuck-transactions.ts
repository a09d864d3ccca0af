/**
 * Works around transactions that a node (anvil) overlooks. A transaction that arrives while the block with its
 * predecessor is being made may be put aside as if it had to wait for that one. It is then never looked at again,
 * neither by the next block nor when the same transaction is sent once more. A real node has no such state, so here
 * such transactions are removed and sent again.
 */

type Ask = (method: string, ...params: unknown[]) => Promise<unknown>;

interface Pooled {
  hash: string;
  nonce: string;
}

/** By sender, by nonce. */
type Pool = Record<string, Record<string, Pooled>>;

const MAX_SENDERS = 50;

export class StuckTransactions {
  readonly #ask: Ask;
  /** The first of each sender's that was put aside though it was its turn, when last looked at. */
  #seen: ReadonlySet<string> = new Set();

  /** @param ask calls a method of the node, and throws what the node refuses with */
  constructor(ask: Ask) {
    this.#ask = ask;
  }

  /**
   * One look. What is put aside now and was at the last look as well is sent anew.
   *
   * @returns how many were
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
        // The node refuses one that somebody sent in between, which means that it has it.
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
