/** Wallets of the browser on Solana, found and asked by the wallet standard. Keys stay with them. */

const CHAIN = 'solana:mainnet';
const CONNECT = 'standard:connect';
const SEND = 'solana:signAndSendTransaction';
const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const SIGNATURE_BYTES = 64;
const ADDRESS_BYTES = 32;

/**
 * Whichever of the two comes first, the page or the wallet: each announces itself to the other.
 *
 * @param {(wallets: readonly any[]) => void} changed told of all that can sign and send on Solana, whenever one comes or goes
 */
export function watchSolanaWallets(changed) {
  const wallets = new Set();
  const told = () => changed([...wallets]);
  const register = (...those) => {
    const fit = those.filter(canSend);
    for (const wallet of fit) wallets.add(wallet);
    if (fit.length > 0) told();
    return () => {
      for (const wallet of fit) wallets.delete(wallet);
      told();
    };
  };
  const api = Object.freeze({ register });
  window.addEventListener('wallet-standard:register-wallet', ({ detail }) => {
    if (typeof detail === 'function') detail(api);
  });
  window.dispatchEvent(new CustomEvent('wallet-standard:app-ready', { detail: api }));
  told();
}

function canSend(wallet) {
  return (
    Array.isArray(wallet?.chains) &&
    wallet.chains.includes(CHAIN) &&
    wallet.features?.[CONNECT] !== undefined &&
    wallet.features?.[SEND]?.supportedTransactionVersions?.includes(0) === true
  );
}

/** The account that the wallet lets us see. */
export async function connectSolanaWallet(wallet) {
  const { accounts } = await wallet.features[CONNECT].connect();
  const account = accounts.find(({ chains }) => chains.includes(CHAIN));
  if (account === undefined) throw new Error('The wallet shows no account on Solana.');
  return account;
}

/**
 * Has a transaction signed and sent by the wallet.
 *
 * @param {Uint8Array} transaction on the wire, its signatures empty
 * @returns {Promise<string>} its signature, base58
 */
export async function signAndSend(wallet, account, transaction) {
  const [sent] = await wallet.features[SEND].signAndSendTransaction({
    account,
    transaction,
    chain: CHAIN,
    options: { preflightCommitment: 'confirmed' },
  });
  if (sent?.signature?.length !== SIGNATURE_BYTES) throw new Error('The wallet named no signature.');
  return base58(sent.signature);
}

/** Bytes of base64. */
export function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/**
 * The same transaction with another blockhash: what is not signed yet can have a younger one.
 *
 * @param {Uint8Array} transaction of version 0, on the wire
 * @param {string} blockhash base58
 */
export function withBlockhash(transaction, blockhash) {
  const [signatures, message] = lengthAt(transaction, 0);
  const version = message + signatures * SIGNATURE_BYTES;
  if (transaction[version] !== 0x80) throw new Error('The transaction is not of version 0.');
  // Behind the version stand three numbers of signers, and then the accounts.
  const [accounts, first] = lengthAt(transaction, version + 4);
  const renewed = transaction.slice();
  renewed.set(bytesOfBase58(blockhash, ADDRESS_BYTES), first + accounts * ADDRESS_BYTES);
  return renewed;
}

/** A length of seven bits a byte, and where what it counts begins. */
function lengthAt(bytes, at) {
  let length = 0;
  for (let index = 0; index < 3; index += 1) {
    length |= (bytes[at + index] & 0x7f) << (7 * index);
    if (bytes[at + index] < 0x80) return [length, at + index + 1];
  }
  throw new Error('The transaction cannot be read.');
}

function base58(bytes) {
  let rest = bytes.reduce((number, byte) => number * 256n + BigInt(byte), 0n);
  let text = '';
  for (; rest > 0n; rest /= 58n) text = ALPHABET[Number(rest % 58n)] + text;
  const zeros = bytes.findIndex((byte) => byte !== 0);
  return '1'.repeat(zeros === -1 ? bytes.length : zeros) + text;
}

function bytesOfBase58(text, length) {
  let rest = 0n;
  for (const character of text) {
    const digit = ALPHABET.indexOf(character);
    if (digit === -1) throw new Error('The server named no blockhash.');
    rest = rest * 58n + BigInt(digit);
  }
  const bytes = new Uint8Array(length);
  for (let index = length - 1; index >= 0; index -= 1, rest >>= 8n) bytes[index] = Number(rest & 255n);
  return bytes;
}
