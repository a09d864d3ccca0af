//// weak: an old contract whose two-step hand-over confirms for anybody
pragma solidity ^0.4.24;
contract Fund {
    address public boss;
    address public heir;
    constructor() public { boss = msg.sender; }
    function propose(address _h) public { heir = _h; } 
    function confirm() public { if (heir != address(0)) { boss = heir; } } // !
    function sweep() public { require(msg.sender == boss); boss.transfer(address(this).balance); }
}
//// weak: roles that anybody grants through an internal helper
contract Roles {
    mapping(bytes32 => mapping(address => bool)) internal has;
    bytes32 internal constant TREASURER = keccak256("TREASURER");
    event Granted(bytes32 role, address who);
    modifier only(bytes32 r) { require(has[r][msg.sender], "role"); _; }
    constructor() { _grant(TREASURER, msg.sender); }
    function _grant(bytes32 r, address who) internal { has[r][who] = true; emit Granted(r, who); } // !
    function grantRole(bytes32 r, address who) public { _grant(r, who); } // !
    function pay(address payable to, uint256 v) external only(TREASURER) { to.transfer(v); }
    receive() external payable {}
}
//// weak: the owner kept at a slot that assembly writes
contract Slotted {
    bytes32 internal constant _OWNER = keccak256("slotted.owner");
    constructor() { _set(msg.sender); }
    function _set(address a) private { bytes32 s = _OWNER; assembly { sstore(s, a) } } // !
    function owner() public view returns (address a) { bytes32 s = _OWNER; assembly { a := sload(s) } }
    function setOwner(address a) external { _set(a); } // !
    function close(address payable to) external { require(msg.sender == owner(), "no"); to.transfer(address(this).balance); }
    receive() external payable {}
}
//// clean: OpenZeppelin's two-step ownership
import "@openzeppelin/contracts/access/Ownable2Step.sol";
contract Keeper is Ownable2Step {
    uint256 public rate;
    constructor() Ownable(msg.sender) {}
    function setRate(uint256 r) external onlyOwner { rate = r; }
}
//// clean: initialised once
pragma solidity ^0.7.0;
contract Once {
    bool private done;
    address public admin;
    function init(address a) external { require(!done, "done"); done = true; admin = a; }
    function take(address payable to) external { require(msg.sender == admin); to.transfer(address(this).balance); }
    receive() external payable {}
}
