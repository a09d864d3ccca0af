//// weak: the spot price of a pair's reserves
interface Pair { function getReserves() external view returns (uint112, uint112, uint32); }
contract Q2 { Pair immutable p; mapping(address => uint256) public debt; mapping(address => uint256) public col; constructor(Pair x) { p = x; } function _price() internal view returns (uint256) { (uint112 a, uint112 b, ) = p.getReserves(); return uint256(a) * 1e18 / b; } // !
 function put() external payable { col[msg.sender] += msg.value; } function borrow(uint256 v) external { require(col[msg.sender] * _price() / 1e18 >= (debt[msg.sender] + v) * 2); debt[msg.sender] += v; } }
//// weak: the slot0 price of a pool
interface P { function slot0() external view returns (uint160, int24, uint16, uint16, uint16, uint8, bool); }
contract Q4 { P immutable p; constructor(P x) { p = x; } mapping(address => uint256) public c; function value(address a) public view returns (uint256) { (uint160 s, , , , , , ) = p.slot0(); return c[a] * uint256(s) / 2**96 * uint256(s) / 2**96; } // !
 function put() external payable { c[msg.sender] += msg.value; } function liquidate(address a) external { require(value(a) < 1e18); uint256 v = c[a]; c[a] = 0; payable(msg.sender).transfer(v); } }
