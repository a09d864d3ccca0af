/** The roles of operators, and the least role that each route of theirs asks for. */
import { Problem } from '../http/problem.ts';

/** From the least to the greatest: each may do what those before it may. */
export const ROLES = ['read', 'support', 'money', 'admin'] as const;
export type Role = (typeof ROLES)[number];

export interface RouteRule {
  least: Role;
  /**
   * The part of it that the trail keeps. `asked`: each request, before it is carried out. `shown`: whose data an answer held, before it
   * leaves. `export`: each request, before its first byte. Null: nothing.
   */
  trail: 'asked' | 'shown' | 'export' | null;
}

const READ: RouteRule = { least: 'read', trail: null };
const rule = (least: Role, trail: RouteRule['trail']): RouteRule => ({ least, trail });

/** Every route below `/admin/api`, by method and path. A route that is not named here stops the start. */
export const OPERATOR_ROUTES: Readonly<Record<string, RouteRule>> = {
  'GET /session': READ,
  'GET /caller': READ,
  'GET /overview': READ,
  'GET /owed': READ,
  'GET /law-pages': READ,
  'GET /books': READ,
  'POST /books': rule('read', 'asked'),
  'GET /services': READ,
  'GET /stock/versions': READ,
  'GET /stock/versions/:version': READ,
  'POST /sign-out': READ,

  'GET /keys': rule('support', 'shown'),
  'GET /find': rule('support', 'shown'),
  'GET /calls/:call': rule('support', 'shown'),
  'GET /accounts/:account': rule('support', 'shown'),
  'GET /acts': rule('support', 'shown'),
  'POST /accounts/:account/freeze': rule('support', 'asked'),
  'POST /accounts/:account/unfreeze': rule('support', 'asked'),
  'POST /accounts/:account/lift-bounds': rule('support', 'asked'),
  'POST /accounts/:account/mail-key': rule('support', 'asked'),

  'POST /accounts/:account/grant': rule('money', 'asked'),
  'POST /accounts/:account/refund-call': rule('money', 'asked'),
  'POST /accounts/:account/refund-order': rule('money', 'asked'),
  'POST /payments/:call/refund': rule('money', 'asked'),
  'POST /acts/:act/go-on': rule('money', 'asked'),
  'GET /proposals': rule('money', null),
  'POST /proposals/:proposal/approve': rule('money', 'asked'),
  'POST /proposals/:proposal/decline': rule('money', 'asked'),
  'POST /services/:service': rule('money', 'asked'),

  'GET /accounting.csv': rule('money', 'export'),
  'GET /accounting.jsonl': rule('money', 'export'),

  'GET /audit.jsonl': rule('admin', 'export'),
  'GET /operators': rule('admin', null),
  'POST /operators/:operator/role': rule('admin', null),
  'POST /sessions/:session/end': rule('admin', null),
  'POST /tokens': rule('admin', null),
  'GET /trail': rule('admin', null),
};

/** The rule of a route, which answers HEAD as it answers GET; undefined: it has none. */
export function ruleOf(method: string, path: string): RouteRule | undefined {
  const name = `${method === 'HEAD' ? 'GET' : method} ${path}`;
  return Object.hasOwn(OPERATOR_ROUTES, name) ? OPERATOR_ROUTES[name] : undefined;
}

/** Whether a role includes another. */
export function includes(role: Role, least: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(least);
}

/** @throws Problem 403 ROLE_NEEDED, which names both roles */
export function refuseBelow(role: Role, least: Role): void {
  if (includes(role, least)) return;
  throw new Problem(
    403,
    'ROLE_NEEDED',
    `This needs the role ${least}, and yours is ${role}. An operator with the role admin can give it to you.`,
    { details: { roleNeeded: least, role } },
  );
}
