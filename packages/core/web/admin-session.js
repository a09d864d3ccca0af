/** An operator's token, in this tab only: never in an address, a cookie or lasting storage. */
const NAME = 'farebox-operator';

export function rememberedToken() {
  return sessionStorage.getItem(NAME) ?? '';
}

export function rememberToken(token) {
  if (token === '') sessionStorage.removeItem(NAME);
  else sessionStorage.setItem(NAME, token);
}

/** The server said no; `code` and `status` say how. */
export class Refusal extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/**
 * One request of the operator's.
 *
 * @param {string} path below `/admin/api/`
 * @param {object} [act] makes it a POST: `body`, and `key` for what must be done once
 * @returns {Promise<object>} the answer's body
 * @throws {Refusal} when the server says no; an Error that may be shown when nobody knows whether it was reached
 */
export async function ask(path, act) {
  let response;
  try {
    response = await fetch(`/admin/api/${path}`, {
      method: act === undefined ? 'GET' : 'POST',
      cache: 'no-store',
      headers: {
        authorization: `Bearer ${rememberedToken()}`,
        ...(act?.key === undefined ? {} : { 'idempotency-key': act.key }),
        ...(act?.body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(act?.body === undefined ? {} : { body: JSON.stringify(act.body) }),
    });
  } catch {
    throw new Error('The server could not be reached.');
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) {
    throw new Refusal(
      response.status,
      answer.code,
      answer.message ?? `The server answered ${response.status}.`,
    );
  }
  return answer;
}
