/** The path below which receipts stand for on-chain payments of every rail: `GET /x402/receipts/{id}`. */
export const RECEIPTS_AT = '/x402/receipts/';
