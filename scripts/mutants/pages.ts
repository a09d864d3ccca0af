/** Bugs in what pages show of what somebody else wrote, and in who gets a page. */
import type { MutantsOfFile } from '../mutant.ts';

export const PAGE_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/core/src/discovery/markdown.ts',
    tests: ['packages/core/src/discovery/markdown.test.ts', 'packages/core/src/discovery/routes.test.ts'],
    bugs: [
      ["(COMMENT.test(text) ? '' : asMarkup(text))", 'text'],
      ['tokenizer: { url: () => undefined },', ''],
      ['/^(\\/(?!\\/)|#)/.test(href)', "href !== ''"],
      ['/^(https?:\\/\\/|mailto:)/i.test(href)', "href !== ''"],
      ["text.replace(/[\\\\*_[\\]<>|~&#!]/g, '\\\\$&')", 'text'],
      ['if (parts.length % 2 === 0) return escaped(parts.join("\'"));', ''],
      ["const fence = '`'.repeat(longest + 1);", "const fence = '`'.repeat(3);"],
    ],
  },
  {
    file: 'packages/core/src/http/asked-form.ts',
    tests: ['packages/core/src/http/asked-form.test.ts'],
    bugs: [
      ['status !== 402 || ', ''],
      [" && !wantsType(accept, 'application/json')", ''],
      [' || !isForPerson(accept)', ''],
      [", vary: 'Accept'", ''],
    ],
  },
];
