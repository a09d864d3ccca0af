//// weak: all are paid in one loop over a list that grows
contract N2 { address payable[] inv; mapping(address => uint256) due; function join() external payable { inv.push(payable(msg.sender)); due[msg.sender] += msg.value; } function payAll() external { for (uint256 i; i < inv.length; i++) { uint256 v = due[inv[i]]; due[inv[i]] = 0; (bool ok, ) = inv[i].call{value: v}(""); require(ok); } } } // !
//// weak: ether that never gets out
contract N4 { mapping(address => bool) public member; function join() external payable { require(msg.value == 1 ether); member[msg.sender] = true; } } // !
