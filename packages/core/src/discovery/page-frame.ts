import { SANDBOX_WARNING } from '../http/sandbox-notice.ts';

/**
 * A link in the bar at the top of every page. `page` is the file of the page that it leads to, if it is one of ours.
 */
export interface SiteLink {
  href: string;
  label: string;
  page?: string;
}

/** The site's links, in their order. Links to what a server does not serve are left out of its bar. */
export const SITE_LINKS: readonly SiteLink[] = [
  { href: '/docs', label: 'Services', page: 'docs.html' },
  { href: '/keys', label: 'Keys', page: 'keys.html' },
  { href: '/yield', label: 'Yield', page: 'yield.html' },
  { href: '/openapi.json', label: 'OpenAPI' },
];

const footer = (contactEmail: string | null) => `<footer>
<p>A call is charged only when it is answered. Every answer names its sources; a value that nobody knows is null.${contactEmail === null ? '' : ` Questions: <a href="mailto:${asMarkup(contactEmail)}">${asMarkup(contactEmail)}</a>`}</p>
<nav aria-label="For programs">
<a href="/x402/catalog">catalog</a>
<a href="/openapi.json">openapi.json</a>
<a href="/llms.txt">llms.txt</a>
<a href="/.well-known/agent-instructions.json">agent instructions</a>
<a href="/api/auth/capabilities">capabilities</a>
</nav>
</footer>`;

const RIBBON = `<p class="ribbon" role="note"><strong>Sandbox</strong> ${SANDBOX_WARNING}</p>\n`;

/** The placeholder for the shop's name in a page's file. */
const SHOP = '{{shop}}';
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
 * @param about.sandbox adds a ribbon at the top that is visible without scripts
 * @param about.shop its name replaces `{{shop}}` in a page's file; `logoUrl` null: the software's own logo
 * @throws Error when the file does not have the contents of a page's file
 */
export function framed(
  page: string,
  about: {
    name: string;
    links: readonly SiteLink[];
    sandbox: boolean;
    shop: { name: string; contactEmail: string | null; logoUrl: string | null };
  },
): string {
  const shopName = asMarkup(about.shop.name);
  const logo = asMarkup(about.shop.logoUrl ?? OWN_ICON);
  const own = PAGE.exec(page.replaceAll(SHOP, () => shopName))?.groups;
  if (own === undefined) throw new Error(`${about.name} is no page: it needs <body> and <main>`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="application-name" content="${shopName}">
<link rel="icon" href="${logo}">
<link rel="stylesheet" href="/assets/style.css">
${own.head?.trim()}
</head>
${own.body}
${about.sandbox ? RIBBON : ''}<a class="skip" href="#main">Skip to the content</a>
<header class="bar">
<a class="mark" href="/"><img src="${logo}" alt="" width="26" height="26">${shopName}</a>
${own.nav ?? siteNav(about.links, about.name)}
</header>
${own.main}
${own.footer ?? footer(about.shop.contactEmail)}
</body>
</html>
`;
}

function siteNav(links: readonly SiteLink[], name: string): string {
  const lines = links.map(
    ({ href, label, page }) => `<a href="${href}"${page === name ? ' aria-current="page"' : ''}>${label}</a>`,
  );
  return ['<nav aria-label="Site">', ...lines, '</nav>'].join('\n');
}
