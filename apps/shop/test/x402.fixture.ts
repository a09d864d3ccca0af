import { randomBytes } from 'node:crypto';
import { decodeFunctionData, erc20Abi, type Hex, parseAbi } from 'viem';
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { privateKeyOf, SEED, secretKeyOf, signerOf } from '../../../packages/sandbox/src/accounts.fixture.ts';
import { startEthereum } from '../../../packages/sandbox/src/chain/chain.ts';
import { transferData, USDC_DOMAIN } from '../../../packages/sandbox/src/chain/eip3009.fixture.ts';
import { fund } from '../../../packages/sandbox/src/chain/faucet.ts';
import { startFacilitator } from '../../../packages/sandbox/src/facilitator/facilitator.ts';
import { SOLANA_ROLES } from '../../../packages/sandbox/src/solana/accounts.ts';
import { startSolana } from '../../../packages/sandbox/src/solana/solana.ts';
import { startTestChain } from './chain.fixture.ts';

export const USDC: Hex = USDC_DOMAIN.verifyingContract;

export interface SignedPayment {
  authorization: Record<'from' | 'to' | 'value' | 'validAfter' | 'validBefore' | 'nonce', string>;
  signature: Hex;
}

export type PaymentWorld = Awaited<ReturnType<typeof startPaymentWorld>>;

/** For tests: chain, facilitator and, if wanted, Solana and an Ethereum to read, on free ports; and what a server must be told to use them. */
export async function startPaymentWorld(options: { solana?: boolean; ethereum?: boolean } = {}) {
  const chain = await startTestChain();
  const ethereum = options.ethereum === true ? await startEthereum({ stateDir: null }) : null;
  const solana = options.solana === true ? await startSolana({ seed: SEED, stateDir: null }) : null;
  const facilitator = await startFacilitator({
    evm: { rpcUrl: chain.url, privateKeys: [chain.accounts.facilitator.privateKey] },
    solana: solana === null ? null : { rpcUrl: solana.url, feePayerSecretKey: secretKeyOf('facilitator') },
  });
  const recipient = chain.accounts.recipient.address;
  let faucet: Promise<unknown> = Promise.resolve();

  return {
    chain,
    solana,
    facilitator,
    recipient,
    /** Settled by the facilitator. */
    environment: {
      X402_NETWORKS: solana === null ? 'base' : 'base,solana',
      UPSTREAM_BASE_BASE_URL: chain.url,
      X402_RECIPIENT: recipient,
      FACILITATOR_URL: facilitator.url,
      X402_REFUND_KEYS: chain.accounts.refunds.privateKey,
      // The node asks for some hundred times the fees of Base.
      X402_GAS_TOKEN_USD: 'base:1,ethereum:1,polygon:1,arbitrum:1',
      // The deterministic deployer that anvil carries.
      X402_WALLET_FACTORIES: '0x4e59b44847b379578588920cA78FbF26c0B4956C',
      IDENTITY_REGISTRAR_KEY: chain.accounts.registrar.privateKey,
      WALLET_ENCRYPTION_KEY: randomBytes(32).toString('hex'),
      ...(ethereum === null ? {} : { UPSTREAM_ETHEREUM_BASE_URL: ethereum.url }),
      ...(solana === null
        ? {}
        : {
            UPSTREAM_SOLANA_BASE_URL: solana.url,
            X402_RECIPIENT_SOLANA: (await signerOf('recipient')).address,
            X402_REFUND_KEY_SOLANA: privateKeyOf('refunds'),
          }),
    } as Record<string, string>,
    /** What `npm start` says that it made: with it the server knows that it is a sandbox, and says so. */
    made: {
      FAREBOX_SANDBOX_PARTS: [
        `chain=${chain.url}`,
        ...(ethereum === null ? [] : [`ethereum=${ethereum.url}`]),
        `facilitator=${facilitator.url}`,
        ...(solana === null ? [] : [`solana=${solana.url}`]),
      ].join(','),
      FAREBOX_SANDBOX_WALLETS: [
        ...Object.values(chain.accounts).map(({ address }) => address as string),
        ...(await Promise.all(SOLANA_ROLES.map(async (role) => (await signerOf(role)).address))),
      ].join(','),
    },
    /** Settled by our own settler. */
    get ownSettler(): Record<string, string> {
      return {
        ...this.environment,
        FACILITATOR_URL: '',
        X402_RELAYER_KEYS: chain.accounts.relayer.privateKey,
        ...(solana === null ? {} : { X402_RELAYER_KEY_SOLANA: privateKeyOf('settler') }),
      };
    },

    /** A fresh wallet with USDC. */
    async wallet(usd = 5): Promise<PrivateKeyAccount> {
      const account = privateKeyToAccount(generatePrivateKey());
      // One after another: the faucet is one account, and its transactions have one order.
      const funded = faucet.then(() =>
        fund(chain.url, account.address, {
          usdcMicros: BigInt(Math.round(usd * 1e6)),
          ethWei: 10n ** 17n,
        }),
      );
      faucet = funded.catch(() => undefined);
      await funded;
      return account;
    },
    balanceOf(address: Hex): Promise<bigint> {
      return chain.client.readContract({
        address: USDC,
        abi: erc20Abi,
        functionName: 'balanceOf',
        args: [address],
      });
    },
    /** What the recipient holds. */
    received(): Promise<bigint> {
      return this.balanceOf(recipient);
    },

    async faults(faults: readonly Record<string, unknown>[]): Promise<void> {
      await fetch(`${facilitator.url}/__control`, { method: 'DELETE' });
      if (faults.length === 0) return;
      const answer = await fetch(`${facilitator.url}/__control`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ faults }),
      });
      if (!answer.ok) throw new Error(await answer.text());
    },

    async stop(): Promise<void> {
      await facilitator.stop();
      await solana?.stop();
      await ethereum?.stop();
      await chain.stop();
    },
  };
}

/** What a wallet signs to pay so many micro-USD: by hand, so that tests can sign what no client would. */
export async function signPayment(
  account: PrivateKeyAccount,
  terms: {
    to: Hex;
    valueUnits: bigint;
    validForSeconds?: number;
    nonce?: Hex;
    chainId?: number;
    asset?: Hex;
    name?: string;
  },
): Promise<SignedPayment> {
  const authorization = {
    from: account.address,
    to: terms.to,
    value: terms.valueUnits,
    validAfter: 0n,
    validBefore: BigInt(Math.floor(Date.now() / 1_000) + (terms.validForSeconds ?? 120)),
    nonce: terms.nonce ?? (`0x${randomBytes(32).toString('hex')}` as Hex),
  };
  const signature = await account.signTypedData(
    transferData(authorization, {
      ...USDC_DOMAIN,
      name: terms.name ?? USDC_DOMAIN.name,
      chainId: terms.chainId ?? USDC_DOMAIN.chainId,
      verifyingContract: terms.asset ?? USDC,
    }),
  );
  return {
    authorization: {
      from: authorization.from,
      to: authorization.to,
      value: String(authorization.value),
      validAfter: '0',
      validBefore: String(authorization.validBefore),
      nonce: authorization.nonce,
    },
    signature,
  };
}

const TRANSFERS_WITH_AUTHORIZATION = parseAbi([
  'function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)',
  'function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)',
]);

/** The payment as a stranger reads it from the calldata of the transaction that settles it. */
export function readFromCalldata(input: Hex): SignedPayment {
  const { args } = decodeFunctionData({ abi: TRANSFERS_WITH_AUTHORIZATION, data: input });
  const [from, to, value, validAfter, validBefore, nonce, ...signed] = args;
  const [v, r, s] = signed;
  const signature =
    r === undefined || s === undefined
      ? (v as Hex)
      : (`0x${r.slice(2)}${s.slice(2)}${Number(v).toString(16)}` as Hex);
  return {
    authorization: {
      from,
      to,
      value: String(value),
      validAfter: String(validAfter),
      validBefore: String(validBefore),
      nonce,
    },
    signature,
  };
}

/** The header of a version 1 payment on Base. */
export function firstGenerationHeader(payment: SignedPayment): string {
  const json = { x402Version: 1, scheme: 'exact', network: 'base', payload: payment };
  return Buffer.from(JSON.stringify(json)).toString('base64');
}

/** The header of a version 2 payment, as the reference client makes it from a 402. */
export async function paymentHeader(
  challenge: Response,
  payment: SignedPayment,
  extensions?: Record<string, unknown>,
): Promise<string> {
  const required = JSON.parse(
    Buffer.from(challenge.headers.get('payment-required') ?? '', 'base64').toString('utf8'),
  );
  const accepted = required.accepts.find((each: { network: string }) => each.network.startsWith('eip155:'));
  return Buffer.from(
    JSON.stringify({
      x402Version: 2,
      payload: payment,
      accepted,
      resource: required.resource,
      extensions: { ...required.extensions, ...extensions },
    }),
  ).toString('base64');
}
