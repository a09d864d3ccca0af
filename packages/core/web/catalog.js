/** @returns {Promise<object>} `/x402/catalog` */
export function loadCatalog() {
  return load('/x402/catalog');
}

/** @returns {Promise<object[]>} entries of what the words are about, best first, in the order of every search here */
export async function findServices(words) {
  const { services } = await load(`/x402/catalog?limit=20&q=${encodeURIComponent(words)}`);
  return services;
}

/** @returns {Promise<object>} how to buy one service: schemas, example, commands */
export function loadRecipe(id) {
  return load(`/x402/recipes/${encodeURIComponent(id)}`);
}

/** @returns {Promise<object>} the ways to pay that work now */
export function loadCapabilities() {
  return load('/api/auth/capabilities');
}

/** The services of a catalog by tag, in catalog order. */
export function byTag(services) {
  return Map.groupBy(services, ({ tag }) => tag);
}

/** "$0.25", from a catalog entry; "$0.02 to 0.30" where the call decides. */
export function priceOf(entry) {
  return pricesOf(entry.route) ?? `$${entry.priceUSDC}`;
}

/** The same from a recipe. */
export function recipePriceOf(recipe) {
  return pricesOf(recipe.route) ?? `$${recipe.priceUsd}`;
}

/** The lowest and the highest price at an address of its own; null where all calls cost the same. */
function pricesOf(route) {
  const prices = route?.prices ?? null;
  return prices === null ? null : `$${prices.lowestUsd} to ${prices.highestUsd}`;
}

async function load(path) {
  const response = await fetch(path, { headers: { accept: 'application/json' } });
  if (!response.ok) {
    const problem = await response.json().catch(() => ({}));
    throw Object.assign(new Error(problem.message ?? `${path} answered ${response.status}`), {
      status: response.status,
      code: problem.code,
    });
  }
  return response.json();
}
