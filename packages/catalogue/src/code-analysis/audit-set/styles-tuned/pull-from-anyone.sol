//// weak: the payer is named in a struct of an order
interface IERC20 { function transferFrom(address f, address t, uint256 v) external returns (bool); }
contract Exchange {
    struct Order { address maker; address taker; IERC20 asset; uint256 amount; }
    event Filled(address maker, uint256 amount);
    function fill(Order calldata o) external {
        require(o.asset.transferFrom(o.maker, o.taker, o.amount), "pull"); // !
        emit Filled(o.maker, o.amount);
    }
}
//// weak: a list of payers in an old compiler
pragma solidity ^0.4.24;
contract Tok { function transferFrom(address a, address b, uint256 c) public returns (bool); }
contract Bulk {
    Tok tok;
    constructor(Tok t) public { tok = t; }
    function gather(address[] from, uint256 each) public {
        for (uint256 i = 0; i < from.length; i++) {
            require(tok.transferFrom(from[i], msg.sender, each)); // !
        }
    }
}
//// weak: a low level call with the encoded words
contract Raw {
    error Fail();
    function move(address token, address src, address dst, uint256 wad) public {
        (bool s, bytes memory r) = token.call(abi.encodeWithSelector(0x23b872dd, src, dst, wad)); // !
        if (!s || (r.length != 0 && !abi.decode(r, (bool)))) revert Fail();
    }
}
//// clean: from the caller
import "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
contract Depot {
    using SafeERC20 for IERC20;
    IERC20 immutable asset; mapping(address => uint256) public shares;
    constructor(IERC20 a) { asset = a; }
    function put(uint256 v, address to) external { asset.safeTransferFrom(msg.sender, address(this), v); shares[to] += v; }
}
