/** Judges what a transaction or signature does by what is known about those who take part. */
import { type Address, isAddressEqual, zeroAddress } from 'viem';
import type { Act, Approval, Goods, Reading, Transfer } from './act.ts';
import { type Finding, found, type Severity } from './finding.ts';
import { imitatedBy, type KnownContract } from './known-contracts.ts';

/** Facts about an address. */
export interface PartyFacts {
  address: Address;
  /** `delegated`: a person's account that runs a contract's code (EIP-7702). Null: not asked. */
  account: 'none' | 'contract' | 'delegated' | null;
  known: KnownContract | null;
  /** Whether the source is published; null: nobody could be asked. */
  isVerified: boolean | null;
  /** The word of an oracle or a list; null: nobody could be asked. */
  isSanctioned: boolean | null;
  isMixer: boolean | null;
}

export interface Case {
  reading: Reading;
  signer: Address;
  /** The facts by address, in lower case. */
  facts: ReadonlyMap<string, PartyFacts>;
  nowS: bigint;
}

/** An allowance of as much as this is one of everything. */
const MOST_OF_ANY_TOKEN = 2n ** 96n - 1n;
const YEAR_S = 31_536_000n;
/** A price below this many of the smallest unit is none. */
const NEXT_TO_NOTHING = 1_000n;

const NOBODY: Omit<PartyFacts, 'address'> = {
  account: null,
  known: null,
  isVerified: null,
  isSanctioned: null,
  isMixer: null,
};

export function factsOf({ facts }: Pick<Case, 'facts'>, address: Address): PartyFacts {
  return facts.get(address.toLowerCase()) ?? { address, ...NOBODY };
}

export function judge(asked: Case): Finding[] {
  const { acts, isCut } = asked.reading;
  return [
    ...acts.flatMap((act) => judgedAct(act, asked)),
    ...screened(asked),
    ...(isCut ? [found('reading_cut', 'unknown', 'call')] : []),
  ];
}

function isOurs({ reading, signer }: Case, address: Address): boolean {
  return [signer, ...reading.ours].some((each) => isAddressEqual(each, address));
}

function judgedAct(act: Act, asked: Case): Finding[] {
  switch (act.kind) {
    case 'approval':
      return isOurs(asked, act.owner) ? [...judgedApproval(act, asked), ...lifetime(act, asked)] : [];
    case 'operator':
      return isOurs(asked, act.owner) ? [mayTake(act.at, act.operator, true, asked, 'operator_for_all')] : [];
    case 'transfer':
      return [...judgedTransfer(act, asked), ...lifetime(act, asked)];
    case 'delegatecall':
      return [found('delegatecall_to_unknown', 'danger', act.at, act.target)];
    case 'upgrade':
      return [judgedUpgrade(act, asked)];
    case 'owner':
      return [judgedOwner(act, asked)];
    case 'control':
      return [judgedControl(act, asked)];
    case 'account-delegation':
      return [judgedDelegation(act, asked)];
    case 'order':
      return [judgedOrder(act, asked), ...lifetime(act, asked)];
    case 'bait':
      return [judgedBait(act, asked)];
    case 'unread':
      return [judgedUnread(act, asked)];
    case 'revocation':
    case 'harmless':
      return [];
  }
}

function judgedApproval(act: Approval, asked: Case): Finding[] {
  const isAll = act.amount === null || act.amount >= MOST_OF_ANY_TOKEN;
  const findings = [mayTake(act.at, act.spender, isAll, asked, 'approval')];
  if (act.by === 'signature') findings.push(found('approval_by_signature', 'info', act.at, act.spender));
  const likeness = imitatedBy(act.spender, [asked.signer]);
  if (likeness !== null) findings.push(lookalike(act.at, act.spender, likeness));
  return findings;
}

/** Weighs that somebody may take tokens, by who that is. @param isAll of a token or a collection */
function mayTake(
  at: string,
  spender: Address,
  isAll: boolean,
  asked: Case,
  pattern: 'approval' | 'operator_for_all',
): Finding {
  const { account, known, isVerified } = factsOf(asked, spender);
  if (isAddressEqual(spender, asked.signer)) return found(pattern, 'info', at, spender);
  if (account === 'none' || account === 'delegated')
    return found('approval_to_account', 'danger', at, spender);
  if (known?.role === 'executor' || known?.role === 'library')
    return found('approval_to_open_executor', 'danger', at, spender);
  const whole = pattern === 'operator_for_all' ? pattern : 'unlimited_approval';
  if (known !== null)
    return isAll ? found(whole, 'caution', at, spender) : found(pattern, 'info', at, spender);
  if (isVerified === false) return found('approval_to_unverified', isAll ? 'danger' : 'caution', at, spender);
  const severity: Severity = isVerified === null ? 'unknown' : 'caution';
  return found(isAll ? whole : pattern, severity, at, spender);
}

function judgedTransfer(act: Transfer, asked: Case): Finding[] {
  const findings: Finding[] = [];
  const { at, from, to, mover, token } = act;
  if (isOurs(asked, to) && !isOurs(asked, from)) {
    const isDirect = isAddressEqual(from, mover);
    return isDirect ? [] : [found('transfer_of_another', 'caution', at, from)];
  }
  if (!isOurs(asked, from)) {
    return isAddressEqual(from, mover) ? [] : [found('transfer_of_another', 'caution', at, from)];
  }
  findings.push(found('transfer', 'info', at, to));
  if (isAddressEqual(to, zeroAddress) || (token !== null && isAddressEqual(to, token)))
    findings.push(found('transfer_to_token', 'danger', at, to));
  // Somebody else moves it: an allowance of the signer's is used.
  if (act.by === 'call' && !isOurs(asked, mover)) {
    const { account } = factsOf(asked, to);
    const isPerson = account === 'none' || account === 'delegated';
    findings.push(found('standing_allowance_used', isPerson ? 'danger' : 'caution', at, to));
  }
  const likeness = imitatedBy(to, [asked.signer]);
  if (likeness !== null) findings.push(lookalike(at, to, likeness));
  return findings;
}

function lookalike(at: string, address: Address, known: string): Finding {
  return found(
    'lookalike_address',
    'danger',
    at,
    address,
    `It looks like ${known} at both ends, and is another.`,
  );
}

/** How long a signature, or what it gives, can be used. */
function lifetime(
  { at, by, expiresAtS }: { at: string; by: Act['by']; expiresAtS: bigint | null },
  { nowS }: Case,
): Finding[] {
  if (by !== 'signature') return [];
  if (expiresAtS === null || expiresAtS > nowS + YEAR_S)
    return [found('long_lived_signature', 'caution', at)];
  return expiresAtS < nowS ? [found('expired_signature', 'info', at)] : [];
}

function judgedUpgrade({ at, implementation }: Extract<Act, { kind: 'upgrade' }>, asked: Case): Finding {
  const { account, known, isVerified } = factsOf(asked, implementation);
  if (account !== 'contract' || isVerified === false)
    return found('upgrade_to_unknown', 'danger', at, implementation);
  const severity = isVerified === null && known === null ? 'unknown' : 'caution';
  return found('upgrade', severity, at, implementation);
}

function judgedOwner({ at, to }: Extract<Act, { kind: 'owner' }>, asked: Case): Finding {
  if (isAddressEqual(to, asked.signer)) return found('owner_change', 'info', at, to);
  const { account, isVerified } = factsOf(asked, to);
  const isTrusted = account === 'contract' && isVerified === true;
  return found('owner_change', isTrusted ? 'caution' : 'danger', at, to);
}

function judgedControl(act: Extract<Act, { kind: 'control' }>, asked: Case): Finding {
  const { at, to, grave } = act;
  const pattern = act.what === 'refund' ? 'refund_payment' : 'control_change';
  if (to === null || !grave) return found(pattern, 'caution', at, to);
  if (isAddressEqual(to, asked.signer) || isAddressEqual(to, zeroAddress))
    return found(pattern, 'caution', at, to);
  const { account, isVerified, known } = factsOf(asked, to);
  const isTrusted = known !== null || (account === 'contract' && isVerified === true);
  return found(pattern, isTrusted ? 'caution' : 'danger', at, to);
}

function judgedDelegation(act: Extract<Act, { kind: 'account-delegation' }>, asked: Case): Finding {
  const { at, delegate, everywhere } = act;
  if (isAddressEqual(delegate, zeroAddress)) return found('account_delegation', 'info', at, delegate);
  if (factsOf(asked, delegate).known?.role !== 'delegate')
    return found('account_delegation', 'danger', at, delegate);
  return everywhere
    ? found('account_delegation_everywhere', 'caution', at, delegate)
    : found('account_delegation', 'caution', at, delegate);
}

function judgedOrder({ at, maker, gives, gets }: Extract<Act, { kind: 'order' }>, asked: Case): Finding {
  if (!isOurs(asked, maker) || gives.length === 0) return found('order', 'caution', at, maker);
  const isWorth = ({ amount, isNft }: Goods) => isNft || amount >= NEXT_TO_NOTHING;
  if (!gets.some(isWorth)) return found('order_gives_away', 'danger', at, maker);
  return found('order', 'caution', at, maker);
}

function judgedBait({ at, contract, value }: Extract<Act, { kind: 'bait' }>, asked: Case): Finding {
  const { isVerified, known } = factsOf(asked, contract);
  if (known !== null || value === 0n) return found('unread_call', 'unknown', at, contract);
  return found('bait_function', isVerified === true ? 'caution' : 'danger', at, contract);
}

function judgedUnread({ at, contract }: Extract<Act, { kind: 'unread' }>, asked: Case): Finding {
  const { account } = factsOf(asked, contract);
  if (account === 'none') return found('no_code_called', 'danger', at, contract);
  return found('unread_call', 'unknown', at, contract);
}

function screened({ facts }: Case): Finding[] {
  return [...facts.values()].flatMap(({ address, isSanctioned, isMixer }) => [
    ...(isSanctioned === true ? [found('sanctioned', 'danger', 'parties', address)] : []),
    ...(isMixer === true ? [found('mixer', 'caution', 'parties', address)] : []),
  ]);
}
