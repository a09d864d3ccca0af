import { Credential, Receipt } from 'mppx';
import { evm, Mppx, tempo } from 'mppx/client';
import { type Address, erc20Abi, type Hex } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import { Transaction } from 'viem/tempo';
import { SANDBOX_ACCOUNTS, SEED } from '../../../packages/sandbox/src/accounts.fixture.ts';
import { USDC_E } from '../../../packages/sandbox/src/tempo/addresses.ts';
import { fundTempo } from '../../../packages/sandbox/src/tempo/faucet.ts';
import { connect } from '../../../packages/sandbox/src/tempo/node.ts';
import { startTempo } from '../../../packages/sandbox/src/tempo/tempo.ts';
import { startPaymentWorld } from './x402.fixture.ts';

export const MPP_SECRET = 'a-secret-of-32-characters-for-tests';
export const METHODS = ['tempo', 'evm'] as const;
export type Method = (typeof METHODS)[number];

export type MppWorld = Awaited<ReturnType<typeof startMppWorld>>;

/** For tests: both chains that MPP payments settle on, and what a server must be told to take them. */
export async function startMppWorld(options: Parameters<typeof startPaymentWorld>[0] = {}) {
  const [base, chain] = await Promise.all([
    startPaymentWorld(options),
    startTempo({ seed: SEED, stateDir: null }),
  ]);
  const recipient = SANDBOX_ACCOUNTS.recipient.address;

  const world = {
    base,
    tempo: {
      url: chain.url,
      recipient,
      /** Viem on its own, for arranging the chain and for reading it independently of what is tested. */
      client: connect(chain.url),
      balanceOf(account: Address): Promise<bigint> {
        const token = { address: USDC_E, abi: erc20Abi } as const;
        return world.tempo.client.readContract({ ...token, functionName: 'balanceOf', args: [account] });
      },
    },
    environment: {
      ...base.environment,
      MPP_METHODS: 'tempo,evm',
      MPP_SECRET_KEY: MPP_SECRET,
      MPP_TEMPO_RPC_URL: chain.url,
      MPP_TEMPO_RECIPIENT: recipient,
      MPP_TEMPO_CURRENCY: USDC_E,
      MPP_TEMPO_REFUND_KEY: SANDBOX_ACCOUNTS.refunds.privateKey,
    } as Record<string, string>,

    /** What `npm start` says that it made: with it the server knows that it is a sandbox, and says so. */
    made: {
      ...base.made,
      FAREBOX_SANDBOX_PARTS: `${base.made.FAREBOX_SANDBOX_PARTS},tempo=${chain.url}`,
    },
    /** A fresh wallet with stablecoins on both chains. */
    async wallet(usd = 5): Promise<PrivateKeyAccount> {
      const account = await base.wallet(usd);
      await fundTempo(chain.url, account.address, BigInt(Math.round(usd * 1e6)));
      return account;
    },
    /** What the recipient holds, by method. */
    received: (method: Method): Promise<bigint> =>
      method === 'evm' ? base.received() : world.tempo.balanceOf(recipient),
    holds: (account: Address, method: Method): Promise<bigint> =>
      method === 'evm' ? base.balanceOf(account) : world.tempo.balanceOf(account),

    /** The reference client of a wallet that pays by this method only. */
    client: (account: PrivateKeyAccount, method: Method) =>
      Mppx.create({
        polyfill: false,
        methods: [
          method === 'evm'
            ? evmCharge(account)
            : tempo.charge({ account, getClient: () => connect(chain.url) }),
        ],
      }),

    /** The `Authorization` with which the reference client answers a 402. */
    credential: (account: PrivateKeyAccount, method: Method, unpaid: Response): Promise<string> =>
      world.client(account, method).createCredential(unpaid),

    async stop(): Promise<void> {
      await Promise.all([base.stop(), chain.stop()]);
    },
  };
  return world;
}

/** The reference client's way to pay USDC on Base from a wallet. */
export const evmCharge = (account: PrivateKeyAccount) =>
  evm.charge({ account, authorization: { name: 'USD Coin', version: '2' } });

// biome-ignore lint/suspicious/noExplicitAny: tests alter what no client would
type AnyCredential = { challenge: any; payload: any; source?: string };

export function opened(header: string): AnyCredential {
  return Credential.deserialize(header) as AnyCredential;
}

export function sealed(credential: AnyCredential): string {
  return Credential.serialize(credential as Parameters<typeof Credential.serialize>[0]);
}

/** A credential with something changed in it. */
export function altered(header: string, change: (credential: AnyCredential) => void): string {
  const credential = opened(header);
  change(credential);
  return sealed(credential);
}

/** A Tempo credential whose transaction says something else, signed anew by its payer. */
export async function resigned(
  account: PrivateKeyAccount,
  header: string,
  change: (transaction: Record<string, unknown>) => Record<string, unknown>,
): Promise<string> {
  const credential = opened(header);
  const { signature, from, ...transaction } = Transaction.deserialize(
    credential.payload.signature as Transaction.TransactionSerializedTempo,
  );
  credential.payload.signature = await account.signTransaction(change(transaction) as never, {
    serializer: Transaction.serialize as never,
  });
  return sealed(credential);
}

interface ReadReceipt {
  method: string;
  reference: Hex;
  status: string;
  timestamp: string;
}

/** The `Payment-Receipt` of an answer; null without one. */
export function receiptOf(answer: { headers: Headers }): ReadReceipt | null {
  const header = answer.headers.get('payment-receipt');
  return header === null ? null : (Receipt.deserialize(header) as ReadReceipt);
}
