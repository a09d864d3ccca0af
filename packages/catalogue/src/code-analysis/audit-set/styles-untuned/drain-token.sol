//// weak: an allowance that anybody opens for anybody
pragma solidity ^0.6.0;
interface Erc { function approve(address s, uint256 v) external returns (bool); }
contract Zap {
    function setup(address token, address spender) external { _max(token, spender); } // !
    function _max(address t, address s) internal { Erc(t).approve(s, uint256(-1)); } // !
}
//// weak: an arbitrary call from the contract that holds tokens
contract Multi {
    struct Call { address to; bytes data; }
    function aggregate(Call[] calldata calls) external payable returns (bytes[] memory out) {
        out = new bytes[](calls.length);
        for (uint256 i = 0; i < calls.length; ++i) {
            bool ok; (ok, out[i]) = calls[i].to.call(calls[i].data); // !
            require(ok, "call");
        }
    }
}
//// clean: a rescue by the owner that spares the stake
import {SafeTransferLib} from "solady/utils/SafeTransferLib.sol";
import {Ownable} from "solady/auth/Ownable.sol";
contract Stake2 is Ownable {
    address immutable stake; error Stake();
    constructor(address s) { stake = s; _initializeOwner(msg.sender); }
    function rescue(address token, address to) external onlyOwner { if (token == stake) revert Stake(); SafeTransferLib.safeTransferAll(token, to); }
}
