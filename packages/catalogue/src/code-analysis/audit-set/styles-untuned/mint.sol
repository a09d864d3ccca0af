//// weak: balances raised by assembly-free bookkeeping in an old compiler
pragma solidity ^0.5.0;
contract Coin {
    mapping(address => uint256) balances; uint256 total;
    function totalSupply() public view returns (uint256) { return total; }
    function balanceOf(address a) public view returns (uint256) { return balances[a]; }
    function transfer(address to, uint256 v) public returns (bool) {
        require(balances[msg.sender] >= v && to != address(0)); balances[msg.sender] -= v; balances[to] += v; return true;
    }
    function issue(uint256 amount) public { // !
        _credit(msg.sender, amount); // !
    }
    function _credit(address a, uint256 v) private { require(total + v >= total); total += v; balances[a] += v; } // !
}
//// weak: an ERC-721 in which anybody issues to anybody for nothing and without an end
import {ERC721} from "solady/tokens/ERC721.sol";
contract Deeds is ERC721 {
    uint256 next;
    function name() public pure override returns (string memory) { return "Deeds"; }
    function symbol() public pure override returns (string memory) { return "D"; }
    function tokenURI(uint256) public pure override returns (string memory) { return ""; }
    function award(address to, uint256 id) external { _mint(to, id); next = id; } // !
}
//// clean: minted by a role
import "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import "@openzeppelin/contracts/access/AccessControl.sol";
contract Roled is ERC20, AccessControl {
    bytes32 public constant MINTER = keccak256("MINTER");
    constructor() ERC20("R", "R") { _grantRole(DEFAULT_ADMIN_ROLE, msg.sender); }
    function mint(address to, uint256 v) external onlyRole(MINTER) { _mint(to, v); }
}
