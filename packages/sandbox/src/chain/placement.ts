/** Puts published contracts at the addresses that they have on the real chains. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Address, concatHex, getAddress, type Hex, isHex } from 'viem';
import { BUILDERS } from './accounts.ts';
import { type Node, transact } from './node.ts';

const require = createRequire(import.meta.url);
const deployer = BUILDERS.deployer.address;
/** More gas than any constructor here takes, and less than a block holds. */
const CONSTRUCTOR_GAS = 16_000_000n;

/**
 * The creation code that a package publishes in a Hardhat artifact.
 *
 * @param libraries addresses of the libraries that the code calls, by name
 */
export function publishedCode(artifact: string, libraries: Readonly<Record<string, Address>> = {}): Hex {
  const {
    bytecode,
    linkReferences,
  }: {
    bytecode: string;
    linkReferences: Record<string, Record<string, { start: number; length: number }[]>>;
  } = JSON.parse(readFileSync(require.resolve(artifact), 'utf8'));
  let code = bytecode;
  for (const [name, places] of Object.values(linkReferences).flatMap((file) => Object.entries(file))) {
    for (const { start, length } of places) {
      const from = 2 + 2 * start;
      code = code.slice(0, from) + (libraries[name] ?? '').slice(2) + code.slice(from + 2 * length);
    }
  }
  if (!isHex(code)) throw new Error(`${artifact} needs a library that was not given`);
  return code;
}

/** Deploys to an address that nobody has to know beforehand. */
export async function deploy(node: Node, creationCode: Hex): Promise<Address> {
  const { contractAddress } = await transact(node, { from: deployer, data: creationCode });
  if (!contractAddress) throw new Error('a deployment gave no address');
  return getAddress(contractAddress);
}

/**
 * Puts a contract at an address as if its creation had happened there: the constructor runs in place, so that what it
 * stores lies in the contract's storage and what it makes immutable (its own address, the chain id) is right.
 *
 * @param creationCode with the constructor's arguments
 */
export async function placeAt(node: Node, address: Address, ...creationCode: Hex[]): Promise<void> {
  await node.setCode({ address, bytecode: concatHex(creationCode) });
  const { data: runtimeCode } = await node.call({ account: deployer, to: address, gas: CONSTRUCTOR_GAS });
  if (runtimeCode === undefined) throw new Error(`the constructor at ${address} gave no code`);
  await transact(node, { from: deployer, to: address, gas: CONSTRUCTOR_GAS });
  await node.setCode({ address, bytecode: runtimeCode });
  // A new contract's nonce is 1 (EIP-161). With it, the next contract that this one creates gets its address on the real chain.
  await node.setNonce({ address, nonce: 1 });
}
