/**
 * Sends transactions from keys of our own, each exactly once.
 *
 * A nonce is taken from the database in the commit that stores the signed transaction which uses it. So two processes
 * never take the same one, a crash leaves no gap, and whatever was stored is sent again until a block holds it: with
 * higher fees when it waits too long, and replaced by a transfer of nothing when it would only fail by now.
 */
import { parseTransaction } from 'viem';
import { type Rpc, RpcRefusal } from '../chain-rpc/json-rpc.ts';
import { arrayLiteral } from '../db/array-literal.ts';
import { type Database, isUniqueViolation, type Transaction } from '../db/connection.ts';
import { type EvmFees, feesOf, weiOf } from './evm-gas.ts';
import type { GasTank } from './gas-tanks.ts';
import { inLanes } from './lanes.ts';
import { asMined, type MinedTransaction, quantity } from './node-reply.ts';
import { createSigner } from './sign.ts';

export type Hex = `0x${string}`;

export interface TransactionToSend {
  /** The transaction's purpose. While one with this id is pending, no second is made. */
  id: string;
  to: Hex;
  data: Hex;
  /** Measured by asking the node when not given. */
  gasLimit?: bigint;
  /** The most it may cost, gas times fees. This bounds both the gas limit and every raise of the fees. */
  maxCostWei?: bigint;
  /** `true`: one that was mined under this id counts for nothing, and a new one is made. */
  again?: boolean;
}

/** None of our keys holds enough for this transaction, and nothing was sent. */
export class OutOfGas extends Error {
  constructor(network: string) {
    super(`no key of ours holds enough gas for this on ${network}`);
    this.name = 'OutOfGas';
  }
}

export interface Relayer {
  readonly addresses: readonly Hex[];
  /** Whose key would pay for the next transaction, as far as that is known. */
  readonly payer: Hex | undefined;
  /** The fees that a transaction is sent with now. @throws when the node does not answer */
  fees(): Promise<EvmFees>;
  /**
   * Sends a transaction and waits until it is mined.
   *
   * @returns null when the time was over first: it is still on its way, and the same id finds it again
   * @throws RpcRefusal when the node says that it would fail, OutOfGas when no key can pay; nothing was sent then
   */
  send(transaction: TransactionToSend, timeoutMs: number): Promise<MinedTransaction | null>;
  /**
   * One round over what is pending: sends it again, raises fees, fills nonces.
   *
   * @returns how many are pending
   * @throws the first failure, after the others had their turn
   */
  resume(): Promise<number>;
}

/** What no transaction of ours needs: code that others gave us to run may ask for anything. */
const MAX_GAS = 5_000_000n;
/** The gas that every transaction uses. */
const LEAST_GAS = 21_000n;
const SEND_TIMEOUT_MS = 8_000;
const FIRST_POLL_MS = 20;
const LAST_POLL_MS = 500;
/** How long a transaction waits before it is sent again. */
const RESEND_AFTER_MS = 5_000;
/** When a transaction of a key that we do not have is looked at: whoever has the key, and can do more, was there before. */
const FOREIGN_AFTER_MS = 120_000;
/** How long it waits before its fees are raised; every node asks for at least a tenth more. */
const BUMP_AFTER_MS = 30_000;
/** Transactions that were mined are noted together, this long after the first of them. */
const NOTE_AFTER_MS = 100;
/** Fees are never raised above so many times what the chain asks now. */
const MAX_FEE_FACTOR = 10n;
/**
 * When a nonce was used and none of our transactions is found: one node may know of the block and another not yet. There
 * is no hurry, for nothing waits behind a used nonce; and what is given up too early would be paid a second time.
 */
const GIVE_UP_AFTER_MS = 600_000;
const MAX_STORE_ATTEMPTS = 4;
/** How many nonces are filled in one round after the chain forgot them. */
const MAX_FORGOTTEN = 200;
const MAX_PENDING_PER_KEY = 200;
const RESUME_BATCH = 50;
const MAX_RESUME_BATCHES = 10;
const RESUMED_AT_ONCE = 8;
/** A round begins with none after this: a node that is silent about some must not keep the rest waiting for good. */
const ROUND_MS = 10_000;

interface Row {
  address: string;
  nonce: bigint;
  id: string;
  to_address: string;
  data: string;
  gas_limit: bigint;
  max_cost_wei: string | null;
  max_fee_wei: string;
  raw: string;
  hashes: string[];
  filler: string | null;
  state: number;
  created_at: Date;
}

interface Waiting {
  transaction: TransactionToSend & { gasLimit: bigint };
  attempts: number;
  done(row: { raw: Hex; hash: Hex } | { pendingId: string }): void;
  failed(error: unknown): void;
}

/** A relayer for one chain. @param keys private keys; they are used side by side */
export function createRelayer(parts: {
  sql: Database;
  rpc: Rpc;
  /** CAIP-2. */
  network: string;
  chainId: number;
  keys: readonly Hex[];
  /** What is known of these keys' gas: one that ran dry is passed by. */
  tank: GasTank;
  nowMs(): number;
}): Relayer {
  const { sql, rpc, network, chainId, tank, nowMs } = parts;
  const now = () => new Date(nowMs()).toISOString();
  const ago = (ms: number) => new Date(nowMs() - ms).toISOString();
  const today = () => now().slice(0, 10);
  const signers = parts.keys.map((key) => ({
    ...createSigner(key),
    queue: [] as Waiting[],
    busy: false,
  }));
  type Signer = (typeof signers)[number];
  const currentFees = feesOf(rpc, nowMs);
  /** Null until the node was asked for it once. */
  let knowsSync: boolean | null = null;
  const ours = arrayLiteral(signers.map(({ address }) => address));

  /** The keys in the order in which they are asked: those that can pay first, the least busy of them before others. */
  const inOrder = (): Signer[] =>
    signers
      .map((signer) => ({ signer, last: tank.canPay(signer.address) ? 0 : 1, chance: Math.random() }))
      .toSorted(
        (a, b) => a.last - b.last || a.signer.queue.length - b.signer.queue.length || a.chance - b.chance,
      )
      .map(({ signer }) => signer);

  async function sign(
    signer: Signer,
    transaction: { to: Hex; data: Hex; gasLimit: bigint },
    nonce: bigint,
    fee: EvmFees,
  ): Promise<{ raw: Hex; hash: Hex }> {
    return signer.sign({
      type: 'eip1559',
      chainId,
      nonce: Number(nonce),
      to: transaction.to,
      data: transaction.data,
      gas: transaction.gasLimit,
      maxFeePerGas: fee.maxFeePerGas,
      maxPriorityFeePerGas: fee.maxPriorityFeePerGas,
    });
  }

  /** Gives nonces to everything that waits for this key, and stores it signed, in one commit. */
  async function drain(signer: Signer): Promise<void> {
    if (signer.busy) return;
    signer.busy = true;
    try {
      while (signer.queue.length > 0) {
        const batch = signer.queue.splice(0, 50);
        try {
          const [fee, onChain, holds] = await Promise.all([
            currentFees(),
            nonceOnChain(signer),
            // A node that does not say it leaves it to the chain.
            weiOf(rpc, signer.address).catch(() => null),
          ]);
          if (holds !== null) tank.saw(signer.address, holds);
          const unpaid = new Set<Waiting>();
          const stored = await sql.begin(async (transaction) => {
            const [row] = await transaction<{ next_nonce: bigint }[]>`
              insert into relayers as r (network, address, next_nonce)
              values (${network}, ${signer.address}, ${String(onChain)})
              on conflict (network, address) do update set next_nonce = r.next_nonce
              returning next_nonce`;
            if (row === undefined) throw new Error('the database returned no relayer');
            // Above ours: somebody else used the key. Below it: the chain forgot what we sent, and `resume` sends it again.
            let nonce = onChain > row.next_nonce ? onChain : row.next_nonce;
            const idsOf = (each: readonly Waiting[]) =>
              arrayLiteral(each.map(({ transaction: { id } }) => id));
            // Asked again under the lock: it may have been mined since `send` looked.
            const taken = new Set(
              (
                await transaction<{ id: string }[]>`
                  select id from relayer_transactions where network = ${network} and (
                    (state = 0 and id = any(${idsOf(batch)}::text::text[])) or
                    (state = 1 and id = any(${idsOf(batch.filter((each) => each.transaction.again !== true))}::text::text[])))`
              ).map(({ id }) => id),
            );
            let spareWei = await spareOf(transaction, signer, { holds, fee });
            const signed: ({ nonce: bigint; raw: Hex; hash: Hex } | null)[] = [];
            for (const waiting of batch) {
              const { transaction: each } = waiting;
              const costsWei = each.gasLimit * fee.maxFeePerGas;
              const isTaken = taken.has(each.id);
              // Stored it would be sent for as long as it takes, and charge its payer whenever the key is filled.
              if (!isTaken && spareWei !== null && costsWei > spareWei) unpaid.add(waiting);
              if (isTaken || unpaid.has(waiting)) {
                signed.push(null);
                continue;
              }
              if (spareWei !== null) spareWei -= costsWei;
              taken.add(each.id);
              signed.push({ nonce, ...(await sign(signer, each, nonce, fee)) });
              nonce += 1n;
            }
            const fresh = batch.flatMap(({ transaction: each }, index) => {
              const one = signed[index];
              return one === null || one === undefined ? [] : [{ ...each, ...one }];
            });
            const column = (pick: (each: (typeof fresh)[number]) => string | bigint) =>
              arrayLiteral(fresh.map(pick));
            await transaction`
              insert into relayer_transactions
                (network, address, nonce, id, to_address, data, gas_limit, max_cost_wei, max_fee_wei, raw, hashes,
                 created_at, sent_at)
              select ${network}, ${signer.address}, x.nonce, x.id, x.to_address, x.data, x.gas,
                     nullif(x.max_cost, 0), ${String(fee.maxFeePerGas)}::numeric, x.raw, array[x.hash], ${now()}, ${now()}
              from unnest(${column((x) => x.nonce)}::text::bigint[], ${column((x) => x.id)}::text::text[],
                          ${column((x) => x.to)}::text::text[], ${column((x) => x.data)}::text::text[],
                          ${column((x) => x.gasLimit)}::text::bigint[],
                          ${column((x) => x.maxCostWei ?? 0n)}::text::numeric[], ${column((x) => x.raw)}::text::text[],
                          ${column((x) => x.hash)}::text::text[]) as x (nonce, id, to_address, data, gas, max_cost, raw, hash)`;
            await transaction`
              update relayers set next_nonce = ${String(nonce)} where network = ${network} and address = ${signer.address}`;
            return signed;
          });
          for (const [index, waiting] of batch.entries()) {
            if (unpaid.has(waiting)) waiting.failed(new OutOfGas(network));
            else waiting.done(stored[index] ?? { pendingId: waiting.transaction.id });
          }
        } catch (error) {
          // The same id was stored by another key at this moment: the next try sees it.
          const again = batch.filter(
            (each) => isUniqueViolation(error) && ++each.attempts < MAX_STORE_ATTEMPTS,
          );
          for (const waiting of batch) if (!again.includes(waiting)) waiting.failed(error);
          signer.queue.unshift(...again);
        }
      }
    } finally {
      signer.busy = false;
    }
  }

  /** A key's balance for new transactions, in wei; null: practically unlimited, or unknown. */
  async function spareOf(
    transaction: Transaction,
    signer: Signer,
    { holds, fee }: { holds: bigint | null; fee: EvmFees },
  ): Promise<bigint | null> {
    const mostAtOnceWei = BigInt(2 * MAX_PENDING_PER_KEY) * MAX_GAS * fee.maxFeePerGas;
    if (holds === null || holds >= mostAtOnceWei) return null;
    const [row] = await transaction<{ promised: string }[]>`
      select coalesce(sum(gas_limit * max_fee_wei), 0)::text as promised from relayer_transactions
      where network = ${network} and address = ${signer.address} and state = 0`;
    return holds - BigInt(row?.promised ?? '0');
  }

  async function nonceOnChain(signer: Signer): Promise<bigint> {
    return quantity(await rpc.call('eth_getTransactionCount', [signer.address, 'pending']));
  }

  /** Sends a signed transaction. That a node has it, or has had its nonce filled, is as good as having sent it. */
  async function broadcast(raw: Hex, wait: boolean): Promise<unknown> {
    if (wait && knowsSync !== false) {
      try {
        const receipt = await rpc.call('eth_sendRawTransactionSync', [raw], { timeoutMs: SEND_TIMEOUT_MS });
        knowsSync = true;
        return receipt;
      } catch (error) {
        const isUnknown =
          error instanceof RpcRefusal &&
          (error.code === -32601 || /method not found|not supported|does not exist/i.test(error.message));
        if (isUnknown) knowsSync = false;
      }
    }
    // Once more the plain way, if that failed: every nonce after this one waits for it, and a node that has it says so.
    // Refused or lost again: what a node holds of it is seen by its receipt, and `resume` sends it again.
    await rpc.call('eth_sendRawTransaction', [raw]).catch(() => {});
    return null;
  }

  async function receiptOf(hashes: readonly string[]): Promise<MinedTransaction | null> {
    for (const hash of hashes) {
      const receipt = asMined(await rpc.call('eth_getTransactionReceipt', [hash]));
      if (receipt !== null) return receipt;
    }
    return null;
  }

  const markMined = (id: string, mined: MinedTransaction) => noteMined([{ id, mined }]);

  let unnoted: { id: string; mined: MinedTransaction }[] = [];

  /** Nobody waits for the note, and `resume` makes it when this process does not. */
  function noteLater(id: string, mined: MinedTransaction): void {
    unnoted.push({ id, mined });
    if (unnoted.length === 1) setTimeout(() => void note().catch(() => {}), NOTE_AFTER_MS);
  }

  async function note(): Promise<void> {
    const batch = unnoted;
    unnoted = [];
    if (batch.length === 0) return;
    await noteMined(batch);
  }

  /** Writes down what was mined and what it cost, each once. */
  async function noteMined(batch: readonly { id: string; mined: MinedTransaction }[]): Promise<void> {
    const column = (pick: (each: (typeof batch)[number]) => string | bigint | number | null) =>
      arrayLiteral(batch.map(pick));
    await sql`
      with mined as (
        update relayer_transactions t set state = case when x.hash = t.filler then 3 else x.state end, block = x.block
        from unnest(${column(({ id }) => id)}::text::text[], ${column(({ mined }) => mined.hash)}::text::text[],
                    ${column(({ mined }) => (mined.status === 'success' ? 1 : 2))}::text::smallint[],
                    ${column(({ mined }) => mined.blockNumber)}::text::bigint[],
                    ${column(({ mined }) => mined.costWei)}::text::numeric[]) as x (id, hash, state, block, cost)
        where t.network = ${network} and t.id = x.id and t.state = 0 and (x.hash = any(t.hashes) or x.hash = t.filler)
        returning t.address, x.cost
      )
      insert into gas_spent as g (network, address, day, transactions, priced, spent)
      select ${network}, address, ${today()}::date, count(*), count(cost), coalesce(sum(cost), 0)
      from mined group by address order by address
      on conflict (network, address, day) do update
      set transactions = g.transactions + excluded.transactions, priced = g.priced + excluded.priced,
          spent = g.spent + excluded.spent`;
  }

  async function rowsOf(id: string): Promise<Row[]> {
    return sql<Row[]>`
      select address, nonce, id, to_address, data, gas_limit, max_cost_wei::text, max_fee_wei::text, raw, hashes, filler, state, created_at
      from relayer_transactions where network = ${network} and id = ${id} order by created_at desc`;
  }

  /** Waits for whatever transaction of this id is pending. */
  async function waitFor(id: string, untilMs: number): Promise<MinedTransaction | null> {
    for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(pollMs * 2, LAST_POLL_MS)) {
      const [row] = await rowsOf(id);
      const mined = row === undefined ? null : await receiptOf(row.hashes).catch(() => null);
      if (mined !== null) {
        await markMined(id, mined);
        return mined;
      }
      if (row === undefined || row.state === 3 || performance.now() >= untilMs) return null;
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  /** @throws RpcRefusal when it would fail, or take more gas than it may cost */
  async function measuredGas(signer: Signer, { to, data, maxCostWei }: TransactionToSend): Promise<bigint> {
    const { maxFeePerGas, maxPriorityFeePerGas } = await currentFees();
    const affordable = maxCostWei === undefined || maxFeePerGas === 0n ? MAX_GAS : maxCostWei / maxFeePerGas;
    const most = affordable < MAX_GAS ? affordable : MAX_GAS;
    // As it will be sent: code that others gave us to run sees who pays for its gas, and how much.
    const as = maxCostWei === undefined ? {} : { maxFeePerGas, maxPriorityFeePerGas };
    const asked = rpc.call('eth_estimateGas', [
      {
        ...{ from: signer.address, to, data, gas: `0x${most.toString(16)}` },
        ...Object.fromEntries(Object.entries(as).map(([name, fee]) => [name, `0x${fee.toString(16)}`])),
      },
    ]);
    const needed = quantity(
      await asked.catch(async (error: unknown) => {
        // Tried as it would be sent by a key that cannot pay, anything fails.
        const holds = await weiOf(rpc, signer.address).catch(() => null);
        if (holds === null || holds >= LEAST_GAS * maxFeePerGas) throw error;
        tank.saw(signer.address, holds);
        throw new OutOfGas(network);
      }),
    );
    const given = (needed * 5n) / 4n;
    return given < most ? given : most;
  }

  /**
   * Stores it signed by the first key that can pay for it.
   *
   * @throws RpcRefusal when it would fail; OutOfGas when no key can pay
   */
  async function store(
    transaction: TransactionToSend,
  ): Promise<{ raw: Hex; hash: Hex } | { pendingId: string }> {
    if (signers.length === 0) throw new Error(`no relayer key for ${network}`);
    let tooMany: Error | null = null;
    for (const signer of inOrder()) {
      if (signer.queue.length >= MAX_PENDING_PER_KEY) {
        tooMany = new Error('too many transactions wait for this key');
        continue;
      }
      try {
        const gasLimit = transaction.gasLimit ?? (await measuredGas(signer, transaction));
        return await new Promise((done, failed) => {
          signer.queue.push({ transaction: { ...transaction, gasLimit }, attempts: 0, done, failed });
          void drain(signer);
        });
      } catch (error) {
        if (!(error instanceof OutOfGas)) throw error;
      }
    }
    throw tooMany ?? new OutOfGas(network);
  }

  return {
    addresses: signers.map(({ address }) => address),
    get payer() {
      return inOrder()[0]?.address;
    },
    async fees() {
      const { maxFeePerGas, maxPriorityFeePerGas } = await currentFees();
      return { maxFeePerGas, maxPriorityFeePerGas };
    },

    async send(transaction, timeoutMs) {
      const untilMs = performance.now() + timeoutMs;
      if (unnoted.some(({ id }) => id === transaction.id)) await note();
      if (transaction.again !== true) {
        const [earlier] = await rowsOf(transaction.id);
        if (earlier?.state === 0 || earlier?.state === 1) return waitFor(transaction.id, untilMs);
      }
      const stored = await store(transaction);
      if ('raw' in stored) {
        const mined = asMined(await broadcast(stored.raw, true));
        if (mined !== null) {
          // One that failed may be asked for again at once, and must not be taken for one that is on its way.
          if (mined.status === 'success') noteLater(transaction.id, mined);
          else await markMined(transaction.id, mined);
          return mined;
        }
      }
      return waitFor(transaction.id, untilMs);
    },

    async resume() {
      await note();
      const untilMs = performance.now() + ROUND_MS;
      const failures: unknown[] = [];
      const resumed = new Set<string>();
      for (let batch = 0; batch < MAX_RESUME_BATCHES && performance.now() < untilMs; batch++) {
        // Whoever was looked at longest ago comes first, so that none is always behind what takes long.
        const due = await sql<Row[]>`
          update relayer_transactions set sent_at = ${now()}
          where (network, address, nonce) in (
            select network, address, nonce from relayer_transactions
            where network = ${network} and state = 0 and sent_at <= case
              when address = any(${ours}::text::text[]) then ${ago(RESEND_AFTER_MS)}::timestamptz
              else ${ago(FOREIGN_AFTER_MS)}::timestamptz end
            order by sent_at, nonce limit ${RESUME_BATCH} for update skip locked
          )
          returning address, nonce, id, to_address, data, gas_limit, max_cost_wei::text, max_fee_wei::text, raw, hashes, filler, state, created_at`;
        for (const { address } of due) resumed.add(address);
        const inOrder = due.toSorted((a, b) => Number(a.nonce - b.nonce));
        failures.push(...(await inLanes(inOrder, { atOnce: RESUMED_AT_ONCE, untilMs }, resumeOne)));
        if (due.length < RESUME_BATCH) break;
      }
      const used = signers.filter(({ address }) => resumed.has(address));
      const filled = await inLanes(used, { atOnce: RESUMED_AT_ONCE, untilMs }, (signer) =>
        fillForgotten(signer, untilMs),
      );
      const [failure] = [...failures, ...filled];
      if (failure !== undefined) throw failure;
      const [count] = await sql<{ pending: bigint }[]>`
        select count(*) as pending from relayer_transactions where network = ${network} and state = 0`;
      return Number(count?.pending ?? 0n);
    },
  };

  async function resumeOne(row: Row): Promise<void> {
    const signer = signers.find(({ address }) => address === row.address);
    const mined = await receiptOf([...row.hashes, ...(row.filler === null ? [] : [row.filler])]);
    if (mined !== null) await markMined(row.id, mined);
    else if (signer !== undefined) await sendAgain(signer, row);
  }

  async function sendAgain(signer: Signer, row: Row): Promise<void> {
    const ageMs = nowMs() - row.created_at.getTime();
    if (ageMs < BUMP_AFTER_MS) {
      await broadcast(row.raw as Hex, false);
      return;
    }
    const used = quantity(await rpc.call('eth_getTransactionCount', [signer.address, 'latest']));
    if (used > row.nonce) {
      // Somebody else's transaction has this nonce, unless one of ours is found after all.
      if (ageMs >= GIVE_UP_AFTER_MS && (await receiptOf(row.hashes)) === null) await giveUp(row);
      return;
    }
    const useful = await rpc
      .call('eth_call', [
        {
          ...{ from: signer.address, to: row.to_address, data: row.data },
          gas: `0x${row.gas_limit.toString(16)}`,
        },
        'latest',
      ])
      .then(() => true)
      .catch((error: unknown) => !isRevert(error));
    const current = await currentFees();
    const last = parseTransaction(row.raw as Hex);
    const higher = (fee: bigint | undefined, asked: bigint) => {
      const raised = ((fee ?? 0n) * 5n) / 4n + 1n;
      return raised > asked ? raised : asked;
    };
    const fee = {
      maxFeePerGas: higher(last.maxFeePerGas, current.maxFeePerGas),
      maxPriorityFeePerGas: higher(last.maxPriorityFeePerGas, current.maxPriorityFeePerGas),
    };
    // It is not the fee that holds it up: more would not help, and could not be paid in the end.
    const mostWei = row.max_cost_wei === null ? null : BigInt(row.max_cost_wei);
    const isTooDear = mostWei !== null && fee.maxFeePerGas * row.gas_limit > mostWei;
    if (isTooDear || fee.maxFeePerGas > current.maxFeePerGas * MAX_FEE_FACTOR) {
      await broadcast(row.raw as Hex, false);
      return;
    }
    const next = useful
      ? { to: row.to_address as Hex, data: row.data as Hex, gasLimit: row.gas_limit }
      : { to: signer.address, data: '0x' as const, gasLimit: LEAST_GAS };
    const { raw, hash } = await sign(signer, next, row.nonce, fee);
    // Stored before it is sent, as always: a hash that nobody wrote down could not be found again.
    await sql`
      update relayer_transactions
      set raw = ${raw}, max_fee_wei = ${String(fee.maxFeePerGas)}::numeric,
        hashes = case when ${useful} then hashes || ${hash}::text else hashes end,
        filler = case when ${useful} then filler else ${hash} end
      where network = ${network} and address = ${row.address} and nonce = ${String(row.nonce)} and state = 0`;
    await broadcast(raw, false);
  }

  /** Nonces before the first pending one that the chain does not count: it was put back, and takes them once more. */
  async function fillForgotten(signer: Signer, untilMs: number): Promise<void> {
    const used = quantity(await rpc.call('eth_getTransactionCount', [signer.address, 'latest']));
    const forgotten = await sql<{ raw: string }[]>`
      select raw from relayer_transactions
      where network = ${network} and address = ${signer.address} and state <> 0 and nonce >= ${String(used)}
      order by nonce limit ${MAX_FORGOTTEN}`;
    for (const { raw } of forgotten) {
      if (performance.now() >= untilMs) return;
      await broadcast(raw as Hex, false);
    }
  }

  async function giveUp(row: Row): Promise<void> {
    await sql`
      update relayer_transactions set state = 3
      where network = ${network} and address = ${row.address} and nonce = ${String(row.nonce)} and state = 0`;
  }
}

/** Whether the node ran it and it failed: a limit of the node's own says nothing about the transaction. */
function isRevert(error: unknown): boolean {
  return error instanceof RpcRefusal && (error.code === 3 || /revert/i.test(error.message));
}
