/** The wallet of the browser: found by EIP-6963, or where older wallets put themselves; asked by EIP-1193. */

const BASE = '0x2105';
const RECEIPT_POLL_MS = 1_000;
const RECEIPT_MS = 180_000;
const NO_SUCH_CHAIN = 4902;
const REFUSED = 4001;

/** @param {(wallets: { name: string, provider: any }[]) => void} changed told whenever another one announces itself */
export function watchWallets(changed) {
  const wallets = new Map();
  const told = () => changed([...wallets.values()]);
  window.addEventListener('eip6963:announceProvider', ({ detail }) => {
    const { info, provider } = detail ?? {};
    if (typeof info?.uuid !== 'string' || provider === undefined) return;
    wallets.set(info.uuid, { name: String(info.name).slice(0, 40), provider });
    told();
  });
  window.dispatchEvent(new Event('eip6963:requestProvider'));
  if (wallets.size === 0 && window.ethereum !== undefined)
    wallets.set('injected', { name: 'Browser wallet', provider: window.ethereum });
  told();
}

/** Where a transaction is kept until it is seen mined, so that a closed tab does not lead to a second deposit. */
const keptAt = (account) => `farebox-base-transaction:${account.toLowerCase()}`;

/** The transaction that this browser sent from an account and did not see mined; null: none. */
export function sentBefore(account) {
  try {
    const hash = localStorage.getItem(keptAt(account));
    return /^0x[0-9a-f]{64}$/i.test(hash ?? '') ? hash : null;
  } catch {
    return null;
  }
}

/** Waits for such a transaction, and forgets it. @throws Error when it was reverted, or is not mined in some minutes */
export async function lookFor(provider, account, hash) {
  try {
    await mined(provider, hash);
  } finally {
    // Another one may have been sent meanwhile.
    if (sentBefore(account) === hash) localStorage.removeItem(keptAt(account));
  }
}

function keep(account, hash) {
  try {
    localStorage.setItem(keptAt(account), hash);
  } catch {
    // Storage that is full or forbidden must not make a transaction that was sent look like one that failed.
  }
}

/** The account that the wallet lets us see, on Base. */
export async function connectWallet(provider) {
  const [account] = await provider.request({ method: 'eth_requestAccounts' });
  if (typeof account !== 'string') throw new Error('The wallet named no account.');
  return account;
}

async function onBase(provider) {
  const isThere = async () => (await provider.request({ method: 'eth_chainId' })) === BASE;
  if (await isThere()) return;
  try {
    await provider.request({ method: 'wallet_switchEthereumChain', params: [{ chainId: BASE }] });
  } catch (error) {
    throw new Error(
      error?.code === NO_SUCH_CHAIN
        ? 'The wallet does not know Base (chain 8453). Add it there first.'
        : 'The wallet stays on another chain than Base (8453).',
      { cause: error },
    );
  }
  if (!(await isThere())) throw new Error('The wallet stays on another chain than Base (8453).');
}

/** Whoever signs may have changed the account in the wallet since: a step is for the one that it was made for. */
async function asAccount(provider, from) {
  const accounts = await provider.request({ method: 'eth_accounts' });
  if (accounts.some((account) => String(account).toLowerCase() === from.toLowerCase())) return;
  throw new Error(`The wallet shows another account than ${from}. Choose that one there, and begin again.`);
}

/**
 * Has each step signed, sent and mined, one after the other: on Base and by that account, also when the wallet's owner went
 * somewhere else between two of them.
 *
 * @param {(index: number, state: 'sign'|'sent'|'mined'|'failed', text: string) => void} tell
 */
export async function carryOut(provider, from, steps, tell) {
  for (const [index, step] of steps.entries()) {
    try {
      await onBase(provider);
      await asAccount(provider, from);
      tell(index, 'sign', 'waits for your signature');
      const data = step.permit === undefined ? step.data : await signedData(provider, from, step.permit);
      const { to, value, gas } = step;
      const hash = await provider.request({
        method: 'eth_sendTransaction',
        params: [{ from, to, data, value, gas, chainId: BASE }],
      });
      tell(index, 'sent', `sent: ${hash}`);
      keep(from, hash);
      await lookFor(provider, from, hash);
      tell(index, 'mined', `mined: ${hash}`);
    } catch (error) {
      const text =
        error?.code === REFUSED ? 'You refused it in the wallet.' : String(error?.message ?? error);
      tell(index, 'failed', text.slice(0, 300));
      throw new Error(text.slice(0, 300), { cause: error });
    }
  }
}

/** The call with the signature where the contract looks for it: v, r, s, a word each. */
async function signedData(provider, from, { typedData, dataWithoutSignature }) {
  const signature = await provider.request({
    method: 'eth_signTypedData_v4',
    params: [from, JSON.stringify(typedData)],
  });
  const digits = String(signature).slice(2);
  if (!/^[0-9a-f]{130}$/i.test(digits))
    throw new Error(
      'The wallet signs as a contract does. Leave the signature out, and deposit in two steps.',
    );
  const last = Number.parseInt(digits.slice(128), 16);
  const v = (last < 27 ? last + 27 : last).toString(16).padStart(64, '0');
  return dataWithoutSignature + v + digits.slice(0, 128);
}

async function mined(provider, hash) {
  const untilMs = performance.now() + RECEIPT_MS;
  // A wallet may also say nothing any more.
  const over = new Promise((resolve) => setTimeout(resolve, RECEIPT_MS));
  while (performance.now() < untilMs) {
    const asked = provider.request({ method: 'eth_getTransactionReceipt', params: [hash] });
    const receipt = await Promise.race([asked, over]);
    if (receipt?.status === '0x1') return;
    if (receipt?.status === '0x0') throw new Error(`The transaction was reverted: ${hash}`);
    await new Promise((resolve) => setTimeout(resolve, RECEIPT_POLL_MS));
  }
  throw new Error(`The transaction is not mined yet: ${hash}. Look for it in your wallet.`);
}
