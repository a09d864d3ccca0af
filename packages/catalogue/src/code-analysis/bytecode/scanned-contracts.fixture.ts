import { concatHex, encodeAbiParameters, type Hex } from 'viem';
import { requireCompilers } from '../compilers.ts';

/** Contracts for tests, with one thing each that a scan is to see. */
const SOURCE = `
pragma solidity 0.8.37;
contract Honest {
  string public name = "Honest"; string public symbol = "HON"; uint8 public decimals = 18;
  uint256 public totalSupply = 1e24;
  address public owner;
  mapping(address => uint256) public balanceOf;
  mapping(address => mapping(address => uint256)) public allowance;
  constructor(address first) { owner = first; balanceOf[first] = totalSupply; }
  function approve(address to, uint256 value) external returns (bool) { allowance[msg.sender][to] = value; return true; }
  function transfer(address to, uint256 value) external returns (bool) { move(msg.sender, to, value); return true; }
  function transferFrom(address from, address to, uint256 value) external returns (bool) {
    allowance[from][msg.sender] -= value; move(from, to, value); return true;
  }
  function move(address from, address to, uint256 value) internal virtual {
    balanceOf[from] -= value; balanceOf[to] += value;
  }
  function renounceOwnership() external { require(msg.sender == owner); owner = address(0); }
}
contract Honeypot is Honest {
  mapping(address => bool) public market;
  constructor(address first) Honest(first) {}
  function setMarket(address at) external { require(msg.sender == owner); market[at] = true; }
  function move(address from, address to, uint256 value) internal override {
    require(!market[to] || from == owner, "not for sale");
    super.move(from, to, value);
  }
}
contract Taxed is Honest {
  constructor(address first) Honest(first) {}
  function move(address from, address to, uint256 value) internal override {
    uint256 tax = from == owner || to == owner ? 0 : value / 10;
    super.move(from, to, value - tax);
    if (tax > 0) super.move(from, owner, tax);
  }
}
contract Closed is Honest {
  constructor(address first) Honest(first) {}
  function move(address from, address to, uint256 value) internal override {
    require(from == owner, "trading is closed");
    super.move(from, to, value);
  }
}
contract Powers is Honest {
  bool public paused = true;
  mapping(address => bool) public blocked;
  constructor(address first) Honest(first) {}
  function mint(address to, uint256 value) external { require(msg.sender == owner); balanceOf[to] += value; }
  function pause() external { require(msg.sender == owner); paused = true; }
  function blacklist(address who) external { require(msg.sender == owner); blocked[who] = true; }
  function setFee(uint256) external view { require(msg.sender == owner); }
}
contract Dangers {
  address keeper = msg.sender;
  address module;
  function anybodyKills(address payable to) external { selfdestruct(to); }
  function keeperKills(address payable to) external { require(msg.sender == keeper); selfdestruct(to); }
  function anybodyRuns(address code, bytes calldata data) external { (bool done,) = code.delegatecall(data); require(done); }
  function keeperRuns(address code, bytes calldata data) external {
    require(msg.sender == keeper); (bool done,) = code.delegatecall(data); require(done);
  }
  function byOrigin() external view returns (bool) { return tx.origin == keeper; }
  function stored(bytes calldata data) external { (bool done,) = module.delegatecall(data); require(done); }
  function itself(bytes calldata data) external { (bool done,) = address(this).delegatecall(data); require(done); }
  function makes() external { new Empty{salt: 0}(); }
}
contract Empty {}
contract Loops {
  uint256 public sum;
  // The bytes of SELFDESTRUCT and its like, as data: no instructions.
  bytes32 public constant DATA = 0xfff4f2f532fff4f2f532fff4f2f532fff4f2f532fff4f2f532fff4f2f532ff5b;
  function count() external { for (uint256 i = 0; i < 7; i++) sum += i; }
}
contract Shell { fallback() external payable {
  assembly {
    let to := sload(0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc)
    calldatacopy(0, 0, calldatasize())
    let done := delegatecall(gas(), to, 0, calldatasize(), 0, 0)
    returndatacopy(0, 0, returndatasize())
    if iszero(done) { revert(0, returndatasize()) }
    return(0, returndatasize())
  }
} }
contract Beacon { address public implementation; constructor(address at) { implementation = at; } }
`;

interface Compiled {
  evm: { bytecode: { object: string }; deployedBytecode: { object: string } };
}

/** Compiles one file for tests, with the compiler of this package. Any error throws. */
export function compiled(
  source: string,
  settings: Record<string, unknown>,
  solc = 'solc-0.8',
): Record<string, Compiled> {
  const compiler: { compile(input: string): string } = requireCompilers()(solc);
  const output: {
    errors?: { severity: string; message: string }[];
    contracts: Record<string, Record<string, Compiled>>;
  } = JSON.parse(
    compiler.compile(
      JSON.stringify({
        language: 'Solidity',
        sources: { 'a.sol': { content: source } },
        settings: {
          ...settings,
          outputSelection: { '*': { '*': ['evm.bytecode.object', 'evm.deployedBytecode.object'] } },
        },
      }),
    ),
  );
  const failed = output.errors?.find(({ severity }) => severity === 'error');
  if (failed !== undefined) throw new Error(failed.message);
  return output.contracts['a.sol'] ?? {};
}

export type ScannedContracts = ReturnType<typeof scannedContracts>;

/** Compiles the contracts above, for tests (about two seconds). */
export function scannedContracts(
  settings: Record<string, unknown> = { optimizer: { enabled: true, runs: 200 } },
) {
  const contracts = compiled(SOURCE, { evmVersion: 'cancun', ...settings });
  const named = (name: string) => {
    const contract = contracts[name];
    if (contract === undefined) throw new Error(`no contract ${name}`);
    return contract.evm;
  };
  return {
    /** Code as it lies on the chain. */
    runtime: (name: string): Hex => `0x${named(name).deployedBytecode.object}`,
    /** Code that makes it, with the address that its constructor takes. */
    creation: (name: string, argument: Hex): Hex =>
      concatHex([`0x${named(name).bytecode.object}`, encodeAbiParameters([{ type: 'address' }], [argument])]),
  };
}
