import { byId, el } from './dom.js';
import { openCheckouts } from './open-checkouts.js';

const open = openCheckouts().filter(({ expiresAt }) => Date.parse(expiresAt) > Date.now());
byId('open-list').replaceChildren(
  ...open.map(({ checkoutUrl, amountUsd }) =>
    el('a', { class: 'button', href: checkoutUrl }, `Pay ${amountUsd} USD after all`),
  ),
);
byId('open-checkouts').hidden = open.length === 0;
