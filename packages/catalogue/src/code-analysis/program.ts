/**
 * The process that reads one piece of source and ends. What a compiler does with hostile source happens here and nowhere
 * else: a thread of its own watches its memory, which no limit of the
 * engine does for WebAssembly, and the time that it computes, which a busy machine does not lengthen.
 */
import { setPriority } from 'node:os';
import { Worker } from 'node:worker_threads';
import { analyse, MAX_FINDINGS } from './analyse.ts';
import { readSource, UnreadableSource } from './compiler.ts';
import type { FromProgram, Job } from './job.ts';

/** Behind whatever else wants the processor, and yet not so far that a busy machine never lets it finish. */
const LOW_PRIORITY = 5;
/** Runs beside the compiler, which never lets go of its own thread. */
const WATCH = `
  const { workerData } = require('node:worker_threads');
  setInterval(() => {
    const { user, system } = process.cpuUsage();
    const over = process.memoryUsage.rss() > workerData.maxBytes ? 'memory' : (user + system) / 1_000 > workerData.maxCpuMs ? 'time' : null;
    if (over === null) return;
    require('node:fs').writeSync(2, 'out of ' + over);
    process.kill(process.pid, 'SIGKILL');
  }, 20);
`;

const [maxBytes, maxCpuMs] = process.argv.slice(2).map(Number);
const watch = new Worker(WATCH, { eval: true, workerData: { maxBytes, maxCpuMs } });
watch.unref();
try {
  setPriority(LOW_PRIORITY);
} catch {
  // Where the system does not allow it, it runs like everything else.
}

process.on('disconnect', () => process.exit(1));
process.once('message', (job: Job) => {
  process.send?.(work(job), undefined, undefined, () => process.exit(0));
});

function work(job: Job): FromProgram {
  try {
    const read = readSource(job.sources, job.remappings);
    const only = job.contracts === null ? undefined : new Set(job.contracts);
    const findings = analyse(read.program, only);
    return {
      outcome: 'analysed',
      findings: findings.slice(0, MAX_FINDINGS),
      total: findings.length,
      compiler: read.compiler,
      pragma: read.pragma,
      pragmaReplaced: read.pragmaReplaced,
      compilerError: read.compilerError,
      packages: read.packages,
      contracts: read.program.contracts
        .filter(({ place }) => !read.program.borrowed.has(place.file))
        .map(({ name, role, place }) => ({ name, role, file: place.file }))
        .slice(0, 500),
    };
  } catch (error) {
    if (error instanceof UnreadableSource) return { outcome: 'unreadable', why: error.message };
    return { outcome: 'exhausted', limit: 'crash' };
  }
}
