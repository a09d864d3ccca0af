//// weak: a solmate token that mints for anybody
import {ERC20} from "solmate/tokens/ERC20.sol";
contract Shell is ERC20("Shell", "SHL", 18) {
    function faucet(address to, uint256 n) external { _mint(to, n); } // !
}
//// weak: a batch of rewards whose modifier checks nothing about the caller
import "@openzeppelin/contracts/token/ERC20/ERC20.sol";
contract Rewards is ERC20 {
    bool public paused; uint256 public constant CAP = 1_000_000e18;
    error Paused(); error Cap();
    constructor() ERC20("R", "R") {}
    modifier live() { if (paused) revert Paused(); _; }
    function distribute(address[] calldata who, uint256[] calldata amounts) external live {
        for (uint256 i; i < who.length; ) {
            if (totalSupply() + amounts[i] > CAP) revert Cap();
            _mint(who[i], amounts[i]); // !
            unchecked { ++i; }
        }
    }
}
//// weak: burn from any holder
pragma solidity 0.8.19;
import "@openzeppelin/contracts/token/ERC20/ERC20.sol";
contract Burner is ERC20 {
    address public minter;
    constructor() ERC20("B", "B") { minter = msg.sender; }
    function mint(address to, uint256 v) external { require(msg.sender == minter); _mint(to, v); }
    function retire(address holder, uint256 v) external { _burn(holder, v); } // !
}
//// clean: paid for
import {ERC20} from "solmate/tokens/ERC20.sol";
contract Wrapped is ERC20("W", "W", 18) {
    function deposit() external payable { _mint(msg.sender, msg.value); }
    function withdraw(uint256 v) external { _burn(msg.sender, v); (bool ok, ) = msg.sender.call{value: v}(""); require(ok); }
}
//// clean: one each, claimed by a proof
import "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import "@openzeppelin/contracts/utils/cryptography/MerkleProof.sol";
contract Drop is ERC20 {
    bytes32 immutable root; mapping(address => bool) claimed;
    constructor(bytes32 r) ERC20("D", "D") { root = r; }
    function claim(uint256 v, bytes32[] calldata proof) external {
        require(!claimed[msg.sender]); claimed[msg.sender] = true;
        require(MerkleProof.verifyCalldata(proof, root, keccak256(bytes.concat(keccak256(abi.encode(msg.sender, v))))));
        _mint(msg.sender, v);
    }
}
