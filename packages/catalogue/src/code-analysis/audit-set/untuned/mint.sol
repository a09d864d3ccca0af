//// weak: solmate's token, to anybody
import {ERC20} from "solmate/src/tokens/ERC20.sol";
contract Gold is ERC20("Gold", "G", 18) {
  function create(address to, uint256 amount) public virtual {
    _mint(to, amount); // !
  }
}
//// weak: in unchecked and by a library over a storage struct
library Books {
  struct Book { mapping(address => uint256) sums; uint256 sum; }
  function add(Book storage self, address to, uint256 v) internal {
    unchecked { self.sum += v; self.sums[to] += v; } // !
  }
  function sub(Book storage self, address from, uint256 v) internal { self.sums[from] -= v; self.sum -= v; }
}
contract Chips {
  using Books for Books.Book;
  Books.Book private book;
  function hand(address to, uint256 v) external { book.sub(msg.sender, v); book.add(to, v); }
  function airdrop(address[] calldata to, uint256 v) external {
    for (uint256 i = 0; i < to.length; i++) book.add(to[i], v);
  }
}
//// weak: a check on the amount only
contract Credits {
  mapping(address => uint256) public credits;
  uint256 public constant MOST = 1e24;
  error TooMuch();
  function spend(uint256 v) external { credits[msg.sender] -= v; }
  function topUp(uint256 v) external {
    if (v > MOST) revert TooMuch();
    credits[msg.sender] += v; // !
  }
}
//// clean: an initial supply, and minting by an owner in a base
import {ERC20} from "solmate/src/tokens/ERC20.sol";
import {Owned} from "solmate/src/auth/Owned.sol";
contract Gold is ERC20("Gold", "G", 18), Owned(msg.sender) {
  constructor() { _mint(msg.sender, 1e24); }
  function create(address to, uint256 amount) public virtual onlyOwner { _mint(to, amount); }
  function burn(uint256 amount) external { _burn(msg.sender, amount); }
}
//// clean: one claim each
contract Drop {
  mapping(address => uint256) public balance;
  mapping(address => bool) public had;
  function send(address to, uint256 v) external { balance[msg.sender] -= v; balance[to] += v; }
  function claim() external { require(!had[msg.sender], "had"); had[msg.sender] = true; balance[msg.sender] += 100; }
}
