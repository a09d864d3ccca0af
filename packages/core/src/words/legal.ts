/** The documents of the operator's that law and card providers ask for: links, or files that this server shows as pages. */
import { readFileSync, statSync } from 'node:fs';
import { z } from 'zod';

const MOST_BYTES = 200_000;
const MOST_ADDRESS_CHARACTERS = 500;

/** A document that stands elsewhere, or Markdown that this server shows. */
export type LegalDocument =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'text'; readonly markdown: string };

/** The documents, as far as an operator has named them. */
export interface Legal {
  readonly terms: LegalDocument | null;
  readonly privacy: LegalDocument | null;
  readonly refunds: LegalDocument | null;
  readonly imprint: LegalDocument | null;
}

type LegalName = keyof Legal;

/** In their order, with their titles. */
export const LEGAL_TITLES = {
  terms: 'Terms',
  privacy: 'Privacy',
  refunds: 'Refunds',
  imprint: 'Imprint',
} as const satisfies Readonly<Record<LegalName, string>>;

export const LEGAL_NAMES: readonly LegalName[] = ['terms', 'privacy', 'refunds', 'imprint'];

export const NO_LEGAL: Legal = { terms: null, privacy: null, refunds: null, imprint: null };

/** Where a document that came as a file is shown. */
export const legalPath = (name: LegalName) => `/legal/${name}`;

/** The address of a document; null: there is none. @param baseUrl without a trailing slash */
export function legalUrlOf(legal: Legal, name: LegalName, baseUrl: string): string | null {
  const document = legal[name];
  if (document === null) return null;
  return document.kind === 'url' ? document.url : baseUrl + legalPath(name);
}

/** The documents that there are, with their addresses. */
export function legalLinks(
  legal: Legal,
  baseUrl: string,
): readonly { name: LegalName; label: string; href: string }[] {
  return LEGAL_NAMES.flatMap((name) => {
    const href = legalUrlOf(legal, name, baseUrl);
    return href === null ? [] : [{ name, label: LEGAL_TITLES[name], href }];
  });
}

/** An https address, or the path of a file with Markdown, which is read here, once. */
export const legalDocument = z.string().transform((value, context): LegalDocument => {
  const read = /^https?:/i.test(value) ? documentAt(value) : documentIn(value);
  if (typeof read !== 'string') return read;
  context.addIssue({ code: 'custom', message: read });
  return z.NEVER;
});

function documentAt(address: string): LegalDocument | string {
  if (!URL.canParse(address) || new URL(address).protocol !== 'https:')
    return 'must be an https address, or the path of a file';
  const { href, username, password } = new URL(address);
  if (username !== '' || password !== '') return 'must not hold a user name or a password';
  return href.length > MOST_ADDRESS_CHARACTERS
    ? `must have at most ${MOST_ADDRESS_CHARACTERS} characters`
    : { kind: 'url', url: href };
}

/** The text, or in words what is wrong with the file. */
function documentIn(path: string): LegalDocument | string {
  try {
    const { size } = statSync(path);
    if (size > MOST_BYTES) return `the file has ${size} bytes, and may have ${MOST_BYTES}`;
    const markdown = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path));
    return markdown.trim() === '' ? 'the file is empty' : { kind: 'text', markdown };
  } catch {
    return 'the file cannot be read as text in UTF-8: give its path, or an https address';
  }
}
