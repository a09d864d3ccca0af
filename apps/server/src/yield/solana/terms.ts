/** What the portal charges, and the bounds of what it takes. */

/** Of what a wallet brings, in hundredths of a percent. */
export const DEPOSIT_FEE_BPS = 50n;
