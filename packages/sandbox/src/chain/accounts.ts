/**
 * Who acts on the sandbox chain. The keys are those of the accounts that every development node makes from one public
 * phrase: anyone knows them, so they are worth nothing on any other chain.
 */
import { pbkdf2Sync } from 'node:crypto';
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

/** By role. The phrase's accounts 7 to 9 have no role and are left as the node makes them. */
export const SANDBOX_ACCOUNTS = {
  /** Builds the chain's contracts, owns the Uniswap positions, and may mint USDC. */
  deployer: account(0),
  /** Sends the settlements of the sandbox facilitator. */
  facilitator: account(1),
  /** Sends settlements for the server's own settler. */
  relayer: account(2),
  /** Holds the USDC that goes back to payers. */
  refunds: account(3),
  /** Is paid. Its key is never used, and it holds no ETH. */
  recipient: account(4),
  /** Fills the wallets that `npm run sandbox:wallet` makes. */
  faucet: account(5),
  /** Registers ERC-8004 identities. */
  registrar: account(6),
};

function account(index: number): SandboxAccount {
  const key = parent.deriveChild(index).privateKey;
  if (key === null) throw new Error(`no private key at index ${index}`);
  const privateKey = bytesToHex(key);
  return { privateKey, address: privateKeyToAddress(privateKey) };
}
