/** Names of card networks by the card provider's word; another one is written as it came. */
const NETWORKS = new Map([
  ['amex', 'American Express'],
  ['cartes_bancaires', 'Cartes Bancaires'],
  ['diners', 'Diners Club'],
  ['discover', 'Discover'],
  ['eftpos_au', 'eftpos'],
  ['jcb', 'JCB'],
  ['mastercard', 'Mastercard'],
  ['unionpay', 'UnionPay'],
  ['unknown', 'Card'],
  ['visa', 'Visa'],
]);

/** "Visa ending in 4242". @param {{ brand: string, last4: string }} card */
export function cardWords({ brand, last4 }) {
  return `${NETWORKS.get(brand) ?? brand.replaceAll('_', ' ')} ending in ${last4}`;
}
