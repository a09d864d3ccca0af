//// weak: a flash loan receiver that believes its initiator
interface IERC20 { function approve(address s, uint256 v) external returns (bool); function transfer(address t, uint256 v) external returns (bool); }
contract C2 {
    address pool; constructor(address p) { pool = p; }
    function executeOperation(address asset, uint256 amount, uint256 premium, address initiator, bytes calldata p) external returns (bool) { // !
        require(initiator == address(this), "init");
        address to = abi.decode(p, (address));
        IERC20(asset).transfer(to, amount); // !
        IERC20(asset).approve(pool, amount + premium);
        return true;
    }
}
//// weak: a v2 flash callback through an internal step, old compiler
pragma solidity ^0.6.6;
interface E { function transfer(address t, uint256 v) external returns (bool); }
contract C4 {
    function uniswapV2Call(address sender, uint256 a0, uint256 a1, bytes calldata data) external { _repay(data, a0 > 0 ? a0 : a1); } // !
    function _repay(bytes memory d, uint256 v) private { (address t, address to) = abi.decode(d, (address, address)); require(E(t).transfer(to, v + v / 300)); } // !
}
//// clean: a flash loan receiver that checks both
interface IERC20 { function approve(address s, uint256 v) external returns (bool); }
contract C7 {
    address immutable pool; constructor(address p) { pool = p; }
    modifier fromPool(address initiator) { require(msg.sender == pool && initiator == address(this), "who"); _; }
    function executeOperation(address asset, uint256 amount, uint256 premium, address initiator, bytes calldata) external fromPool(initiator) returns (bool) { return IERC20(asset).approve(pool, amount + premium); }
}
