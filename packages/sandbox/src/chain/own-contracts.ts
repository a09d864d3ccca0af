/** The contracts whose published code no package carries: written for the sandbox, compiled by `contracts/compile.ts`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Address, Hex } from 'viem';
import {
  BASE,
  BRIDGE_DIAMOND,
  GAS_PRICE_ORACLE,
  IDENTITY_REGISTRY,
  type Places,
  TOKEN_MESSENGER,
} from './addresses.ts';
import type { Node } from './node.ts';

/** Each one's name and the address that what it stands for has on Base. */
export const OWN_CONTRACTS: Readonly<Record<string, Address>> = {
  ...contractsOn(BASE),
  GasPriceOracle: GAS_PRICE_ORACLE,
};

/** Those that every chain has. */
function contractsOn(places: Places): Record<string, Address> {
  return {
    BridgeDiamond: BRIDGE_DIAMOND,
    IdentityRegistry: IDENTITY_REGISTRY,
    SanctionsOracle: places.sanctionsOracle,
    TokenMessenger: TOKEN_MESSENGER,
    WrappedEther: places.weth,
  };
}

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
  const contracts = node.places === BASE ? OWN_CONTRACTS : contractsOn(node.places);
  for (const [contract, address] of Object.entries(contracts)) {
    const { runtimeCode }: CompiledContract = JSON.parse(readFileSync(compiledFile(contract), 'utf8'));
    await node.setCode({ address, bytecode: runtimeCode });
  }
}
