// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title What issuers attest: roots of trees of verified fields
/// @notice One packed slot per issuer and root: when it was attested and when it was revoked. It never contains a user,
/// field name or value; a root is a hash over salted leaves.
/// @dev An issuer is identified by an address that needs no key. Holders of the role `issuerRole(issuer)` write for it.
/// The admin grants roles; the admin itself changes in two steps.
interface ICredentialRegistry {
    /// @notice `root` was attested by `issuer` in this block.
    event Attested(address indexed issuer, bytes32 indexed root);

    /// @notice `root` is revoked, for good.
    event Revoked(address indexed issuer, bytes32 indexed root);

    /// @notice What `issuer` attested at or after `from` no longer counts.
    event Distrusted(address indexed issuer, uint48 from);

    /// @notice The address zero is not allowed as an issuer: its role would be that of the admin.
    error IssuerIsZero();

    /// @notice Distrust can only be extended: `from` must be above zero and earlier than the present time of distrust.
    error DistrustNotEarlier(uint48 from, uint48 distrustedFrom);

    /// @notice Attests roots at this block's time. Skips those that were attested or revoked before, so that a batch
    /// may be sent again.
    /// @param issuer the issuer that attests; the sender needs its role
    function attest(address issuer, bytes32[] calldata roots) external;

    /// @notice Revokes roots at this block's time, for good. Skips those that are revoked. A root that is not attested
    /// yet can be revoked too and never becomes live, so that a revocation takes effect even if it is mined before the
    /// attestation.
    /// @param issuer the issuer that revokes; the sender needs its role
    function revoke(address issuer, bytes32[] calldata roots) external;

    /// @notice Withdraws the trust in everything that an issuer attested at or after `from`; admin only. May be
    /// repeated with an earlier time, never with a later one.
    /// @param from Unix seconds, above zero
    function distrust(address issuer, uint48 from) external;

    /// @notice The times, Unix seconds, zero for never.
    function statusOf(address issuer, bytes32 root)
        external
        view
        returns (uint48 attestedAt, uint48 revokedAt, uint48 distrustedFrom);

    /// @notice Whether the root is attested, not revoked, and was attested before any distrust. The expiration of
    /// leaves is not checked: compare their `expiresAt`.
    function isLive(address issuer, bytes32 root) external view returns (bool);

    /// @notice The role whose holders write for the issuer: its address as a number.
    function issuerRole(address issuer) external pure returns (bytes32);
}
