// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {IERC5267} from "@openzeppelin/contracts/interfaces/IERC5267.sol";

/// @title A business: members, the rules by which they approve, and the signatures that they gave for it.
/// @notice Nobody holds a key for it; it holds no assets, calls nobody and cannot be upgraded. Every act is proved by
/// the members' EIP-712 approvals, so anybody may relay it.
/// @dev `BusinessApproval(uint8 category,bytes32 hash,uint64 epoch,uint48 validUntil)` in the domain
/// `EIP712Domain(uint256 chainId,address verifyingContract)`. `approvals` are signatures of 65 bytes (r, s, v), their
/// signers strictly increasing, exactly as many as the rule asks for.
interface IBusinessWallet is IERC1271, IERC5267 {
    /// @notice The business signed `hash`.
    event Recorded(bytes32 indexed hash);
    /// @notice The business took its signature of `hash` back.
    event Withdrawn(bytes32 indexed hash);
    /// @notice Members or rules changed; every approval of an earlier epoch is void.
    event CharterChanged(bytes32 indexed charter, uint64 epoch);
    /// @notice The business goes on in another wallet; this one approves nothing any more.
    event Moved(address indexed successor);
    /// @notice The removal of a member who seems lost began. `nonce` is what `Keep` names.
    event RemovalStarted(address indexed member, uint48 endsAt, uint48 nonce);
    /// @notice The member answered; it stays, and is safe from removal until then.
    event RemovalEnded(address indexed member, uint48 protectedUntil);

    /// @notice Too few or too many approvals, or not whole ones.
    error ApprovalsMiscounted(uint256 needed);
    /// @notice An approval is by nobody who may vote, stands out of order, or is malformed.
    error ApprovalRefused(uint256 index);
    /// @notice The approvals were good until then.
    error ApprovalsStale(uint48 validUntil);
    /// @notice The hash was signed before.
    error AlreadyRecorded(bytes32 hash);
    /// @notice The hash was not signed, or taken back.
    error NotRecorded(bytes32 hash);
    /// @notice The business goes on elsewhere.
    error WalletMoved(address successor);
    /// @notice A wallet moves to another address that is not zero.
    error SuccessorRefused(address successor);
    /// @notice One removal at a time.
    error RemovalUnderWay(address member);
    /// @notice There is none to end or to finish.
    error NoRemoval();
    /// @notice The member may answer until then.
    error RemovalTooEarly(uint48 endsAt);
    /// @notice The member answered a short time ago.
    error MemberProtected(address member, uint48 protectedUntil);
    /// @notice Not a member, or the only one with a vote.
    error RemovalRefused(address member);
    /// @notice Signed by somebody else.
    error KeepRefused();

    /// @notice Signs `hash` for the business (category 1, rule of `signature_requests`).
    /// @param hash the digest that others will ask about
    /// @param validUntil until when the approvals count, Unix seconds
    function record(bytes32 hash, uint48 validUntil, bytes calldata approvals) external;

    /// @notice Takes a signature back (governance).
    function withdraw(bytes32 hash, uint48 validUntil, bytes calldata approvals) external;

    /// @notice Replaces rules and members (governance; the stricter of the old and the new rule of governance).
    /// @param newCharter as `Charter` packs it
    function changeCharter(bytes calldata newCharter, uint48 validUntil, bytes calldata approvals) external;

    /// @notice Names the wallet in which the business goes on (governance). Final; what was signed here stays.
    function moveTo(address successor, uint48 validUntil, bytes calldata approvals) external;

    /// @notice Begins the removal of a member who seems lost: approved by a majority of the other voting members.
    function startRemoval(address member, uint48 validUntil, bytes calldata approvals) external;

    /// @notice Ends the removal: the member signed `Keep(uint256 nonce)` in this wallet's domain.
    function keep(bytes calldata signature) external;

    /// @notice Removes the member, 30 days after the start.
    function finishRemoval() external;

    /// @notice Rules and members as they are now.
    function charter() external view returns (bytes memory);

    /// @notice Counts the changes of the charter; approvals name it.
    function epoch() external view returns (uint64);

    /// @notice Counts the acts of governance; the next one names it.
    function nonce() external view returns (uint256);

    /// @notice When the business signed `hash`, Unix seconds; zero where it did not.
    function recordedAt(bytes32 hash) external view returns (uint48);

    /// @notice Where the business went on; zero where it is still here.
    function successor() external view returns (address);

    /// @notice The removal under way; all zero where there is none.
    function removal() external view returns (address member, uint48 endsAt, uint48 keepNonce);

    /// @notice Until when a member is safe from removal.
    function protectedUntil(address member) external view returns (uint48);
}
