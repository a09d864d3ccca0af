/** Translates LiteSVM's error for a failed transaction into a node's JSON and text. */
import type { FailedTransactionMetadata } from 'litesvm';

/** In the form of JSON-RPC: `"BlockhashNotFound"`, `{"InstructionError":[0,{"Custom":1}]}`, … */
export type TransactionError = string | Readonly<Record<string, unknown>>;

type SvmError = ReturnType<FailedTransactionMetadata['err']>;

/** In the order of LiteSVM's error numbers, with the text that a node prints. */
const TRANSACTION_ERRORS: readonly (readonly [name: string, text: string])[] = [
  ['AccountInUse', 'Account in use'],
  ['AccountLoadedTwice', 'Account loaded twice'],
  ['AccountNotFound', 'Attempt to debit an account but found no record of a prior credit.'],
  ['ProgramAccountNotFound', 'Attempt to load a program that does not exist'],
  ['InsufficientFundsForFee', 'Insufficient funds for fee'],
  ['InvalidAccountForFee', 'This account may not be used to pay transaction fees'],
  ['AlreadyProcessed', 'This transaction has already been processed'],
  ['BlockhashNotFound', 'Blockhash not found'],
  ['CallChainTooDeep', 'Loader call chain is too deep'],
  ['MissingSignatureForFee', 'Transaction requires a fee but has no signature present'],
  ['InvalidAccountIndex', 'Transaction contains an invalid account reference'],
  ['SignatureFailure', 'Transaction did not pass signature verification'],
  ['InvalidProgramForExecution', 'This program may not be used for executing instructions'],
  ['SanitizeFailure', 'Transaction failed to sanitize accounts offsets correctly'],
  ['ClusterMaintenance', 'Transactions are currently disabled due to cluster maintenance'],
  [
    'AccountBorrowOutstanding',
    'Transaction processing left an account with an outstanding borrowed reference',
  ],
  ['WouldExceedMaxBlockCostLimit', 'Transaction would exceed max Block Cost Limit'],
  ['UnsupportedVersion', 'Transaction version is unsupported'],
  ['InvalidWritableAccount', 'Transaction loads a writable account that cannot be written'],
  ['WouldExceedMaxAccountCostLimit', 'Transaction would exceed max account limit within the block'],
  ['WouldExceedAccountDataBlockLimit', 'Transaction would exceed account data limit within the block'],
  ['TooManyAccountLocks', 'Transaction locked too many accounts'],
  ['AddressLookupTableNotFound', "Transaction loads an address table account that doesn't exist"],
  ['InvalidAddressLookupTableOwner', 'Transaction loads an address table account with an invalid owner'],
  ['InvalidAddressLookupTableData', 'Transaction loads an address table account with invalid data'],
  ['InvalidAddressLookupTableIndex', 'Transaction address table lookup uses an invalid index'],
  ['InvalidRentPayingAccount', 'Transaction leaves an account with a lower balance than rent-exempt minimum'],
  ['WouldExceedMaxVoteCostLimit', 'Transaction would exceed max Vote Cost Limit'],
  ['WouldExceedAccountDataTotalLimit', 'Transaction would exceed total account data limit'],
  ['MaxLoadedAccountsDataSizeExceeded', 'Transaction exceeded max loaded accounts data size cap'],
  ['ResanitizationNeeded', 'ResanitizationNeeded'],
  [
    'InvalidLoadedAccountsDataSizeLimit',
    'LoadedAccountsDataSizeLimit set for transaction must be greater than 0.',
  ],
  ['UnbalancedTransaction', 'Sum of account balances before and after transaction do not match'],
  ['ProgramCacheHitMaxLimit', 'Program cache hit max limit'],
  ['CommitCancelled', 'CommitCancelled'],
];

/** In the order of LiteSVM's error numbers; a text only where it says more than the name. */
const INSTRUCTION_ERRORS: readonly (readonly [name: string, text?: string])[] = [
  ['GenericError', 'generic instruction error'],
  ['InvalidArgument', 'invalid program argument'],
  ['InvalidInstructionData', 'invalid instruction data'],
  ['InvalidAccountData', 'invalid account data for instruction'],
  ['AccountDataTooSmall', 'account data too small for instruction'],
  ['InsufficientFunds', 'insufficient funds for instruction'],
  ['IncorrectProgramId', 'incorrect program id for instruction'],
  ['MissingRequiredSignature', 'missing required signature for instruction'],
  ['AccountAlreadyInitialized', 'instruction requires an uninitialized account'],
  ['UninitializedAccount', 'instruction requires an initialized account'],
  ['UnbalancedInstruction'],
  ['ModifiedProgramId'],
  ['ExternalAccountLamportSpend'],
  ['ExternalAccountDataModified'],
  ['ReadonlyLamportChange'],
  ['ReadonlyDataModified'],
  ['DuplicateAccountIndex'],
  ['ExecutableModified'],
  ['RentEpochModified'],
  ['NotEnoughAccountKeys', 'insufficient account keys for instruction'],
  ['AccountDataSizeChanged'],
  ['AccountNotExecutable'],
  ['AccountBorrowFailed'],
  ['AccountBorrowOutstanding'],
  ['DuplicateAccountOutOfSync'],
  ['InvalidError'],
  ['ExecutableDataModified'],
  ['ExecutableLamportChange'],
  ['ExecutableAccountNotRentExempt'],
  ['UnsupportedProgramId', 'Unsupported program id'],
  ['CallDepth'],
  ['MissingAccount', 'An account required by the instruction is missing'],
  ['ReentrancyNotAllowed'],
  ['MaxSeedLengthExceeded'],
  ['InvalidSeeds', 'Provided seeds do not result in a valid address'],
  ['InvalidRealloc', 'Failed to reallocate account data'],
  ['ComputationalBudgetExceeded', 'Computational budget exceeded'],
  ['PrivilegeEscalation', 'Cross-program invocation with unauthorized signer or writable account'],
  ['ProgramEnvironmentSetupFailure'],
  ['ProgramFailedToComplete', 'Program failed to complete'],
  ['ProgramFailedToCompile'],
  ['Immutable', 'Account is immutable'],
  ['IncorrectAuthority', 'Incorrect authority provided'],
  ['AccountNotRentExempt'],
  ['InvalidAccountOwner', 'Invalid account owner'],
  ['ArithmeticOverflow', 'Program arithmetic overflowed'],
  ['UnsupportedSysvar', 'Unsupported sysvar'],
  ['IllegalOwner', 'Provided owner is not allowed'],
  ['MaxAccountsDataAllocationsExceeded'],
  ['MaxAccountsExceeded'],
  ['MaxInstructionTraceLengthExceeded'],
  ['BuiltinProgramsMustConsumeComputeUnits'],
  ['BorshIoError', 'Failed to serialize or deserialize account data'],
];

/** A node's JSON for LiteSVM's error. */
export function transactionErrorOf(error: SvmError): TransactionError {
  if (typeof error === 'number') return TRANSACTION_ERRORS[error]?.[0] ?? `Unknown(${error})`;
  if ('err' in error) return { InstructionError: [error.index, instructionErrorOf(error.err())] };
  if ('index' in error) return { DuplicateInstruction: error.index };
  const name = error.constructor.name.replace('TransactionError', '');
  return { [name]: { account_index: error.accountIndex } };
}

function instructionErrorOf(error: unknown): unknown {
  if (typeof error === 'number') return INSTRUCTION_ERRORS[error]?.[0] ?? `Unknown(${error})`;
  if (typeof error === 'object' && error !== null && 'code' in error) return { Custom: error.code };
  return 'BorshIoError';
}

/**
 * Whether a transaction that fails with this error lands on the chain and pays its fee. With any other error, it leaves no
 * trace on the chain.
 */
export function landsWith(error: TransactionError): boolean {
  return typeof error === 'object' && ('InstructionError' in error || 'InsufficientFundsForRent' in error);
}

/** The text that a node prints for the error. */
export function textOf(error: TransactionError): string {
  if (typeof error === 'string') return TRANSACTION_ERRORS.find(([name]) => name === error)?.[1] ?? error;
  const { InstructionError: failed, InsufficientFundsForRent: poor } = error;
  if (typeof poor === 'object' && poor !== null && 'account_index' in poor)
    return `Transaction results in an account (${poor.account_index}) with insufficient funds for rent`;
  if (!Array.isArray(failed)) return JSON.stringify(error);
  const [index, cause]: unknown[] = failed;
  return `Error processing Instruction ${index}: ${instructionTextOf(cause)}`;
}

function instructionTextOf(cause: unknown): string {
  if (typeof cause === 'string') return INSTRUCTION_ERRORS.find(([name]) => name === cause)?.[1] ?? cause;
  const code = typeof cause === 'object' && cause !== null && 'Custom' in cause ? cause.Custom : null;
  return typeof code === 'number' ? `custom program error: 0x${code.toString(16)}` : JSON.stringify(cause);
}
