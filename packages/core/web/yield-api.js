/** Asks the addresses of this server that yield is served at. An error may be shown, and has the answer as `body`. */

/** The vault's: answers the body, or throws. */
export function askYield(path) {
  return ask(`/api/yield/${path}`);
}

/** The Solana portal's. @param {object} [sent] what is posted; without it the address is read */
export function askSolana(path, sent) {
  return ask(`/api/solana-yield/${path}`, sent);
}

/** Whether an answer says that this server offers no such thing at all. */
export function isNotOffered(error) {
  return error.status === 404 || String(error.body?.code).endsWith('_NOT_CONFIGURED');
}

async function ask(path, sent) {
  let response;
  try {
    response = await fetch(path, {
      cache: 'no-store',
      ...(sent === undefined
        ? {}
        : {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(sent),
          }),
    });
  } catch {
    throw Object.assign(new Error('The server could not be reached.'), { status: 0 });
  }
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  const { status } = response;
  throw Object.assign(new Error(body.message ?? `The server answered ${status}.`), { body, status });
}
