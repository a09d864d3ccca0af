// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Vm} from "forge-std/Vm.sol";

/// Contracts of others, from what the compiler made of `contracts/sandbox/Protocols.sol` before the tests are compiled. So
/// no test depends on their sources, and the tests can be compiled without the optimizer, which Aave's pool cannot be.
library Built {
    Vm private constant VM = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    /// Deploys a contract whose file has its name, with the libraries that it is linked to.
    ///
    /// @param arguments of its constructor, encoded
    function make(string memory name, bytes memory arguments) internal returns (address) {
        string memory artifact = VM.readFile(string.concat("contracts/out/", name, ".sol/", name, ".json"));
        string memory code = VM.parseJsonString(artifact, ".bytecode.object");
        string[] memory sources = VM.parseJsonKeys(artifact, ".bytecode.linkReferences");
        for (uint256 s = 0; s < sources.length; s++) {
            string memory within = string.concat(".bytecode.linkReferences['", sources[s], "']");
            string[] memory libraries = VM.parseJsonKeys(artifact, within);
            for (uint256 n = 0; n < libraries.length; n++) {
                code = link(code, string.concat(sources[s], ":", libraries[n]), make(libraries[n], ""));
            }
        }
        return create(abi.encodePacked(VM.parseBytes(code), arguments));
    }

    /// Puts a library's address where the compiler left the first 17 bytes of its name's hash, between `__$` and `$__`.
    ///
    /// @param name of the library, behind its source's path and a colon
    function link(string memory code, string memory name, address library_) internal pure returns (string memory) {
        string memory place = digits(abi.encodePacked(bytes17(keccak256(bytes(name)))));
        return VM.replace(code, string.concat("__$", place, "$__"), digits(abi.encodePacked(library_)));
    }

    function create(bytes memory code) internal returns (address made) {
        assembly ("memory-safe") {
            made := create(0, add(code, 32), mload(code))
        }
        require(made != address(0), "not deployed");
    }

    /// In hexadecimal, without the `0x`.
    function digits(bytes memory data) private pure returns (string memory) {
        return VM.replace(VM.toString(data), "0x", "");
    }
}
