/** The notice of a server whose money is not real, said before anybody pays. */

export const SANDBOX_WARNING =
  'This server is a sandbox: its money, its chains and its answers are not real. Never pay here with a wallet or a card that holds real money.';

export const SANDBOX_NOTICE = `${SANDBOX_WARNING} The operator of the sandbox makes a wallet for it with npm run sandbox:wallet.`;

/** The fields of every document and every 402 that say so; none where the money is real. */
export function sandboxFields(sandbox: boolean): { sandbox?: true; sandboxNotice?: string } {
  return sandbox ? { sandbox: true, sandboxNotice: SANDBOX_NOTICE } : {};
}

/** The field of a single entry or offer; none where the money is real. */
export function sandboxMark(sandbox: boolean): { sandbox?: true } {
  return sandbox ? { sandbox: true } : {};
}
