// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title What issuers attest: roots of trees of verified fields
/// @notice One packed slot per issuer and root: when it was attested and when it was revoked. No user, field name or
/// value ever gets here; a root is a hash over salted leaves.
/// @dev An issuer is named by an address that needs no key. Whoever holds the role `issuerRole(issuer)` writes for it.
/// Roles are granted by the admin, who changes hands in two steps.
interface ICredentialRegistry {
    /// @notice `root` was attested by `issuer` in this block.
    event Attested(address indexed issuer, bytes32 indexed root);

    /// @notice `root` is revoked, for good.
    event Revoked(address indexed issuer, bytes32 indexed root);

    /// @notice What `issuer` attested at or after `from` no longer counts.
    event Distrusted(address indexed issuer, uint48 from);

    /// @notice The address zero names no issuer: its role would be that of the admin.
    error IssuerIsZero();

    /// @notice Distrust only grows: `from` must be above zero and below the time that holds already.
    error DistrustNotEarlier(uint48 from, uint48 distrustedFrom);

    /// @notice Attests roots at this block's time. Skips those that were attested or revoked before, so that a batch
    /// may be sent again.
    /// @param issuer in whose name; the sender needs its role
    function attest(address issuer, bytes32[] calldata roots) external;

    /// @notice Revokes roots at this block's time, for good. Skips those that are revoked. A root that was not attested
    /// yet can be revoked too and never becomes live: a revocation must not be lost by the order of two transactions.
    /// @param issuer in whose name; the sender needs its role
    function revoke(address issuer, bytes32[] calldata roots) external;

    /// @notice Takes back the trust in what an issuer attested at or after `from`; admin only. May be repeated with an
    /// earlier time, never with a later one.
    /// @param from Unix seconds, above zero
    function distrust(address issuer, uint48 from) external;

    /// @notice The times, Unix seconds, zero for never.
    function statusOf(address issuer, bytes32 root)
        external
        view
        returns (uint48 attestedAt, uint48 revokedAt, uint48 distrustedFrom);

    /// @notice Whether the root is attested, not revoked, and was attested before any distrust. Leaves end by
    /// themselves: compare their `expiresAt`.
    function isLive(address issuer, bytes32 root) external view returns (bool);

    /// @notice The role whose holders write for the issuer: its address as a number.
    function issuerRole(address issuer) external pure returns (bytes32);
}
