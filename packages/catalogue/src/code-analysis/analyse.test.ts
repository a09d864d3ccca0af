import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { analyse } from './analyse.ts';
import { withoutComments } from './comments.ts';
import { allows, readSource, UnreadableSource } from './compiler.ts';
import { RULES, type Severity } from './rules/finding.ts';
import { PAIRS, sampleSource } from './samples.fixture.ts';
import { fromTolerantParser } from './syntax/tolerant-tree.ts';

const GRAVE: readonly Severity[] = ['CRITICAL', 'HIGH', 'MEDIUM'];
const rulesIn = (source: string) => {
  const { program, compiler } = readSource({ 'C.sol': source });
  assert.notEqual(compiler, null, 'a sample must compile');
  return analyse(program);
};

describe('thirty weak contracts and their harmless twins', () => {
  for (const pair of PAIRS) {
    it(`${pair.rule}: ${pair.what}`, () => {
      const weak = rulesIn(sampleSource(pair, pair.weak)).filter(({ rule }) => rule === pair.rule);
      assert.equal(weak[0]?.line, 3, `not found: ${JSON.stringify(weak)}`);
      const harmless = rulesIn(sampleSource(pair, pair.harmless));
      assert.deepEqual(
        harmless.filter(({ rule }) => rule === pair.rule).map(({ detail }) => detail),
        [],
        'a false alarm',
      );
      // The twin must not be excused from one rule by falling to a graver one of the same class.
      const sameClass = harmless.filter(
        ({ rule, severity }) => RULES[rule].class === RULES[pair.rule].class && GRAVE.includes(severity),
      );
      assert.deepEqual(
        sameClass.map(({ rule, detail }) => `${rule}: ${detail}`),
        [],
      );
    });
  }

  it('are sixty', () => {
    assert.equal(new Set(PAIRS.flatMap(({ weak, harmless }) => [weak, harmless])).size, 60);
  });
});

describe('where a finding stands', () => {
  it('is the line of the text, whatever bytes and comments come before', () => {
    const source =
      'pragma solidity ^0.8.0;\n/* é ü 漢字 \u{1f600}\n */ contract C {\n  address to;\n  // ünder\n  function f() public {\n    to.call("");\n  }\n}\n';
    assert.deepEqual(
      rulesIn(source).map(({ rule, line, routine }) => [rule, line, routine]),
      [['unchecked-call', 7, 'f']],
    );
  });

  it('says how an internal call is reached', () => {
    const source =
      'pragma solidity ^0.8.0;\ncontract C {\n  mapping(address => uint256) owed;\n  function pay(uint256 a) internal {\n    (bool ok,) = msg.sender.call{value: a}("");\n    require(ok);\n  }\n  function take() public {\n    pay(owed[msg.sender]);\n    owed[msg.sender] = 0;\n  }\n}\n';
    const [found] = rulesIn(source);
    assert.deepEqual(
      [found?.rule, found?.line, found?.related.map(({ line }) => line)],
      ['reentrancy', 5, [10, 9, 8]],
    );
  });
});

describe('the compiler that reads a source', () => {
  const trivial = (pragma: string) => readSource({ 'C.sol': `${pragma}\ncontract C { uint256 x; }` });

  it('is the newest that the pragma allows, and else the newest of its minor', () => {
    assert.deepEqual(
      ['pragma solidity ^0.4.11;', 'pragma solidity 0.6.6;', 'pragma solidity >=0.5.0 <0.7.0;', ''].map(
        (pragma) => {
          const { compiler, pragmaReplaced } = trivial(pragma);
          return [compiler, pragmaReplaced];
        },
      ),
      [
        ['0.4.26', false],
        ['0.6.12', true],
        ['0.6.12', false],
        ['0.8.37', false],
      ],
    );
  });

  it('reads a pragma as it is meant: not in a comment, not in a string', () => {
    const { compiler } = readSource({
      'C.sol':
        '// pragma solidity 0.4.0;\npragma solidity ^0.7.0;\ncontract C { string s = "pragma solidity 0.5.0;"; }',
    });
    assert.equal(compiler, '0.7.6');
    assert.equal(withoutComments('a // b\n/* c */ d "e\\"f" g'), `a     \n        d "${' '.repeat(4)}" g`);
  });

  it('keeps every line where it is when it takes the pragma away', () => {
    const { program } = readSource({
      'C.sol': 'pragma\nsolidity\n0.4.24\n;\ncontract C { address a; function f() public { a.send(1); } }',
    });
    assert.deepEqual(
      analyse(program).map(({ rule, line }) => [rule, line]),
      [['unchecked-call', 5]],
    );
  });

  it('knows the operators of a pragma', () => {
    const allowed = [
      '^0.8.0',
      '>=0.4.22 <0.9.0',
      '0.8.37',
      '0.8',
      '>0.8.30',
      '0.7.0 - 0.8.40',
      '^0.7.0 || ^0.8.0',
      '>=0.5',
    ];
    const refused = ['^0.7.0', '<0.8.0', '0.8.36', '>=0.4.22 <0.8.37', '0.7.0 - 0.8.36', '=0.7.6'];
    assert.deepEqual(
      allowed.filter((pragma) => !allows(pragma, '0.8.37')),
      [],
    );
    assert.deepEqual(
      refused.filter((pragma) => allows(pragma, '0.8.37')),
      [],
    );
  });

  it('gives way to the tolerant parser where no compiler takes the source', () => {
    const { program, compiler, compilerError } = readSource({
      'C.sol':
        'pragma solidity ^0.8.0;\nimport "./Elsewhere.sol";\ncontract C is Elsewhere {\n  address to;\n  function f() public { to.call(""); }\n}',
    });
    assert.equal(compiler, null);
    assert.match(compilerError ?? '', /Elsewhere\.sol/);
    assert.deepEqual(
      analyse(program).map(({ rule, line }) => [rule, line]),
      [['unchecked-call', 5]],
    );
  });

  it('is never sure of what stands behind a modifier or guard whose source was not sent', () => {
    const found = (guard: string, call = '') =>
      analyse(
        readSource({
          'C.sol': `pragma solidity ^0.8.0;
import "@elsewhere/Ownable.sol";
contract C is Ownable {
  address controller;
  modifier byController() { require(msg.sender == controller); _; }
  function setController(address c) external ${guard} { ${call} controller = c; }
  function act() external byController {}
}`,
        }).program,
      ).map(({ rule, severity, confidence }) => [rule, severity, confidence]);
    const sure = [['unprotected-authority', 'CRITICAL', 'high']];
    assert.deepEqual(found(''), sure);
    assert.deepEqual(found('onlyOwner'), [['unprotected-authority', 'LOW', 'low']]);
    assert.deepEqual(found('', '_checkOwner();'), [['unprotected-authority', 'LOW', 'low']]);
    // Nothing says that this one asks who calls.
    assert.deepEqual(found('counted'), [['unprotected-authority', 'MEDIUM', 'low']]);
  });

  it('reads imports of published packages that were not sent, in the version that the source fits', () => {
    const read = (imports: string, heritage: string, more = '') =>
      readSource({
        'C.sol': `pragma solidity ^0.8.0;\n${imports}\ncontract C is ${heritage} { address controller; modifier by() { require(msg.sender == controller); _; } function act() external by {} function set(address c) external onlyOwner { controller = c; } ${more} }`,
      });
    const ownable = 'import "@openzeppelin/contracts/access/Ownable.sol";';
    const old = read(ownable, 'Ownable');
    const present = read(ownable, 'Ownable', 'constructor() Ownable(msg.sender) {}');
    const solmate = read('import {Owned} from "solmate/auth/Owned.sol";', 'Owned(msg.sender)');
    const solady = read('import {Ownable} from "solady/src/auth/Ownable.sol";', 'Ownable');
    assert.deepEqual(
      [old, present, solmate, solady].map(({ packages }) => packages),
      [
        ['@openzeppelin/contracts 4.9.6'],
        ['@openzeppelin/contracts 5.7.0'],
        ['solmate 6.8.0'],
        ['solady 0.1.26'],
      ],
    );
    for (const { program, compiler } of [old, present, solmate, solady]) {
      assert.equal(compiler, '0.8.37');
      assert.deepEqual(analyse(program), [], 'a finding behind onlyOwner, or in a file that was not sent');
    }
    for (const path of [
      '@openzeppelin/contracts/../../../package.json',
      '@openzeppelin/contracts/../package.sol',
      'solady/src/../../../../x.sol',
    ])
      assert.deepEqual(
        readSource({ 'C.sol': `pragma solidity ^0.8.0; import "${path}"; contract C {}` }).packages,
        [],
      );
  });

  it('takes no import out of a comment', () => {
    const source =
      '// import "solady/src/auth/Ownable.sol";\npragma solidity ^0.8.0;\ncontract C { string s = "import \'solady/src/x.sol\';"; }';
    assert.deepEqual(readSource({ 'C.sol': source }).packages, []);
  });

  it('is none for what is no Solidity', () => {
    for (const text of ['', 'hello', 'contract {', '{"a":1}', 'pragma solidity ^0.8.0;', '\0\0'])
      assert.throws(() => readSource({ 'C.sol': text }), UnreadableSource, JSON.stringify(text));
  });

  it('opens no file for an import', () => {
    const { compiler, compilerError } = readSource({
      'C.sol': `pragma solidity ^0.8.0;\nimport "${import.meta.filename}";\ncontract C {}`,
    });
    assert.equal(compiler, null);
    assert.match(compilerError ?? '', /not found/);
  });
});

describe('without a compiler', () => {
  it('the samples that need no types are found all the same', () => {
    const missed = PAIRS.filter((pair) => {
      const program = fromTolerantParser(
        { 'C.sol': sampleSource(pair, pair.weak) },
        Number((pair.minor ?? '0.8').slice(2)),
      );
      return !analyse(program).some(({ rule }) => rule === pair.rule);
    });
    assert.deepEqual(
      missed.map(({ rule, what }) => `${rule}: ${what}`),
      [],
    );
  });
});

describe('a price of the moment', () => {
  const PAIR =
    'pragma solidity ^0.8.20;\ninterface Pair { function getReserves() external view returns (uint112, uint112, uint32); }\ninterface Erc20 { function transferFrom(address a, address b, uint256 v) external returns (bool); }\n';
  const found = (body: string) =>
    rulesIn(PAIR + body)
      .filter(({ rule }) => rule === 'spot-price')
      .map(({ line, severity }) => [line, severity]);
  const lender = (read: string) =>
    `contract Lender { Pair immutable pair; uint256 sum; uint256 at; uint256 price; mapping(address => uint256) put; mapping(address => uint256) owed; constructor(Pair p) { pair = p; }
function keep() external { (uint112 a, uint112 b, ) = pair.getReserves();
${read} }
function lock() external payable { put[msg.sender] += msg.value; }
function draw(uint256 v) external { owed[msg.sender] += v; require(put[msg.sender] * price / 1e18 >= owed[msg.sender] * 2); } }`;

  it('is one where it is kept as it is, and none where it is summed up over time', () => {
    assert.deepEqual(found(lender('price = uint256(b) * 1e18 / a;')), [[5, 'HIGH']]);
    const mean =
      'uint256 s = sum; sum = s + uint256(b) * 1e18 / a * (block.timestamp - at); at = block.timestamp; price = sum;';
    assert.deepEqual(found(lender(mean)), []);
  });

  it('is one where it decides of what is kept, and none where it is held against the caller’s own limit', () => {
    const shop = (condition: string) =>
      `contract Shop { Pair immutable pair; Erc20 immutable usd; uint256 least = 5; constructor(Pair p, Erc20 u) { pair = p; usd = u; }
function pay(uint256 v, uint256 limit) external { (uint112 a, uint112 b, ) = pair.getReserves();
require(${condition}); require(usd.transferFrom(msg.sender, address(this), v)); } }`;
    assert.deepEqual(found(shop('uint256(b) / a <= limit')), []);
    assert.deepEqual(found(shop('uint256(b) / a >= least')), [[5, 'HIGH']]);
  });
});

describe('a sum that may wrap', () => {
  const found = (assembly: string) =>
    rulesIn(
      `pragma solidity ^0.8.20;\ncontract C { uint256 kept; mapping(address => uint256) of_;\nfunction f(uint256 v) external { uint256 t = kept; assembly {\n${assembly}\n} kept = t; of_[msg.sender] = v; } }`,
    ).flatMap(({ rule, line, severity }) => (rule === 'overflow' ? [[line, severity]] : []));

  it('is one of amounts, and none of places in memory', () => {
    assert.deepEqual(found('t := add(t, v) if gt(t, 1000) { revert(0, 0) }'), [[4, 'MEDIUM']]);
    assert.deepEqual(found('let p := mload(0x40) if gt(add(p, v), add(p, 1000)) { revert(0, 0) }'), []);
  });

  it('is one in a function of assembly too, where that stands after its use', () => {
    const own = (sum: string) =>
      `t := plus(t, v) if gt(t, 1000) { revert(0, 0) } function plus(x, y) -> z {\nz := ${sum} }`;
    assert.deepEqual(found(own('add(x, y)')), [[5, 'MEDIUM']]);
    assert.deepEqual(found(own('add(x, y) if lt(z, x) { revert(0, 0) }')), []);
  });
});
