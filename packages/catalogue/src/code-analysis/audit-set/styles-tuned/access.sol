//// weak: tx.origin as the owner
contract A1 { address immutable o = msg.sender; function out(address payable to) external { require(tx.origin == o, "no"); to.transfer(address(this).balance); } receive() external payable {} } // !
//// weak: anybody sets the fee and the treasury
contract A3 { address public treasury; uint256 public feeBps; address immutable o = msg.sender; mapping(address => uint256) b;
  function setFees(address t, uint256 f) external { require(f <= 1000); treasury = t; feeBps = f; } // !
  function put() external payable { uint256 f = msg.value * feeBps / 1e4; b[msg.sender] += msg.value - f; b[treasury] += f; }
  function get(uint256 v) external { b[msg.sender] -= v; payable(msg.sender).transfer(v); } }
//// weak: anybody pauses for good
contract A5 { bool public stopped; mapping(address => uint256) b; function stop(bool s) external { stopped = s; } // !
 function put() external payable { b[msg.sender] += msg.value; } function get() external { require(!stopped); uint256 v = b[msg.sender]; b[msg.sender] = 0; payable(msg.sender).transfer(v); } }
//// clean: each changes only what is their own
contract A7 { mapping(address => uint256) public limit; mapping(address => address) public delegate; function set(uint256 l, address d) external { limit[msg.sender] = l; delegate[msg.sender] = d; } }
