/** The question to an analysis and its answer, between the processes that have a part in it. */
import type { Finding } from './rules/finding.ts';

export interface Job {
  /** The text of each file by its name. */
  sources: Readonly<Record<string, string>>;
  remappings: readonly string[];
  /** Look at these contracts alone; null for all. */
  contracts: readonly string[] | null;
}

export interface Analysis {
  outcome: 'analysed';
  /** Gravest first, a bounded number. */
  findings: Finding[];
  /** How many there were. */
  total: number;
  /** Null: no compiler took the source, and the tolerant parser read it. */
  compiler: string | null;
  pragma: string | null;
  /** The pragma asks for a version that is not here, and the newest of its minor compiled it. */
  pragmaReplaced: boolean;
  compilerError: string | null;
  /** The published packages, as `name version`, that stood in for imports that were not sent. */
  packages: string[];
  contracts: { name: string; role: string; file: string }[];
}

/** The messages that the process sends. */
export type FromProgram =
  | Analysis
  | { outcome: 'unreadable'; why: string }
  /** It took more than it may, or ended by itself. */
  | { outcome: 'exhausted'; limit: 'time' | 'memory' | 'crash' };
