/**
 * Tells which world the server's money is of: the real one, or the sandbox that `npm start` made. It is a fact of the
 * configuration. It is published wherever somebody is about to pay, and a mixture of both worlds is refused at the start;
 * nothing else asks for it.
 */
import { readSolanaKey } from './rails/x402/solana-key.ts';
import { addressOf, type EvmKey } from './relayer/sign.ts';

/** The things that `npm start` says that it made. Both are empty in the real world. */
export interface SandboxMade {
  /** Addresses of the parts that it started. */
  urls: readonly string[];
  /** Wallets with keys of this installation alone. */
  wallets: readonly string[];
}

/** Everything in the configuration that money comes from, goes to or is moved by, under its variable's name. */
export interface MoneyParts {
  urls: readonly { variable: string; url: string }[];
  /** The recipients that payments are made out to. */
  recipients: readonly { variable: string; wallet: string | null }[];
  evmKeys: readonly { variable: string; keys: readonly EvmKey[] }[];
  solanaKeys: readonly { variable: string; key: string | null }[];
  cardKey: string | null;
}

/**
 * The first accounts of the phrase that development nodes are born with: their keys stand in the manual of every
 * Ethereum toolkit, and programs wait on every chain to take what arrives there.
 */
const EVERYBODYS_WALLETS: ReadonlySet<string> = new Set([
  '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266',
  '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
  '0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc',
  '0x90f79bf6eb2c4f870365e785982e1f101e93b906',
  '0x15d34aaf54267db7d7c367839aaf71a00a2c6a65',
  '0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc',
  '0x976ea74026e726554db657fa54763abd0c3a0aa9',
  '0x14dc79964da2c08b23698b3d3cc7ca32193d9955',
  '0x23618e81e3f5cdf7f54c3d65f7fbc0abf5b21e8f',
  '0xa0ee7a142d267c1f36714e4a8f75612f20a79720',
]);

/**
 * Finds the money that is of another world than the rest, a line for each variable to change; none when all is of one.
 *
 * @param made null: no part of the sandbox runs, and the money is real
 */
export function mixturesOfWorlds(made: SandboxMade | null, money: MoneyParts): string[] {
  const wallets = [
    ...money.recipients.flatMap(({ variable, wallet }) => (wallet === null ? [] : [{ variable, wallet }])),
    ...money.evmKeys.flatMap(({ variable, keys }) =>
      keys.map((key) => ({ variable, wallet: addressOfKey(key) })),
    ),
    ...money.solanaKeys.flatMap(({ variable, key }) =>
      key === null ? [] : [{ variable, wallet: readSolanaKey(key).address }],
    ),
  ];
  if (made === null) {
    return named(
      wallets.filter(({ wallet }) => EVERYBODYS_WALLETS.has(wallet.toLowerCase())),
      'is an account whose private key everybody knows: whatever arrives there is taken. Set another one',
    );
  }
  const urls = new Set(made.urls.map(originOf));
  const ours = new Set(made.wallets.map((wallet) => wallet.toLowerCase()));
  return [
    ...named(
      money.urls.filter(({ url }) => !urls.has(originOf(url))),
      'is not part of this sandbox, and real money must not meet sandbox money. Remove the variable, and the sandbox brings its own',
    ),
    ...named(
      wallets.filter(({ wallet }) => !ours.has(wallet.toLowerCase())),
      'is not a wallet of this sandbox, and real money must not meet sandbox money. Remove the variable, and the sandbox makes one',
    ),
    ...(money.cardKey === null || /^(sk|rk)_test_/.test(money.cardKey)
      ? []
      : [
          'CARD_PROVIDER_KEY: charges real cards, and this is a sandbox. Remove the variable, or set a test key',
        ]),
  ];
}

function named(found: readonly { variable: string }[], what: string): string[] {
  return [...new Set(found.map(({ variable }) => variable))].map((variable) => `${variable}: ${what}`);
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : url;
}

/** A key outside of the curve's order signs nothing anywhere; its reader says so. */
function addressOfKey(key: EvmKey): string {
  try {
    return addressOf(key);
  } catch {
    return '';
  }
}
