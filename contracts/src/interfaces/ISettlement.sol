// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Where an operator commits to batches of orders
/// @notice An event per batch and phase, no storage, no roles: anybody may commit, and readers filter by the indexed
/// sender.
/// @dev `root` is the root of the tree of a batch's leaves, in which the phase is part of each leaf.
interface ISettlement {
    /// @notice The operator holds the consents under `root`.
    event Initiated(address indexed operator, bytes32 indexed root);

    /// @notice The operator released the data of the orders under `root` to those who requested it.
    event Confirmed(address indexed operator, bytes32 indexed root);

    /// @notice Commits to the consents of a batch.
    function initiate(bytes32 root) external;

    /// @notice Commits to the release of a batch.
    function confirm(bytes32 root) external;
}
