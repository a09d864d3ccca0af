import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, it } from 'node:test';
import { type AnalysisResult, createCodeAnalyser, type Limits } from './analyser.ts';
import type { Job } from './job.ts';

const LIMITS: Limits = { cpuMs: 60_000, memoryBytes: 1_000_000_000, waiting: 2 };
const never = new AbortController().signal;
const job = (source: string): Job => ({ sources: { 'C.sol': source }, remappings: [], contracts: null });
const plain = (name: string) =>
  job(`pragma solidity ^0.8.0;\ncontract ${name} { address a; function f() public { a.call(""); } }`);
const outcomeOf = (result: AnalysisResult) =>
  result.outcome === 'exhausted' ? `${result.outcome} ${result.limit}` : result.outcome;

describe('an analysis in a process of its own', () => {
  it('finds what there is, and knows the same source again without a process', async () => {
    const analyser = createCodeAnalyser(LIMITS);
    const first = await analyser.analyse(plain('A'), never);
    assert(first.outcome === 'analysed');
    assert.deepEqual(
      first.findings.map(({ rule, line }) => [rule, line]),
      [['unchecked-call', 2]],
    );
    assert.equal(first.compiler, '0.8.37');
    assert.equal(await analyser.analyse(plain('A'), never), first);
  });

  it('costs a hostile source one process, and the next source is read', async () => {
    const analyser = createCodeAnalyser(LIMITS);
    const hostile: Record<string, string> = {
      'nested brackets': `contract A { uint x = ${'('.repeat(20_000)}1${')'.repeat(20_000)}; }`,
      'a sum without end': `contract A { function f() public pure returns (uint) { return ${'1+'.repeat(50_000)}1; } }`,
    };
    for (const [what, source] of Object.entries(hostile))
      assert.equal(outcomeOf(await analyser.analyse(job(source), never)), 'exhausted crash', what);
    for (const source of [
      'contract A {'.repeat(20_000),
      '\0',
      `/*${'/*'.repeat(50_000)}`,
      'import "/etc/passwd";',
    ])
      assert.equal(outcomeOf(await analyser.analyse(job(source), never)), 'unreadable', source.slice(0, 30));
    assert.equal(outcomeOf(await analyser.analyse(plain('A'), never)), 'analysed');
  });

  it('ends what takes more time or more memory than it may', async () => {
    const hurried = createCodeAnalyser({ ...LIMITS, cpuMs: 100 });
    assert.equal(outcomeOf(await hurried.analyse(plain('A'), never)), 'exhausted time');
    // Less than the compiler itself needs.
    const cramped = createCodeAnalyser({ ...LIMITS, memoryBytes: 70_000_000 });
    assert.equal(outcomeOf(await cramped.analyse(plain('A'), never)), 'exhausted memory');
  });

  it('is started by another thread: starting a process holds whoever starts it', async () => {
    let startedHere = 0;
    const count = () => {
      startedHere += 1;
    };
    // Node tells each thread of the processes that it starts itself.
    subscribe('child_process', count);
    const analyser = createCodeAnalyser(LIMITS);
    const results = await Promise.all(['A', 'B'].map((name) => analyser.analyse(plain(name), never)));
    unsubscribe('child_process', count);
    assert.deepEqual(results.map(outcomeOf), ['analysed', 'analysed']);
    assert.equal(startedHere, 0);
  });

  it('runs one at a time, lets some wait, and turns the rest away', async () => {
    const analyser = createCodeAnalyser(LIMITS);
    const results = await Promise.all(
      ['A', 'B', 'C', 'D'].map((name) => analyser.analyse(plain(name), never)),
    );
    assert.deepEqual(results.map(outcomeOf), ['analysed', 'analysed', 'analysed', 'busy']);
  });

  it('stops for a caller who does not wait any more, running or waiting', async () => {
    const analyser = createCodeAnalyser(LIMITS);
    const gone = new AbortController();
    const running = analyser.analyse(plain('A'), gone.signal);
    const waiting = analyser.analyse(plain('B'), gone.signal);
    const patient = analyser.analyse(plain('C'), never);
    const refused = Promise.all([assert.rejects(running, /gone/), assert.rejects(waiting, /gone/)]);
    gone.abort(new Error('gone'));
    await refused;
    assert.equal(outcomeOf(await patient), 'analysed');
  });
});
