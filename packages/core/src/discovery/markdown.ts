/** Markdown of ours as HTML that is safe to show, and text of others as Markdown that says what it said. */
import { Marked, type Tokens } from 'marked';
import { asMarkup } from './page-frame.ts';

const COMMENT = /^\s*<!--[\s\S]*-->\s*$/;

/**
 * HTML of Markdown. Markup in it stays text, and a link leads to another page, to a mail, or to what `leadsTo` makes of it.
 *
 * @param leadsTo the address for a link that names none of the web; null: it is shown as text
 */
export function htmlOf(markdown: string, leadsTo: (href: string) => string | null = (href) => href): string {
  const taken = new Map<string, number>();
  const whereTo = (href: string) => (/^(https?:\/\/|mailto:)/i.test(href) ? href : ownOnly(leadsTo(href)));
  const marked = new Marked({
    gfm: true,
    // What looks like an address in a text is not made a link.
    tokenizer: { url: () => undefined },
    renderer: {
      html: ({ text }) => (COMMENT.test(text) ? '' : asMarkup(text)),
      heading({ tokens, depth, text }) {
        return `<h${depth} id="${anchorOf(text, taken)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const shown = this.parser.parseInline(tokens);
        const to = whereTo(href);
        return to === null ? shown : `<a href="${asMarkup(to)}">${shown}</a>`;
      },
      image({ href, text }) {
        const to = ownOnly(leadsTo(href));
        return to === null ? asMarkup(text) : `<img src="${asMarkup(to)}" alt="${asMarkup(text)}">`;
      },
      code: ({ text }) => `<pre tabindex="0"><code>${asMarkup(text)}</code></pre>\n`,
      table({ header, rows }: Tokens.Table) {
        const cells = (row: readonly Tokens.TableCell[]) =>
          row.map(({ tokens, align }, at) => {
            const shown = this.parser.parseInline(tokens);
            return at === 0
              ? `<th scope="row"${kind(align)}>${shown}</th>`
              : `<td${kind(align)}>${shown}</td>`;
          });
        const titles = header.map(
          ({ tokens, align }) => `<th scope="col"${kind(align)}>${this.parser.parseInline(tokens)}</th>`,
        );
        const label = asMarkup(header.map(({ text }) => text).join(', ') || 'Table');
        return `<div class="scroll" tabindex="0" role="region" aria-label="${label}"><table class="fields"><thead><tr>${titles.join('')}</tr></thead><tbody>${rows.map((row) => `<tr>${cells(row).join('')}</tr>`).join('\n')}</tbody></table></div>\n`;
      },
    },
  });
  return marked.parse(markdown, { async: false });
}

/** Columns of numbers end at the right, in digits of one width. */
const kind = (align: Tokens.TableCell['align']) => (align === 'right' ? ' class="number"' : '');

/** An address of this server, or a place on the page; null for anything else, such as a script. */
function ownOnly(href: string | null): string | null {
  return href !== null && /^(\/(?!\/)|#)/.test(href) ? href : null;
}

/** The name by which a heading is linked to, as GitHub makes it. */
function anchorOf(text: string, taken: Map<string, number>): string {
  const slug = text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');
  const times = taken.get(slug) ?? 0;
  taken.set(slug, times + 1);
  return times === 0 ? slug : `${slug}-${times}`;
}

/** Text that somebody else wrote, on one line, so that Markdown shows it as it is; `backticks` mark code. */
export function inMarkdown(text: string): string {
  const parts = text.replace(/\s+/g, ' ').split('`');
  // An odd number of backticks marks nothing.
  if (parts.length % 2 === 0) return escaped(parts.join("'"));
  return parts
    .map((part, at) =>
      at % 2 === 0 ? escaped(part) : part === '' ? '' : `\`${part.replaceAll('|', '\\|')}\``,
    )
    .join('');
}

const escaped = (text: string) => text.replace(/[\\*_[\]<>|~&#!]/g, '\\$&');

/** A row of a table. @param cells Markdown without ends of lines */
export const row = (...cells: readonly string[]) => `| ${cells.join(' | ')} |`;

/** A block of code that ends where it should, whatever is in it. */
export function fenced(language: string, code: string): string {
  const longest = Math.max(2, ...[...code.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${code}\n${fence}`;
}
