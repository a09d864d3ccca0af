/**
 * The sandbox's own contracts, from source to code: `node compile.ts` writes each one's JSON beside its source. Only
 * a developer who changed a contract runs it; the sandbox reads the JSON and needs no compiler.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type CompiledContract, compiledFile, OWN_CONTRACTS } from '../own-contracts.ts';

interface Output {
  errors?: { formattedMessage: string }[];
  contracts: Record<string, Record<string, { evm: { deployedBytecode: { object: string } } }>>;
}

/** Compiles all of them (about two seconds). Any warning is an error. */
export function compileContracts(): CompiledContract[] {
  const solc: { compile(input: string): string; version(): string } = createRequire(import.meta.url)('solc');
  const files = readdirSync(import.meta.dirname).filter((file) => file.endsWith('.sol'));
  const input = {
    language: 'Solidity',
    sources: Object.fromEntries(
      files.map((file) => [file, { content: readFileSync(join(import.meta.dirname, file), 'utf8') }]),
    ),
    settings: {
      evmVersion: 'cancun',
      optimizer: { enabled: true, runs: 200 },
      // Without the hash of sources and settings, the code changes only when the program does.
      metadata: { bytecodeHash: 'none', appendCBOR: false },
      outputSelection: { '*': { '*': ['evm.deployedBytecode.object'] } },
    },
  };
  const output: Output = JSON.parse(solc.compile(JSON.stringify(input)));
  if (output.errors !== undefined)
    throw new Error(output.errors.map((each) => each.formattedMessage).join('\n'));
  return Object.keys(OWN_CONTRACTS).map((contract) => {
    const compiled = output.contracts[`${contract}.sol`]?.[contract];
    if (compiled === undefined) throw new Error(`no contract ${contract} in ${contract}.sol`);
    return {
      contract,
      compiler: solc.version(),
      runtimeCode: `0x${compiled.evm.deployedBytecode.object}`,
    };
  });
}

if (process.argv[1] === import.meta.filename) {
  for (const compiled of compileContracts())
    writeFileSync(compiledFile(compiled.contract), `${JSON.stringify(compiled, null, 2)}\n`);
}
