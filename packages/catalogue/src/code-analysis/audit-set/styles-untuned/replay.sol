//// weak: the nonce is signed but never spent
contract Meta {
    mapping(address => uint256) public nonces; mapping(address => uint256) public bal;
    function transferBySig(address from, address to, uint256 v, uint256 nonce, uint8 a, bytes32 b, bytes32 c) external {
        require(nonce >= nonces[from], "nonce");
        bytes32 h = keccak256(abi.encode(address(this), block.chainid, from, to, v, nonce));
        address s = ecrecover(h, a, b, c); // !
        require(s != address(0) && s == from, "sig"); // !
        bal[from] -= v; bal[to] += v;
    }
}
//// weak: a digest with a nonce that names neither chain nor contract
contract Cross {
    address public immutable oracle; mapping(uint256 => bool) public spent; mapping(address => uint256) public points;
    error Sig(); error Spent();
    constructor(address o) { oracle = o; }
    function credit(address to, uint256 v, uint256 nonce, uint8 a, bytes32 b, bytes32 c) external {
        if (spent[nonce]) revert Spent(); spent[nonce] = true;
        address got = ecrecover(keccak256(abi.encode(to, v, nonce)), a, b, c); // !
        if (got == address(0) || got != oracle) revert Sig(); // !
        points[to] += v;
    }
}
//// clean: OpenZeppelin's permit and nonces
import "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
contract Perm is ERC20, ERC20Permit { constructor() ERC20("P", "P") ERC20Permit("P") { _mint(msg.sender, 1e24); } }
