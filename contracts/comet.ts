/**
 * Compound's own Comet for the tests, compiled from the copy in `contracts/comet/`. Its compiler is the release of Solidity
 * that its sources name, as WebAssembly, which only these tests use.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from './forge.ts';

/** Its sources, as Compound publishes them: `contracts/NOTICE.md` says from where and on which terms. */
export const COMET = join(ROOT, 'contracts/comet');
const CONTRACTS = ['Comet', 'CometExt'];

/** Compound's own settings (hardhat.config.ts of its repository): without them the contract is larger than a chain takes. */
const SETTINGS = {
  viaIR: true,
  optimizer: {
    enabled: true,
    runs: 1,
    details: {
      yulDetails: {
        optimizerSteps:
          'dhfoDgvulfnTUtnIf [xa[r]scLM cCTUtTOntnfDIul Lcul Vcul [j] Tpeul xa[rul] xa[r]cL gvif CTUca[r]LsTOtfDnca[r]Iulc] jmul[jul] VcTOcul jmul',
      },
    },
  },
  outputSelection: { '*': { '*': ['evm.bytecode.object', 'evm.bytecode.linkReferences'] } },
};

interface Compiler {
  compile(question: string, callbacks: { import: (path: string) => object }): string;
}

interface Answer {
  errors?: { severity: string; formattedMessage: string }[];
  contracts?: Record<string, Record<string, { evm: { bytecode: object } }>>;
}

/** @returns undefined where it is not installed */
export function cometCompiler(name = 'solc-comet'): Compiler | undefined {
  const load = createRequire(import.meta.url);
  try {
    load.resolve(name);
  } catch {
    return undefined;
  }
  return load(name);
}

/**
 * Compiles Comet and its extension (about half a minute), and puts the code where the tests read that of others.
 *
 * @param folder with its sources
 * @throws what the compiler says, when it refuses
 */
export function compileComet(compiler: Compiler, folder = COMET): void {
  const read = (path: string) => readFileSync(join(folder, path), 'utf8');
  const sources = Object.fromEntries(
    CONTRACTS.map((name) => [sourceOf(name), { content: read(sourceOf(name)) }]),
  );
  const question = JSON.stringify({ language: 'Solidity', sources, settings: SETTINGS });
  const answer: Answer = JSON.parse(
    compiler.compile(question, { import: (path) => ({ contents: read(path) }) }),
  );
  const refused = answer.errors?.find(({ severity }) => severity === 'error');
  if (refused !== undefined) throw new Error(refused.formattedMessage);
  for (const name of CONTRACTS) {
    const code = answer.contracts?.[sourceOf(name)]?.[name]?.evm.bytecode;
    const to = join(ROOT, 'contracts/out', `${name}.sol`);
    mkdirSync(to, { recursive: true });
    writeFileSync(join(to, `${name}.json`), JSON.stringify({ bytecode: code }));
  }
}

function sourceOf(name: string): string {
  return `${name}.sol`;
}
