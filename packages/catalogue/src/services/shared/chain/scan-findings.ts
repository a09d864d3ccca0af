import type { CodeReading, Sighting } from '../../../code-analysis/bytecode/reach.ts';
import type { Severity } from '../../../code-analysis/rules/finding.ts';
import type { ContractCode } from './contract-code.ts';
import type { Power } from './contract-powers.ts';
import type { TokenTrade } from './token-trade.ts';

export interface ScanFinding {
  id: string;
  severity: Severity;
  confidence: 'high' | 'medium' | 'low';
  title: string;
  detail: string;
}

/** Everything that was read of a contract; null for what is not known. */
export interface ScanFacts {
  reading: CodeReading;
  proxy: ContractCode['proxy'];
  verified: boolean | null;
  powers: Readonly<Record<Power, readonly string[]>>;
  /** `renounced`: the contract says that it has no owner. `unknown`: it does not say who owns it. */
  ownership: 'owned' | 'renounced' | 'unknown';
  paused: boolean | null;
  trade: TokenTrade | null;
}

const POWERS: Readonly<Record<Power, { severity: Severity; title: string; effect: string }>> = {
  mint: {
    severity: 'MEDIUM',
    title: 'Units can be minted',
    effect: 'make new units, which dilutes what others hold',
  },
  blacklist: { severity: 'MEDIUM', title: 'Holders can be blocked', effect: 'keep a holder from selling' },
  fees: { severity: 'MEDIUM', title: 'Fees can be changed', effect: 'raise what a transfer costs' },
  pause: { severity: 'MEDIUM', title: 'It can be paused', effect: 'stop all transfers' },
  limits: { severity: 'LOW', title: 'Limits can be changed', effect: 'bound how much may be moved' },
  upgrade: {
    severity: 'MEDIUM',
    title: 'The code can be replaced',
    effect: 'replace what the contract does',
  },
};
const HIGH_TAX_PERCENT = 10;
const RUINOUS_TAX_PERCENT = 50;
const SMALL_TAX_PERCENT = 1;

/** The findings that speak against a contract, most severe kinds first. The score consists of nothing else. */
export function findingsOf(facts: ScanFacts): ScanFinding[] {
  return [
    ...ofTrade(facts.trade),
    ...facts.reading.sightings.flatMap(ofSighting).filter(firstOfItsKind),
    ...ofProxy(facts.proxy),
    ...ofPowers(facts),
    ...(facts.paused === true
      ? [
          {
            id: 'paused',
            severity: 'HIGH' as const,
            confidence: 'high' as const,
            title: 'It is paused now',
            detail: 'paused() returns true: the functions that the pause guards do not work now.',
          },
        ]
      : []),
    ...(facts.verified === false
      ? [
          {
            id: 'source-not-verified',
            severity: 'MEDIUM' as const,
            confidence: 'high' as const,
            title: 'Its source is not published on Sourcify',
            detail: 'Without the source, what the code does can only be read from its bytes.',
          },
        ]
      : []),
  ];
}

function ofTrade(trade: TokenTrade | null): ScanFinding[] {
  if (trade === null) return [];
  const said = trade.reason === null ? '' : ` The reason given: ${trade.reason}.`;
  switch (trade.outcome) {
    case 'sale_failed':
      return [
        {
          id: 'honeypot',
          severity: 'CRITICAL',
          confidence: 'high',
          title: 'It could be bought and not sold',
          detail: `A simulated purchase from the pool ${trade.pool} went through, and the sale of half of it failed.${said}`,
        },
      ];
    case 'purchase_failed':
      return [
        {
          id: 'purchase-failed',
          severity: 'HIGH',
          confidence: 'medium',
          title: 'It could not be bought',
          detail: `A simulated purchase from the pool ${trade.pool} failed: trading may be closed.${said}`,
        },
      ];
    case 'nothing_arrived':
      return [
        {
          id: 'nothing-arrived',
          severity: 'CRITICAL',
          confidence: 'high',
          title: 'The bought tokens did not arrive',
          detail: `The pool ${trade.pool} sent the token in a simulated purchase, and the buyer's balance did not grow.`,
        },
      ];
    case 'sold':
      return [...ofTax('buy', trade.buyTaxPercent), ...ofTax('sell', trade.sellTaxPercent)];
  }
}

function ofTax(side: 'buy' | 'sell', percent: number | null): ScanFinding[] {
  if (percent === null || percent === 0) return [];
  const severity =
    percent >= RUINOUS_TAX_PERCENT
      ? 'CRITICAL'
      : percent >= HIGH_TAX_PERCENT
        ? 'HIGH'
        : percent >= SMALL_TAX_PERCENT
          ? 'MEDIUM'
          : 'LOW';
  return [
    {
      id: `${side}-tax`,
      severity,
      confidence: 'high',
      title: `A tax of ${percent} % on ${side === 'buy' ? 'buying' : 'selling'}`,
      detail: `In a simulated ${side === 'buy' ? 'purchase' : 'sale'} ${percent} % of what was sent did not arrive.`,
    },
  ];
}

function ofSighting({ instruction, pc, selector, callerUnchecked, target }: Sighting): ScanFinding[] {
  const where = `at byte ${pc}, ${selector === null ? 'outside the functions of the dispatcher' : `in the function ${selector}`}`;
  const guard = callerUnchecked
    ? 'On a path to it no branch depends on who calls.'
    : 'Each path to it that was walked has a branch that depends on who calls.';
  const made = (id: string, severity: Severity, title: string, detail: string): ScanFinding[] => [
    { id, severity, confidence: target === 'unknown' ? 'low' : 'medium', title, detail },
  ];
  switch (instruction) {
    case 'SELFDESTRUCT':
      return made(
        'selfdestruct',
        callerUnchecked ? 'CRITICAL' : 'MEDIUM',
        callerUnchecked ? 'Anybody may be able to take its Ether by SELFDESTRUCT' : 'It can destroy itself',
        `SELFDESTRUCT ${where}. ${guard}`,
      );
    case 'DELEGATECALL':
      if (target === 'self' || target === 'constant') return [];
      if (target === 'calldata' || target === 'caller') {
        return made(
          'delegatecall',
          callerUnchecked ? 'CRITICAL' : 'MEDIUM',
          callerUnchecked ? 'It may run any code that a caller names' : 'It runs code that some caller names',
          `DELEGATECALL ${where}, to an address from the call's data. ${guard}`,
        );
      }
      return made(
        'delegatecall',
        'MEDIUM',
        'It runs code of another contract as its own',
        `DELEGATECALL ${where}, to an address ${target === 'storage' ? 'that it has stored' : 'whose origin was not found'}. ${guard}`,
      );
    case 'CALLCODE':
      return made(
        'callcode',
        'MEDIUM',
        'It runs code by the retired CALLCODE',
        `CALLCODE ${where}. ${guard}`,
      );
    case 'CREATE2':
      return made(
        'create2',
        'LOW',
        'It makes contracts at foreseeable addresses',
        `CREATE2 ${where}. ${guard}`,
      );
    case 'ORIGIN':
      return made(
        'tx-origin',
        'LOW',
        'It looks at who began the transaction',
        `ORIGIN ${where}. As a check of rights it is open to any contract that the owner calls.`,
      );
  }
}

/** Keeps one finding for each id, the most severe, because a shared routine is on the paths of many functions. */
function firstOfItsKind(each: ScanFinding, index: number, all: readonly ScanFinding[]): boolean {
  const rank = ({ severity }: ScanFinding) => ['CRITICAL', 'HIGH', 'MEDIUM', 'LOW'].indexOf(severity);
  return !all.some(
    (other, at) =>
      other.id === each.id && (rank(other) < rank(each) || (rank(other) === rank(each) && at < index)),
  );
}

function ofProxy(proxy: ContractCode['proxy']): ScanFinding[] {
  // A minimal proxy always leads to the same address.
  if (proxy === null || proxy.kind === 'ERC-1167') return [];
  const by =
    proxy.beacon === null
      ? proxy.admin === null
        ? ''
        : ` Its admin is ${proxy.admin}.`
      : ` The beacon ${proxy.beacon} says where.`;
  return [
    {
      id: 'upgradeable-proxy',
      severity: 'MEDIUM',
      confidence: 'high',
      title: 'The code behind it can be replaced',
      detail: `It is a proxy (${proxy.kind}) and leads to ${proxy.implementation} now.${by} The scanned code may be replaced by other code.`,
    },
  ];
}

function ofPowers({ powers, ownership, proxy }: ScanFacts): ScanFinding[] {
  return (Object.keys(POWERS) as Power[]).flatMap((power): ScanFinding[] => {
    const functions = powers[power];
    if (functions.length === 0 || (power === 'upgrade' && proxy !== null)) return [];
    const { severity, title, effect } = POWERS[power];
    const renounced = ownership === 'renounced';
    return [
      {
        id: `power-${power}`,
        severity: renounced ? 'LOW' : severity,
        confidence: renounced ? 'low' : 'medium',
        title,
        detail: `It has ${functions.slice(0, 5).join(', ')}: whoever may call ${functions.length === 1 ? 'it' : 'them'} can ${effect}.${renounced ? ' owner() says that nobody owns it, so an owner cannot; another role may.' : ''}`,
      },
    ];
  });
}
