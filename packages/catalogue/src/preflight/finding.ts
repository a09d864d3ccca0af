/** Findings of a check of a transaction or a signature, and the one word that follows from it. */

/** The verdicts, from the best to the worst. What could not be read weighs more than what is known to deserve a look. */
export const VERDICTS = ['safe', 'caution', 'unknown', 'danger'] as const;
export type Verdict = (typeof VERDICTS)[number];

/** Everything that can be found, with the sentence that explains it. */
const PATTERNS = {
  approval_to_account:
    'Lets an address without code take tokens: whoever holds its key can take them at any time.',
  approval_to_open_executor:
    'Lets a contract take tokens that does for everybody what they ask: anybody can then take them.',
  unlimited_approval: 'Lets a contract take all of a token, now and later.',
  approval_to_unverified: 'Lets a contract take tokens whose source nobody has published.',
  approval: 'Lets a contract take a bounded amount of tokens.',
  operator_for_all: 'Lets another take every token of a collection, those of later too.',
  approval_by_signature: 'A signature is enough: whoever holds it needs no further word of the signer.',
  long_lived_signature: 'The signature can be used for longer than a year.',
  expired_signature: 'The signature can no longer be used.',
  other_signer: 'It speaks for another address than the one that is asked to sign.',
  other_chain: 'It is made for another chain than the one that was named.',
  no_chain: 'It names no chain: the same signature may be used on others.',
  other_contract: 'It names another contract than the one that this form of signature belongs to.',
  undeclared_fields: 'Its message has fields that its types do not declare: they are shown, and not signed.',
  unread_signature: 'What this signature allows is not known.',
  unread_witness: 'The transfer depends on a further condition that was not read.',
  transfer: 'Sends tokens or coins to another address.',
  transfer_of_another: 'Takes tokens of another address, by an allowance that stands.',
  transfer_to_token: 'Sends tokens to where they are usually lost.',
  standing_allowance_used: 'Takes tokens of the signer by an allowance that the signer gave before.',
  empties_balance: 'Takes nearly all that the signer has of a token or coin.',
  takes_without_giving: 'Takes from the signer through a call that could not be read, and gives nothing.',
  hidden_approval: 'The simulation grants an allowance that the data does not show.',
  hidden_outflow: 'The simulation takes from the signer what the data does not show.',
  token_misstates: 'A token announces transfers that its balances do not show.',
  impostor_token: 'A token bears the ticker of a well-known one and is another.',
  lookalike_address: 'The address looks like a known one at both ends, and is another.',
  delegatecall_to_unknown: 'Runs the code of another contract with all rights of this one.',
  upgrade: 'Changes the code that a contract runs.',
  upgrade_to_unknown: 'Changes the code that a contract runs into one that is not there or not published.',
  owner_change: 'Gives the control of a contract or account to another.',
  control_change: 'Changes who may act for a contract or account.',
  account_delegation: "Lets a contract's code act as this account (EIP-7702).",
  account_delegation_everywhere: "Lets a contract's code act as this account on every chain (EIP-7702).",
  bait_function: 'Calls a function whose name is that of known thefts, and sends money with it.',
  order: 'Offers goods to whoever fills the order.',
  order_gives_away: 'Offers goods for nothing or next to nothing.',
  refund_payment: 'Pays whoever sends it a refund that others decide.',
  contract_creation: 'Creates a contract; what it will do was not read.',
  unread_call: 'A call whose function is not known.',
  no_code_called: 'Calls an address without code: the data does nothing there, and money stays there.',
  reading_cut: 'Too large or nested too deeply to be read to its end.',
  not_simulated: 'It could not be simulated.',
  would_fail: 'It would fail as things stand.',
  sanctioned: 'An address is on a list of sanctions.',
  mixer: 'An address is a mixing service.',
  not_screened: 'Nobody could be asked about sanctions.',
  unchecked_addresses: 'More addresses take part than were checked.',
  authority_change: 'Gives an authority over an account, a token or a program to another.',
  account_closed_to_other: 'Closes an account and sends what is in it to another.',
  account_assigned: 'Gives the account itself to a program, which can then empty it.',
  durable_nonce: 'Signed once, it can be sent at any later time: it does not expire.',
  nonce_authority: 'Changes who can use or empty a nonce account.',
  permanent_delegate: 'Somebody named by the token can take it from every holder.',
  transfer_hook: 'Each transfer of the token runs a program that its maker chose.',
  transfer_fee: 'Each transfer of the token pays a fee to its maker.',
  freezable_token: 'New accounts of the token are frozen, or it cannot be transferred.',
  unknown_program: 'Calls a program that is not known.',
  unread_instruction: 'An instruction of a known program that was not read.',
  hidden_accounts: 'Accounts come from an address lookup table that could not be read.',
  token_minted: 'Makes new units of a token.',
} as const satisfies Record<string, string>;
export type Pattern = keyof typeof PATTERNS;
export const PATTERN_NAMES = Object.keys(PATTERNS) as Pattern[];

/** `info` says what happens, and lowers nothing. */
export type Severity = 'info' | Exclude<Verdict, 'safe'>;

export interface Finding {
  pattern: Pattern;
  severity: Severity;
  /** The address that it is about; null where it is about all of it. */
  address: string | null;
  /** Where it stands, such as `call.2.0` or `message.details`. */
  at: string;
  /** A sentence of our own with addresses and numbers alone: nothing that others wrote. */
  detail: string;
}

/** The verdict that is never better than the worst that was found. */
export function verdictOf(findings: readonly Finding[]): Verdict {
  const worst = findings.reduce(
    (most, { severity }) => Math.max(most, severity === 'info' ? 0 : VERDICTS.indexOf(severity)),
    0,
  );
  return VERDICTS[worst] ?? 'unknown';
}

/** @param detail unless given, the pattern's own sentence */
export function found(
  pattern: Pattern,
  severity: Severity,
  at: string,
  address: string | null = null,
  detail: string = PATTERNS[pattern],
): Finding {
  return { pattern, severity, address, at, detail };
}
