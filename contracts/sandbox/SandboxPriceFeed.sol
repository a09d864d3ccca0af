// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// A price that never changes, for Aave's oracle (8 decimals) and for Morpho's (36 and the difference of the tokens' decimals).
contract SandboxPriceFeed {
    int256 public immutable latestAnswer;

    constructor(int256 price_) {
        latestAnswer = price_;
    }

    /// As Morpho asks for it.
    function price() external view returns (uint256) {
        return uint256(latestAnswer);
    }
}
