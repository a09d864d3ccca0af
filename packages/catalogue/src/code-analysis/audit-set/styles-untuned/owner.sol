//// weak: a setter that a library performs on a storage struct
library Seats {
    struct Seat { address holder; uint64 since; }
    function hand(Seat storage s, address to) internal { s.holder = to; s.since = uint64(block.timestamp); } // !
}
contract Council {
    using Seats for Seats.Seat;
    Seats.Seat private chair;
    error NotChair(address who);
    constructor() { chair.hand(msg.sender); }
    function reseat(address next) external { chair.hand(next); } // !
    function spend(address payable to, uint256 wei_) external {
        if (msg.sender != chair.holder) revert NotChair(msg.sender);
        (bool ok, ) = to.call{value: wei_}("");
        require(ok);
    }
    receive() external payable {}
}
//// weak: initialize without a flag, in a parent that lies in another file
//= Base.sol
pragma solidity ^0.8.20;
abstract contract Base {
    address internal _admin;
    function __Base_init(address admin_) internal { _admin = admin_; } // !
    modifier auth() { _check(); _; }
    function _check() internal view { require(msg.sender == _admin, "auth"); }
}
//= Pool.sol
pragma solidity ^0.8.20;
import "./Base.sol";
contract Pool is Base {
    uint256 public fee;
    function initialize(address admin_, uint256 fee_) external { __Base_init(admin_); fee = fee_; } // !
    function drain(address payable to) external auth { to.transfer(address(this).balance); }
    receive() external payable {}
}
//// weak: a check that compares the new owner instead of the caller
pragma solidity 0.6.12;
contract Registry {
    address public controller;
    mapping(address => uint256) public quota;
    constructor() public { controller = msg.sender; }
    modifier onlyController() { require(msg.sender == controller, "!controller"); _; }
    function setController(address next) external {
        require(next != controller && next != address(0), "same");
        controller = next; // !
    }
    function setQuota(address who, uint256 q) external onlyController { quota[who] = q; }
}
//// clean: a custom error and an internal check
contract Desk {
    address private lead;
    error Forbidden();
    constructor(address l) { lead = l; }
    function _mustLead() private view { if (msg.sender != lead) revert Forbidden(); }
    function handOver(address next) external { _mustLead(); lead = next; }
    function pay(address payable to) external { _mustLead(); to.transfer(address(this).balance); }
    receive() external payable {}
}
