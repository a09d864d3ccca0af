/** Below this address stands what became of a payment on a chain, by whichever rail it came: `GET /x402/receipts/{id}`. */
export const RECEIPTS_AT = '/x402/receipts/';
