/** The check of a Solana transaction before it is signed. */
import type { Source } from '@farebox/core/words/answer';
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import { formatUnits } from 'viem';
import { type Finding, found, type Verdict, verdictOf } from '../../../preflight/finding.ts';
import {
  type Mint,
  mintIn,
  type TokenAccount,
  tableIn,
  tokenAccountIn,
} from '../../../preflight/solana-accounts.ts';
import {
  delegateSeverity,
  readInstruction,
  type SolanaApproval,
  type SolanaMeaning,
} from '../../../preflight/solana-instructions.ts';
import type { SolanaTransaction } from '../../../preflight/solana-transaction.ts';
import type { SolanaAccount, SolanaTrial } from '../../../upstreams/adapters/solana.ts';
import type { Upstreams } from '../../../upstreams/index.ts';
import type { Lists } from '../../listed-parties.ts';
import { printable } from '../wallet/wallet-revert.ts';
import { addressLists, hitsOf } from '../wallet/wallet-screening.ts';
import type { Check } from './coverage.ts';
import type { BalanceChange } from './evm-preflight.ts';

const MOST_ACCOUNTS = 64;
const MOST_TABLES = 8;
const NEARLY_ALL = 50n;
const SOL_DECIMALS = 9;
/** A token account's rent and a fee: what less than this takes is no theft of the coin. */
const SMALL_LAMPORTS = 10_000_000n;

export interface SolanaPreflight {
  verdict: Verdict;
  findings: Finding[];
  approvals: SolanaApproval[];
  calls: { at: string; to: string; called: string | null }[];
  changes: BalanceChange[] | null;
  trial: SolanaTrial | null;
  reason: string | null;
  parties: { address: string; isSanctioned: boolean | null; isMixer: boolean | null }[];
  checks: Check[];
  sources: Source[];
  slot: number;
}

interface Change {
  address: string;
  before: SolanaAccount | null;
  after: SolanaAccount | null;
}

/** @throws UpstreamUnavailable when the chain cannot be reached */
export async function preflightSolana(
  solana: Upstreams['solana'],
  transaction: SolanaTransaction,
  signer: string,
  lists: Lists | undefined,
): Promise<SolanaPreflight> {
  const tables = await loaded(solana, transaction);
  const instructions = transaction.instructions([...tables.writable, ...tables.readable]);
  const meanings = instructions.map((each) => readInstruction(each, signer));
  const all = [...new Set([...transaction.accounts, ...tables.writable, ...tables.readable])].filter(
    (each) => each !== null,
  );
  const writable = all
    .filter(
      (address) =>
        tables.writable.includes(address) || transaction.isWritable(transaction.accounts.indexOf(address)),
    )
    .slice(0, MOST_ACCOUNTS);
  const before = await solana.accountsOf(writable);
  const trial = await tried(solana, transaction.wire, writable);
  const changes = changesBetween(writable, before.value, trial);
  const mints = await mintsOf(
    solana,
    changes,
    instructions.flatMap(({ accounts }) => accounts),
  );
  const screening = await screened(all, lists);
  const grants = newDelegates(
    changes,
    signer,
    meanings.flatMap(({ approvals }) => approvals),
  );
  const findings = [
    ...meanings.flatMap((each) => each.findings),
    ...(signer !== transaction.feePayer && !transaction.signers.includes(signer)
      ? [found('other_signer', 'caution', 'transaction', transaction.feePayer)]
      : []),
    ...grants.map(({ at, spender }) => found('hidden_approval', delegateSeverity(spender), at, spender)),
    ...ofTrial(trial),
    ...ofChanges(changes, signer, meanings),
    ...[...mints].flatMap(([mint, { extensions }]) =>
      extensions.map((each) => found(each, 'caution', 'tokens', mint)),
    ),
    ...screening.findings,
  ];
  return {
    verdict: verdictOf(findings),
    findings,
    approvals: [...meanings.flatMap(({ approvals }) => approvals), ...grants],
    calls: instructions.map(({ at, program }, index) => ({
      at,
      to: program,
      called: meanings[index]?.called ?? null,
    })),
    changes: trial === null || trial.error !== null ? null : shownChanges(changes, signer, mints),
    trial,
    reason: trial === null || trial.error === null ? null : printable(JSON.stringify(trial.error)),
    parties: screening.parties,
    checks: [...checksOf(tables, meanings, trial), balancesRead(trial, all.length), screening.check],
    sources: [before.source, ...screening.sources],
    slot: before.slot,
  };
}

interface Loaded {
  writable: (string | null)[];
  readable: (string | null)[];
  unread: number;
}

/** The accounts of the lookup tables; null for those that could not be read. */
async function loaded(solana: Upstreams['solana'], { tables }: SolanaTransaction): Promise<Loaded> {
  if (tables.length === 0) return { writable: [], readable: [], unread: 0 };
  const asked = tables.slice(0, MOST_TABLES);
  const { value } = await solana.accountsOf(asked.map(({ table }) => table));
  const places = tables.map((each, index) => ({ ...each, addresses: tableIn(value[index] ?? null) }));
  const pick = (indexes: readonly number[], addresses: string[] | null) =>
    indexes.map((place) => addresses?.[place] ?? null);
  const writable = places.flatMap((each) => pick(each.writable, each.addresses));
  const readable = places.flatMap((each) => pick(each.readable, each.addresses));
  return { writable, readable, unread: [...writable, ...readable].filter((each) => each === null).length };
}

/** Null where the node refuses to run it. */
async function tried(
  solana: Upstreams['solana'],
  wire: string,
  addresses: readonly string[],
): Promise<SolanaTrial | null> {
  try {
    return (await solana.simulate(wire, addresses)).value;
  } catch (error) {
    if (error instanceof UpstreamUnavailable && error.reason === 'invalid_reply') return null;
    throw error;
  }
}

function changesBetween(
  addresses: readonly string[],
  before: readonly (SolanaAccount | null)[],
  trial: SolanaTrial | null,
): Change[] {
  const after = trial?.error === null ? trial.accounts : null;
  if (after?.length !== addresses.length) return [];
  return addresses.map((address, index) => ({
    address,
    before: before[index] ?? null,
    after: after[index] ?? null,
  }));
}

async function mintsOf(
  solana: Upstreams['solana'],
  changes: readonly Change[],
  named: readonly (string | null)[],
): Promise<Map<string, Mint>> {
  const held = changes
    .flatMap(({ before, after }) => [tokenAccountIn(before), tokenAccountIn(after)])
    .flatMap((each) => (each === null ? [] : [each.mint]));
  const asked = [...new Set([...held, ...named.filter((each) => each !== null)])].slice(0, MOST_ACCOUNTS);
  if (asked.length === 0) return new Map();
  const { value } = await solana.accountsOf(asked);
  return new Map(
    asked.flatMap((address, index): [string, Mint][] => {
      const mint = mintIn(value[index] ?? null);
      return mint === null ? [] : [[address, mint]];
    }),
  );
}

/** Delegates that the trial gives to accounts of the signer, and that no instruction shows. */
function newDelegates(
  changes: readonly Change[],
  signer: string,
  shown: readonly SolanaApproval[],
): SolanaApproval[] {
  return changes.flatMap(({ address, before, after }): SolanaApproval[] => {
    const [was, is] = [tokenAccountIn(before), tokenAccountIn(after)];
    if (is === null || is.delegate === null || (was ?? is).owner !== signer) return [];
    const isNew = was?.delegate !== is.delegate || is.delegatedAmount > (was?.delegatedAmount ?? 0n);
    if (!isNew || shown.some(({ token, spender }) => token === address && spender === is.delegate)) return [];
    return [
      {
        at: 'simulation',
        owner: signer,
        token: address,
        spender: is.delegate,
        amount: is.delegatedAmount,
        by: 'simulation',
      },
    ];
  });
}

function ofTrial(trial: SolanaTrial | null): Finding[] {
  if (trial === null || (trial.error === null && trial.accounts === null))
    return [found('not_simulated', 'unknown', 'simulation')];
  return trial.error === null ? [] : [found('would_fail', 'unknown', 'simulation')];
}

/** What the trial does to accounts of the signer, whatever the instructions say. */
function ofChanges(
  changes: readonly Change[],
  signer: string,
  meanings: readonly SolanaMeaning[],
): Finding[] {
  const isRead = meanings.every(({ called }) => called !== null);
  return changes.flatMap(({ address, before, after }) => {
    if (address === signer) return ofWallet(address, before, after);
    const [was, is] = [tokenAccountIn(before), tokenAccountIn(after)];
    if (was === null || was.owner !== signer) return [];
    return ofTokenAccount(address, was, is, isRead);
  });
}

function ofWallet(address: string, before: SolanaAccount | null, after: SolanaAccount | null): Finding[] {
  const had = before?.lamports ?? 0n;
  const has = after?.lamports ?? 0n;
  return [
    ...(after !== null && before !== null && after.owner !== before.owner
      ? [found('account_assigned', 'danger', 'simulation', address)]
      : []),
    ...(had > SMALL_LAMPORTS && has * NEARLY_ALL < had
      ? [found('empties_balance', 'caution', 'simulation', address)]
      : []),
  ];
}

function ofTokenAccount(
  address: string,
  was: TokenAccount,
  is: TokenAccount | null,
  isRead: boolean,
): Finding[] {
  const at = 'simulation';
  if (is === null) return was.amount > 0n ? [found('hidden_outflow', 'danger', at, address)] : [];
  return [
    ...(is.owner !== was.owner ? [found('authority_change', 'danger', at, address)] : []),
    ...(is.closeAuthority !== was.closeAuthority &&
    is.closeAuthority !== null &&
    is.closeAuthority !== was.owner
      ? [found('authority_change', 'danger', at, address)]
      : []),
    ...(is.amount * NEARLY_ALL < was.amount ? [found('empties_balance', 'caution', at, address)] : []),
    ...(is.amount < was.amount && !isRead ? [found('takes_without_giving', 'caution', at, address)] : []),
  ];
}

function balancesRead(trial: SolanaTrial | null, accounts: number): Check {
  const unread = trial?.accounts == null ? 'Nothing was simulated.' : null;
  const why =
    unread ??
    (accounts > MOST_ACCOUNTS ? `Of ${accounts} accounts ${MOST_ACCOUNTS} were compared at most.` : null);
  return { check: 'balances', done: why === null, why };
}

function checksOf(
  { unread }: Loaded,
  meanings: readonly SolanaMeaning[],
  trial: SolanaTrial | null,
): Check[] {
  const unknown = meanings.filter(({ called }) => called === null).length;
  return [
    {
      check: 'decoding',
      done: unknown === 0,
      why: unknown === 0 ? null : `${unknown} instruction(s) were not read.`,
    },
    {
      check: 'lookup-tables',
      done: unread === 0,
      why: unread === 0 ? null : `${unread} account(s) of lookup tables could not be read.`,
    },
    { check: 'simulation', done: trial !== null, why: trial === null ? 'The node refuses to run it.' : null },
    { check: 'sanctions-oracle', done: false, why: 'There is no oracle on solana.' },
    { check: 'published-source', done: false, why: 'No register of sources was asked about programs.' },
  ];
}

async function screened(addresses: readonly string[], lists: Lists | undefined) {
  const nobody = (why: string) => ({
    parties: addresses.map((address) => ({ address, isSanctioned: null, isMixer: null })),
    findings: [found('not_screened', 'caution', 'parties')],
    check: { check: 'sanctions-lists' as const, done: false, why },
    sources: [] as Source[],
  });
  if (lists === undefined) return nobody('No lists are configured here.');
  try {
    const opened = await addressLists(lists);
    if (opened.sanctions.length === 0) return nobody('No list with addresses is configured here.');
    const parties = addresses.map((address) => ({
      address,
      isSanctioned: hitsOf(opened.sanctions, address).length > 0,
      isMixer: opened.mixers === null ? null : hitsOf([opened.mixers], address).length > 0,
    }));
    return {
      parties,
      findings: parties.flatMap(({ address, isSanctioned, isMixer }) => [
        ...(isSanctioned ? [found('sanctioned', 'danger', 'parties', address)] : []),
        ...(isMixer === true ? [found('mixer', 'caution', 'parties', address)] : []),
      ]),
      check: { check: 'sanctions-lists' as const, done: true, why: null },
      sources: opened.sources,
    };
  } catch (error) {
    if (!(error instanceof UpstreamUnavailable)) throw error;
    return nobody('A list is older than its bound.');
  }
}

function shownChanges(
  changes: readonly Change[],
  signer: string,
  mints: ReadonlyMap<string, Mint>,
): BalanceChange[] {
  return changes.flatMap(({ address, before, after }): BalanceChange[] => {
    const [was, is] = [tokenAccountIn(before), tokenAccountIn(after)];
    const account = was ?? is;
    const native = (after?.lamports ?? 0n) - (before?.lamports ?? 0n);
    if (account === null) {
      if (native === 0n) return [];
      const about = {
        address,
        isSigner: address === signer,
        token: null,
        symbol: 'SOL',
        decimals: SOL_DECIMALS,
      };
      return [
        { ...about, changeRaw: String(native), change: formatUnits(native, SOL_DECIMALS), measured: true },
      ];
    }
    const moved = (is?.amount ?? 0n) - (was?.amount ?? 0n);
    if (moved === 0n) return [];
    const decimals = mints.get(account.mint)?.decimals ?? null;
    const about = {
      address: account.owner,
      isSigner: account.owner === signer,
      token: account.mint,
      symbol: null,
      decimals,
    };
    return [
      {
        ...about,
        changeRaw: String(moved),
        change: decimals === null ? null : formatUnits(moved, decimals),
        measured: true,
      },
    ];
  });
}
