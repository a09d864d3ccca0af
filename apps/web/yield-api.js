/** Asks the vault's addresses of this server. Answers the body, or throws an `Error` that may be shown, with the answer as `body`. */
export async function askYield(path) {
  let response;
  try {
    response = await fetch(`/api/yield/${path}`, { cache: 'no-store' });
  } catch {
    throw new Error('The server could not be reached.');
  }
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  throw Object.assign(new Error(body.message ?? `The server answered ${response.status}.`), { body });
}
