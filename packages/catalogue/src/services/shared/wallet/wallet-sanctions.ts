import { noAnswer } from '@farebox/core/words/failure';
import { type Address, BaseError, parseAbi } from 'viem';
import type { EvmChain } from '../../../upstreams/adapters/evm.ts';
import type { EvmChainName } from '../../../upstreams/adapters/evm-chains.ts';

const abi = parseAbi(['function isSanctioned(address account) view returns (bool)']);
const ORACLE: Address = '0x40C57923924B5c5c5455c48D93317139ADDaC8fb';

/** The Chainalysis oracle for sanctions. https://go.chainalysis.com/chainalysis-oracle-docs.html */
const SANCTIONS_ORACLES: Readonly<Record<EvmChainName, Address>> = {
  ethereum: ORACLE,
  base: '0x3A91A31cB3dC49b4db9Ce721F50a9D076c8D739B',
  polygon: ORACLE,
  arbitrum: ORACLE,
  optimism: ORACLE,
  bsc: ORACLE,
};

/**
 * Whether the oracle on this chain lists an address as sanctioned (OFAC, EU, UN).
 *
 * @returns null where there is no oracle that answers: nothing is known then
 * @throws UpstreamUnavailable when the chain cannot be reached
 */
export async function isSanctioned(chain: EvmChain, account: Address): Promise<boolean | null> {
  try {
    return await chain.client.readContract({
      address: SANCTIONS_ORACLES[chain.name],
      abi,
      functionName: 'isSanctioned',
      args: [account],
    });
  } catch (error) {
    // Without code at the address the call has no result to decode.
    if (error instanceof BaseError) return null;
    throw error;
  }
}

/** Whom a transaction goes to or comes from, and how a refusal of theirs is told. */
export interface Party {
  address: Address;
  /** The input that named them. */
  field: string;
  code: 'RECIPIENT_SANCTIONED' | 'SENDER_SANCTIONED' | 'SPENDER_SANCTIONED';
}

/**
 * Refuses a transaction with a party that the oracle on its chain lists.
 *
 * @param parties the first that is listed is told
 * @returns false where no oracle answers
 * @throws noAnswer with the party's code
 */
export async function refuseListed(chain: EvmChain, parties: readonly Party[]): Promise<boolean> {
  const listed = await Promise.all(parties.map(({ address }) => isSanctioned(chain, address)));
  const hit = parties[listed.indexOf(true)];
  if (hit === undefined) return !listed.includes(null);
  const message = `${hit.address} is on a sanctions list, by the oracle on ${chain.name}.`;
  throw noAnswer(hit.code, message, hit.field);
}
