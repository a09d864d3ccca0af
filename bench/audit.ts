/**
 * `--only audit --corpus <folder>`: which labelled weaknesses the audit's rules find, and how many false alarms they
 * raise in widely reviewed sources. The folder is SmartBugs Curated as it is published
 * (https://github.com/smartbugs/smartbugs-curated); nothing of it is kept here.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { analyse } from '../packages/catalogue/src/code-analysis/analyse.ts';
import {
  measureAuditSet,
  measureLaterSets,
  measureThirdSet,
} from '../packages/catalogue/src/code-analysis/audit-set.fixture.ts';
import { readSource } from '../packages/catalogue/src/code-analysis/compiler.ts';
import { type FindingClass, RULES } from '../packages/catalogue/src/code-analysis/rules/finding.ts';

/** A finding on a neighbouring line counts too, because labels stand in comments and some lines are broken in two. */
const NEAR_LINES = 1;

/** The classes of the set, their names here, and the share of labels that should be found. */
const CLASSES: Readonly<Record<string, { class: FindingClass; goal: number | null }>> = {
  reentrancy: { class: 'reentrancy', goal: 0.9 },
  unchecked_low_level_calls: { class: 'unchecked-calls', goal: 0.9 },
  bad_randomness: { class: 'randomness', goal: 0.8 },
  time_manipulation: { class: 'time', goal: 0.8 },
  access_control: { class: 'access-control', goal: 0.75 },
  arithmetic: { class: 'arithmetic', goal: null },
  denial_of_service: { class: 'denial-of-service', goal: null },
  front_running: { class: 'front-running', goal: null },
  short_addresses: { class: 'storage', goal: null },
  other: { class: 'storage', goal: null },
};
const GOAL_OF_ALL = 0.85;
const GOAL_OF_PRECISION = 0.7;
/** The goal for files without a known weakness: the share with a finding of MEDIUM or more. */
const GOAL_OF_FALSE_ALARMS = 0.05;

/** solhint's security rules, by the class that they belong to. */
const SOLHINT: Readonly<Record<string, string>> = {
  reentrancy: 'reentrancy',
  'check-send-result': 'unchecked_low_level_calls',
  'avoid-low-level-calls': 'unchecked_low_level_calls',
  'avoid-call-value': 'unchecked_low_level_calls',
  'multiple-sends': 'denial_of_service',
  'not-rely-on-time': 'time_manipulation',
  'not-rely-on-block-hash': 'bad_randomness',
  'avoid-tx-origin': 'access_control',
  'avoid-suicide': 'access_control',
};

interface Labelled {
  name: string;
  path: string;
  vulnerabilities: { lines: number[]; category: string }[];
}
interface Hit {
  category: string;
  lines: number[];
  what: string;
}
interface Tally {
  files: number;
  filesFound: number;
  labels: number;
  found: number;
  reports: number;
  right: number;
  /** Correct findings, counting the hand-judged ones beside the labels. */
  judged: number;
}

const VERDICTS: readonly { file: string; line: number; rule: string; verdict: 'true' | 'false alarm' }[] =
  JSON.parse(readFileSync(join(import.meta.dirname, 'audit-judged.json'), 'utf8'));
/** Findings that the set does not label, each judged by hand as true or false, by `file:line rule`. */
const JUDGED = new Map(
  VERDICTS.map(({ file, line, rule, verdict }) => [`${file}:${line} ${rule}`, verdict === 'true']),
);

/**
 * @param corpus the folder that holds `vulnerabilities.json` and `dataset/`
 * @param clean folders of sources without a known weakness
 * @param solhint a folder in which solhint is installed; null without
 * @returns the tables, as Markdown
 */
export function measureAudit(corpus: string, clean: readonly string[], solhint: string | null): string {
  const file = join(corpus, 'vulnerabilities.json');
  const ownSet = [
    '**Textbook holes, tuned and untuned**',
    '',
    measureAuditSet(),
    measureLaterSets(),
    measureThirdSet(),
  ].join('\n');
  if (!existsSync(file)) {
    return `${ownSet}\n(audit) not measured: there is no ${file}. It is SmartBugs Curated, https://github.com/smartbugs/smartbugs-curated.\n`;
  }
  const labelled: Labelled[] = JSON.parse(readFileSync(file, 'utf8'));
  const unjudged: string[] = [];
  const ours = tallied(corpus, labelled, findingsOf, unjudged);
  const theirs = solhint === null ? null : tallied(corpus, labelled, solhintOf(solhint), []);
  const rows = Object.entries(CLASSES).map(([category, { goal }]) =>
    row(category, ours.get(category), theirs?.get(category), goal),
  );
  const all = [...ours.values()].reduce(
    (sum, { labels, found }) => ({ labels: sum.labels + labels, found: sum.found + found }),
    { labels: 0, found: 0 },
  );
  const share = all.found / all.labels;
  const theirAll =
    theirs === null ? '' : `${[...theirs.values()].reduce((sum, { found }) => sum + found, 0)}`;
  return [
    `**Labels found in SmartBugs Curated (${labelled.length} files)**`,
    '',
    '| class | labels found | goal | files with the class found | precision | with the judged list | solhint: labels, precision |',
    '| --- | ---: | ---: | ---: | ---: | ---: | ---: |',
    ...rows,
    `| all | ${all.found}/${all.labels} = ${share.toFixed(2)} | ≥ ${GOAL_OF_ALL} ${share >= GOAL_OF_ALL ? 'met' : 'not met'} |  |  |  | ${theirAll} |`,
    '',
    ...(unjudged.length === 0
      ? []
      : [
          'Findings of the class in its own files that nobody has labelled or judged:',
          '',
          ...unjudged.map((each) => `- ${each}`),
          '',
        ]),
    ...falseAlarms(clean),
    '',
    ownSet,
  ].join('\n');
}

function tallied(
  corpus: string,
  labelled: readonly Labelled[],
  find: (text: string) => Hit[],
  unjudged: string[],
): Map<string, Tally> {
  const tallies = new Map<string, Tally>();
  for (const { path, vulnerabilities } of labelled) {
    const hits = find(readFileSync(join(corpus, path), 'utf8'));
    for (const category of new Set(vulnerabilities.map((each) => each.category))) {
      const labels = vulnerabilities.filter((each) => each.category === category);
      const ofClass = hits.filter((hit) => hit.category === category);
      const near = (hit: Hit, label: Labelled['vulnerabilities'][number]) =>
        hit.lines.some((line) => label.lines.some((other) => Math.abs(line - other) <= NEAR_LINES));
      const tally = tallies.get(category) ?? {
        files: 0,
        filesFound: 0,
        labels: 0,
        found: 0,
        reports: 0,
        right: 0,
        judged: 0,
      };
      tallies.set(category, tally);
      tally.files += 1;
      tally.filesFound += ofClass.length > 0 ? 1 : 0;
      tally.labels += labels.length;
      tally.found += labels.filter((label) => ofClass.some((hit) => near(hit, label))).length;
      for (const hit of ofClass) {
        tally.reports += 1;
        const short = `${path.replace(/^dataset\//, '')}:${hit.lines[0]} ${hit.what}`;
        if (labels.some((label) => near(hit, label))) tally.right += 1;
        else if (JUDGED.get(short) === true) tally.judged += 1;
        else if (!JUDGED.has(short)) unjudged.push(short);
      }
    }
  }
  return tallies;
}

function row(
  category: string,
  ours: Tally | undefined,
  theirs: Tally | undefined,
  goal: number | null,
): string {
  if (ours === undefined) return `| ${category} | not in the set |  |  |  |  |  |`;
  const share = ours.found / ours.labels;
  const precision = ours.right / ours.reports;
  const judged = (ours.right + ours.judged) / ours.reports;
  const ratio = (part: number, whole: number) => `${part}/${whole} = ${(part / whole).toFixed(2)}`;
  const solhint =
    theirs === undefined
      ? ''
      : `${ratio(theirs.found, theirs.labels)}, ${theirs.reports === 0 ? 'no report' : (theirs.right / theirs.reports).toFixed(2)}`;
  return `| ${category} | ${ratio(ours.found, ours.labels)} | ${goal === null ? '' : `≥ ${goal} ${share >= goal ? 'met' : 'not met'}`} | ${ours.filesFound}/${ours.files} | ${ratio(ours.right, ours.reports)}${goal === null ? '' : precision >= GOAL_OF_PRECISION ? ' met' : judged >= GOAL_OF_PRECISION ? '' : ' not met'} | ${judged.toFixed(2)} | ${solhint} |`;
}

function findingsOf(text: string): Hit[] {
  return analyse(readSource({ 'Contract.sol': text }).program).flatMap((each) =>
    Object.entries(CLASSES)
      .filter(([, value]) => value.class === RULES[each.rule].class)
      .map(([category]) => ({
        category,
        lines: [each.line, ...each.related.map(({ line }) => line)],
        what: each.rule,
      })),
  );
}

/** The published linter on the same text, run as its own program. */
function solhintOf(folder: string): (text: string) => Hit[] {
  const solhint: {
    processStr(text: string, config: object): { reports: { line: number; ruleId: string }[] };
  } = createRequire(join(folder, 'package.json'))('solhint/lib/index');
  const rules = Object.fromEntries(Object.keys(SOLHINT).map((rule) => [rule, 'error']));
  return (text) =>
    solhint.processStr(text, { rules }).reports.flatMap(({ line, ruleId }) => {
      const category = SOLHINT[ruleId];
      return category === undefined ? [] : [{ category, lines: [line], what: ruleId }];
    });
}

function falseAlarms(folders: readonly string[]): string[] {
  if (folders.length === 0) return [];
  const lines: string[] = [];
  let files = 0;
  let flagged = 0;
  for (const folder of folders) {
    // Compiled output has folders with the names of source files.
    const all = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.sol'))
      .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
      .filter((name) => !/(^|\/)(test|mocks?|node_modules)\//.test(name));
    const alarms = all.filter((name) => {
      const sources = closure(folder, name);
      return analyse(readSource(sources).program).some(
        ({ file, severity }) => file === name && severity !== 'LOW',
      );
    });
    files += all.length;
    flagged += alarms.length;
    lines.push(
      `| ${folder.replace(/^.*node_modules\//, '')} | ${all.length} | ${alarms.length} | ${alarms.join(', ')} |`,
    );
  }
  const share = flagged / files;
  return [
    '**Files without a known weakness that have a finding of MEDIUM or more**',
    '',
    '| sources | files | flagged | which |',
    '| --- | ---: | ---: | --- |',
    ...lines,
    `| all | ${files} | ${flagged} = ${(100 * share).toFixed(1)} % | ≤ ${100 * GOAL_OF_FALSE_ALARMS} % ${share <= GOAL_OF_FALSE_ALARMS ? 'met' : 'not met'} |`,
  ];
}

/** A file with what it imports from its own folder. */
function closure(folder: string, name: string): Record<string, string> {
  const sources: Record<string, string> = {};
  const add = (path: string): void => {
    const key = relative(folder, path);
    if (key in sources || key.startsWith('..') || !existsSync(path)) return;
    const text = readFileSync(path, 'utf8');
    sources[key] = text;
    for (const [, imported] of text.matchAll(/import\s+(?:[^'"]*from\s+)?["']([^'"]+)["']/g))
      add(join(dirname(path), imported ?? ''));
  };
  add(join(folder, name));
  return sources;
}
