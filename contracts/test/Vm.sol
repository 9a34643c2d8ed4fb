// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// The cheatcodes that these tests use, at the address at which forge provides them.
interface Vm {
    function prank(address sender) external;
    function warp(uint256 time) external;
    function chainId(uint256 id) external;
    function addr(uint256 key) external pure returns (address);
    function sign(uint256 key, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);
    function assume(bool condition) external pure;
    function expectRevert(bytes calldata reason) external;
    function expectEmit(bool, bool, bool, bool, address emitter) external;
    function recordLogs() external;
    function getRecordedLogs() external returns (Log[] memory);
    function snapshotGasLastCall(string calldata name) external returns (uint256);

    struct Log {
        bytes32[] topics;
        bytes data;
        address emitter;
    }
}

Vm constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

error Unequal(uint256 actual, uint256 expected);

function assertEq(uint256 actual, uint256 expected) pure {
    if (actual != expected) revert Unequal(actual, expected);
}

function assertEq(bytes32 actual, bytes32 expected) pure {
    assertEq(uint256(actual), uint256(expected));
}

function assertEq(address actual, address expected) pure {
    assertEq(uint160(actual), uint160(expected));
}

function assertAtMost(uint256 actual, uint256 limit) pure {
    if (actual > limit) revert Unequal(actual, limit);
}
