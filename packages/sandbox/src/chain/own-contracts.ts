/** Contracts whose published code is in no package used here: written for the sandbox, compiled by `contracts/compile.ts`. */
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

/** The name of each contract, and the address on Base of the contract that it stands for. */
export const OWN_CONTRACTS: Readonly<Record<string, Address>> = {
  ...contractsOn(BASE),
  GasPriceOracle: GAS_PRICE_ORACLE,
};

/** The contracts that every chain has. */
function contractsOn(places: Places): Record<string, Address> {
  return {
    BridgeDiamond: BRIDGE_DIAMOND,
    IdentityRegistry: IDENTITY_REGISTRY,
    SanctionsOracle: places.sanctionsOracle,
    TokenMessenger: TOKEN_MESSENGER,
    WrappedEther: places.weth,
  };
}

/** The content of the JSON file beside a contract's source. */
export interface CompiledContract {
  contract: string;
  compiler: string;
  /** The code on the chain. None of these contracts has a constructor or immutables. */
  runtimeCode: Hex;
}

export function compiledFile(contract: string): string {
  return join(import.meta.dirname, 'contracts', `${contract}.json`);
}

/** Writes the code of the chain's contracts to their addresses. What the contracts store stays as it is. */
export async function placeOwnContracts(node: Node): Promise<void> {
  const contracts = node.places === BASE ? OWN_CONTRACTS : contractsOn(node.places);
  for (const [contract, address] of Object.entries(contracts)) {
    const { runtimeCode }: CompiledContract = JSON.parse(readFileSync(compiledFile(contract), 'utf8'));
    await node.setCode({ address, bytecode: runtimeCode });
  }
}
