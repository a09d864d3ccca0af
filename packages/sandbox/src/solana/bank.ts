/** The chain itself. LiteSVM runs the transactions; slots, blockhashes and landed transactions are kept here. */
import {
  type Address,
  address,
  type EncodedAccount,
  getAddressDecoder,
  getBase58Decoder,
  getTransactionEncoder,
} from '@solana/kit';
import {
  Clock,
  FailedTransactionMetadata,
  LiteSVM,
  type SimulatedTransactionInfo,
  type TransactionMetadata,
} from 'litesvm';
import { type History, type LandedTransaction, openHistory, type TokenBalance } from './history.ts';
import { RpcError } from './json-rpc.ts';
import { memoOf } from './memo.ts';
import { BLOCKHASH_SLOTS, type ClockState, openSlotClock, SLOTS_PER_EPOCH, type SlotClock } from './slots.ts';
import { readMint, readToken, uiTokenAmount } from './token-state.ts';
import { landsWith, type TransactionError, transactionErrorOf } from './transaction-error.ts';
import { addressesOfTable, lookupsOf, type WireTransaction } from './wire-transaction.ts';

/** Longer log output of a program is cut, as nodes do. */
const LOG_BYTES = 10_000n;
const base58 = getBase58Decoder();

/** The result of running a transaction, whether it changed anything or not. */
export interface Execution {
  err: TransactionError | null;
  logs: readonly string[];
  unitsConsumed: number;
  returnData: LandedTransaction['returnData'];
  /** Reads the instructions that programs called. What few ask for is read for them alone. */
  innerInstructions(): LandedTransaction['innerInstructions'];
  /** Reads the accounts as the transaction would leave them; none if it failed. */
  postAccounts(): readonly EncodedAccount[];
}

export interface BankState {
  clock: ClockState;
  transactions: readonly LandedTransaction[];
  /** LiteSVM's own snapshot. */
  accounts: Uint8Array;
}

export interface Bank {
  clock: SlotClock;
  history: History;
  account(of: Address): EncodedAccount | null;
  programAccounts(of: Address): readonly EncodedAccount[];
  /** Writes an account without any checks: for the chain's first accounts, for interest that passes, and for drills. */
  setAccount(account: EncodedAccount): void;
  /** Puts a program at an address, in place of what is there. @param file as it is deployed (ELF) */
  placeProgram(at: Address, file: Uint8Array): void;
  /** Lamports that an account of this many bytes must hold. */
  rentExemptLamports(bytes: number): bigint;
  /** The addresses to which the message's account indexes refer; null if a lookup table or an entry of it is missing. */
  keysOf(transaction: WireTransaction): Keys | null;
  /** Runs a transaction and changes nothing. */
  simulate(transaction: WireTransaction, checks: { signatures: boolean; blockhash: boolean }): Execution;
  /**
   * Runs a transaction and keeps what it did.
   *
   * @returns what landed; null if the transaction left no trace, like one with a bad signature or an old blockhash
   * @throws RpcError −32005 if the history is full
   */
  land(transaction: WireTransaction): LandedTransaction | null;
  /** Called on every change: with the transaction that was executed, or with null for skipped slots. */
  onChange(listener: (landed: LandedTransaction | null) => void): void;
  advance(slots: number): void;
  state(): BankState;
}

interface Keys {
  all: readonly Address[];
  writable: readonly Address[];
  readonly: readonly Address[];
}

/** Opens a chain from its saved state, or a new chain with nothing on it but LiteSVM's own programs. */
export function openBank(saved: {
  clock: ClockState;
  rest: Omit<BankState, 'clock'> | null;
  /** The system's clock if absent. */
  nowMs?: () => number;
}): Bank {
  const svm = (saved.rest === null ? new LiteSVM() : LiteSVM.fromBytes(saved.rest.accounts))
    // Blockhashes and duplicates are checked below: LiteSVM has no slots, and cannot tell duplicates without signatures.
    .withBlockhashCheck(false)
    .withTransactionHistory(0n)
    .withLogBytesLimit(LOG_BYTES)
    .withSigverify(true);
  const clock = openSlotClock(saved.clock, saved.nowMs);
  const history = openHistory(saved.rest?.transactions ?? [], () => clock.slot() - BLOCKHASH_SLOTS);
  const listeners: ((landed: LandedTransaction | null) => void)[] = [];
  let clockSetTo = -1;

  /** Sets the time that programs read. */
  function setClock(): void {
    const slot = clock.slot();
    if (slot === clockSetTo) return;
    clockSetTo = slot;
    const epoch = Math.floor(slot / SLOTS_PER_EPOCH);
    const epochBegan = clock.blockTimeOf(epoch * SLOTS_PER_EPOCH);
    svm.setClock(
      new Clock(
        BigInt(slot),
        BigInt(epochBegan),
        BigInt(epoch),
        BigInt(epoch + 1),
        BigInt(clock.blockTimeOf(slot)),
      ),
    );
  }

  function account(of: Address): EncodedAccount | null {
    setClock();
    const found = svm.getAccount(of);
    // An account without lamports does not exist, even if the virtual machine still stores it.
    return found.exists && found.lamports > 0n ? found : null;
  }

  function keysOf({ message }: WireTransaction): Keys | null {
    const writable: Address[] = [];
    const readonly: Address[] = [];
    for (const lookup of lookupsOf(message)) {
      const table = account(lookup.lookupTableAddress);
      if (table === null) return null;
      const addresses = addressesOfTable(new Uint8Array(table.data), (bytes) =>
        getAddressDecoder().decode(bytes),
      );
      for (const [indexes, into] of [
        [lookup.writableIndexes, writable],
        [lookup.readonlyIndexes, readonly],
      ] as const) {
        for (const index of indexes) {
          const found = addresses[index];
          if (found === undefined) return null;
          into.push(found);
        }
      }
    }
    return { all: [...message.staticAccounts, ...writable, ...readonly], writable, readonly };
  }

  /** The error of a transaction whose blockhash cannot be used, or which has landed already; null for any other. */
  function ageError({ message, messageHash }: WireTransaction): TransactionError | null {
    if (!clock.isBlockhashValid(message.lifetimeToken)) return 'BlockhashNotFound';
    return history.byMessage(messageHash) === undefined ? null : 'AlreadyProcessed';
  }

  function simulate(
    transaction: WireTransaction,
    checks: { signatures: boolean; blockhash: boolean },
  ): Execution {
    setClock();
    if (checks.signatures && !transaction.isFullySigned) return nothingRan('SignatureFailure');
    svm.withSigverify(checks.signatures);
    try {
      const tried = executionOf(svm.simulateTransaction(transaction.transaction));
      // Like a node, reports a bad signature before an old blockhash.
      const refused = checks.blockhash && tried.err !== 'SignatureFailure' ? ageError(transaction) : null;
      return refused === null ? tried : nothingRan(refused);
    } finally {
      svm.withSigverify(true);
    }
  }

  function land(transaction: WireTransaction): LandedTransaction | null {
    setClock();
    if (history.isFull()) throw new RpcError(-32005, 'Node is unhealthy', { numSlotsBehind: null });
    const keys = keysOf(transaction);
    if (keys === null || !transaction.isFullySigned || ageError(transaction) !== null) return null;
    const before = balancesOf(keys.all, account);
    // The one that its programs read: the next may begin while they run.
    const slot = clockSetTo;
    const execution = executionOf(svm.sendTransaction(transaction.transaction));
    if (execution.err !== null && !landsWith(execution.err)) return null;
    const after = balancesOf(keys.all, account);
    const landed: LandedTransaction = {
      signature: transaction.signature,
      messageHash: transaction.messageHash,
      slot,
      base64: Buffer.from(getTransactionEncoder().encode(transaction.transaction)).toString('base64'),
      err: execution.err,
      accountKeys: keys.all,
      loadedAddresses: { writable: keys.writable, readonly: keys.readonly },
      // A transaction's accounts together lose nothing but the fee.
      fee: sum(before.lamports) - sum(after.lamports),
      preBalances: before.lamports,
      postBalances: after.lamports,
      preTokenBalances: before.tokens,
      postTokenBalances: after.tokens,
      logMessages: execution.logs,
      innerInstructions: execution.innerInstructions(),
      computeUnitsConsumed: execution.unitsConsumed,
      returnData: execution.returnData,
      memo: memoOf(transaction.message),
    };
    history.add(landed);
    for (const listener of listeners) listener(landed);
    return landed;
  }

  return {
    clock,
    history,
    account,
    programAccounts: (of) => svm.getProgramAccounts(of).filter(({ lamports }) => lamports > 0n),
    setAccount: (written) => svm.setAccount(written),
    placeProgram: (at, file) => svm.addProgram(at, file),
    rentExemptLamports: (bytes) => svm.minimumBalanceForRentExemption(BigInt(bytes)),
    keysOf,
    simulate,
    land,
    onChange: (listener) => void listeners.push(listener),
    advance(slots) {
      clock.advance(slots);
      for (const listener of listeners) listener(null);
    },
    state: () => ({ clock: clock.state(), transactions: [...history.all()], accounts: svm.toBytes() }),
  };
}

/** The balances of accounts, in lamports and in tokens. */
function balancesOf(
  keys: readonly Address[],
  account: Bank['account'],
): { lamports: number[]; tokens: TokenBalance[] } {
  const accounts = keys.map(account);
  const tokens = accounts.flatMap((one, accountIndex): TokenBalance[] => {
    const token = one === null ? null : readToken(one);
    const mintAccount = token === null ? null : account(token.mint);
    const mint = mintAccount === null ? null : readMint(mintAccount);
    if (one === null || token === null || mint === null) return [];
    return [
      {
        accountIndex,
        mint: token.mint,
        owner: token.owner,
        programId: one.programAddress,
        uiTokenAmount: uiTokenAmount(token.amount, mint.decimals),
      },
    ];
  });
  return { lamports: accounts.map((one) => Number(one?.lamports ?? 0n)), tokens };
}

/** A copy of the chain as it is now, which never changes: the chain that a node sees which fell behind. */
export function frozen(bank: Bank): Bank {
  const atMs = Date.now();
  const rest = bank.state();
  return openBank({ clock: rest.clock, rest, nowMs: () => atMs });
}

function nothingRan(err: TransactionError): Execution {
  return {
    err,
    logs: [],
    unitsConsumed: 0,
    innerInstructions: () => [],
    returnData: null,
    postAccounts: () => [],
  };
}

function executionOf(
  result: TransactionMetadata | FailedTransactionMetadata | SimulatedTransactionInfo,
): Execution {
  const failed = result instanceof FailedTransactionMetadata;
  const meta = 'meta' in result ? result.meta() : result;
  const returned = meta.returnData();
  return {
    err: failed ? transactionErrorOf(result.err()) : null,
    logs: meta.logs(),
    unitsConsumed: Number(meta.computeUnitsConsumed()),
    innerInstructions: () => innerInstructionsOf(meta),
    returnData:
      returned.data().length === 0
        ? null
        : {
            programId: address(base58.decode(returned.programId())),
            data: [Buffer.from(returned.data()).toString('base64'), 'base64'],
          },
    postAccounts: () => (!failed && 'postAccounts' in result ? result.postAccounts() : []),
  };
}

function innerInstructionsOf(meta: TransactionMetadata): LandedTransaction['innerInstructions'] {
  return meta.innerInstructions().flatMap((inner, index) => {
    const instructions = inner.map((one) => {
      const instruction = one.instruction();
      return {
        programIdIndex: instruction.programIdIndex(),
        accounts: [...instruction.accounts()],
        data: base58.decode(instruction.data()),
        stackHeight: one.stackHeight(),
      };
    });
    return instructions.length === 0 ? [] : { index, instructions };
  });
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
