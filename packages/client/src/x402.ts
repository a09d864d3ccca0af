/**
 * A wallet that pays by x402: what may be signed is decided here, and the reference client signs it. Its libraries (`@x402/core` and, for
 * an EVM chain, `@x402/evm` and `viem`; for Solana `@x402/svm` and `@solana/kit`) are read when something is signed.
 */
import { isRecord, recordOf, textOf } from './json.ts';
import { NETWORKS, type NetworkName, USUAL_NETWORKS } from './networks.ts';
import { LEAST_VALID_MS, MOST_VALID_MS, type Quote, type Signed, type Terms, type Wallet } from './payer.ts';
import { peer } from './peer.ts';
import { inPlainWords } from './plain-words.ts';
import { isUsdc } from './usdc.ts';

export { NETWORKS, type NetworkName } from './networks.ts';

/** A transaction of Solana ends with its block hash, some 90 seconds after it was made. */
const SOLANA_VALID_MS = 180_000;

/** A signer of an EVM chain, such as an account of viem. */
export interface EvmAccount {
  address: `0x${string}`;
  signTypedData(message: never): Promise<`0x${string}`>;
}

export interface X402WalletParts {
  /** Pays on EVM chains: an account, or its private key (0x and 64 digits). */
  evm?: EvmAccount | `0x${string}`;
  /** Pays on Solana: the 64 bytes of a key pair in base58. */
  solana?: string;
  /** A node of Solana, which a payment there is built with; the public one unless given. */
  solanaRpcUrl?: string;
  /** In the order in which they are tried, where they cost the same. */
  networks?: readonly NetworkName[];
  /** Whether it was made for a sandbox, and holds no real money: no other wallet pays one. */
  sandbox?: boolean;
}

interface Offer {
  network: string;
  amount: string;
}

/**
 * Opens a wallet.
 *
 * @throws Error in words without the key, when a key is none, or a library is missing
 */
export async function x402Wallet(parts: X402WalletParts): Promise<Wallet> {
  const { evm, solana, solanaRpcUrl, networks = USUAL_NETWORKS, sandbox = false } = parts;
  const secrets = [typeof evm === 'string' ? evm : undefined, solana, solanaRpcUrl].filter(
    (each) => each !== undefined,
  );
  const { client, addresses, families } = await openClient(parts).catch((error: unknown) => {
    throw inPlainWords(error, secrets);
  });
  const wanted = networks
    .map((name) => NETWORKS[name])
    .filter((network) => network !== NETWORKS.tempo && families.some((family) => network.startsWith(family)));
  return {
    way: 'x402',
    name: addresses.join(' '),
    sandbox,
    networks: wanted,
    quote: ({ x402 }) =>
      x402 === null ? [] : wanted.flatMap((network) => quotesOn(network, { client, x402, secrets })),
    endsAtMs,
  };
}

/** What signs, of the reference client. */
type Client = { createPaymentPayload(required: never): Promise<unknown> };

function quotesOn(
  network: string,
  { client, x402, secrets }: { client: Client; x402: NonNullable<Terms['x402']>; secrets: readonly string[] },
): Quote[] {
  const chosen = x402.accepts.find((each): each is Offer => isPlain(each, network));
  if (chosen === undefined) return [];
  const micros = BigInt(chosen.amount);
  const pay = async () => {
    const payload = await client
      .createPaymentPayload({ ...x402, accepts: [chosen] } as never)
      .catch((error: unknown) => {
        throw inPlainWords(error, secrets);
      });
    return { id: crypto.randomUUID(), micros, signed: { 'x402/payment': recordOf(payload) } };
  };
  return [{ micros, pay }];
}

/** One transfer of USDC and nothing else: no allowance that would outlive it, no token that is only called so. */
function isPlain(offer: unknown, wanted: string): offer is Offer {
  const { scheme, network, asset, amount, payTo, maxTimeoutSeconds, extra = {} } = recordOf(offer);
  if (!isRecord(extra) || typeof asset !== 'string' || typeof maxTimeoutSeconds !== 'number') return false;
  const validMs = maxTimeoutSeconds * 1_000;
  return (
    scheme === 'exact' &&
    network === wanted &&
    typeof payTo === 'string' &&
    typeof amount === 'string' &&
    /^[1-9]\d{0,14}$/.test(amount) &&
    (extra.assetTransferMethod ?? 'eip3009') === 'eip3009' &&
    validMs >= LEAST_VALID_MS &&
    validMs <= MOST_VALID_MS &&
    isUsdc(wanted, asset)
  );
}

function endsAtMs(signed: Signed, nowMs: number): number | null {
  const payment = signed['x402/payment'];
  if (payment === undefined) return null;
  if (recordOf(payment.accepted).network === NETWORKS.solana) return nowMs + SOLANA_VALID_MS;
  const { validBefore } = recordOf(recordOf(payment.payload).authorization);
  const seconds = /^\d{1,12}$/.test(textOf(validBefore)) ? Number(textOf(validBefore)) : null;
  return seconds !== null ? seconds * 1_000 : nowMs + MOST_VALID_MS;
}

/** The libraries of wallets are large: they are read when there is one. */
async function openClient({ evm, solana, solanaRpcUrl }: X402WalletParts) {
  const { x402Client } = await peer('@x402/core', () => import('@x402/core/client'));
  const client = new x402Client();
  const addresses: string[] = [];
  const families: string[] = [];
  if (evm !== undefined) {
    const { ExactEvmScheme } = await peer('@x402/evm', () => import('@x402/evm'));
    const account = typeof evm === 'string' ? await accountOf(evm) : evm;
    client.register('eip155:*', new ExactEvmScheme(account as never));
    addresses.push(account.address);
    families.push('eip155:');
  }
  if (solana !== undefined) {
    const { createKeyPairSignerFromBytes, getBase58Encoder } = await peer(
      '@solana/kit',
      () => import('@solana/kit'),
    );
    const { ExactSvmScheme } = await peer('@x402/svm', () => import('@x402/svm'));
    const signer = await createKeyPairSignerFromBytes(getBase58Encoder().encode(solana));
    client.register(
      'solana:*',
      new ExactSvmScheme(signer, solanaRpcUrl === undefined ? undefined : { rpcUrl: solanaRpcUrl }),
    );
    addresses.push(signer.address);
    families.push('solana:');
  }
  // What a call may cost is decided before it is signed, by rules of ours.
  client.setSpendControls({ maxAmountPerPayment: false });
  return { client, addresses, families };
}

async function accountOf(key: `0x${string}`): Promise<EvmAccount> {
  const { privateKeyToAccount } = await peer('viem', () => import('viem/accounts'));
  return privateKeyToAccount(key) as EvmAccount;
}
