/** Finds services by words. The page's links do the rest, with and without a script. */
import { byId } from './dom.js';
import { offerWebTools } from './web-tools.js';

const form = byId('search');
form.addEventListener('submit', (event) => {
  event.preventDefault();
  const address = new URL(location.href);
  const words = byId('q').value.trim();
  if (words === '') address.searchParams.delete('q');
  else address.searchParams.set('q', words);
  location.assign(address);
});
void offerWebTools();
