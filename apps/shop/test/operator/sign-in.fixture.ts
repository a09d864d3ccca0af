/** A browser's way through a sign-in, without a browser: its cookies, and where it is sent. */
import assert from 'node:assert/strict';
import type { SignInProviderDouble, Told } from './sign-in-provider.fixture.ts';

export const PAGE = { 'x-operator-page': '1', 'sec-fetch-site': 'same-origin' };

export interface Surfer {
  /** By name. */
  cookies: Map<string, string>;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  /** Asks below `/admin/api`, as the page does. */
  ask(
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: Record<string, unknown> }>;
}

/** @param url the server's; @param from the address that the proxy says the browser has */
export function surfer(url: string, from = '8.8.4.4'): Surfer {
  const cookies = new Map<string, string>();
  const send = async (path: string, init: RequestInit) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = {
      'x-forwarded-for': from,
      ...(cookie === '' ? {} : { cookie }),
      ...Object.fromEntries(new Headers(init.headers)),
    };
    const response = await fetch(url + path, { redirect: 'manual', ...init, headers });
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';');
      const name = pair.slice(0, pair.indexOf('='));
      if (line.includes('Max-Age=0')) cookies.delete(name);
      else cookies.set(name, pair.slice(pair.indexOf('=') + 1));
    }
    return response;
  };
  return {
    cookies,
    get: (path, headers = {}) => send(path, { headers }),
    async ask(path, body, headers = {}) {
      const response = await send(`/admin/api/${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          ...PAGE,
          ...(body === undefined
            ? {}
            : { 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const isJson = /^application\/json(;|$)/.test(response.headers.get('content-type') ?? '');
      const text = await response.text();
      return { status: response.status, body: isJson ? JSON.parse(text) : {} };
    },
  };
}

/** Begins a sign-in, goes to the provider, and is sent back. @returns the path at the server that the browser is sent to */
export async function atProvider(browser: Surfer): Promise<string> {
  const begun = await browser.get('/admin/sign-in');
  assert.equal(begun.status, 303, await begun.text());
  const back = await fetch(begun.headers.get('location') ?? '', { redirect: 'manual' });
  const { pathname, search } = new URL(back.headers.get('location') ?? '');
  return pathname + search;
}

/** Signs somebody in. @returns the last answer */
export async function signIn(
  browser: Surfer,
  provider: SignInProviderDouble,
  person: Told,
): Promise<Response> {
  provider.person = person;
  return browser.get(await atProvider(browser));
}
