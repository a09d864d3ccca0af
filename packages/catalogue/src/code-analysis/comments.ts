/**
 * Text without comments and with strings emptied, of the same length and with the same lines, so that a pragma in a
 * comment or a string is none. Works on 16-bit units.
 */
export function withoutComments(text: string): string {
  const out = text.split('');
  let at = 0;
  const blank = (to: number) => {
    for (; at < to; at++) if (out[at] !== '\n' && out[at] !== '\r') out[at] = ' ';
  };
  while (at < text.length) {
    const two = text.slice(at, at + 2);
    if (two === '//') {
      const end = text.slice(at).search(/[\n\r]/);
      blank(end === -1 ? text.length : at + end);
    } else if (two === '/*') {
      const end = text.indexOf('*/', at + 2);
      blank(end === -1 ? text.length : end + 2);
    } else if (text[at] === '"' || text[at] === "'") {
      const quote = text[at];
      let end = at + 1;
      while (end < text.length && text[end] !== quote && text[end] !== '\n')
        end += text[end] === '\\' ? 2 : 1;
      at++;
      blank(Math.min(end, text.length));
      at++;
    } else at++;
  }
  return out.join('');
}
