/** The address of a Farebox. */

/** Where a Farebox is that says nothing else. */
export const USUAL_ADDRESS = 'http://127.0.0.1:8402';

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
