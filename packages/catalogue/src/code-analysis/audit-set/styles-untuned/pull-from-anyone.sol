//// weak: safeTransferFrom behind an internal helper with another name
import "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
contract Bridge {
    using SafeERC20 for IERC20;
    event Out(address token, address from, uint256 v, uint256 chain);
    function _collect(IERC20 t, address whom, uint256 v) internal { t.safeTransferFrom(whom, address(this), v); } // !
    function bridge(IERC20 token, address from, uint256 v, uint256 chain) external {
        require(v > 0 && chain != block.chainid, "args");
        _collect(token, from, v); // !
        emit Out(address(token), from, v, chain);
    }
}
//// weak: a permit in front, which a token without permit swallows
interface IWeth { function permit(address o, address s, uint256 v, uint256 d, uint8 a, bytes32 b, bytes32 c) external; function transferFrom(address f, address t, uint256 v) external returns (bool); }
contract Router {
    mapping(address => mapping(address => uint256)) public credit;
    function depositWithPermit(address owner, uint256 v, uint256 d, uint8 a, bytes32 b, bytes32 c, address token, address to) external {
        IWeth(token).permit(owner, address(this), v, d, a, b, c);
        bool ok = IWeth(token).transferFrom(owner, address(this), v); // !
        require(ok, "t");
        credit[token][to] += v;
    }
}
//// clean: the payer signed the order
import "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
contract Orders is EIP712("Orders", "1") {
    using SafeERC20 for IERC20;
    bytes32 constant T = keccak256("Order(address maker,address asset,uint256 amount,uint256 nonce,uint256 deadline)");
    mapping(address => mapping(uint256 => bool)) used;
    function take(address maker, IERC20 asset, uint256 amount, uint256 nonce, uint256 deadline, bytes calldata sig) external {
        require(block.timestamp <= deadline && !used[maker][nonce]);
        used[maker][nonce] = true;
        require(ECDSA.recover(_hashTypedDataV4(keccak256(abi.encode(T, maker, asset, amount, nonce, deadline))), sig) == maker);
        asset.safeTransferFrom(maker, msg.sender, amount);
    }
}
