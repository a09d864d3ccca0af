/** The two cookies of operators: a session's, and that of a sign-in on its way. */

/**
 * Names and attributes of the cookies at a public address. Over TLS their names begin with `__Host-`: a browser then takes them from
 * this host alone, so that no other host of the same domain can put a sign-in of its own in place of an operator's (RFC 6265bis 4.1.3).
 */
export function operatorCookies(baseUrl: string) {
  const isSecure = baseUrl.startsWith('https:');
  const prefix = isSecure ? '__Host-' : '';
  const session = `${prefix}farebox-operator`;
  const written = (name: string, value: string, sameSite: 'Strict' | 'Lax', maxAgeS: number) =>
    `${name}=${value}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=${sameSite}${isSecure ? '; Secure' : ''}`;
  /** Each sign-in has a cookie of its own, so that two in two tabs do not end each other. */
  const ofAttempt = (state: string) => `${prefix}farebox-sign-in-${state.slice(0, 16)}`;
  return {
    sessionOf: (header: string | undefined) => cookieOf(header, session),
    session: (value: string, maxAgeS: number) => written(session, value, 'Strict', maxAgeS),
    noSession: () => written(session, '', 'Strict', 0),

    attemptOf: (header: string | undefined, state: string) => cookieOf(header, ofAttempt(state)),
    /** Lax: the provider sends the browser back from another site. */
    attempt: (state: string, value: string, maxAgeS: number) =>
      written(ofAttempt(state), value, 'Lax', maxAgeS),
    noAttempt: (state: string) => written(ofAttempt(state), '', 'Lax', 0),
  };
}

/** The value of a cookie; null: there is none of that name, or there are two. */
function cookieOf(header: string | undefined, name: string): string | null {
  const values = (header ?? '').split(';').flatMap((pair) => {
    const equals = pair.indexOf('=');
    return equals > 0 && pair.slice(0, equals).trim() === name ? [pair.slice(equals + 1).trim()] : [];
  });
  return values.length === 1 && values[0] !== '' ? (values[0] ?? null) : null;
}
