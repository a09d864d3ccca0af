/**
 * An operator's token, in this tab only: never in an address, a cookie or lasting storage. Whoever signed in at the provider has a cookie
 * instead, which no script sees.
 */
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
        // With a session's cookie the server asks for this header: another site's page cannot send it.
        'x-operator-page': '1',
        ...(rememberedToken() === '' ? {} : { authorization: `Bearer ${rememberedToken()}` }),
        ...(act?.key === undefined ? {} : { 'idempotency-key': act.key }),
        ...(act?.body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(act?.body === undefined ? {} : { body: JSON.stringify(act.body) }),
    });
  } catch {
    throw new Error('The server could not be reached.');
  }
  if (response.ok && act === undefined && wantsFile(response)) return response.blob();
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

function wantsFile(response) {
  return response.headers.has('content-disposition');
}

/**
 * How operators sign in here.
 *
 * @param {string|null} problem the code of what went wrong on the way
 * @returns {Promise<{ provider: string|null, token: boolean, session: boolean, problem: string|null }>}
 */
export async function waysIn(problem) {
  const query = problem === null ? '' : `?problem=${encodeURIComponent(problem)}`;
  const response = await fetch(`/admin/ways${query}`, { cache: 'no-store' });
  if (!response.ok) throw new Error('The server does not say how to sign in. Load the page again.');
  return response.json();
}

/** Saves what an address of the operator's answers as a file. @param {string} path below `/admin/api/` */
export async function save(path, name) {
  const url = URL.createObjectURL(await ask(path));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
