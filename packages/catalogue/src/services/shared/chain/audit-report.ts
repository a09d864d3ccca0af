/**
 * Turns the findings of an analysis into what a caller reads: texts, lines of the source, and a score with its parts.
 */
import {
  type Finding,
  type FindingClass,
  RULES,
  SEVERITIES,
  type Severity,
} from '../../../code-analysis/rules/finding.ts';

/**
 * The points deducted for each finding, and the most that findings of one severity can cost. A finding of low
 * confidence costs half.
 */
export const POINTS: Readonly<Record<Severity, { each: number; most: number }>> = {
  CRITICAL: { each: 40, most: 80 },
  HIGH: { each: 20, most: 60 },
  MEDIUM: { each: 8, most: 32 },
  LOW: { each: 1, most: 8 },
};
const MAX_SNIPPET_CHARACTERS = 200;

export interface ReportedFinding {
  id: string;
  rule: string;
  class: FindingClass;
  swc: string | null;
  severity: Severity;
  confidence: 'high' | 'medium' | 'low';
  title: string;
  file: string | null;
  line: number | null;
  endLine: number | null;
  related: { file: string; line: number; what: string }[];
  contract: string | null;
  function: string | null;
  snippet: string | null;
  description: string;
  remediation: string;
}

export interface ScorePart {
  severity: Severity;
  count: number;
  pointsOff: number;
}

/** @param sources the text of each file, for the lines that findings show */
export function reported(
  findings: readonly Finding[],
  sources: Readonly<Record<string, string>>,
): ReportedFinding[] {
  const lines = new Map<string, string[]>();
  const lineOf = (file: string, line: number) => {
    const known = lines.get(file) ?? (sources[file] ?? '').split(/\r\n|\n|\r/);
    lines.set(file, known);
    return printable((known[line - 1] ?? '').trim().slice(0, MAX_SNIPPET_CHARACTERS));
  };
  return findings.map((each, i) => {
    const rule = RULES[each.rule];
    return {
      id: `F${i + 1}`,
      rule: each.rule,
      class: rule.class,
      swc: rule.swc,
      severity: each.severity,
      confidence: each.confidence,
      title: rule.title,
      file: printable(each.file),
      line: each.line,
      endLine: each.endLine,
      related: each.related
        .slice(0, 12)
        .map(({ file, line, what }) => ({ file: printable(file), line, what })),
      contract: each.contract,
      function: each.routine,
      snippet: lineOf(each.file, each.line),
      description: `${each.detail} ${rule.why}`,
      remediation: rule.remedy,
    };
  });
}

/** 100 less the points of each severity, never below 0. */
export function scored(findings: readonly { severity: Severity; confidence: string }[]): {
  score: number;
  parts: ScorePart[];
} {
  const parts = SEVERITIES.map((severity) => {
    const those = findings.filter((each) => each.severity === severity);
    const { each, most } = POINTS[severity];
    const points = those.reduce((sum, { confidence }) => sum + (confidence === 'low' ? each / 2 : each), 0);
    return { severity, count: those.length, pointsOff: Math.min(most, points) };
  });
  return { score: Math.max(0, 100 - parts.reduce((sum, { pointsOff }) => sum + pointsOff, 0)), parts };
}

export function counted(findings: readonly { severity: Severity }[]) {
  const count = (severity: Severity) => findings.filter((each) => each.severity === severity).length;
  return { critical: count('CRITICAL'), high: count('HIGH'), medium: count('MEDIUM'), low: count('LOW') };
}

/** Text without control characters, which source may contain and a database may refuse. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cs}]/gu, '\u{fffd}');
}
