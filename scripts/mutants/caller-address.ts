/** Bugs in who a caller is taken for. */
import type { MutantsOfFile } from '../mutant.ts';

export const CALLER_ADDRESS_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/core/src/http/caller-address.ts',
    tests: ['packages/core/src/http/caller-address.test.ts'],
    bugs: [
      ['.slice(-MAX_HOPS).reverse()', '.slice(0, MAX_HOPS).reverse()'],
      ['.slice(-MAX_HOPS).reverse()', '.slice(-MAX_HOPS)'],
      ['const MAX_HOPS = 16;', 'const MAX_HOPS = 1;'],
      ['proxies.length === 0 || !isTrusted(ipaddr.process(peer), proxies)', 'proxies.length === 0'],
      ['    if (!trusted) break;\n', ''],
      ['    if (hop === null) break;\n    address', '    if (hop === null) continue;\n    address'],
      ['range[1] < SHORTEST_PREFIX[range[0].kind()]', 'range[1] < 0'],
      ['const SHORTEST_PREFIX = { ipv4: 8, ipv6: 7 }', 'const SHORTEST_PREFIX = { ipv4: 6, ipv6: 3 }'],
      ["address.kind() === 'ipv4' ? 32 : 128", "address.kind() === 'ipv4' ? 8 : 128"],
      [' && address.match(range, bits)', ''],
      ['range.kind() === address.kind() && ', ''],
      ["if (header !== 'forwarded') return", 'return'],
      ['return named.length === 1 && named[0] !== undefined ?', 'return named[0] !== undefined ?'],
      ['backslashes % 2 === 0', 'backslashes >= 0'],
      ['character === separator && !quoted', 'character === separator'],
      ['ipaddr.IPv4.isValidFourPartDecimal(bare)', 'ipaddr.IPv4.isValid(bare)'],
      ["ipaddr.IPv6.isValid(bare) && !bare.includes('%')", 'ipaddr.IPv6.isValid(bare)'],
      ['return v4?.[1] ?? hop;', 'return hop;'],
      ["!== 'unicast'", "=== 'private'"],
      ['networkOf(address, 64)', 'networkOf(address, 128)'],
      ['networkOf(address, 48)', 'networkOf(address, 64)'],
      ["if (parsed.kind() === 'ipv4') return parsed.toString();", ''],
    ],
  },
];
