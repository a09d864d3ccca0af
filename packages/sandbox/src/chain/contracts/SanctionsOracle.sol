// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// Stands where Chainalysis keeps its oracle. It lists the addresses of the sandbox's own list of sanctions, which have a
/// beginning of their own and end with the number of their entry.
contract SanctionsOracle {
    function isSanctioned(address account) external pure returns (bool) {
        uint256 number = uint160(account) & ((1 << 112) - 1);
        return uint160(account) >> 112 == 0x5a4db0c515ed && number <= 12 && number % 2 == 1;
    }

    function name() external pure returns (string memory) {
        return "Sandbox sanctions oracle";
    }
}
