/** Asks the credit addresses of this server. */

/** @returns {Promise<{ ok: boolean, status: number, body: any }>} `body` null: nobody answered */
export async function post(path, body) {
  try {
    const response = await fetch(`/api/m2m/credits/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      cache: 'no-store',
    });
    return { ok: response.ok, status: response.status, body: await response.json() };
  } catch {
    return { ok: false, status: 0, body: null };
  }
}

/** Does it once at a time. */
export async function whileBusy(button, what) {
  button.disabled = true;
  await what();
  button.disabled = false;
}
