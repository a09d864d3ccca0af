/** What a run found, and the ways to print it. */
import type { Comparison } from './rounds.ts';

export type Part =
  | 'a'
  | 'b'
  | 'c'
  | 'd'
  | 'e'
  | 'f'
  | 'g'
  | 'h'
  | 'i'
  | 'j'
  | 'k'
  | 'l'
  | 'm'
  | 'n'
  | 'o'
  | 'p'
  | 'q'
  | 'r'
  | 's'
  | 't'
  | 'u';

export interface ComparedLine extends Comparison {
  part: Part;
  /** What was measured, and under which load. */
  measured: string;
  unit:
    | 'requests/s'
    | 'debits/s'
    | 'payments/s'
    | 'calls/s'
    | 'challenges/s'
    | 'rounds/s'
    | 'rows/s'
    | 'readings/s'
    | 'messages/s'
    | 'ms'
    | 'MB'
    | 'MB/s';
  /** The goal for the ratio; null when there is none. */
  goal: { atLeast: number } | { below: number } | null;
}

export interface MemoryLine {
  process: string;
  rssMb: number;
  /** Proportional set size: shared pages are divided among the processes that share them. */
  pssMb: number;
}

export interface Report {
  machine: Record<string, string>;
  plan: Record<string, number>;
  lines: ComparedLine[];
  memory: MemoryLine[];
  /** Further results of a run, for example that the books balanced after it. */
  notes: string[];
}

const OPPONENTS: Record<Exclude<Part, 'e'>, string> = {
  a: '(a) paid call on credits : a bare route with the same answer',
  b: '(b) the 402 : the same bare route',
  c: '(c) the ledger : one transaction a debit',
  d: '(d) paid call with past transfers : without',
  f: '(f) the 402 with x402 offers : the bare route, @x402/hono, @x402/express',
  g: '(g) who signed a payment : viem',
  h: '(h) a call paid on a chain : @x402/express with the published facilitator',
  i: '(i) MPP, challenges and calls paid by the method evm : mppx on Fastify',
  j: '(j) jobs with past calls : without',
  k: '(k) the paid ping while one audit runs and seven wait : alone',
  l: '(l) paid call while another account is held by somebody else : while none is',
  m: '(m) paid call on credits : a prepaid-credits middleware of the usual kind',
  n: '(n) paid tool call of MCP : the same call over HTTP',
  o: '(o) deposits of the Solana portal, built and confirmed : its node, asked for a simulation and for a transaction',
  p: '(p) devices that report by MQTT, every reading committed before its PUBACK : the same broker alone, which keeps nothing',
  q: '(q) a server with every service : with ping alone',
  r: '(r) messages of a webhook, each stored and noted : the same signed posts by standardwebhooks and undici, nothing stored',
  s: '(s) paid routes of an API that is sold by configuration : the same bytes passed on for nothing, and a server with one route',
  t: '(t) paid calls of which one in a hundred is traced to a collector : the same without traces',
  u: '(u) a shop with a long history : the same with a short one',
};
const ONLY_RATIOS = 'Only the ratios count: the rest belongs to this machine and this hour.';

/** Each row: what, ours, the opponent's, the ratio with its range over the rounds, the goal and whether it is met. */
function rows(lines: readonly ComparedLine[]): string[][] {
  return lines.map((line) => [
    line.measured,
    line.unit,
    figure(line.ours),
    figure(line.opponent),
    line.ratio.toFixed(2),
    `${line.lowest.toFixed(2)} to ${line.highest.toFixed(2)}`,
    goalOf(line),
  ]);
}

const HEAD = ['measured', 'unit', 'Farebox', 'opponent', 'ratio', 'rounds', 'goal'];

function goalOf({ goal, ratio }: ComparedLine): string {
  if (goal === null) return '';
  if ('atLeast' in goal) return `≥ ${goal.atLeast} ${ratio >= goal.atLeast ? 'met' : 'not met'}`;
  return `< ${goal.below} ${ratio < goal.below ? 'met' : 'not met'}`;
}

function figure(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(2);
}

function sections(report: Report): { title: string; lines: ComparedLine[] }[] {
  return Object.entries(OPPONENTS)
    .map(([part, title]) => ({ title, lines: report.lines.filter((line) => line.part === part) }))
    .filter(({ lines }) => lines.length > 0);
}

function memoryRows(report: Report): string[][] {
  const sum = (pick: (line: MemoryLine) => number) =>
    report.memory.reduce((total, line) => total + pick(line), 0);
  return [
    ...report.memory.map((line) => [line.process, line.rssMb.toFixed(0), line.pssMb.toFixed(0)]),
    ['all', sum((line) => line.rssMb).toFixed(0), sum((line) => line.pssMb).toFixed(0)],
  ];
}
const MEMORY_TITLE = '(e) what `npm start` holds after 1,000 calls';
const MEMORY_HEAD = ['process', 'RSS, MB', 'PSS, MB'];

export function asText(report: Report): string {
  const parts = sections(report).map(({ title, lines }) => `${title}\n${aligned([HEAD, ...rows(lines)])}`);
  if (report.memory.length > 0)
    parts.push(`${MEMORY_TITLE}\n${aligned([MEMORY_HEAD, ...memoryRows(report)])}`);
  parts.push([...machineLines(report), ...report.notes, ONLY_RATIOS].join('\n'));
  return `${parts.join('\n\n')}\n`;
}

/** The tables of `docs/figures.md`. */
export function asMarkdown(report: Report): string {
  const table = (head: string[], body: string[][]) =>
    [head, head.map((_, column) => (column === 0 ? '---' : '---:')), ...body]
      .map((cells) => `| ${cells.join(' | ')} |`)
      .join('\n');
  const parts = sections(report).map(({ title, lines }) => `**${title}**\n\n${table(HEAD, rows(lines))}`);
  if (report.memory.length > 0)
    parts.push(`**${MEMORY_TITLE}**\n\n${table(MEMORY_HEAD, memoryRows(report))}`);
  parts.push([...machineLines(report), ...report.notes, ONLY_RATIOS].map((line) => `- ${line}`).join('\n'));
  return `${parts.join('\n\n')}\n`;
}

function machineLines({ machine, plan }: Report): string[] {
  const join = (values: object) =>
    Object.entries(values)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ');
  return [join(machine), join(plan)];
}

function aligned(table: readonly string[][]): string {
  const widths =
    table[0]?.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0))) ?? [];
  return table
    .map((row) =>
      row
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
