/**
 * How a wallet pays by MPP: challenges answered by one signed transfer of USDC each, which only the server sends. What may be signed
 * is decided here; the reference client signs it. https://paymentauth.org
 */
import { randomUUID } from 'node:crypto';
import type { PrivateKeyAccount } from 'viem/accounts';
import { z } from 'zod';
import type { Quote } from './quote.ts';
import { NETWORKS, type NetworkName } from './settings.ts';
import { isUsdc } from './usdc.ts';

const REQUIRED_META = 'org.paymentauth/payment-required';
const CREDENTIAL_META = 'org.paymentauth/credential';
/** Bounds of a credential's life, as for x402: long enough to be sent again after a lost answer, and no longer than an hour. */
const MIN_VALID_MS = 10_000;
const MAX_VALID_MS = 3_600_000;
/** The highest fee of a transfer on Tempo: it costs some 0.0001 USD, which the limits do not count. */
const MAX_TEMPO_FEE_MICROS = 10_000n;
/** The price of gas on Tempo is in units of which a micro-USD has a million millions. */
const TEMPO_FEE_UNITS = 1_000_000_000_000n;
const NODE_TIMEOUT_MS = 10_000;

const challenge = z.looseObject({
  id: z.string().min(1).max(200),
  realm: z.string().min(1).max(300),
  method: z.enum(['evm', 'tempo']),
  intent: z.literal('charge'),
  expires: z.iso.datetime({ offset: true }),
  request: z.looseObject({
    amount: z.string().regex(/^\d{1,15}$/),
    currency: z.string(),
    recipient: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
    methodDetails: z.looseObject({
      chainId: z.int(),
      credentialTypes: z.array(z.string()).optional(),
      supportedModes: z.array(z.string()).optional(),
      splits: z.array(z.unknown()).max(0).optional(),
      machineTokenEnabled: z.literal(false).optional(),
    }),
  }),
});
type Challenge = z.infer<typeof challenge>;
const required = z.looseObject({ challenges: z.array(z.unknown()).min(1).max(50) });

/** The challenges of a result that asks to be paid; none for any other result. */
export function challengesOf(result: Record<string, unknown>): readonly unknown[] {
  const meta = (result._meta ?? {}) as Record<string, unknown>;
  return required.safeParse(meta[REQUIRED_META]).data?.challenges ?? [];
}

/** Whether `_meta` of a call pays by MPP. */
export const isOfMpp = (meta: Record<string, unknown>): boolean => meta[CREDENTIAL_META] !== undefined;

/** The time until which a credential is good: no transfer that it signs outlives its challenge. */
export function mppEndsAtMs(meta: Record<string, unknown>): number {
  const { challenge } = meta[CREDENTIAL_META] as { challenge: { expires: string } };
  return Date.parse(challenge.expires);
}

export interface MppWalletParts {
  account: PrivateKeyAccount;
  /** In the order in which they are tried. */
  networks: readonly NetworkName[];
  tempoRpcUrl: string;
}

/** @returns what these challenges cost, by the first network that may be paid on; null when they can be paid on none */
export function quoteMpp(parts: MppWalletParts, challenges: readonly unknown[], nowMs: number): Quote | null {
  const read = challenges.flatMap((each) => challenge.safeParse(each).data ?? []);
  for (const name of parts.networks) {
    const chosen = read.find((each) => isOn(name, each) && isPlain(each, nowMs));
    if (chosen === undefined) continue;
    const micros = BigInt(chosen.request.amount);
    return {
      micros,
      async pay() {
        const credential = await answer(parts, chosen);
        return { id: randomUUID(), micros, meta: { [CREDENTIAL_META]: credential } };
      },
    };
  }
  return null;
}

function isOn(name: NetworkName, { method, request }: Challenge): boolean {
  return (
    method === (name === 'tempo' ? 'tempo' : 'evm') &&
    `eip155:${request.methodDetails.chainId}` === NETWORKS[name] &&
    isUsdc(NETWORKS[name], request.currency)
  );
}

/** One transfer that the server sends: none that has left before it is written down, and none in parts. */
function isPlain({ method, expires, request }: Challenge, nowMs: number): boolean {
  const { credentialTypes, supportedModes } = request.methodDetails;
  const validMs = Date.parse(expires) - nowMs;
  const signed =
    method === 'evm'
      ? credentialTypes?.includes('authorization')
      : supportedModes?.includes('pull') !== false;
  return signed === true && validMs >= MIN_VALID_MS && validMs <= MAX_VALID_MS;
}

/** @returns the credential as an object, as `_meta` has it */
async function answer({ account, tempoRpcUrl }: MppWalletParts, chosen: Challenge): Promise<object> {
  const { Credential } = await import('mppx');
  if (chosen.method === 'evm') {
    const { charge } = await import('mppx/evm/client');
    // The domain of native USDC is the same on each of its chains.
    const method = charge({ account, authorization: { name: 'USD Coin', version: '2' } });
    return Credential.deserialize(await method.createCredential({ challenge: chosen } as never));
  }
  const { createClient, http } = await import('viem');
  const { tempo: chain } = await import('viem/tempo/chains');
  const { tempo } = await import('mppx/client');
  const transport = http(tempoRpcUrl, { timeout: NODE_TIMEOUT_MS, retryCount: 1 });
  const method = tempo.charge({
    account,
    mode: 'pull',
    autoSwap: false,
    getClient: () => createClient({ chain, transport }),
  });
  const credential = Credential.deserialize(await method.createCredential({ challenge: chosen } as never));
  await assertOneTransfer(credential.payload, chosen);
  return credential;
}

/** @throws Error when a transaction of Tempo does more than its challenge asks for, or may cost more than a transfer does */
async function assertOneTransfer(payload: unknown, { request }: Challenge): Promise<void> {
  const { Abis, Transaction } = await import('viem/tempo');
  const { decodeFunctionData, isAddressEqual } = await import('viem');
  const { signature } = payload as { signature: never };
  const {
    calls = [],
    gas = 0n,
    maxFeePerGas = 0n,
  } = Transaction.deserialize(signature) as {
    calls?: readonly { to?: `0x${string}`; data?: `0x${string}`; value?: bigint }[];
    gas?: bigint;
    maxFeePerGas?: bigint;
  };
  const [call] = calls;
  const asked = call?.data === undefined ? null : decodeFunctionData({ abi: Abis.tip20, data: call.data });
  const [to, amount] = (asked?.args ?? []) as readonly [`0x${string}`, bigint];
  const isThat =
    calls.length === 1 &&
    call?.to !== undefined &&
    isAddressEqual(call.to, request.currency as `0x${string}`) &&
    (call.value ?? 0n) === 0n &&
    asked?.functionName === 'transferWithMemo' &&
    isAddressEqual(to, request.recipient as `0x${string}`) &&
    amount === BigInt(request.amount);
  if (!isThat) throw new Error('what would be signed is not the transfer that was asked for');
  if (gas * maxFeePerGas > MAX_TEMPO_FEE_MICROS * TEMPO_FEE_UNITS)
    throw new Error('the node of Tempo asks for a fee that is too high');
}
