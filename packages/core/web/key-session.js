/** The key a person works with. It lives in this tab only: never in an address, a cookie or lasting storage. */
const NAME = 'farebox-key';

export function rememberedKey() {
  return sessionStorage.getItem(NAME) ?? '';
}

export function rememberKey(key) {
  if (key === '') sessionStorage.removeItem(NAME);
  else sessionStorage.setItem(NAME, key);
}
