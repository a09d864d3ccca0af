import { SANDBOX_WARNING } from '../http/sandbox-notice.ts';

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
  { href: '/yield', label: 'Yield', page: 'yield.html' },
  { href: '/keys', label: 'Keys', page: 'keys.html' },
];

/** The links for people at the foot of every page, where they are served. */
export const FOOT_LINKS = [
  { href: '/services', label: 'services' },
  { href: '/docs/guides', label: 'guides' },
  { href: '/docs/errors', label: 'error codes' },
] as const;

type FootLink = (typeof FOOT_LINKS)[number];

const footer = (contactEmail: string | null, foot: readonly FootLink[]) => `<footer>
<p>A call is charged only when it is answered. Every answer names its sources; a value that nobody knows is null.${contactEmail === null ? '' : ` Questions: <a href="mailto:${asMarkup(contactEmail)}">${asMarkup(contactEmail)}</a>`}</p>
${foot.length === 0 ? '' : `<nav aria-label="For people">\n${foot.map(({ href, label }) => `<a href="${href}">${label}</a>`).join('\n')}\n</nav>\n`}<nav aria-label="For programs">
<a href="/x402/catalog">catalog</a>
<a href="/openapi.json">openapi.json</a>
<a href="/llms.txt">llms.txt</a>
<a href="/.well-known/agent-instructions.json">agent instructions</a>
<a href="/api/auth/capabilities">capabilities</a>
</nav>
</footer>`;

const RIBBON = `<section class="ribbon" aria-label="Sandbox"><p><strong>Sandbox</strong> ${SANDBOX_WARNING}</p></section>\n`;

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
 * @param about.path the page's address, for links to it from elsewhere; null: it has none that stays
 * @param about.view what a page with several views shows first
 * @param about.asText the address of the same as Markdown
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
    baseUrl: string;
    path: string | null;
    view?: string;
    asText?: string;
    sandbox: boolean;
    shop: { name: string; contactEmail: string | null; logoUrl: string | null };
  },
): string {
  const shopName = asMarkup(about.shop.name);
  const logo = asMarkup(about.shop.logoUrl ?? OWN_ICON);
  const own = PAGE.exec(page.replaceAll(SHOP, () => shopName))?.groups;
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
<link rel="stylesheet" href="/assets/style.css">
${own.head?.trim()}
${shared(own.head ?? '', shopName, about)}</head>
${own.body}
${about.sandbox ? RIBBON : ''}<a class="skip" href="#main">Skip to the content</a>
<header class="bar">
<a class="mark" href="/"><img src="${logo}" alt="" width="26" height="26">${shopName}</a>
${own.nav ?? siteNav(about.links, about.name)}
</header>
${own.main}
${own.footer ?? footer(about.shop.contactEmail, about.foot ?? [])}
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

function siteNav(links: readonly SiteLink[], name: string): string {
  const lines = links.map(
    ({ href, label, page }) => `<a href="${href}"${page === name ? ' aria-current="page"' : ''}>${label}</a>`,
  );
  return ['<nav aria-label="Site">', ...lines, '</nav>'].join('\n');
}
