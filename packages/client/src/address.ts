/** The address of a Farebox. */

const USUAL_PORT = '8402';

/**
 * Finds the server that an environment means, as every program of Farebox does: `FAREBOX_URL`, or else the one of this machine that
 * listens at `PORT`. A variable that is empty counts as left out.
 *
 * @param kept a server that was named before; `FAREBOX_URL` wins over it, and it wins over `PORT`
 */
export function addressIn(
  { FAREBOX_URL = '', PORT = '' }: Readonly<Record<string, string | undefined>>,
  kept: string | null = null,
): string {
  if (FAREBOX_URL.trim() !== '') return FAREBOX_URL.trim();
  const port = PORT.trim();
  return kept ?? `http://127.0.0.1:${/^\d{1,5}$/.test(port) ? port : USUAL_PORT}`;
}

export function isThisMachine({ hostname }: URL): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}

/**
 * Reads the address of a Farebox.
 *
 * @param pays whether something is sent there that pays
 * @returns it without a slash at its end
 * @throws Error when it is none, or when somebody on the way could read what pays. It does not repeat the address
 */
export function addressOf(text: string, pays: boolean): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || `${url.username}${url.password}${url.search}` !== '')
    throw new TypeError('the url must be the address of a Farebox, such as https://farebox.example');
  if (pays && url.protocol === 'http:' && !isThisMachine(url))
    throw new TypeError(
      'the url must be of https: with http anybody on the way reads the key, or names another price and recipient',
    );
  return url.origin + url.pathname.replace(/\/+$/, '');
}
