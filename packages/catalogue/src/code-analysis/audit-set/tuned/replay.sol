//// weak: nothing is used up
contract Cheques {
  address public immutable bank;
  constructor() payable { bank = msg.sender; }
  function cash(address payable to, uint256 amount, uint8 v, bytes32 r, bytes32 s) external {
    address who = ecrecover(keccak256(abi.encodePacked(to, amount)), v, r, s); // !
    require(who != address(0) && who == bank, "bad");
    to.transfer(amount);
  }
}
//// weak: a deadline alone, through the published library
import "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
contract Reward {
  address public immutable oracle;
  IERC20 public immutable token;
  constructor(address o, IERC20 t) { oracle = o; token = t; }
  function claim(uint256 amount, uint256 deadline, bytes calldata sig) external {
    require(block.timestamp <= deadline, "late");
    bytes32 h = keccak256(abi.encode(address(this), block.chainid, msg.sender, amount, deadline));
    require(ECDSA.recover(h, sig) == oracle, "sig"); // !
    require(token.transfer(msg.sender, amount));
  }
}
//// weak: the nonce is in the message and never kept
contract Relay {
  mapping(address => uint256) public credit;
  function move(address from, address to, uint256 amount, uint256 nonce, uint8 v, bytes32 r, bytes32 s) external {
    bytes32 h = keccak256(abi.encode(address(this), block.chainid, from, to, amount, nonce));
    address who = ecrecover(h, v, r, s); // !
    require(who != address(0) && who == from);
    credit[from] -= amount;
    credit[to] += amount;
  }
}
//// clean: a nonce is counted
contract Relay {
  mapping(address => uint256) public credit;
  mapping(address => uint256) public nonces;
  function move(address from, address to, uint256 amount, uint8 v, bytes32 r, bytes32 s) external {
    bytes32 h = keccak256(abi.encode(address(this), block.chainid, from, to, amount, nonces[from]++));
    address who = ecrecover(h, v, r, s);
    require(who != address(0) && who == from);
    credit[from] -= amount;
    credit[to] += amount;
  }
}
//// clean: the digest is used up
import "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
contract Reward {
  address public immutable oracle;
  IERC20 public immutable token;
  mapping(bytes32 => bool) private spent;
  constructor(address o, IERC20 t) { oracle = o; token = t; }
  function claim(uint256 amount, uint256 id, bytes calldata sig) external {
    bytes32 h = keccak256(abi.encode(address(this), block.chainid, msg.sender, amount, id));
    require(!spent[h], "spent");
    spent[h] = true;
    require(ECDSA.recover(h, sig) == oracle, "sig");
    require(token.transfer(msg.sender, amount));
  }
}
