/**
 * Compound's own Comet for the tests, compiled from a checkout that the reader has: no file of it is kept here. Its compiler
 * is the release of Solidity that its sources name, as WebAssembly, which only these tests use.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from './forge.ts';

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

/** Whether a folder has what is compiled. */
export function hasComet(folder: string): boolean {
  return CONTRACTS.every((name) => existsSync(join(folder, sourceOf(name))));
}

/** @returns undefined where it is not installed */
export function cometCompiler(): Compiler | undefined {
  const { resolve } = createRequire(import.meta.url);
  try {
    resolve('solc-comet');
  } catch {
    return undefined;
  }
  return createRequire(import.meta.url)('solc-comet');
}

/**
 * Compiles Comet and its extension (about half a minute), and puts the code where the tests read that of others.
 *
 * @param folder a checkout of github.com/compound-finance/comet
 * @throws what the compiler says, when it refuses
 */
export function compileComet(compiler: Compiler, folder: string): void {
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
  return `contracts/${name}.sol`;
}
