//// weak: success bound to a name that nobody reads
contract U2 { address immutable o = msg.sender; mapping(address => uint256) due; function add(address a) external payable { due[a] += msg.value; } function pay(address payable a) external { uint256 v = due[a]; due[a] = 0; (bool sent, ) = a.call{value: v}(""); sent; } } // !
//// weak: assembly pops the outcome
contract U4 { mapping(address => uint256) d; function put() external payable { d[msg.sender] += msg.value; } function get(address to) external { uint256 v = d[msg.sender]; d[msg.sender] = 0; assembly { pop(call(gas(), to, v, 0, 0, 0, 0)) } } } // !
//// clean: the outcome decides
contract U6 { mapping(address => uint256) due; function add(address a) external payable { due[a] += msg.value; } function pay(address payable a) external { uint256 v = due[a]; due[a] = 0; (bool sent, ) = a.call{value: v}(""); if (!sent) due[a] += v; } }
