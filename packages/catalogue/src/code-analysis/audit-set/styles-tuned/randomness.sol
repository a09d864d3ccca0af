//// weak: prevrandao decides who wins
contract Z1 { address[] public players; function join() external payable { require(msg.value == 0.1 ether); players.push(msg.sender); } function draw() external { require(players.length >= 10); uint256 i = uint256(keccak256(abi.encodePacked(block.prevrandao, block.timestamp, players.length))) % players.length; // !
  address w = players[i]; delete players; payable(w).transfer(address(this).balance); } }
//// weak: assembly reads the timestamp
contract Z3 { mapping(uint256 => uint256) public rarity; uint256 n; function open() external payable { require(msg.value == 1e16); uint256 r; assembly { mstore(0, timestamp()) mstore(32, caller()) r := mod(keccak256(0, 64), 100) } // !
   rarity[++n] = r; } }
//// clean: an oracle answers later
interface V { function requestRandomWords(bytes32 k, uint64 s, uint16 c, uint32 g, uint32 n) external returns (uint256); }
contract Z5 { V immutable v; address[] players; mapping(uint256 => bool) asked; address immutable owner = msg.sender; constructor(V x) { v = x; } function ask() external { require(msg.sender == owner); asked[v.requestRandomWords(0, 1, 3, 100000, 1)] = true; } function rawFulfillRandomWords(uint256 id, uint256[] calldata w) external { require(msg.sender == address(v) && asked[id]); delete asked[id]; address p = players[w[0] % players.length]; delete players; payable(p).transfer(address(this).balance); } function join() external payable { require(msg.value == 1 ether); players.push(msg.sender); } }
