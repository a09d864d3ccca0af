/** The frame of the sandbox's pages: plain HTML that needs no script, says that it is a sandbox, and loads nothing. */
import { createHash } from 'node:crypto';

const STYLE = `
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--paper:#fff;--ground:#f3f4f6;--line:#8c959f;--act:#0b57d0;--on-act:#fff;--bad:#a40e26;--bad-ground:#ffebe9;--note:#fff3c4;--note-ink:#3b2d00}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#a5b0bb;--paper:#161b22;--ground:#0d1117;--line:#6e7681;--act:#7fb0ff;--on-act:#0b1220;--bad:#ffb3b8;--bad-ground:#3b1219;--note:#4a3b00;--note-ink:#ffeeb0}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
.sandbox{margin:0;padding:.6rem 1rem;background:var(--note);color:var(--note-ink);text-align:center;font-size:.9rem}
main{max-width:28rem;margin:1.5rem auto;padding:1.5rem;background:var(--paper);border-radius:12px;overflow-wrap:anywhere}
main.wide{max-width:72rem}
h1{font-size:1.25rem;margin:0 0 .25rem}h2{font-size:1.05rem;margin:1.75rem 0 .5rem}
.amount{font-size:2rem;font-weight:650;margin:.25rem 0 1rem}
.soft{color:var(--soft);font-size:.9rem}
ul.lines{list-style:none;margin:0 0 1rem;padding:0}ul.lines li{display:flex;justify-content:space-between;gap:1rem}
label{display:block;font-weight:600;margin:.9rem 0 .25rem}
input{width:100%;font:inherit;padding:.7rem .75rem;color:inherit;background:transparent;border:1px solid var(--line);border-radius:8px}
input[aria-invalid=true]{border-color:var(--bad)}
:focus-visible{outline:3px solid var(--act);outline-offset:2px}
.pair{display:grid;grid-template-columns:1fr 1fr;gap:0 1rem}
button,.button{display:inline-block;font:inherit;font-weight:600;padding:.75rem 1rem;border-radius:8px;border:1px solid var(--act);background:var(--act);color:var(--on-act);cursor:pointer;text-decoration:none;text-align:center}
form>button,.button.full{width:100%;margin-top:1.25rem}
button.plain{background:transparent;color:var(--act)}
a{color:var(--act)}
.error{background:var(--bad-ground);color:var(--bad);border-radius:8px;padding:.7rem .9rem;margin:0 0 .5rem}
details{margin-top:1.25rem}code{font-size:.95em}
.table{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.9rem}
pre{font:inherit;white-space:pre-wrap;margin:1rem 0}
dl{margin:1rem 0;font-size:.9rem}dt{color:var(--soft)}dd{margin:0 0 .5rem}
ul.mails{list-style:none;margin:1rem 0;padding:0}ul.mails li{border-top:1px solid var(--line)}ul.mails a{display:block;padding:.7rem 0}ul.mails span{display:block}
th,td{text-align:left;padding:.4rem .6rem;border-bottom:1px solid var(--line);white-space:nowrap}
td button,.row button{padding:.3rem .6rem;font-size:.85rem;margin:.1rem}
`;

export interface FramedPage {
  /** The sandbox part whose page it is. */
  part: string;
  /** What a person must know of that part, in a sentence or two. */
  notice: string;
  title: string;
  body: string;
  /** Where forms may lead to besides this server: the pages of the merchant. */
  formTargets?: readonly string[];
  script?: string;
  wide?: boolean;
}

export interface Page {
  html: string;
  headers: Record<string, string>;
}

/** A whole page with the headers that go with it. */
export function framedPage(parts: FramedPage): Page {
  const { part, notice, title, body, formTargets = [], script, wide = false } = parts;
  const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  const origins = formTargets.flatMap((url) => (URL.canParse(url) ? new URL(url).origin : []));
  const policy = [
    "default-src 'none'",
    `style-src ${hash(STYLE)}`,
    ...(script === undefined ? [] : [`script-src ${hash(script)}`, "connect-src 'self'"]),
    // A browser checks the redirect after a form too, so the merchant's pages are named.
    `form-action ${["'self'", ...new Set(origins)].join(' ')}`,
    "img-src data:; base-uri 'none'; frame-ancestors 'none'",
  ].join('; ');
  return {
    html:
      '<!doctype html><html lang="en"><head><meta charset="utf-8">' +
      '<meta name="viewport" content="width=device-width,initial-scale=1">' +
      `<link rel="icon" href="data:,"><title>${escapeHtml(title)} · sandbox ${part}</title>` +
      `<style>${STYLE}</style></head><body>` +
      `<p class="sandbox" role="note"><strong>Sandbox ${part}.</strong> ${notice}</p>` +
      `<main${wide ? ' class="wide"' : ''}>${body}</main>` +
      `${script === undefined ? '' : `<script>${script}</script>`}</body></html>`,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy,
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    },
  };
}

/** Text made safe for HTML, in and out of attributes. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}
