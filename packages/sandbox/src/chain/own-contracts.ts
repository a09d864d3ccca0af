/** The contracts whose published code no package carries: written for the sandbox, compiled by `contracts/compile.ts`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Address, Hex } from 'viem';
import {
  BRIDGE_DIAMOND,
  GAS_PRICE_ORACLE,
  IDENTITY_REGISTRY,
  SANCTIONS_ORACLE,
  TOKEN_MESSENGER,
  WETH,
} from './addresses.ts';
import type { Node } from './node.ts';

/** Each one's name and the address that what it stands for has on Base. */
export const OWN_CONTRACTS: Readonly<Record<string, Address>> = {
  BridgeDiamond: BRIDGE_DIAMOND,
  GasPriceOracle: GAS_PRICE_ORACLE,
  IdentityRegistry: IDENTITY_REGISTRY,
  SanctionsOracle: SANCTIONS_ORACLE,
  TokenMessenger: TOKEN_MESSENGER,
  WrappedEther: WETH,
};

/** What lies beside a contract's source. */
export interface CompiledContract {
  contract: string;
  compiler: string;
  /** Code as it lies on the chain. None of these contracts has a constructor or immutables. */
  runtimeCode: Hex;
}

export function compiledFile(contract: string): string {
  return join(import.meta.dirname, 'contracts', `${contract}.json`);
}

/** Puts all of them in their places. What they store stays as it is. */
export async function placeOwnContracts(node: Node): Promise<void> {
  for (const [contract, address] of Object.entries(OWN_CONTRACTS)) {
    const { runtimeCode }: CompiledContract = JSON.parse(readFileSync(compiledFile(contract), 'utf8'));
    await node.setCode({ address, bytecode: runtimeCode });
  }
}
