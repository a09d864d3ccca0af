import { SANDBOX_WARNING } from '../http/sandbox-notice.ts';
import { type Legal, legalLinks, NO_LEGAL } from '../words/legal.ts';

/**
 * A link in the bar at the top of every page. `page` is the file or the name of the page that it leads to.
 */
export interface SiteLink {
  href: string;
  label: string;
  page: string;
}

/** The site's links, in their order. Links to what a server does not serve are left out of its bar. */
export const SITE_LINKS: readonly SiteLink[] = [
  { href: '/services', label: 'Services', page: 'services' },
  { href: '/docs', label: 'Docs', page: 'docs.html' },
  { href: '/pricing', label: 'Pricing', page: 'pricing' },
  { href: '/yield', label: 'Yield', page: 'yield.html' },
  { href: '/keys', label: 'Key', page: 'keys.html' },
];

/** The pages of a key's owner, which stand behind the last link of the bar. */
export const KEY_TABS: readonly SiteLink[] = [
  { href: '/keys', label: 'Your key', page: 'keys.html' },
  { href: '/devices', label: 'Devices', page: 'devices.html' },
];

/** The links for people at the foot of every page, where they are served. */
export const FOOT_LINKS = [
  { href: '/services', label: 'Services', column: 'Product' },
  { href: '/pricing', label: 'Pricing', column: 'Product' },
  { href: '/yield', label: 'Yield', column: 'Product' },
  { href: '/keys', label: 'Key', column: 'Product' },
  { href: '/docs/guides', label: 'Guides', column: 'House' },
  { href: '/docs/errors', label: 'Error codes', column: 'House' },
  { href: '/status', label: 'Status', column: 'House' },
] as const;

type FootLink = (typeof FOOT_LINKS)[number];

/** The documents for programs, on every server. */
const PROGRAM_LINKS = [
  { href: '/x402/catalog', label: 'Catalog' },
  { href: '/openapi.json', label: 'OpenAPI' },
  { href: '/llms.txt', label: 'llms.txt' },
  { href: '/.well-known/agent-instructions.json', label: 'Agent instructions' },
  { href: '/api/auth/capabilities', label: 'Ways to pay' },
] as const;

function footer(
  contactEmail: string | null,
  foot: readonly FootLink[],
  legal: readonly { href: string; label: string }[],
): string {
  const contact =
    contactEmail === null
      ? []
      : [{ href: `mailto:${asMarkup(contactEmail)}`, label: asMarkup(contactEmail) }];
  const of = (name: FootLink['column']) => foot.filter(({ column }) => column === name);
  return `<footer>
<p>A call is charged only when it is answered. Every answer names its sources; a value that nobody knows is null.</p>
<div class="columns">
${footColumn('Product', of('Product'))}${footColumn('For programs', PROGRAM_LINKS)}${footColumn('House', [...of('House'), ...contact])}${footColumn('Legal', legal)}</div>
</footer>`;
}

/** The operator's own documents, as links of this server's pages. */
function linksOf(legal: Legal = NO_LEGAL): { href: string; label: string }[] {
  return legalLinks(legal, '').map(({ href, label }) => ({ href: asMarkup(href), label }));
}

/** What stands before the button that leads to a payment; nothing where the operator has named nothing. */
function consentOf(legal: Legal = NO_LEGAL): string {
  const links = linksOf(legal).map(({ href, label }) => `<a href="${href}">${label}</a>`);
  return links.length === 0
    ? ''
    : `<p class="soft">By paying you accept what stands here: ${links.join(' · ')}.</p>`;
}

/** @param links with labels as markup */
function footColumn(title: string, links: readonly { href: string; label: string }[]): string {
  if (links.length === 0) return '';
  const items = links.map(({ href, label }) => `<li><a href="${href}">${label}</a></li>`);
  return `<nav aria-label="${title}">\n<p>${title}</p>\n<ul>\n${items.join('\n')}\n</ul>\n</nav>\n`;
}

/** On a phone the ribbon takes one or two lines: the same in fewer words. */
const RIBBON = `<section class="ribbon" aria-label="Sandbox"><p><strong>Sandbox</strong> <span class="on-desks">${SANDBOX_WARNING}</span><span class="on-phones">Nothing here is real. Never pay with real money.</span></p></section>\n`;

/** The placeholder for the shop's name in a page's file. */
const SHOP = '{{shop}}';
/** The placeholder for the documents that a payer accepts. */
const CONSENT = '<!--consent-->';
const OWN_ICON = '/favicon.svg';

/** Escapes text for use in an element or in an attribute in double quotes. */
export function asMarkup(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/**
 * The contents of a page's file, in this order: its part of the head, `<body>`, an optional `<nav>`, `<main>`, an
 * optional `<footer>`.
 */
const PAGE =
  /^(?<head>.*?)(?<body><body[^>]*>)\s*(?<nav><nav.*?<\/nav>)?\s*(?<main><main.*<\/main>)\s*(?<footer><footer.*<\/footer>)?\s*$/s;

/**
 * Puts the frame around a page: the common head, the bar at the top, and the footer. A page with its own `<nav>` or
 * `<footer>` keeps it instead of the site's.
 *
 * @param about.name the page's file, so that its own link can be marked as the current page
 * @param about.path the page's address, for links to it from elsewhere; null: it has none that stays
 * @param about.view what a page with several views shows first
 * @param about.asText the address of the same as Markdown
 * @param about.tabs pages that belong together with this one
 * @param about.sandbox adds a ribbon at the top that is visible without scripts
 * @param about.shop its name replaces `{{shop}}` in a page's file; `logoUrl` null: the software's own logo
 * @throws Error when the file does not have the contents of a page's file
 */
export function framed(
  page: string,
  about: {
    name: string;
    links: readonly SiteLink[];
    foot?: readonly FootLink[];
    tabs?: readonly SiteLink[];
    baseUrl: string;
    path: string | null;
    view?: string;
    asText?: string;
    sandbox: boolean;
    shop: { name: string; contactEmail: string | null; logoUrl: string | null; legal?: Legal };
  },
): string {
  const shopName = asMarkup(about.shop.name);
  const logo = asMarkup(about.shop.logoUrl ?? OWN_ICON);
  const own = PAGE.exec(
    page.replaceAll(SHOP, () => shopName).replace(CONSENT, () => consentOf(about.shop.legal)),
  )?.groups;
  if (own === undefined) throw new Error(`${about.name} is no page: it needs <body> and <main>`);
  return `<!doctype html>
<html lang="en"${about.view === undefined ? '' : ` data-view="${about.view}"`}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="application-name" content="${shopName}">
<meta name="theme-color" media="(prefers-color-scheme: light)" content="#faf9f5">
<meta name="theme-color" media="(prefers-color-scheme: dark)" content="#151512">
<link rel="icon" href="${logo}">
<link rel="apple-touch-icon" href="/assets/touch.png">
<link rel="preload" href="/assets/serif-600.woff2" as="font" type="font/woff2" crossorigin>
<link rel="stylesheet" href="/assets/style.css">
${own.head?.trim()}
${shared(own.head ?? '', shopName, about)}</head>
${own.body}
${about.sandbox ? RIBBON : ''}<a class="skip" href="#main">Skip to the content</a>
<header class="bar">
<a class="mark" href="/"><img src="${logo}" alt="" width="26" height="26">${shopName}</a>
${own.nav ?? siteNav(about.links, about.name)}
</header>
${withTabs(own.main ?? '', about)}
${own.footer ?? footer(about.shop.contactEmail, about.foot ?? [], linksOf(about.shop.legal))}
</body>
</html>
`;
}

/** The lines for programs that show a link to the page, or keep it. @param head its part of the head */
function shared(
  head: string,
  shopName: string,
  { baseUrl, path, asText }: { baseUrl: string; path: string | null; asText?: string },
): string {
  const title = /<title>(.*?)<\/title>/s.exec(head)?.[1] ?? shopName;
  const description = /<meta name="description" content="([^"]*)">/.exec(head)?.[1];
  const origin = asMarkup(baseUrl);
  const named = (property: string, content: string) =>
    `<meta property="og:${property}" content="${content}">\n`;
  return [
    named('site_name', shopName),
    named('type', 'website'),
    named('title', title),
    description === undefined ? '' : named('description', description),
    named('image', `${origin}/assets/share.png`),
    '<meta name="twitter:card" content="summary_large_image">\n',
    path === null
      ? ''
      : `${named('url', origin + asMarkup(path))}<link rel="canonical" href="${origin}${asMarkup(path)}">\n`,
    asText === undefined ? '' : `<link rel="alternate" type="text/markdown" href="${asMarkup(asText)}">\n`,
  ].join('');
}

/** A page of several that belong together begins with links to all of them. */
function withTabs(main: string, { tabs = [], name }: { tabs?: readonly SiteLink[]; name: string }): string {
  if (tabs.length < 2) return main;
  const links = tabs.map(
    ({ href, label, page }) =>
      `<a class="pill" href="${href}"${page === name ? ' aria-current="true"' : ''}>${label}</a>`,
  );
  return main.replace(
    /^<main[^>]*>/,
    (open) => `${open}\n<nav class="pills" aria-label="Key and devices">${links.join('\n')}</nav>`,
  );
}

function siteNav(links: readonly SiteLink[], name: string): string {
  const isOfKey = KEY_TABS.some(({ page }) => page === name);
  const isCurrent = (page: string) => page === name || (isOfKey && page === KEY_TABS[0]?.page);
  const lines = links.map(
    ({ href, label, page }) =>
      `<a href="${href}"${isCurrent(page) ? ' aria-current="page"' : ''}>${label}</a>`,
  );
  return ['<nav aria-label="Site">', ...lines, '</nav>'].join('\n');
}
