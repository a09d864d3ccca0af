//// weak: a hook of an NFT before the count is raised
import "@openzeppelin/contracts/token/ERC721/ERC721.sol";
contract R2 is ERC721 { mapping(address => uint256) public minted; uint256 n; constructor() ERC721("a", "a") {}
    function mint() external payable { require(msg.value == 1e16 && minted[msg.sender] < 2, "max"); 
        _safeMint(msg.sender, ++n); // !
        minted[msg.sender]++; } } // !
//// weak: the old way with a helper that sends
pragma solidity ^0.4.18;
contract R4 { mapping(address => uint) credit; function put() public payable { credit[msg.sender] += msg.value; } function _send(address a, uint v) internal returns (bool) { return a.call.value(v)(); } // !
  function get(uint v) public { if (credit[msg.sender] >= v) { if (_send(msg.sender, v)) credit[msg.sender] -= v; } } } // !
//// clean: a transient guard
import "@openzeppelin/contracts/utils/ReentrancyGuard.sol";
contract R7 is ReentrancyGuard { mapping(address => uint256) public b; function put() external payable nonReentrant { b[msg.sender] += msg.value; } function get() external nonReentrant { uint256 v = b[msg.sender]; (bool ok, ) = msg.sender.call{value: v}(""); require(ok); b[msg.sender] = 0; } }
