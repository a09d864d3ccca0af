/** For the facilitator's tests: payers with USDC on a sandbox chain, and payments signed by real clients. */
import { createRequire } from 'node:module';
import { x402Client } from '@x402/core/client';
import type { PaymentPayload, PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/client';
import {
  type Address,
  concatHex,
  createPublicClient,
  createWalletClient,
  encodeAbiParameters,
  encodeFunctionData,
  getCreate2Address,
  type Hex,
  http,
  parseAbi,
  parseSignature,
  serializeErc6492Signature,
  zeroHash,
} from 'viem';
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { base } from 'viem/chains';
import { SANDBOX_ACCOUNTS } from '../accounts.fixture.ts';

const USDC: Address = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
export const RECIPIENT = SANDBOX_ACCOUNTS.recipient.address;
/** The deterministic deployment proxy: creates a contract at an address that follows from its code. Every anvil contains it. */
export const CREATE2_DEPLOYER: Address = '0x4e59b44847b379578588920cA78FbF26c0B4956C';
const USDC_ABI = parseAbi([
  'function mint(address to, uint256 amount) returns (bool)',
  'function balanceOf(address owner) view returns (uint256)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
]);

export type Signer = ConstructorParameters<typeof ExactEvmScheme>[0];

/**
 * A payment with the requirements that it fulfils. It may be of the first generation too: the library's types do not
 * distinguish the two.
 */
export interface Payment {
  payload: PaymentPayload;
  requirements: PaymentRequirements;
}

/** The requirements of a call, as a v2 challenge offers them. Amounts are in micro-USDC. */
export function requirementsV2(changes: Partial<PaymentRequirements> = {}): PaymentRequirements {
  return {
    scheme: 'exact',
    network: 'eip155:8453',
    amount: '50000',
    asset: USDC,
    payTo: RECIPIENT,
    maxTimeoutSeconds: 300,
    extra: { name: 'USD Coin', version: '2' },
    ...changes,
  };
}

/** The same requirements, as a v1 challenge offers them. */
export function requirementsV1(changes: Record<string, unknown> = {}): PaymentRequirements {
  const { amount, ...rest } = requirementsV2();
  const requirements = {
    ...rest,
    network: 'base',
    maxAmountRequired: amount,
    resource: 'https://sandbox.test/x402/token-price',
    description: 'Token price',
    mimeType: 'application/json',
    ...changes,
  };
  // The library's types know the second generation only; its code looks at the version.
  return requirements as unknown as PaymentRequirements;
}

/** Signs with the published client. `extensions` stand in the challenge, and the client echoes them. */
export async function pay(
  signer: Signer,
  requirements: PaymentRequirements,
  extensions?: Record<string, unknown>,
): Promise<Payment> {
  const client = new x402Client()
    .register('eip155:8453', new ExactEvmScheme(signer))
    .registerV1('base', new ExactEvmSchemeV1(signer))
    .setSpendControls(false);
  const challenge: PaymentRequired = {
    x402Version: 'amount' in requirements ? 2 : 1,
    resource: { url: 'https://sandbox.test/x402/token-price', mimeType: 'application/json' },
    accepts: [requirements],
    ...(extensions !== undefined && { extensions }),
  };
  return { payload: await client.createPaymentPayload(challenge), requirements };
}

/** The chain seen from outside of the facilitator. */
export function openLedger(rpcUrl: string) {
  const client = createPublicClient({ chain: base, transport: http(rpcUrl), pollingInterval: 20 });
  const minter = createWalletClient({
    account: privateKeyToAccount(SANDBOX_ACCOUNTS.deployer.privateKey),
    chain: base,
    transport: http(rpcUrl),
  });
  const balanceOf = (owner: Address): Promise<bigint> =>
    client.readContract({ address: USDC, abi: USDC_ABI, functionName: 'balanceOf', args: [owner] });

  async function send(to: Address, data: Hex): Promise<void> {
    const { status } = await client.waitForTransactionReceipt({
      hash: await minter.sendTransaction({ to, data }),
    });
    if (status !== 'success') throw new Error(`${to} refused ${data}`);
  }

  function mint(to: Address, amountMicros: bigint): Promise<void> {
    return send(USDC, encodeFunctionData({ abi: USDC_ABI, functionName: 'mint', args: [to, amountMicros] }));
  }

  return {
    client,
    send,
    mint,
    balanceOf,
    /** Cancels a payer's authorization. */
    async cancel(payer: PrivateKeyAccount, nonce: string): Promise<void> {
      const { r, s, v } = parseSignature(
        await payer.signTypedData({
          domain: { name: 'USD Coin', version: '2', chainId: base.id, verifyingContract: USDC },
          types: {
            CancelAuthorization: [
              { name: 'authorizer', type: 'address' },
              { name: 'nonce', type: 'bytes32' },
            ],
          },
          primaryType: 'CancelAuthorization',
          message: { authorizer: payer.address, nonce: asHex(nonce) },
        }),
      );
      const args = [payer.address, asHex(nonce), Number(v), r, s] as const;
      await send(USDC, encodeFunctionData({ abi: USDC_ABI, functionName: 'cancelAuthorization', args }));
    },
    /** A fresh account with one USDC. */
    async payer(): Promise<PrivateKeyAccount> {
      const account = privateKeyToAccount(generatePrivateKey());
      await mint(account.address, 1_000_000n);
      return account;
    },
    /** Runs an action, and returns by how much the recipient's balance grew. */
    async received(work: () => Promise<unknown>): Promise<bigint> {
      const before = await balanceOf(RECIPIENT);
      await work();
      return (await balanceOf(RECIPIENT)) - before;
    },
    /** Whether the chain knows a transaction. */
    async knows(hash: string): Promise<boolean> {
      const found = await client.getTransaction({ hash: asHex(hash) }).catch(() => null);
      return found !== null;
    },
    async mine(automatic: boolean): Promise<void> {
      await client.request({ method: 'evm_setAutomine' as never, params: [automatic] as never });
      if (automatic) await client.request({ method: 'evm_mine' as never });
    },
  };
}

export function asHex(text: string): Hex {
  if (!text.startsWith('0x')) throw new Error(`${text} is not hexadecimal`);
  return `0x${text.slice(2)}`;
}

/** A wallet that is a contract (EIP-1271). Its signatures are its owner's, with one more byte at the end. */
const WALLET_SOURCE = `
pragma solidity ^0.8.30;
contract Wallet {
  address private immutable owner;
  constructor(address owner_) { owner = owner_; }
  function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
    if (signature.length != 66 || signature[65] != 0x01) return 0xffffffff;
    (bytes32 r, bytes32 s) = abi.decode(signature[:64], (bytes32, bytes32));
    bool valid = ecrecover(hash, uint8(signature[64]), r, s) == owner;
    return valid ? this.isValidSignature.selector : bytes4(0xffffffff);
  }
}`;

interface SolcOutput {
  contracts?: { 'Wallet.sol'?: { Wallet?: { evm: { bytecode: { object: string } } } } };
}

/** Compiles the wallet (about a second). @returns a function that gives an owner's wallet */
export function smartWallets(): (owner: PrivateKeyAccount, factory: Address) => SmartWallet {
  const solc: { compile(input: string): string } = createRequire(import.meta.url)('solc');
  const output: SolcOutput = JSON.parse(
    solc.compile(
      JSON.stringify({
        language: 'Solidity',
        sources: { 'Wallet.sol': { content: WALLET_SOURCE } },
        settings: { outputSelection: { '*': { '*': ['evm.bytecode.object'] } } },
      }),
    ),
  );
  const code = output.contracts?.['Wallet.sol']?.Wallet?.evm.bytecode.object;
  if (code === undefined) throw new Error(`the wallet does not compile: ${JSON.stringify(output)}`);
  return (owner, factory) => {
    const bytecode = concatHex([`0x${code}`, encodeAbiParameters([{ type: 'address' }], [owner.address])]);
    const address = getCreate2Address({ from: CREATE2_DEPLOYER, salt: zeroHash, bytecode });
    const deployment = concatHex([zeroHash, bytecode]);
    const sign = async (message: Parameters<Signer['signTypedData']>[0]): Promise<Hex> =>
      concatHex([await owner.signTypedData(message), '0x01']);
    return {
      deployment,
      deployed: { address, signTypedData: sign },
      counterfactual: {
        address,
        signTypedData: async (message) =>
          serializeErc6492Signature({ address: factory, data: deployment, signature: await sign(message) }),
      },
    };
  };
}

export interface SmartWallet {
  /** The call data with which the deployer creates the wallet on the chain. */
  deployment: Hex;
  /** Signs as a wallet that is on the chain. */
  deployed: Signer;
  /** Signs as a wallet that is not there yet (ERC-6492), naming its factory. */
  counterfactual: Signer;
}
