/**
 * The accounts of the sandbox's EVM chains, in two groups. The accounts that build a chain and fund wallets have the
 * keys that every development node derives from one public phrase. The accounts that payments name have keys of this
 * installation alone: a payment that a real wallet signs by mistake must never name a recipient whose key everybody knows.
 */
import { createECDH, createHmac, pbkdf2Sync } from 'node:crypto';
import { type Address, bytesToHex, type Hex, numberToBytes } from 'viem';
import { publicKeyToAddress } from 'viem/accounts';

const PHRASE = 'test test test test test test test test test test test junk';

export interface SandboxAccount {
  address: Address;
  privateKey: Hex;
}

/** The BIP-39 seed of the phrase, without a passphrase. */
const SEED = pbkdf2Sync(PHRASE, 'mnemonic', 2_048, 64, 'sha512');
/** The usual path of Ethereum accounts: m/44'/60'/0'/0. */
const HARDENED = 0x8000_0000;
const PATH = [HARDENED + 44, HARDENED + 60, HARDENED, 0];
/** The order of the curve secp256k1: private keys are added modulo this number. */
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

interface ParentKey {
  key: Buffer;
  chainCode: Buffer;
}

const parent = PATH.reduce(childOf, split(createHmac('sha512', 'Bitcoin seed').update(SEED).digest()));

/** Accounts whose keys are public, so no payment ever names one. The phrase's other accounts have no role in the sandbox. */
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
  /** Receives the payments. Its key is never used, and it holds no ETH. */
  recipient: SandboxAccount;
  /** Registers ERC-8004 identities. */
  registrar: SandboxAccount;
  /** Moves the yield vault's funds among its protocols. */
  keeper: SandboxAccount;
}

/**
 * An installation's own accounts.
 *
 * @param seed a secret of at least 32 random bytes as text, the same for as long as the installation's chains are kept
 */
export function accountsOf(seed: string): MoneyAccounts {
  const own = (role: keyof MoneyAccounts): SandboxAccount => {
    const key = createHmac('sha256', seed).update(`farebox sandbox evm ${role}`).digest();
    const privateKey = bytesToHex(key);
    return { privateKey, address: addressOf(privateKey) };
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
  const privateKey = bytesToHex(childOf(parent, index).key);
  return { privateKey, address: addressOf(privateKey) };
}

/**
 * Derives a child key (BIP-32) with Node's built-in cryptography. In pure JavaScript, these few keys take longer than
 * loading the rest of this folder.
 */
function childOf({ key, chainCode }: ParentKey, index: number): ParentKey {
  const from = index >= HARDENED ? Buffer.concat([Buffer.of(0), key]) : publicKeyOf(key, 'compressed');
  const place = Buffer.alloc(4);
  place.writeUInt32BE(index);
  const { key: step, chainCode: next } = split(
    createHmac('sha512', chainCode).update(from).update(place).digest(),
  );
  const sum = (BigInt(bytesToHex(step)) + BigInt(bytesToHex(key))) % ORDER;
  return { key: Buffer.from(numberToBytes(sum, { size: 32 })), chainCode: next };
}

function split(digest: Buffer): ParentKey {
  return { key: digest.subarray(0, 32), chainCode: digest.subarray(32) };
}

function publicKeyOf(key: Buffer, form: 'compressed' | 'uncompressed'): Buffer {
  const curve = createECDH('secp256k1');
  curve.setPrivateKey(key);
  return curve.getPublicKey(undefined, form);
}

function addressOf(privateKey: Hex): Address {
  const key = Buffer.from(privateKey.slice(2), 'hex');
  return publicKeyToAddress(bytesToHex(publicKeyOf(key, 'uncompressed')));
}
