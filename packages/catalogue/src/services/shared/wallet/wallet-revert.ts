import { decodeErrorResult, type Hex, parseAbi } from 'viem';

const LONGEST_REASON = 200;

/** What Solidity itself reverts with, and the standard errors of tokens (ERC-6093) and of OpenZeppelin's guards. */
const KNOWN_ERRORS = parseAbi([
  'error Error(string message)',
  'error Panic(uint256 code)',
  'error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)',
  'error ERC20InvalidSender(address sender)',
  'error ERC20InvalidReceiver(address receiver)',
  'error ERC20InsufficientAllowance(address spender, uint256 allowance, uint256 needed)',
  'error ERC20InvalidApprover(address approver)',
  'error ERC20InvalidSpender(address spender)',
  'error ERC721NonexistentToken(uint256 tokenId)',
  'error ERC721IncorrectOwner(address sender, uint256 tokenId, address owner)',
  'error ERC721InsufficientApproval(address operator, uint256 tokenId)',
  'error ERC1155InsufficientBalance(address sender, uint256 balance, uint256 needed, uint256 tokenId)',
  'error ERC1155MissingApprovalForAll(address operator, address owner)',
  'error OwnableUnauthorizedAccount(address account)',
  'error AccessControlUnauthorizedAccount(address account, bytes32 neededRole)',
  'error EnforcedPause()',
  'error ReentrancyGuardReentrantCall()',
  'error SafeERC20FailedOperation(address token)',
  'error FailedCall()',
  'error AddressInsufficientBalance(address account)',
]);

/** https://docs.soliditylang.org/en/latest/control-structures.html#panic-via-assert-and-error-via-require */
const PANICS: Readonly<Record<string, string>> = {
  1: 'an assertion failed',
  17: 'arithmetic overflow or underflow',
  18: 'division by zero',
  33: 'a value is not of the enumeration',
  34: 'a storage array is wrongly encoded',
  49: 'pop from an empty array',
  50: 'index out of bounds',
  65: 'out of memory',
  81: 'call of an uninitialised function',
};

/**
 * The reason of a revert in one short line. The words are the contract's, so they are cut to 200 characters of
 * printable text; of an error that is not among the well-known ones, its selector is told.
 *
 * @param data what the call reverted with
 */
export function revertReason(data: Hex): string {
  if (data === '0x') return 'reverted without a reason';
  return printable(reasonIn(data));
}

function reasonIn(data: Hex): string {
  try {
    const { errorName, args } = decodeErrorResult({ abi: KNOWN_ERRORS, data });
    if (errorName === 'Error') return args[0];
    if (errorName === 'Panic') return `panic ${args[0]}: ${PANICS[String(args[0])] ?? 'unknown'}`;
    return `${errorName}(${(args ?? []).map(String).join(', ')})`;
  } catch {
    return `error ${data.slice(0, 10)} of the contract`;
  }
}

/** Cuts foreign words to one short line of printable ASCII. */
export function printable(reason: string): string {
  const line = reason.replace(/[^\x20-\x7e]+/g, ' ').trim();
  return line.length > LONGEST_REASON ? `${line.slice(0, LONGEST_REASON - 1)}…` : line;
}
