/** Alarms and the dashboard watch metrics that there are, each alarm has a line that says what to do, and fires by its fault. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { load } from 'js-yaml';

const ROOT = join(import.meta.dirname, '../../../..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const metrics = read('docs/metrics.md');

interface Rule {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; runbook: string };
}
// biome-ignore lint/suspicious/noExplicitAny: files of this repository are read as what they are
const yaml = (path: string): any => load(read(path));
const rules: Rule[] = yaml('ops/prometheus/alerts.yaml').groups.flatMap(
  ({ rules: each }: { rules: Rule[] }) => each,
);

test('each alarm has its line in the runbook, in the same words', () => {
  const section = metrics.split('\n### Alarms\n')[1]?.split('\n### ')[0] ?? '';
  const lines = [...section.matchAll(/^\| `(\w+)` \| (\w+) \| (.*?) \| (.{20,}) \|$/gm)];
  assert.deepEqual(
    lines.map(([, name, severity, summary]) => [name, severity, summary]),
    rules.map(({ alert, labels, annotations }) => [alert, labels.severity, annotations.summary]),
  );
  assert(rules.every(({ annotations }) => annotations.runbook === 'docs/metrics.md#alarms'));
});

test('alarms and dashboard ask for metrics and labels that the server has', () => {
  const listed = new Map(
    [...metrics.matchAll(/^\| `(farebox_\w+)` \| (.*?) \|/gm)].map(([, name = '', labels = '']) => [
      name,
      [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label),
    ]),
  );
  const { panels } = JSON.parse(read('ops/grafana/farebox.json'));
  const shown: string[] = panels.flatMap(({ targets }: { targets: { expr: string }[] }) =>
    targets.map(({ expr }) => expr),
  );
  for (const expr of [...rules.map((rule) => rule.expr), ...shown])
    for (const [, name = '', matchers = ''] of expr.matchAll(/(farebox_\w+?)(?:_bucket)?\b(?:\{(.*?)\})?/g)) {
      const labels = listed.get(name);
      assert(labels !== undefined, `${name} in ${expr}`);
      for (const [, label] of matchers.matchAll(/(\w+)=/g))
        assert(labels.includes(label), `${label} in ${expr}`);
    }
});

test('each alarm is tried with its fault and without it', () => {
  const { tests } = yaml('ops/prometheus/alerts.test.yaml');
  assert.deepEqual(
    tests.map(({ name }: { name: string }) => name),
    rules.flatMap(({ alert }) => [`${alert}, the fault`, `${alert}, no fault`]),
  );
});

const hasPromtool = spawnSync('promtool', ['--version']).error === undefined;
test('Prometheus takes the rules, and its own tests of them pass', {
  skip: hasPromtool ? false : 'promtool is not installed',
}, () => {
  const run = (...args: string[]) => spawnSync('promtool', args, { cwd: ROOT, encoding: 'utf8' });
  for (const { status, stdout, stderr } of [
    run('check', 'rules', 'ops/prometheus/alerts.yaml'),
    run('test', 'rules', 'ops/prometheus/alerts.test.yaml'),
  ])
    assert.equal(status, 0, stdout + stderr);
});
