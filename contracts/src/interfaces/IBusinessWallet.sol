// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {IERC5267} from "@openzeppelin/contracts/interfaces/IERC5267.sol";

/// @title A business: members, the rules by which they approve, and the signatures that they gave for it.
/// @notice It has no key, holds no assets, calls no other contract and cannot be upgraded. Every act carries the
/// members' EIP-712 approvals, so anybody may relay it.
/// @dev `BusinessApproval(uint8 category,bytes32 hash,uint64 epoch,uint48 validUntil)` in the domain
/// `EIP712Domain(uint256 chainId,address verifyingContract)`. `approvals` are signatures of 65 bytes (r, s, v), their
/// signers strictly increasing, exactly as many as the rule asks for.
interface IBusinessWallet is IERC1271, IERC5267 {
    /// @notice The business signed `hash`.
    event Recorded(bytes32 indexed hash);
    /// @notice The business withdrew its signature of `hash`.
    event Withdrawn(bytes32 indexed hash);
    /// @notice Members or rules changed; every approval of an earlier epoch is void.
    event CharterChanged(bytes32 indexed charter, uint64 epoch);
    /// @notice The business continues in another wallet; this one signs nothing any more, but
    /// can still withdraw signatures.
    event Moved(address indexed successor);
    /// @notice The removal of a member who seems lost has begun. `nonce` is the one that `Keep` has to contain.
    event RemovalStarted(address indexed member, uint48 endsAt, uint48 nonce);
    /// @notice The member answered; it stays, and no removal of it can begin until `protectedUntil`.
    event RemovalEnded(address indexed member, uint48 protectedUntil);

    /// @notice Exactly `needed` approvals of 65 bytes are expected.
    error ApprovalsMiscounted(uint256 needed);
    /// @notice This approval is not by a voting member, out of order, or malformed.
    error ApprovalRefused(uint256 index);
    /// @notice The approvals were valid until then.
    error ApprovalsStale(uint48 validUntil);
    /// @notice The hash was signed before.
    error AlreadyRecorded(bytes32 hash);
    /// @notice The hash was not signed, or its signature was withdrawn.
    error NotRecorded(bytes32 hash);
    /// @notice The business continues in another wallet.
    error WalletMoved(address successor);
    /// @notice The successor must be neither zero nor the wallet itself.
    error SuccessorRefused(address successor);
    /// @notice Another removal is under way.
    error RemovalUnderWay(address member);
    /// @notice No removal is under way.
    error NoRemoval();
    /// @notice The member may answer until `endsAt`.
    error RemovalTooEarly(uint48 endsAt);
    /// @notice The member answered an earlier removal and is protected until then.
    error MemberProtected(address member, uint48 protectedUntil);
    /// @notice Not a member, or the only one with a vote.
    error RemovalRefused(address member);
    /// @notice The signature is not that of the member under removal.
    error KeepRefused();

    /// @notice Signs `hash` for the business (category 1, rule of `signature_requests`).
    /// @param hash the digest for which `isValidSignature` will be asked
    /// @param validUntil until when the approvals are valid, Unix seconds
    function record(bytes32 hash, uint48 validUntil, bytes calldata approvals) external;

    /// @notice Withdraws a signature (governance), also after a move.
    function withdraw(bytes32 hash, uint48 validUntil, bytes calldata approvals) external;

    /// @notice Replaces rules and members (governance; the stricter of the old and the new rule of governance).
    /// @param newCharter as `Charter` packs it
    function changeCharter(bytes calldata newCharter, uint48 validUntil, bytes calldata approvals) external;

    /// @notice Sets the wallet in which the business continues (governance). Final; signatures given here stay valid.
    function moveTo(address successor, uint48 validUntil, bytes calldata approvals) external;

    /// @notice Begins the removal of a member who seems lost: approved by a majority of the other voting members.
    function startRemoval(address member, uint48 validUntil, bytes calldata approvals) external;

    /// @notice Ends the removal: the member signed `Keep(uint256 nonce)` in this wallet's domain.
    function keep(bytes calldata signature) external;

    /// @notice Removes the member, 30 days after the start.
    function finishRemoval() external;

    /// @notice The present rules and members.
    function charter() external view returns (bytes memory);

    /// @notice The number of changes of the charter; approvals contain it.
    function epoch() external view returns (uint64);

    /// @notice Increases with each act of governance and finished removal; the approvals of the next act contain it.
    function nonce() external view returns (uint256);

    /// @notice When the business signed `hash`, Unix seconds; zero if it did not, or withdrew that.
    function recordedAt(bytes32 hash) external view returns (uint48);

    /// @notice The wallet in which the business continues; zero if it has not moved.
    function successor() external view returns (address);

    /// @notice The removal under way; all zero if there is none.
    function removal() external view returns (address member, uint48 endsAt, uint48 keepNonce);

    /// @notice Until when no removal of the member can begin, Unix seconds.
    function protectedUntil(address member) external view returns (uint48);
}
