// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {IERC5267} from "@openzeppelin/contracts/interfaces/IERC5267.sol";
import {Clones} from "@openzeppelin/contracts/proxy/Clones.sol";
import {Bytes} from "@openzeppelin/contracts/utils/Bytes.sol";
import {Create2} from "@openzeppelin/contracts/utils/Create2.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {Charter} from "./libraries/Charter.sol";
import {IBusinessWallet} from "./interfaces/IBusinessWallet.sol";

/// @title A business wallet
/// @dev Runs behind minimal clones whose immutable arguments are the first charter: there is no initialiser to
/// front-run and a new wallet has no storage. A changed charter is the code of a contract without functions.
contract BusinessWallet is IBusinessWallet {
    /// @dev One slot. All zero in a new wallet.
    struct State {
        /// Whose code is the charter; zero for the first one.
        address charterAt;
        uint64 epoch;
        uint24 nonce;
        bool isRemoving;
    }

    struct Removal {
        address member;
        uint48 startedAt;
        uint48 nonce;
    }

    /// @dev A decision: who may vote, how many approvals it needs, and the digest that they sign.
    struct Vote {
        bytes roster;
        uint256 needed;
        bytes32 digest;
    }

    /// @dev An act of governance: the signature of a function, and its arguments as `abi.encode` writes them.
    struct Act {
        string operation;
        bytes arguments;
    }

    bytes32 private constant _DOMAIN_TYPEHASH = keccak256("EIP712Domain(uint256 chainId,address verifyingContract)");
    bytes32 private constant _APPROVAL_TYPEHASH =
        keccak256("BusinessApproval(uint8 category,bytes32 hash,uint64 epoch,uint48 validUntil)");
    bytes32 private constant _GOVERNANCE_TYPEHASH =
        keccak256("Governance(bytes32 operation,bytes32 arguments,uint256 nonce)");
    bytes32 private constant _KEEP_TYPEHASH = keccak256("Keep(uint256 nonce)");

    uint8 private constant _SIGNATURE = 1;
    uint8 private constant _GOVERNANCE = 3;
    uint256 private constant _SIGNATURE_RULE = 0;
    uint256 private constant _GOVERNANCE_RULE = 2;
    uint256 private constant _APPROVAL_LENGTH = 65;
    uint48 private constant _REMOVAL_NOTICE = 30 days;
    uint48 private constant _PROTECTION = 90 days;
    bytes1 private constant _RECORDED_SIGNATURE = 0x01;
    uint48 private constant _WITHDRAWN = type(uint48).max;

    State private _state;
    Removal private _removal;
    /// @inheritdoc IBusinessWallet
    address public successor;
    /// @dev Unix seconds, or `_WITHDRAWN` for ever. If withdrawing cleared it, anybody could record the hash again with
    /// approvals that are still valid.
    mapping(bytes32 hash => uint48) private _recordedAt;
    /// @inheritdoc IBusinessWallet
    mapping(address member => uint48) public protectedUntil;

    /// @inheritdoc IBusinessWallet
    function record(bytes32 hash, uint48 validUntil, bytes calldata approvals) external {
        State memory state = _openState();
        if (_recordedAt[hash] != 0) revert AlreadyRecorded(hash);
        bytes memory current = _charterOf(state);
        uint256 needed = Charter.thresholdOf(uint8(current[_SIGNATURE_RULE]), Charter.votersOf(current));
        bytes32 digest = _approvalDigest(_SIGNATURE, hash, state.epoch, validUntil);
        _checkApprovals(Vote(current, needed, digest), validUntil, approvals);
        _recordedAt[hash] = uint48(block.timestamp);
        emit Recorded(hash);
    }

    /// @inheritdoc IBusinessWallet
    function withdraw(bytes32 hash, uint48 validUntil, bytes calldata approvals) external {
        if (recordedAt(hash) == 0) revert NotRecorded(hash);
        _govern(_state, Act("withdraw(bytes32)", abi.encode(hash)), validUntil, approvals);
        _recordedAt[hash] = _WITHDRAWN;
        emit Withdrawn(hash);
    }

    /// @inheritdoc IBusinessWallet
    function changeCharter(bytes calldata newCharter, uint48 validUntil, bytes calldata approvals) external {
        State memory state = _openState();
        bytes memory current = _charterOf(state);
        bytes memory next = newCharter;
        Charter.check(next);
        if (Charter.indexOf(next, address(this)) < Charter.countOf(next)) {
            revert Charter.MemberWithoutKey(address(this));
        }
        uint256 voters = Charter.votersOf(current);
        uint8 rule = uint8(current[_GOVERNANCE_RULE] | next[_GOVERNANCE_RULE]);
        bytes32 hash = _governanceHash(Act("changeCharter(bytes)", abi.encode(next)), state.nonce);
        bytes32 digest = _approvalDigest(_GOVERNANCE, hash, state.epoch, validUntil);
        _checkApprovals(Vote(current, Charter.thresholdOf(rule, voters), digest), validUntil, approvals);
        _replaceCharter(next);
    }

    /// @inheritdoc IBusinessWallet
    function moveTo(address successor_, uint48 validUntil, bytes calldata approvals) external {
        if (successor_ == address(0) || successor_ == address(this)) revert SuccessorRefused(successor_);
        _govern(_openState(), Act("moveTo(address)", abi.encode(successor_)), validUntil, approvals);
        successor = successor_;
        emit Moved(successor_);
    }

    /// @inheritdoc IBusinessWallet
    function startRemoval(address member, uint48 validUntil, bytes calldata approvals) external {
        State memory state = _openState();
        if (state.isRemoving) revert RemovalUnderWay(_removal.member);
        if (protectedUntil[member] > block.timestamp) revert MemberProtected(member, protectedUntil[member]);
        bytes memory current = _charterOf(state);
        uint256 index = Charter.indexOf(current, member);
        uint256 voters = Charter.votersOf(current);
        if (index == Charter.countOf(current) || voters < 2) revert RemovalRefused(member);
        (, uint8 flags) = Charter.memberAt(current, index);
        bytes memory others = Charter.without(current, index);
        uint256 needed = Charter.thresholdOf(Charter.MAJORITY, voters - flags);
        bytes32 hash = _governanceHash(Act("startRemoval(address)", abi.encode(member)), state.nonce);
        bytes32 digest = _approvalDigest(_GOVERNANCE, hash, state.epoch, validUntil);
        _checkApprovals(Vote(others, needed, digest), validUntil, approvals);
        _removal = Removal(member, uint48(block.timestamp), state.nonce);
        _state.nonce = state.nonce + 1;
        _state.isRemoving = true;
        emit RemovalStarted(member, uint48(block.timestamp) + _REMOVAL_NOTICE, state.nonce);
    }

    /// @inheritdoc IBusinessWallet
    function keep(bytes calldata signature) external {
        if (!_state.isRemoving) revert NoRemoval();
        Removal memory open = _removal;
        bytes32 digest = _digestOf(keccak256(abi.encode(_KEEP_TYPEHASH, uint256(open.nonce))));
        (address signer, ECDSA.RecoverError fault,) = ECDSA.tryRecover(digest, signature);
        if (fault != ECDSA.RecoverError.NoError || signer != open.member) revert KeepRefused();
        _endRemoval(open.member);
    }

    /// @inheritdoc IBusinessWallet
    function finishRemoval() external {
        State memory state = _openState();
        if (!state.isRemoving) revert NoRemoval();
        Removal memory open = _removal;
        uint48 endsAt = open.startedAt + _REMOVAL_NOTICE;
        if (block.timestamp < endsAt) revert RemovalTooEarly(endsAt);
        bytes memory current = _charterOf(state);
        bytes memory next = Charter.without(current, Charter.indexOf(current, open.member));
        if (Charter.votersOf(next) == 0) revert RemovalRefused(open.member);
        _replaceCharter(next);
    }

    /// @inheritdoc IERC1271
    /// @dev `signature` is `0x01` and the hash, so it reveals no member. `record` checked the approvals.
    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        bool isNamed = signature.length == 33 && signature[0] == _RECORDED_SIGNATURE && bytes32(signature[1:]) == hash;
        return isNamed && recordedAt(hash) != 0 ? IERC1271.isValidSignature.selector : bytes4(0xffffffff);
    }

    /// @inheritdoc IBusinessWallet
    function recordedAt(bytes32 hash) public view returns (uint48 time) {
        time = _recordedAt[hash];
        if (time == _WITHDRAWN) time = 0;
    }

    /// @inheritdoc IBusinessWallet
    function charter() external view returns (bytes memory) {
        return _charterOf(_state);
    }

    /// @inheritdoc IBusinessWallet
    function epoch() external view returns (uint64) {
        return _state.epoch;
    }

    /// @inheritdoc IBusinessWallet
    function nonce() external view returns (uint256) {
        return _state.nonce;
    }

    /// @inheritdoc IBusinessWallet
    function removal() external view returns (address member, uint48 endsAt, uint48 keepNonce) {
        if (!_state.isRemoving) return (address(0), 0, 0);
        Removal memory open = _removal;
        return (open.member, open.startedAt + _REMOVAL_NOTICE, open.nonce);
    }

    /// @inheritdoc IERC5267
    function eip712Domain()
        external
        view
        returns (bytes1, string memory, string memory, uint256, address, bytes32, uint256[] memory)
    {
        // 0x0c: chainId and verifyingContract, nothing else.
        return (hex"0c", "", "", block.chainid, address(this), bytes32(0), new uint256[](0));
    }

    /// @dev Checks the approvals of an act of governance, and increments the nonce so that they cannot be used again.
    function _govern(State memory state, Act memory act, uint48 validUntil, bytes calldata approvals) private {
        bytes memory current = _charterOf(state);
        uint256 needed = Charter.thresholdOf(uint8(current[_GOVERNANCE_RULE]), Charter.votersOf(current));
        bytes32 hash = _governanceHash(act, state.nonce);
        bytes32 digest = _approvalDigest(_GOVERNANCE, hash, state.epoch, validUntil);
        _checkApprovals(Vote(current, needed, digest), validUntil, approvals);
        _state.nonce = state.nonce + 1;
    }

    /// @dev Reverts unless exactly as many voting members as needed, sorted by address, signed in time. Roster and
    /// approvals have the same order, so one pass finds all signers, and none counts twice. If the member under removal
    /// is one of them, the removal ends.
    function _checkApprovals(Vote memory vote, uint48 validUntil, bytes calldata approvals) private {
        if (block.timestamp > validUntil) revert ApprovalsStale(validUntil);
        if (approvals.length != vote.needed * _APPROVAL_LENGTH) revert ApprovalsMiscounted(vote.needed);
        address seemsLost = _state.isRemoving ? _removal.member : address(0);
        bool hasAnswered = false;
        uint256 next = 0;
        for (uint256 i = 0; i < vote.needed; ++i) {
            // The address zero for a malformed or malleable signature, which no member has.
            (address signer,,) =
                ECDSA.tryRecoverCalldata(vote.digest, approvals[i * _APPROVAL_LENGTH:][:_APPROVAL_LENGTH]);
            next = Charter.indexAfter(vote.roster, signer, next);
            if (next == 0) revert ApprovalRefused(i);
            if (signer == seemsLost) hasAnswered = true;
        }
        // A member who approves has not lost the key.
        if (hasAnswered) _endRemoval(seemsLost);
    }

    function _endRemoval(address member) private {
        delete _removal;
        _state.isRemoving = false;
        uint48 until = uint48(block.timestamp) + _PROTECTION;
        protectedUntil[member] = until;
        emit RemovalEnded(member, until);
    }

    /// @dev Makes `next` the charter and starts an epoch. A removal continues if its member is still on the roster.
    function _replaceCharter(bytes memory next) private {
        State memory state = _state;
        if (state.isRemoving && Charter.indexOf(next, _removal.member) == Charter.countOf(next)) {
            delete _removal;
            state.isRemoving = false;
        }
        state.epoch += 1;
        state.nonce += 1;
        state.charterAt = _write(next, state.epoch);
        _state = state;
        emit CharterChanged(keccak256(next), state.epoch);
    }

    /// @dev Stores `data` as the code of a contract, behind a byte 00 (STOP), so that calls do not execute it. The
    /// creation code returns all that follows its first ten bytes: PUSH2 size, DUP1, PUSH1 10, RETURNDATASIZE,
    /// CODECOPY, RETURNDATASIZE, RETURN.
    function _write(bytes memory data, uint64 salt) private returns (address) {
        bytes memory code = bytes.concat(hex"61", bytes2(uint16(data.length + 1)), hex"80600a3d393df300", data);
        return Create2.deploy(0, bytes32(uint256(salt)), code);
    }

    /// @dev The state. Reverts if the business has moved.
    function _openState() private view returns (State memory) {
        if (successor != address(0)) revert WalletMoved(successor);
        return _state;
    }

    function _charterOf(State memory state) private view returns (bytes memory) {
        if (state.charterAt == address(0)) return Clones.fetchCloneArgs(address(this));
        return Bytes.slice(state.charterAt.code, 1);
    }

    function _governanceHash(Act memory act, uint256 nonce_) private pure returns (bytes32) {
        bytes32 operation = keccak256(bytes(act.operation));
        return keccak256(abi.encode(_GOVERNANCE_TYPEHASH, operation, keccak256(act.arguments), nonce_));
    }

    function _approvalDigest(uint8 category, bytes32 hash, uint64 epoch_, uint48 validUntil)
        private
        view
        returns (bytes32)
    {
        return _digestOf(keccak256(abi.encode(_APPROVAL_TYPEHASH, category, hash, epoch_, validUntil)));
    }

    function _digestOf(bytes32 structHash) private view returns (bytes32) {
        bytes32 separator = keccak256(abi.encode(_DOMAIN_TYPEHASH, block.chainid, address(this)));
        return MessageHashUtils.toTypedDataHash(separator, structHash);
    }
}
