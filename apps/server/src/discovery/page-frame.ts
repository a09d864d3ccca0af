import { SANDBOX_WARNING } from '../http/sandbox-notice.ts';

/** A link in the bar at the top of every page. `page` names the file of the page that it leads to, where that is ours. */
export interface SiteLink {
  href: string;
  label: string;
  page?: string;
}

/** The site's own links, in their order. A part that brings a page adds its own. */
export const SITE_LINKS: readonly SiteLink[] = [
  { href: '/docs', label: 'Services', page: 'docs.html' },
  { href: '/keys', label: 'Keys', page: 'keys.html' },
  { href: '/openapi.json', label: 'OpenAPI' },
];

const FOOTER = `<footer>
<p>A call is charged only when it is answered. Every answer names its sources; a value that nobody knows is null.</p>
<nav aria-label="For programs">
<a href="/x402/catalog">catalog</a>
<a href="/openapi.json">openapi.json</a>
<a href="/llms.txt">llms.txt</a>
<a href="/.well-known/agent-instructions.json">agent instructions</a>
<a href="/api/auth/capabilities">capabilities</a>
</nav>
</footer>`;

const RIBBON = `<p class="ribbon" role="note"><strong>Sandbox</strong> ${SANDBOX_WARNING}</p>\n`;

/** What a page's file holds, in this order: its part of the head, `<body>`, a `<nav>` or none, `<main>`, a `<footer>` or none. */
const PAGE =
  /^(?<head>.*?)(?<body><body[^>]*>)\s*(?<nav><nav.*?<\/nav>)?\s*(?<main><main.*<\/main>)\s*(?<footer><footer.*<\/footer>)?\s*$/s;

/**
 * Puts the frame around a page: what every page has in its head, the bar at the top, and the footer. A page that brings a
 * `<nav>` or a `<footer>` of its own has that in the place of the site's.
 *
 * @param about.name the page's file, so that its own link can say that it leads here
 * @param about.sandbox puts a ribbon on top, which needs no script to be seen
 * @throws Error when the file does not hold what a page's file holds
 */
export function framed(
  page: string,
  about: { name: string; links: readonly SiteLink[]; sandbox: boolean },
): string {
  const own = PAGE.exec(page)?.groups;
  if (own === undefined) throw new Error(`${about.name} is no page: it needs <body> and <main>`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="/favicon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/style.css">
${own.head?.trim()}
</head>
${own.body}
${about.sandbox ? RIBBON : ''}<a class="skip" href="#main">Skip to the content</a>
<header class="bar">
<a class="mark" href="/"><img src="/favicon.svg" alt="" width="26" height="26">Farebox</a>
${own.nav ?? siteNav(about.links, about.name)}
</header>
${own.main}
${own.footer ?? FOOTER}
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
