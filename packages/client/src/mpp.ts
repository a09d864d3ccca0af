/**
 * A wallet that pays by MPP: challenges answered by one signed transfer of USDC each, which only the server sends. What may be signed
 * is decided here; the reference client (`mppx`, with `viem`) signs it. https://paymentauth.org
 */
import { isRecord, recordOf, textOf } from './json.ts';
import { NETWORKS, type NetworkName, USUAL_NETWORKS } from './networks.ts';
import { LEAST_VALID_MS, MOST_VALID_MS, type Quote, type Wallet } from './payer.ts';
import { peer } from './peer.ts';
import { inPlainWords } from './plain-words.ts';
import { isUsdc } from './usdc.ts';
import type { EvmAccount } from './x402.ts';

export { NETWORKS, type NetworkName } from './networks.ts';

/** The highest fee of a transfer on Tempo: it costs some 0.0001 USD, which the limits do not count. */
const MAX_TEMPO_FEE_MICROS = 10_000n;
/** The price of gas on Tempo is in units of which a micro-USD has a million millions. */
const TEMPO_FEE_UNITS = 1_000_000_000_000n;
const NODE_TIMEOUT_MS = 10_000;
const PUBLIC_TEMPO = 'https://rpc.tempo.xyz';

export interface MppWalletParts {
  /** An account, or its private key (0x and 64 digits). */
  evm: EvmAccount | `0x${string}`;
  /** In the order in which they are tried; Tempo only where it is named. */
  networks?: readonly NetworkName[];
  /** A node of Tempo, which a payment there is built with; the public one unless given. */
  tempoRpcUrl?: string;
  /** Whether it was made for a sandbox, and holds no real money: no other wallet pays one. */
  sandbox?: boolean;
}

/** A challenge that may be answered. */
interface Challenge {
  id: string;
  realm: string;
  method: 'evm' | 'tempo';
  expires: string;
  request: {
    amount: string;
    currency: string;
    recipient: string;
    methodDetails: { chainId: number; [detail: string]: unknown };
  };
}

/**
 * Opens a wallet.
 *
 * @throws Error in words without the key, when a key is none, or a library is missing
 */
export async function mppWallet(parts: MppWalletParts): Promise<Wallet> {
  const { evm, networks = USUAL_NETWORKS, tempoRpcUrl = PUBLIC_TEMPO, sandbox = false } = parts;
  const secrets = [typeof evm === 'string' ? evm : undefined, tempoRpcUrl].filter(
    (each) => each !== undefined,
  );
  const account = await accountOf(evm).catch((error: unknown) => {
    throw inPlainWords(error, secrets);
  });
  const wanted = networks.filter((name) => name !== 'solana');
  return {
    way: 'mpp',
    name: account.address,
    sandbox,
    networks: wanted.map((name) => NETWORKS[name]),
    quote: ({ challenges }, nowMs) =>
      wanted.flatMap((name) => {
        const chosen = challenges.find(
          (each): each is Challenge => isChallenge(each) && isOn(name, each) && isPlain(each, nowMs),
        );
        return chosen === undefined ? [] : [quoteOf({ account, tempoRpcUrl, secrets }, chosen)];
      }),
    endsAtMs(signed) {
      const credential = signed['org.paymentauth/credential'];
      if (credential === undefined) return null;
      // No transfer that it signs outlives its challenge.
      return Date.parse(textOf(recordOf(credential.challenge).expires));
    },
  };
}

interface Signer {
  account: EvmAccount;
  tempoRpcUrl: string;
  secrets: readonly string[];
}

function quoteOf(signer: Signer, chosen: Challenge): Quote {
  const micros = BigInt(chosen.request.amount);
  const pay = async () => {
    const credential = await answer(signer, chosen).catch((error: unknown) => {
      throw inPlainWords(error, signer.secrets);
    });
    return { id: crypto.randomUUID(), micros, signed: { 'org.paymentauth/credential': credential } };
  };
  return { micros, pay };
}

function isChallenge(value: unknown): value is Challenge {
  const { id, realm, method, intent, expires, request } = recordOf(value);
  const { amount, currency, recipient, methodDetails } = recordOf(request);
  const isText = (text: unknown, most: number) =>
    typeof text === 'string' && text.length > 0 && text.length <= most;
  return (
    isText(id, 200) &&
    isText(realm, 300) &&
    (method === 'evm' || method === 'tempo') &&
    intent === 'charge' &&
    typeof expires === 'string' &&
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(expires) &&
    typeof amount === 'string' &&
    /^[1-9]\d{0,14}$/.test(amount) &&
    typeof currency === 'string' &&
    typeof recipient === 'string' &&
    /^0x[0-9a-fA-F]{40}$/.test(recipient) &&
    isRecord(methodDetails) &&
    Number.isSafeInteger(methodDetails.chainId)
  );
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
  const { credentialTypes, supportedModes, splits = [], machineTokenEnabled } = request.methodDetails;
  const validMs = Date.parse(expires) - nowMs;
  const lists = (list: unknown, word: string) => Array.isArray(list) && list.includes(word);
  const isSigned =
    method === 'evm'
      ? lists(credentialTypes, 'authorization')
      : supportedModes === undefined || lists(supportedModes, 'pull');
  return (
    isSigned &&
    Array.isArray(splits) &&
    splits.length === 0 &&
    (machineTokenEnabled === undefined || machineTokenEnabled === false) &&
    validMs >= LEAST_VALID_MS &&
    validMs <= MOST_VALID_MS
  );
}

/** @returns the credential as an object, as `_meta` of MCP has it */
async function answer({ account, tempoRpcUrl }: Signer, chosen: Challenge): Promise<Record<string, unknown>> {
  const { Credential } = await peer('mppx', () => import('mppx'));
  if (chosen.method === 'evm') {
    const { charge } = await import('mppx/evm/client');
    // The domain of native USDC is the same on each of its chains.
    const method = charge({ account: account as never, authorization: { name: 'USD Coin', version: '2' } });
    return recordOf(Credential.deserialize(await method.createCredential({ challenge: chosen } as never)));
  }
  const { createClient, http } = await import('viem');
  const { tempo: chain } = await import('viem/tempo/chains');
  const { tempo } = await import('mppx/client');
  const transport = http(tempoRpcUrl, { timeout: NODE_TIMEOUT_MS, retryCount: 1 });
  const method = tempo.charge({
    account: account as never,
    mode: 'pull',
    autoSwap: false,
    getClient: () => createClient({ chain, transport }),
  });
  const credential = Credential.deserialize(await method.createCredential({ challenge: chosen } as never));
  await assertOneTransfer(credential.payload, chosen);
  return recordOf(credential);
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

async function accountOf(evm: MppWalletParts['evm']): Promise<EvmAccount> {
  if (typeof evm !== 'string') return evm;
  const { privateKeyToAccount } = await peer('viem', () => import('viem/accounts'));
  return privateKeyToAccount(evm) as EvmAccount;
}
