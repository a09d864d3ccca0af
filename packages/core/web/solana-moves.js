/** Deposits and exits on Solana: each transaction signed and sent by the wallet, and waited for. */
import { bytesOf, signAndSend, withBlockhash } from './solana-wallet.js';
import { askSolana } from './yield-api.js';

/** Where a wallet's deposit that is under way is kept, so that a closed tab does not lose a fee. It holds nothing secret. */
const keptAt = (wallet) => `farebox-solana-deposit:${wallet}`;
const POLL_MS = 1_000;
const POLLS = 180;
const STOPPED_BY = ['INSUFFICIENT_USDC', 'INSUFFICIENT_SOL'];

/** The deposit that this browser began with a wallet and did not end; null: none. */
export function keptDeposit(wallet) {
  try {
    const deposit = JSON.parse(localStorage.getItem(keptAt(wallet)) ?? 'null');
    return deposit?.wallet === wallet && deposit.signatures.length > 0 ? deposit : null;
  } catch {
    return null;
  }
}

export function forgetDeposit(wallet) {
  localStorage.removeItem(keptAt(wallet));
}

/**
 * Asks for the transactions of a deposit. `stops`: the wallet lacks something, and `warnings` say what.
 *
 * @param {string} priority what is paid for landing soon
 */
export async function prepareDeposit({ account }, amountUsdc, priority) {
  const wallet = account.address;
  const { position } = await askSolana(`position/${wallet}`);
  const { transactions, warnings, priority_fee } = await askSolana('deposit-tx', {
    wallet,
    amount_usdc: amountUsdc,
    priority,
    // Only a page that came over HTTPS, or from this machine, has it.
    ...(crypto.randomUUID === undefined ? {} : { idempotency_key: crypto.randomUUID() }),
  });
  const deposit = {
    wallet,
    amountUsdc,
    signatures: [],
    held: position.collateralBalanceRaw,
    transactions: stepsOf(transactions),
  };
  return { deposit, warnings, stops: isStopped(warnings), priorityFee: priority_fee };
}

/**
 * The same deposit at another price. What the wallet lacks stops nothing here: the fee, which is among what is asked for, is paid.
 *
 * @param deposit as it was kept
 */
export async function rebuildDeposit(deposit, priority) {
  const { wallet, amountUsdc } = deposit;
  const { transactions, priority_fee } = await askSolana('deposit-tx', {
    wallet,
    amount_usdc: amountUsdc,
    priority,
  });
  return { deposit: { ...deposit, transactions: stepsOf(transactions) }, priorityFee: priority_fee };
}

function stepsOf(transactions) {
  return transactions.map(({ note, base64 }) => ({ note, base64 }));
}

function isStopped(warnings) {
  return warnings.some(({ code }) => STOPPED_BY.includes(code));
}

/**
 * Sends what is still to be sent of a deposit, and has the portal confirm it.
 *
 * @returns {Promise<string>} what it came to
 */
export async function carryOut(connected, deposit, tell) {
  const { wallet, transactions, signatures } = deposit;
  const isResumed = signatures.length > 0;
  if (isResumed && signatures.length < transactions.length) await refuseTwice(deposit);
  for (const [index, { note, base64 }] of transactions.entries()) {
    const say = (kind, text) => tell(index, note, kind, text);
    if (signatures[index] === undefined) {
      say('sign', 'waits for your signature');
      // The transaction before has taken its time: a younger blockhash lets this one land whenever it is signed.
      const made = bytesOf(base64);
      const bytes = index > 0 ? withBlockhash(made, (await askSolana('blockhash')).blockhash) : made;
      signatures[index] = await sentBy(connected, bytes, say);
      keep(deposit);
    }
    const end = await landed(signatures[index], say);
    if (end === null) continue;
    // What failed took nothing but the chain's own fee: it can be sent anew, and what went before it stays.
    signatures.length = index;
    if (index === 0) forgetDeposit(wallet);
    else keep(deposit);
    throw new Error(end);
  }
  const { verificationStatus } = await askSolana('confirm', { wallet, txSignature: signatures.at(-1) });
  forgetDeposit(wallet);
  return verificationStatus === 'confirmed'
    ? 'Done: the chain has your deposit.'
    : 'Sent. The portal verifies the deposit as soon as it can read the chain, within the hour; you need do nothing.';
}

/** A wallet that was closed while it sent may have sent all the same. */
async function refuseTwice({ wallet, held }) {
  const { position } = await askSolana(`position/${wallet}`);
  if (position.collateralBalanceRaw === held) return;
  throw new Error(
    'Your position has changed since the fee was sent, so the deposit may have landed. Look at it below before you deposit again.',
  );
}

/** Asks for the transaction of a withdrawal. `stops` and `warnings` as those of a deposit. */
export async function prepareExit({ account }, asked) {
  const { transactions, warnings, net_usdc, priority_fee } = await askSolana('withdraw-tx', {
    wallet: account.address,
    ...asked,
  });
  return { transactions, warnings, stops: isStopped(warnings), netUsdc: net_usdc, priorityFee: priority_fee };
}

/** Has a withdrawal signed and sent. @returns {Promise<string>} what the wallet received */
export async function leave(connected, { transactions, netUsdc }, tell) {
  for (const [index, { note, base64 }] of transactions.entries()) {
    const say = (kind, text) => tell(index, note, kind, text);
    say('sign', 'waits for your signature');
    const end = await landed(await sentBy(connected, bytesOf(base64), say), say);
    if (end !== null) throw new Error(end);
  }
  return `Done: ${netUsdc} USDC or a little more are in your wallet, fees taken off.`;
}

function keep(deposit) {
  localStorage.setItem(keptAt(deposit.wallet), JSON.stringify(deposit));
}

async function sentBy({ wallet, account }, bytes, say) {
  try {
    const signature = await signAndSend(wallet, account, bytes);
    say('sent', `sent: ${signature}`);
    return signature;
  } catch (error) {
    const text = `The wallet did not send it: ${String(error?.message ?? error).slice(0, 300)}`;
    say('failed', text);
    throw new Error(text, { cause: error });
  }
}

/** Waits until the chain has a transaction. @returns {Promise<string | null>} why it never will; null: it has */
async function landed(signature, say) {
  let isSilent = true;
  for (let polls = 0; polls < POLLS; polls += 1) {
    const { status, error } = await askSolana(`transaction/${signature}`).catch(() => ({ status: null }));
    isSilent = status === null;
    if (status === 'confirmed') {
      say('mined', `on the chain: ${signature}`);
      return null;
    }
    if (status === 'failed') {
      const text = `The chain ran it, and it failed (${error}). Nothing was moved by it.`;
      say('failed', text);
      return text;
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  // Nobody knows what became of it, so nothing is sent anew.
  if (isSilent) throw new Error(`The chain cannot be asked now. Come back to this page later: ${signature}`);
  const text =
    'The chain does not have it after some minutes. Look into your wallet; what did not land moved nothing.';
  say('failed', text);
  return text;
}
