//// weak: a v3 swap callback that pays whoever calls
interface IERC20 { function transfer(address t, uint256 v) external returns (bool); }
contract C1 {
    function uniswapV3SwapCallback(int256 d0, int256 d1, bytes calldata data) external {
        (address t0, address t1) = abi.decode(data, (address, address));
        if (d0 > 0) IERC20(t0).transfer(msg.sender, uint256(d0)); // !
        else IERC20(t1).transfer(msg.sender, uint256(d1)); // !
    }
}
//// weak: a message handler of a bridge
contract C3 {
    mapping(address => uint256) public balance; 
    event Got(uint32 origin, bytes32 sender);
    function handle(uint32 origin, bytes32 sender, bytes calldata body) external payable { // !
        (address to, uint256 v) = abi.decode(body, (address, uint256));
        balance[to] += v; // !
        emit Got(origin, sender);
    }
    function take(uint256 v) external { balance[msg.sender] -= v; payable(msg.sender).transfer(v); }
}
//// weak: a receiver that credits whatever token says it has arrived
contract C5 {
    mapping(address => uint256) public credited;
    function onTokenTransfer(address from, uint256 v, bytes calldata) external { credited[from] += v; } // !
}
//// clean: the pool is asked
interface IERC20 { function transfer(address t, uint256 v) external returns (bool); }
contract C6 {
    address immutable pool; address immutable t0; constructor(address p, address t) { pool = p; t0 = t; }
    error NotPool();
    function uniswapV3SwapCallback(int256 d0, int256, bytes calldata) external { if (msg.sender != pool) revert NotPool(); if (d0 > 0) require(IERC20(t0).transfer(msg.sender, uint256(d0))); }
}
//// clean: an NFT receiver that only answers
contract C8 { function onERC721Received(address, address, uint256, bytes calldata) external pure returns (bytes4) { return this.onERC721Received.selector; } }
