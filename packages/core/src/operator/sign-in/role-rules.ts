/** Roles of people: rules over what the provider tells about a person. */
import { z } from 'zod';
import { ROLES, type Role } from '../roles.ts';

/** `CLAIM=VALUE:ROLE`, such as `email=ann@example.com:admin` or `groups=finance:money`. */
export interface RoleRule {
  claim: string;
  value: string;
  role: Role;
}

/** The claims that roles follow from, as the provider told them: each a list of texts. `email` is one that it has verified. */
export type RoleClaims = Readonly<Record<string, readonly string[]>>;

/** Values of one claim that are looked at. A provider may put hundreds of groups into a token. */
const MOST_VALUES = 500;

export const roleRule = z
  .string()
  .regex(
    new RegExp(`^[\\w./:-]{1,100}=[^\\s=,]{1,200}:(${ROLES.join('|')})$`),
    `must be CLAIM=VALUE:ROLE, such as email=ann@example.com:admin; roles are ${ROLES.join(', ')}`,
  )
  .transform((text): RoleRule => {
    const equals = text.indexOf('=');
    const colon = text.lastIndexOf(':');
    const claim = text.slice(0, equals);
    const value = text.slice(equals + 1, colon);
    const [role = 'read'] = ROLES.filter((each) => each === text.slice(colon + 1));
    return { claim, value: claim === 'email' ? (plainEmail(value) ?? value) : value, role };
  });

/** The greatest role that the rules give; null: none. */
export function roleOf(claims: RoleClaims, rules: readonly RoleRule[]): Role | null {
  const given = rules.filter(
    ({ claim, value }) => Object.hasOwn(claims, claim) && claims[claim]?.includes(value),
  );
  return ROLES.findLast((role) => given.some((rule) => rule.role === role)) ?? null;
}

/**
 * Picks the claims that the rules ask for. An e-mail address counts only where the provider says that it has verified it
 * (OpenID Connect Core 5.1, `email_verified`): otherwise anybody could claim an operator's.
 */
export function roleClaimsOf(
  told: Readonly<Record<string, unknown>>,
  rules: readonly RoleRule[],
): Record<string, string[]> {
  const claims: Record<string, string[]> = {};
  for (const claim of new Set(['email', ...rules.map((rule) => rule.claim)])) {
    const values = [Object.hasOwn(told, claim) ? told[claim] : undefined].flat();
    const texts = values.filter((value) => typeof value === 'string').slice(0, MOST_VALUES);
    if (claim !== 'email') claims[claim] = texts;
    else claims[claim] = told.email_verified === true ? texts.flatMap((text) => plainEmail(text) ?? []) : [];
  }
  return claims;
}

/** An address in small letters; null where it has any but ASCII letters, some of which look like one or become one. */
function plainEmail(text: string): string | null {
  return /^[\x21-\x7e]{1,190}@[\x21-\x7e]{1,63}$/.test(text) ? text.toLowerCase() : null;
}
