// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC4626Test} from "erc4626-tests/ERC4626.test.sol";
import {Protocol} from "../src/interfaces/Protocols.sol";
import {World} from "../test/world/World.sol";

/// The published properties of ERC-4626, with delta 0, on the vault over the real protocols. The suite is brought by whoever runs
/// it: `npm run contracts:deep -- --suite <folder>`.
abstract contract Published is ERC4626Test, World {
    uint256 private constant MOST = 10_000_000 * USDC_1;

    function active() internal pure virtual returns (Protocol);

    function setUp() public override(ERC4626Test, World) {
        World.setUp();
        vault = makeVault(active());
        _underlying_ = address(usdc);
        _vault_ = address(vault);
        _delta_ = 0;
        _vaultMayBeEmpty = true;
        _unlimitedAmount = false;
    }

    /// Amounts that there are of USDC: of any others nothing can be minted, and the run would say nothing.
    function setUpVault(Init memory init) public override {
        for (uint256 n = 0; n < N; n++) {
            init.share[n] = bound(init.share[n], 0, MOST);
            init.asset[n] = bound(init.asset[n], 0, MOST);
        }
        init.yield = int256(bound(uint256(init.yield), 0, MOST));
        super.setUpVault(init);
        pass(uint256(init.yield) % YEAR);
    }
}

contract PublishedOnAave is Published {
    function active() internal pure override returns (Protocol) {
        return Protocol.Aave;
    }
}

contract PublishedOnCompound is Published {
    function active() internal pure override returns (Protocol) {
        return Protocol.Compound;
    }
}

contract PublishedOnMorpho is Published {
    function active() internal pure override returns (Protocol) {
        return Protocol.Morpho;
    }
}
