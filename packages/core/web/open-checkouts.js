/**
 * Checkouts that this tab has opened, with the token that each key is handed over against. They live in this tab only:
 * never in an address, a cookie or lasting storage.
 */
const NAME = 'farebox-checkouts';
/** As many as anybody needs at once. */
export const MAX_OPEN = 5;

/**
 * @typedef {{ sessionId: string, retrievalToken: string, checkoutUrl: string, amountUsd: number, expiresAt: string,
 *   isNewKey: boolean }} OpenCheckout
 * @returns {OpenCheckout[]} oldest first
 */
export function openCheckouts() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(NAME) ?? '[]');
    return Array.isArray(kept) ? kept : [];
  } catch {
    return [];
  }
}

/** @param {OpenCheckout} checkout */
export function keepCheckout(checkout) {
  write([...openCheckouts(), checkout]);
}

export function forgetCheckout(sessionId) {
  write(openCheckouts().filter((each) => each.sessionId !== sessionId));
}

/** A link to the card provider's page of a checkout. */
export function isWebAddress(address) {
  return URL.canParse(address) && /^https?:$/.test(new URL(address).protocol);
}

function write(checkouts) {
  if (checkouts.length === 0) sessionStorage.removeItem(NAME);
  else sessionStorage.setItem(NAME, JSON.stringify(checkouts));
}
