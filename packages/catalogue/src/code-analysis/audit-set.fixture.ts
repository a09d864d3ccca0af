/**
 * Textbook holes and their clean twins, in `audit-set/`, and what the audit finds in them. The samples in `tuned/` were at hand while its
 * rules were written; those in `untuned/` were written before the rules and looked at by none of them. Three folders are of a
 * second round, in other styles: old compilers, several files, libraries, assembly, custom errors. `pools-tuned` and
 * `pools-untuned` are of a third, dealt out in turn before a rule for them was written.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { analyse } from './analyse.ts';
import { readSource } from './compiler.ts';
import type { Finding } from './rules/finding.ts';

const FOLDER = join(import.meta.dirname, 'audit-set');
const HALVES = ['tuned', 'untuned'] as const;
const LATER = ['styles-tuned', 'styles-untuned', 'last-untuned'] as const;
/** The third round: prices of the moment, and sums that wrap in assembly. */
const THIRD = ['pools-tuned', 'pools-untuned'] as const;
export type Half = (typeof HALVES)[number] | (typeof LATER)[number] | (typeof THIRD)[number];
/** A finding on a neighbouring line counts too, because a statement may be broken in two. */
const NEAR_LINES = 1;
const HOLE = /\/\/ !/;

export interface Sample {
  /** The name of the file, which is that of the kind of hole. */
  kind: string;
  weak: boolean;
  name: string;
  /** Text by file. */
  sources: Record<string, string>;
  /** Lines of the holes. */
  marks: { file: string; line: number }[];
}

/** The samples of one half, in the order of their files. */
export function samples(half: Half): Sample[] {
  const prelude = readFileSync(join(FOLDER, 'prelude.sol'), 'utf8');
  const folder = join(FOLDER, half);
  return readdirSync(folder)
    .sort()
    .flatMap((file) => {
      const kind = file.replace(/\.sol$/, '');
      const parts = readFileSync(join(folder, file), 'utf8').split(/^\/\/\/\/ /m);
      return parts.slice(1).map((part) => {
        const [head = '', ...lines] = part.split('\n');
        const [label, ...name] = head.split(': ');
        const sources = filesOf(lines.join('\n'), prelude);
        const marks = Object.entries(sources).flatMap(([file, text]) =>
          text.split('\n').flatMap((line, i) => (HOLE.test(line) ? [{ file, line: i + 1 }] : [])),
        );
        return { kind, weak: label === 'weak', name: name.join(': '), sources, marks };
      });
    });
}

/** The files of a sample: several behind `//= name`, or one with the interfaces of the prelude that it needs. */
function filesOf(body: string, prelude: string): Record<string, string> {
  if (/^\/\/= /m.test(body)) {
    const files = body.split(/^\/\/= /m).slice(1);
    return Object.fromEntries(
      files.map((file) => {
        const [name = '', ...lines] = file.split('\n');
        return [name.trim(), lines.join('\n')];
      }),
    );
  }
  const text = /^pragma solidity/m.test(body) ? body : `pragma solidity ^0.8.20;\n${body}`;
  // Imports and the sample itself bring their own interfaces.
  const needed = prelude.split('\n').filter((line) => {
    const declared = /^interface (\w+)/.exec(line)?.[1];
    return (
      declared !== undefined &&
      new RegExp(`\\b${declared}\\b`).test(text) &&
      !new RegExp(`\\binterface ${declared}\\b`).test(text) &&
      !importsOf(text).test(declared)
    );
  });
  return { 'Sample.sol': `${text}\n${needed.join('\n')}` };
}

/** The interfaces of the prelude that the imports of a text declare already. */
function importsOf(text: string): RegExp {
  return /openzeppelin\/contracts\/token|SafeERC20/.test(text) ? /^IERC20$/ : /^$/;
}

export interface Outcome {
  sample: Sample;
  found: boolean;
  alarms: Finding[];
  compiler: string | null;
  compilerError: string | null;
}

/** A hole counts as found by a finding of MEDIUM or more at its line; a clean sample must have none at all. */
export function judged(sample: Sample): Outcome {
  const { program, compiler, compilerError } = readSource(sample.sources);
  const alarms = analyse(program).filter(({ severity }) => severity !== 'LOW');
  const near = (at: { file: string; line: number }) =>
    sample.marks.some(({ file, line }) => file === at.file && Math.abs(line - at.line) <= NEAR_LINES);
  const found = alarms.some((alarm) => near(alarm) || alarm.related.some(near));
  return { sample, found, alarms, compiler, compilerError };
}

/** The table of the second round, as Markdown. */
export function measureLaterSets(): string {
  return measureAuditSet(LATER);
}

/** The table of the third round, as Markdown. */
export function measureThirdSet(): string {
  return measureAuditSet(THIRD);
}

/** The table of some halves, as Markdown. */
export function measureAuditSet(halves: readonly Half[] = HALVES): string {
  const outcomes = new Map(halves.map((half) => [half, samples(half).map(judged)]));
  const kinds = [
    ...new Set([...outcomes.values()].flatMap((each) => each.map(({ sample }) => sample.kind))),
  ].sort();
  const cell = (half: Half, kind: string | null) => {
    const ofKind = (outcomes.get(half) ?? []).filter(({ sample }) => kind === null || sample.kind === kind);
    const weak = ofKind.filter(({ sample }) => sample.weak);
    const clean = ofKind.filter(({ sample }) => !sample.weak);
    const found = weak.filter((each) => each.found).length;
    return ` ${found}/${weak.length} | ${clean.filter(({ alarms }) => alarms.length > 0).length}/${clean.length} |`;
  };
  const row = (kind: string | null) =>
    `| ${kind ?? 'all'} |${halves.map((half) => cell(half, kind)).join('')}`;
  const wrong = [...outcomes].flatMap(([half, each]) =>
    each.flatMap(({ sample, found, alarms, compiler, compilerError }) => {
      const where = `${half}/${sample.kind}: ${sample.name}`;
      if (compiler === null) return [`- not compiled: ${where}: ${compilerError}`];
      if (sample.weak)
        return found
          ? []
          : [`- missed: ${where} (found: ${alarms.map(({ rule, line }) => `${rule} ${line}`).join(', ')})`];
      return alarms.length === 0
        ? []
        : [`- false alarm: ${where}: ${alarms.map(({ rule, line }) => `${rule} ${line}`).join(', ')}`];
    }),
  );
  return [
    `| kind of hole |${halves.map((half) => ` ${half}: found | ${half}: clean ones flagged |`).join('')}`,
    `| --- |${halves.map(() => ' ---: | ---: |').join('')}`,
    ...kinds.map(row),
    row(null),
    '',
    ...wrong,
    '',
  ].join('\n');
}
