/** How the sandbox speaks to its own Tempo node. */
import { createTestClient, type Hex, http, publicActions, walletActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { tempo } from 'viem/tempo/chains';
import type { SandboxAccount } from '../chain/accounts.ts';
import { PATH_USD } from './addresses.ts';

/** More than any transaction of the sandbox needs, because the node's estimate is too low for Tempo's own contracts. */
const GAS = 5_000_000n;
/** Tempo allows 30. */
const VALID_SECONDS = 25;

/** The node runs on this machine, which may be busy: hundreds of blocks take long then. */
const ANSWERS_WITHIN_MS = 60_000;

export type TempoNode = ReturnType<typeof connect>;

export function connect(url: string) {
  return createTestClient({
    mode: 'anvil',
    chain: { ...tempo, rpcUrls: { default: { http: [url] } } },
    transport: http(url, { retryCount: 0, timeout: ANSWERS_WITHIN_MS }),
    cacheTime: 0,
  })
    .extend(publicActions)
    .extend(walletActions);
}

/**
 * The sender of a transaction with its terms: the fee is paid in pathUSD, of which the account has enough from the
 * start. An expiry replaces the sequence number, so that several senders of one account do not block each other.
 */
export function by({ privateKey }: SandboxAccount) {
  return {
    account: privateKeyToAccount(privateKey),
    feeToken: PATH_USD,
    gas: GAS,
    nonceKey: 'expiring',
    validBefore: Math.floor(Date.now() / 1_000) + VALID_SECONDS,
  } as const;
}

export async function hasCode(node: TempoNode, address: Hex): Promise<boolean> {
  return (await node.getCode({ address })) !== undefined;
}
