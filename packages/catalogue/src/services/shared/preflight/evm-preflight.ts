/** The check of an EVM transaction or of typed data before it is signed. */
import type { Source } from '@farebox/core/words/answer';
import anyAscii from 'any-ascii';
import { type Address, erc20Abi, formatUnits, type Hex, isAddressEqual } from 'viem';
import type { Act, Approval, ReadCall, Reading, Transfer } from '../../../preflight/act.ts';
import { type Finding, found, type Verdict, verdictOf } from '../../../preflight/finding.ts';
import { factsOf, judge, type PartyFacts } from '../../../preflight/judge.ts';
import { partiesOf, readCall } from '../../../preflight/read-calls.ts';
import { readTypedData, type SignatureReading, type TypedData } from '../../../preflight/typed-data.ts';
import type { EvmChain } from '../../../upstreams/adapters/evm.ts';
import { evmChainFacts } from '../../../upstreams/adapters/evm-chains.ts';
import type { Upstreams } from '../../../upstreams/index.ts';
import type { Lists } from '../../listed-parties.ts';
import { readTokens, type TokenFacts } from '../chain/chain-token.ts';
import type { ChainHead } from '../wallet/wallet-chains.ts';
import { LESS_THAN_THE_VALUE } from '../wallet/wallet-transaction.ts';
import type { Check } from './coverage.ts';
import { readParties } from './party-facts.ts';
import {
  type Holding,
  listedTokens,
  type Measured,
  measure,
  measureByCall,
  type Simulation,
  simulate,
} from './simulate.ts';
import { actsOf } from './simulated-acts.ts';

/** The registers and lists that are asked besides the chain. */
export interface Registers {
  sourcify: Upstreams['sourcify'] | undefined;
  lists: Lists | undefined;
}

export interface EvmTransaction {
  from: Address;
  /** Null creates a contract. */
  to: Address | null;
  value: bigint;
  data: Hex;
  authorizations: readonly { chainId: bigint; delegate: Address }[];
}

export interface BalanceChange {
  address: string;
  isSigner: boolean;
  /** Null: the chain's own coin. */
  token: string | null;
  symbol: string | null;
  decimals: number | null;
  /** In the smallest unit, with its sign. */
  changeRaw: string;
  change: string | null;
  /** False: as the token's own log says; its balances were not read. */
  measured: boolean;
}

export interface Preflight {
  verdict: Verdict;
  findings: Finding[];
  acts: Act[];
  calls: ReadCall[];
  isCut: boolean;
  changes: BalanceChange[] | null;
  simulation: Simulation | null;
  facts: PartyFacts[];
  checks: Check[];
  sources: Source[];
}

const MOST_MEASURED = 24;
/** What is left of a balance, as its fiftieth part, that counts as nearly nothing. */
const NEARLY_ALL = 50n;

/** @throws UpstreamUnavailable when the chain cannot be reached */
export async function preflightTransaction(
  head: ChainHead,
  asked: EvmTransaction,
  registers: Registers,
  nowMs: number,
): Promise<Preflight> {
  const reading = readTransaction(asked, head.chain.chainId);
  const run = await simulated(head, asked, reading);
  return concluded({ head, signer: asked.from, reading, run, findings: [], registers, nowMs });
}

/** @throws TypeError in words of our own where the data cannot be signed; UpstreamUnavailable */
export async function preflightTypedData(
  head: ChainHead,
  signer: Address,
  data: TypedData,
  registers: Registers,
  nowMs: number,
): Promise<Preflight & { signature: SignatureReading }> {
  const signature = readTypedData(data, signer);
  const read = signature.calls.map(({ isDelegated, ...call }) => readCall(call, isDelegated));
  const reading: Reading = {
    acts: [...signature.acts, ...read.flatMap(({ acts }) => acts)],
    calls: read.flatMap(({ calls }) => calls),
    ours: [signer, ...read.flatMap(({ ours }) => ours)],
    isCut: read.some(({ isCut }) => isCut),
  };
  const { chainId } = signature;
  const findings =
    chainId === null || chainId === BigInt(head.chain.chainId)
      ? signature.findings
      : [...signature.findings, found('other_chain', 'danger', 'domain.chainId')];
  const run = signature.calls.length === 1 ? await simulatedInner(head, signature, reading) : null;
  const made = await concluded({ head, signer, reading, run, findings, registers, nowMs });
  return { ...made, signature };
}

function readTransaction(
  { from, to, value, data, authorizations }: EvmTransaction,
  chainId: number,
): Reading {
  const delegations = authorizations.map(
    ({ chainId: forChain, delegate }, index): Act => ({
      kind: 'account-delegation',
      at: `authorizationList.${index}`,
      by: 'signature',
      delegate,
      everywhere: forChain !== BigInt(chainId),
    }),
  );
  if (to === null) return { acts: delegations, calls: [], ours: [from], isCut: false };
  const reading = readCall({ at: 'call', from, to, value, data });
  return { ...reading, acts: [...delegations, ...reading.acts] };
}

interface Run {
  simulation: Simulation | null;
  missing: string[];
  measured: Measured[];
  acts: Act[];
  isCut: boolean;
  isCreation: boolean;
}

async function simulated(head: ChainHead, asked: EvmTransaction, reading: Reading): Promise<Run> {
  const { chain, blockNumber } = head;
  const call = { ...asked, delegate: asked.authorizations[0]?.delegate ?? null };
  const none = { measured: [], acts: [], isCut: false, isCreation: asked.to === null };
  const balance = await chain.client.getBalance({ address: asked.from, blockNumber });
  if (balance < asked.value) {
    const simulation: Simulation = {
      method: 'eth_call',
      success: false,
      revertReason: LESS_THAN_THE_VALUE,
      gasUsed: null,
      logs: null,
      missing: [],
    };
    return { simulation, missing: [], ...none };
  }
  const { simulation, missing } = await simulate(chain, call, blockNumber);
  if (simulation === null) {
    const tokens = [null, ...new Set([...tokensOf(reading.acts), ...listedTokens(chain)])].slice(
      0,
      MOST_MEASURED,
    );
    const fallback = await measureByCall(chain, call, blockNumber, tokens);
    if (fallback === null) return { simulation: null, missing, ...none };
    return { ...none, simulation: { ...fallback.run, missing }, missing, measured: fallback.measured };
  }
  const { acts, isCut } = actsOf(simulation.logs ?? [], evmChainFacts(chain.name).wrappedNative.address);
  const measured =
    simulation.method === 'eth_simulateV1' && simulation.success
      ? await measure(chain, call, blockNumber, holdingsOf(acts, asked.from))
      : [];
  return { ...none, simulation, missing, acts, isCut, measured: measured ?? [] };
}

/** The one call that a signature lets somebody make, as it would run for the account that makes it. */
async function simulatedInner(
  head: ChainHead,
  { calls }: SignatureReading,
  reading: Reading,
): Promise<Run | null> {
  const [call] = calls;
  if (call === undefined || call.isDelegated) return null;
  return simulated(head, { ...call, authorizations: [] }, reading);
}

const tokensOf = (acts: readonly Act[]): Address[] =>
  acts.flatMap((act) => ('token' in act && act.token !== null ? [act.token] : []));

/** Chooses the balances to read: the signer's first, then those of others. */
function holdingsOf(acts: readonly Act[], signer: Address): Holding[] {
  const byKey = new Map<string, Holding>();
  for (const act of acts) {
    if (act.kind !== 'transfer') continue;
    for (const holder of [act.from, act.to]) {
      byKey.set(`${act.token ?? ''}:${holder}`.toLowerCase(), { holder, token: act.token });
    }
  }
  const isSigner = ({ holder }: Holding) => (isAddressEqual(holder, signer) ? 0 : 1);
  return [...byKey.values()].sort((a, b) => isSigner(a) - isSigner(b)).slice(0, MOST_MEASURED);
}

interface Work {
  head: ChainHead;
  signer: Address;
  reading: Reading;
  /** Null where there is nothing to simulate. */
  run: Run | null;
  findings: Finding[];
  registers: Registers;
  nowMs: number;
}

async function concluded({
  head,
  signer,
  reading,
  run,
  findings,
  registers,
  nowMs,
}: Work): Promise<Preflight> {
  const { chain, blockNumber } = head;
  const granted = run === null ? [] : await newGrants(chain, blockNumber, reading, run.acts);
  const all: Reading = {
    ...reading,
    acts: [...reading.acts, ...granted],
    isCut: reading.isCut || run?.isCut === true,
  };
  const parties = await readParties(
    chain,
    blockNumber,
    partiesOf(all.acts, all.calls),
    (address) => !isOnlyToken(address, all),
    registers,
  );
  const asked = { reading: all, signer, facts: parties.facts, nowS: BigInt(Math.floor(nowMs / 1_000)) };
  const moves = run === null ? null : changesOf(run, all.ours);
  const tokens = await readTokens(chain, tokensInvolved(all.acts, moves), blockNumber);
  const everything = [
    ...findings,
    ...judge(asked),
    ...granted.map((act) => hidden(act, parties.facts)),
    ...(run === null ? [] : judgedRun(run, asked, moves ?? [])),
    ...impostors(chain, tokens, moves),
    ...unscreened(parties.facts, parties.checks),
  ];
  return {
    verdict: verdictOf(everything),
    findings: everything,
    acts: all.acts,
    calls: all.calls,
    isCut: all.isCut,
    changes:
      moves === null || run?.simulation == null ? null : moves.map((move) => shown(move, chain, tokens)),
    simulation: run?.simulation ?? null,
    facts: [...parties.facts.values()],
    checks: [...checksOf(all, run, everything), ...parties.checks],
    sources: [head.source, ...parties.sources],
  };
}

/** The register is asked about whoever gets a right or is called, and not about a token that only moves. */
function isOnlyToken(address: Address, { acts }: Reading): boolean {
  const isToken = acts.some(
    (act) => 'token' in act && act.token !== null && isAddressEqual(act.token, address),
  );
  const isMore = acts.some(
    (act) =>
      (act.kind === 'approval' && isAddressEqual(act.spender, address)) ||
      (act.kind === 'unread' && isAddressEqual(act.contract, address)),
  );
  return isToken && !isMore;
}

/** Allowances that the simulation gives, that are larger than before, and that the data does not show. */
async function newGrants(
  chain: EvmChain,
  blockNumber: bigint,
  { acts, ours }: Reading,
  simulatedActs: readonly Act[],
): Promise<Act[]> {
  const isOurs = (address: Address) => ours.some((each) => isAddressEqual(each, address));
  const candidates = simulatedActs.filter(
    (act) =>
      (act.kind === 'approval' || act.kind === 'operator') && isOurs(act.owner) && !isDeclared(act, acts),
  );
  const tokens = candidates.filter(
    (act): act is Approval => act.kind === 'approval' && act.tokenId === null && act.expiresAtS === null,
  );
  const before = await chain.client.multicall({
    blockNumber,
    contracts: tokens.map(({ token, owner, spender }) => ({
      abi: erc20Abi,
      address: token,
      functionName: 'allowance' as const,
      args: [owner, spender] as const,
    })),
  });
  const grown = new Set(tokens.filter(({ amount }, index) => (amount ?? 0n) > (before[index]?.result ?? 0n)));
  return candidates
    .filter(
      (act) => act.kind !== 'approval' || act.tokenId !== null || act.expiresAtS !== null || grown.has(act),
    )
    .filter((act) => act.kind !== 'approval' || act.amount !== 0n);
}

function isDeclared(act: Act, declared: readonly Act[]): boolean {
  return declared.some((each) => {
    if (act.kind === 'approval' && each.kind === 'approval')
      return isAddressEqual(act.token, each.token) && isAddressEqual(act.spender, each.spender);
    if (act.kind === 'operator' && each.kind === 'operator')
      return isAddressEqual(act.collection, each.collection) && isAddressEqual(act.operator, each.operator);
    return false;
  });
}

function hidden(act: Act, facts: ReadonlyMap<string, PartyFacts>): Finding {
  const to = act.kind === 'approval' ? act.spender : act.kind === 'operator' ? act.operator : null;
  const known = to === null ? null : factsOf({ facts }, to);
  const isTrusted = known?.known != null || known?.isVerified === true;
  return found('hidden_approval', isTrusted ? 'caution' : 'danger', act.at, to);
}

interface Move {
  address: Address;
  isSigner: boolean;
  token: Address | null;
  change: bigint;
  before: bigint | null;
  measured: boolean;
  /** What the logs say where it differs from what was measured. */
  announced: bigint | null;
}

function changesOf({ acts, measured }: Run, ours: readonly Address[]): Move[] {
  const byKey = new Map<string, Move>();
  const keyOf = (holder: Address, token: Address | null) => `${token ?? ''}:${holder}`.toLowerCase();
  const isSigner = (address: Address) => ours.some((each) => isAddressEqual(each, address));
  const add = (address: Address, token: Address | null, by: bigint) => {
    const key = keyOf(address, token);
    const known = byKey.get(key) ?? {
      address,
      isSigner: isSigner(address),
      token,
      change: 0n,
      before: null,
      measured: false,
      announced: null,
    };
    byKey.set(key, { ...known, change: known.change + by });
  };
  for (const act of acts) {
    if (act.kind !== 'transfer') continue;
    add(act.from, act.token, -act.amount);
    add(act.to, act.token, act.amount);
  }
  for (const { holder, token, before, after } of measured) {
    const key = keyOf(holder, token);
    const announced = byKey.get(key)?.change ?? null;
    const change = after - before;
    byKey.set(key, {
      address: holder,
      isSigner: isSigner(holder),
      token,
      change,
      before,
      measured: true,
      announced,
    });
  }
  return [...byKey.values()].filter(({ change, announced }) => change !== 0n || (announced ?? 0n) !== 0n);
}

function judgedRun(run: Run, asked: Parameters<typeof judge>[0], moves: readonly Move[]): Finding[] {
  const { simulation } = run;
  if (simulation === null) return [found('not_simulated', 'unknown', 'simulation')];
  const findings: Finding[] = [];
  if (!simulation.success) findings.push(found('would_fail', 'unknown', 'simulation'));
  if (simulation.logs === null)
    findings.push(
      found(
        'not_simulated',
        'caution',
        'simulation',
        null,
        'Only balances of the signer were read: the node shows no logs.',
      ),
    );
  if (run.isCreation) findings.push(found('contract_creation', 'unknown', 'call'));
  for (const { token, announced, change, measured } of moves) {
    if (measured && announced !== null && announced !== change && token !== null)
      findings.push(found('token_misstates', 'caution', 'simulation', token));
  }
  return [...findings, ...outflows(asked, moves)];
}

/** Weighs what leaves the signer's accounts, against what the data shows and what comes back. */
function outflows({ reading, facts }: Parameters<typeof judge>[0], moves: readonly Move[]): Finding[] {
  const out = moves.filter(({ isSigner, change }) => isSigner && change < 0n);
  const comesBack = moves.some(({ isSigner, change }) => isSigner && change > 0n);
  const emptied = out
    .filter(({ before, change }) => before !== null && (before + change) * NEARLY_ALL < before)
    .map(({ token }) => found('empties_balance', 'caution', 'simulation', token));
  const declared = reading.acts.filter(
    (act): act is Transfer => act.kind === 'transfer' && act.by === 'call',
  );
  const isDeclared = (token: Address | null) => declared.some((act) => sameToken(act.token, token));
  const unexplained = out.filter(({ token }) => !isDeclared(token));
  if (unexplained.length === 0) return emptied;
  const isTrusted = reading.calls.every(({ to }) => {
    const { known, isVerified } = factsOf({ facts }, to);
    return known !== null || isVerified === true;
  });
  const isRead = !reading.acts.some(({ kind }) => kind === 'unread' || kind === 'bait');
  const isExpected = isRead && isTrusted && reading.acts.some(({ kind }) => kind === 'harmless');
  if (comesBack || isExpected) return emptied;
  const pattern = isRead ? 'hidden_outflow' : 'takes_without_giving';
  return [
    ...emptied,
    ...unexplained.map(({ token }) => found(pattern, isTrusted ? 'caution' : 'danger', 'simulation', token)),
  ];
}

const sameToken = (a: Address | null, b: Address | null) =>
  a === null || b === null ? a === b : isAddressEqual(a, b);

function tokensInvolved(acts: readonly Act[], moves: readonly Move[] | null): Address[] {
  const moved = (moves ?? []).flatMap(({ token }) => (token === null ? [] : [token]));
  return [...moved, ...tokensOf(acts)].slice(0, MOST_MEASURED);
}

/** Letters of other scripts that look like these. https://www.unicode.org/reports/tr39/#Confusable_Detection */
const LIKE_LATIN: ReadonlyMap<string, string> = new Map([
  ...[...'АВЕКМНОРСТУХЅІЈ'].map((letter, index) => [letter, 'ABEKMHOPCTYXSIJ'.charAt(index)] as const),
  ...[...'ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ'].map((letter, index) => [letter, 'ABEZHIKMNOPTYX'.charAt(index)] as const),
]);

/** A ticker as a hasty reader sees it. */
function plainTicker(symbol: string): string {
  const upper = symbol.normalize('NFKC').toUpperCase();
  const latin = [...upper].map((letter) => LIKE_LATIN.get(letter) ?? letter).join('');
  return anyAscii(latin).replace(/[^A-Z0-9.]/g, '');
}

/** Tokens that bear the ticker of a well-known token of the chain, in letters that look like it too. */
function impostors(
  chain: EvmChain,
  tokens: ReadonlyMap<string, TokenFacts>,
  moves: readonly Move[] | null,
): Finding[] {
  const { tokens: listed, nativeSymbol } = evmChainFacts(chain.name);
  const genuine = new Map(listed.map(({ symbol, address }) => [plainTicker(symbol), address.toLowerCase()]));
  return [...tokens.values()].flatMap(({ address, symbol }) => {
    if (symbol === null || listed.some((each) => isAddressEqual(each.address, address))) return [];
    const isOne = genuine.has(plainTicker(symbol)) || plainTicker(symbol) === nativeSymbol.toUpperCase();
    const comes = (moves ?? []).some(
      (move) => move.isSigner && move.change > 0n && sameToken(move.token, address),
    );
    return isOne ? [found('impostor_token', comes ? 'danger' : 'caution', 'tokens', address)] : [];
  });
}

function unscreened(facts: ReadonlyMap<string, PartyFacts>, checks: readonly Check[]): Finding[] {
  const isBlind = [...facts.values()].some(({ isSanctioned }) => isSanctioned === null);
  const isCut = checks.some(({ check, done }) => check === 'counterparties' && !done);
  return [
    ...(isBlind ? [found('not_screened', 'caution', 'parties')] : []),
    ...(isCut ? [found('unchecked_addresses', 'unknown', 'parties')] : []),
  ];
}

function checksOf({ acts, isCut }: Reading, run: Run | null, findings: readonly Finding[]): Check[] {
  const unread = acts.filter(({ kind }) => kind === 'unread').length;
  const isUnread = findings.some(
    ({ pattern }) => pattern === 'unread_signature' || pattern === 'unread_witness',
  );
  const decoding = isCut
    ? 'It was read to a bound, and not to its end.'
    : unread > 0
      ? `${unread} call(s) are of functions that are not known.`
      : isUnread
        ? 'The form of the signature is not known in full.'
        : null;
  const missing = run === null ? [] : run.missing;
  const without = missing.length > 0 ? `The node does not offer ${missing.join(' and ')}.` : null;
  const isMeasured = run !== null && (run.measured.length > 0 || run.acts.length === 0);
  return [
    { check: 'decoding', done: decoding === null, why: decoding },
    {
      check: 'simulation',
      done: run?.simulation?.logs != null,
      why: run === null ? 'A signature alone changes nothing that could be simulated.' : without,
    },
    {
      check: 'balances',
      done: isMeasured,
      why: isMeasured
        ? null
        : run === null
          ? 'Nothing was simulated.'
          : 'They are as the logs tell them, and were not read.',
    },
    ...(acts.some(({ kind }) => kind === 'order')
      ? [
          {
            check: 'price-of-order' as const,
            done: false,
            why: 'Whether the price of the order is fair was not judged.',
          },
        ]
      : []),
  ];
}

function shown(
  { address, isSigner, token, change, measured }: Move,
  chain: EvmChain,
  tokens: ReadonlyMap<string, TokenFacts>,
): BalanceChange {
  const facts = token === null ? null : tokens.get(token.toLowerCase());
  const decimals = token === null ? 18 : (facts?.decimals ?? null);
  return {
    address,
    isSigner,
    token,
    symbol: token === null ? chain.nativeSymbol : (facts?.symbol ?? null),
    decimals,
    changeRaw: String(change),
    change: decimals === null ? null : formatUnits(change, decimals),
    measured,
  };
}
