// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.0;

interface IToken {
    function balanceOf(address) external view returns (uint256);
}

interface IPool {
    function swap(address to, bool zeroForOne, int256 amount, uint160 limit, bytes calldata data)
        external
        returns (int256, int256);
}

interface IPair {
    function getReserves() external view returns (uint112, uint112, uint32);
    function swap(uint256 amount0Out, uint256 amount1Out, address to, bytes calldata data) external;
}

interface IWrapped {
    function deposit() external payable;
}

/// Buys a token from a Uniswap v3 pool or a Uniswap v2 pair and sells half of it again. It lies on no chain: a node pretends that it does.
contract TradeProbe {
    struct Outcome {
        /// 0: both went through. 1: the purchase failed. 2: nothing arrived. 3: the sale failed.
        uint256 stage;
        uint256 bought;
        uint256 arrived;
        uint256 sold;
        uint256 soldArrived;
        uint256 proceeds;
        bytes reason;
    }

    uint256 private sent;
    uint256 private received;

    function trade(address pool, bool isPair, address token, address quote, bool wrap, uint256 spend)
        external
        returns (Outcome memory made)
    {
        if (wrap) IWrapped(quote).deposit{value: spend}();
        uint256 before = IToken(token).balanceOf(address(this));
        try this.swap(pool, isPair, quote, token, spend) returns (uint256 given, uint256, uint256) {
            made.bought = given;
        } catch (bytes memory why) {
            made.stage = 1;
            made.reason = why;
            return made;
        }
        made.arrived = IToken(token).balanceOf(address(this)) - before;
        // What is kept back makes up for what a tax takes on the way to the pool.
        uint256 part = made.arrived / 2;
        if (part == 0) {
            made.stage = 2;
            return made;
        }
        try this.swap(pool, isPair, token, quote, part) returns (uint256 given, uint256 out, uint256 came) {
            (made.proceeds, made.sold, made.soldArrived) = (given, out, came);
        } catch (bytes memory why) {
            made.stage = 3;
            made.reason = why;
        }
    }

    function swap(address pool, bool isPair, address from, address to, uint256 amount)
        external
        returns (uint256 given, uint256 out, uint256 came)
    {
        bool zeroForOne = from < to;
        if (isPair) return swapPair(pool, from, zeroForOne, amount);
        (int256 amount0, int256 amount1) = IPool(pool).swap(
            address(this),
            zeroForOne,
            int256(amount),
            // The ends of TickMath's range: no limit.
            zeroForOne ? 4295128740 : 1461446703485210103287273052203988822378723970341,
            abi.encode(from)
        );
        given = uint256(-(zeroForOne ? amount1 : amount0));
        (out, came) = (sent, received);
    }

    /// A pair gives for what arrived, less its fee of 0.3 %.
    function swapPair(address pair, address from, bool zeroForOne, uint256 amount)
        private
        returns (uint256 given, uint256 out, uint256 came)
    {
        (uint256 taking, uint256 giving,) = IPair(pair).getReserves();
        if (!zeroForOne) (taking, giving) = (giving, taking);
        uint256 before = IToken(from).balanceOf(pair);
        pay(from, pair, amount);
        came = IToken(from).balanceOf(pair) - before;
        require(came > 0, "nothing arrived at the pool");
        out = amount;
        uint256 counted = came * 997;
        given = (counted * giving) / (taking * 1000 + counted);
        IPair(pair).swap(zeroForOne ? 0 : given, zeroForOne ? given : 0, address(this), "");
    }

    function uniswapV3SwapCallback(int256 amount0, int256 amount1, bytes calldata data) external {
        address from = abi.decode(data, (address));
        uint256 owed = uint256(amount0 > 0 ? amount0 : amount1);
        uint256 before = IToken(from).balanceOf(msg.sender);
        pay(from, msg.sender, owed);
        uint256 came = IToken(from).balanceOf(msg.sender) - before;
        (sent, received) = (owed, came);
        require(came > 0, "nothing arrived at the pool");
        if (came < owed) pay(from, msg.sender, ((owed - came) * owed) / came + 1);
    }

    function pay(address token, address to, uint256 amount) private {
        (bool done, bytes memory said) =
            token.call(abi.encodeWithSignature("transfer(address,uint256)", to, amount));
        if (!done) {
            assembly {
                revert(add(said, 32), mload(said))
            }
        }
        require(said.length == 0 || abi.decode(said, (bool)), "transfer said false");
    }
}
