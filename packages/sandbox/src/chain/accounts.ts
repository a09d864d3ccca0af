/**
 * The accounts of the sandbox's EVM chains. Those that build a chain and fund wallets have the keys that every
 * development node derives from one public phrase. Those that a payment names have keys of this installation alone: a
 * payment that a real wallet signs by mistake must never name a recipient whose key everybody knows.
 */
import { createHmac, pbkdf2Sync } from 'node:crypto';
import { type Address, bytesToHex, type Hex } from 'viem';
import { HDKey, privateKeyToAddress } from 'viem/accounts';

const PHRASE = 'test test test test test test test test test test test junk';

export interface SandboxAccount {
  address: Address;
  privateKey: Hex;
}

/** BIP-39 without a password, then the usual path of Ethereum accounts. */
const parent = HDKey.fromMasterSeed(pbkdf2Sync(PHRASE, 'mnemonic', 2_048, 64, 'sha512')).derive(
  "m/44'/60'/0'/0",
);

/** No payment ever names these. The phrase's other accounts have no role and are left as the node makes them. */
export const BUILDERS = {
  /** Builds the chain's contracts, owns the Uniswap positions, and may mint USDC. */
  deployer: account(0),
  /** Fills the wallets that `npm run sandbox:wallet` makes. */
  faucet: account(5),
  /** Builds and owns the lending protocols and the vault, and lends most of what they hold. */
  lender: account(6),
  /** Owes to all of the lending protocols. */
  borrower: account(7),
};

/** The recipients of payments, and the accounts that move the money. */
export interface MoneyAccounts {
  /** Sends the settlements of the sandbox facilitator. */
  facilitator: SandboxAccount;
  /** Sends settlements for the server's own settler. */
  relayer: SandboxAccount;
  /** Holds the USDC that goes back to payers. */
  refunds: SandboxAccount;
  /** Is paid. Its key is never used, and it holds no ETH. */
  recipient: SandboxAccount;
  /** Registers ERC-8004 identities. */
  registrar: SandboxAccount;
  /** Moves the yield vault's funds among its protocols. */
  keeper: SandboxAccount;
}

/** An installation's own accounts. @param seed secret, at least 32 random bytes as text, the same for as long as its chains are kept */
export function accountsOf(seed: string): MoneyAccounts {
  const own = (role: keyof MoneyAccounts): SandboxAccount => {
    const key = createHmac('sha256', seed).update(`farebox sandbox evm ${role}`).digest();
    const privateKey = bytesToHex(key);
    return { privateKey, address: privateKeyToAddress(privateKey) };
  };
  return {
    facilitator: own('facilitator'),
    relayer: own('relayer'),
    refunds: own('refunds'),
    recipient: own('recipient'),
    registrar: own('registrar'),
    keeper: own('keeper'),
  };
}

function account(index: number): SandboxAccount {
  const key = parent.deriveChild(index).privateKey;
  if (key === null) throw new Error(`no private key at index ${index}`);
  const privateKey = bytesToHex(key);
  return { privateKey, address: privateKeyToAddress(privateKey) };
}
