// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Vm} from "forge-std/Vm.sol";
import {Protocol} from "../src/interfaces/Protocols.sol";
import {World} from "./world/World.sol";

/// No role can take what shareholders have: every function that the vault has, called by every role with every kind of
/// argument, and all that left the vault is looked at.
contract AuthorityTest is World {
    string private constant ARTIFACT = "contracts/out/FareboxVault.sol/FareboxVault.json";
    bytes32 private constant TRANSFER = keccak256("Transfer(address,address,uint256)");

    function test_no_function_lets_a_role_take_anything() external {
        deposit(alice, 100_000 * USDC_1);
        skip(6 hours);
        vm.prank(keeper);
        vault.move(Protocol.Aave, Protocol.Compound, 40_000 * USDC_1, 0);
        skip(6 hours);
        vm.prank(keeper);
        vault.move(Protocol.Compound, Protocol.Morpho, 20_000 * USDC_1, 0);
        skip(6 hours);
        usdc.mint(address(vault), 1_000 * USDC_1);
        // The fee that is due by now is minted, so that whoever has fewer shares afterwards has given them.
        vm.prank(owner);
        vault.setFeeRecipient(treasury);

        string[] memory functions = vm.parseJsonKeys(vm.readFile(ARTIFACT), ".methodIdentifiers");
        assertGt(functions.length, 60);
        address[5] memory roles = [owner, keeper, guardian, treasury, makeAddr("nobody")];
        uint256 did;
        for (uint256 f = 0; f < functions.length; f++) {
            bytes4 selector = bytes4(keccak256(bytes(functions[f])));
            for (uint256 r = 0; r < roles.length; r++) {
                for (uint256 kind = 0; kind < 6; kind++) {
                    uint256 world = vm.snapshotState();
                    if (attack(functions[f], selector, roles[r], kind)) did += 1;
                    vm.revertToState(world);
                }
            }
        }
        // Most of them do something, so this is a test of what they do.
        assertGt(did, 500);
    }

    function attack(string memory name, bytes4 selector, address role, uint256 kind) private returns (bool ok) {
        uint256 worth = vault.convertToAssets(vault.balanceOf(alice));
        uint256 own = vault.balanceOf(role);
        vm.recordLogs();
        vm.prank(role);
        (ok,) = address(vault).call(abi.encodePacked(selector, arguments(kind, role)));
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 n = 0; n < logs.length; n++) {
            if (logs[n].topics[0] != TRANSFER || logs[n].topics.length != 3) continue;
            if (address(uint160(uint256(logs[n].topics[1]))) != address(vault)) continue;
            address to = address(uint160(uint256(logs[n].topics[2])));
            if (logs[n].emitter == address(vault) || abi.decode(logs[n].data, (uint256)) == 0) continue;
            // To a protocol, or burnt by one; or to who gave shares for it.
            bool inside = to == address(aUsdc) || to == address(comet) || to == address(metaMorpho) || to == address(0);
            assertTrue(inside || vault.balanceOf(role) < own, string.concat("something left the vault: ", name));
        }
        assertEq(vault.allowance(alice, role), 0);
        assertGe(vault.convertToAssets(vault.balanceOf(alice)) + 20, worth, "worth less than before");
    }

    function arguments(uint256 kind, address role) private view returns (bytes memory) {
        if (kind == 0) return abi.encode(role, role, role, role);
        if (kind == 1) return abi.encode(1_000, role, alice, 0);
        if (kind == 2) return abi.encode(0, 1, 5_000 * USDC_1, 0);
        if (kind == 3) return abi.encode(2, 0, 5_000 * USDC_1, 0);
        if (kind == 4) return abi.encode(alice, role, 1_000 * USDC_1, 0);
        return abi.encode(0, 0, 0, 0, 0, 0, 0);
    }

    /// What the vault approved: each protocol, USDC alone.
    function test_only_the_three_protocols_may_take_usdc_from_the_vault() external view {
        // Less what the seed took, which is the only deposit until now: Circle's code counts down from the most that there is too.
        assertEq(usdc.allowance(address(vault), address(aave)), type(uint256).max - vault.SEED_ASSETS());
        assertEq(usdc.allowance(address(vault), address(comet)), type(uint256).max);
        assertEq(usdc.allowance(address(vault), address(metaMorpho)), type(uint256).max);
        assertEq(IERC20(address(aUsdc)).allowance(address(vault), keeper), 0);
        assertEq(metaMorpho.allowance(address(vault), keeper), 0);
    }
}
