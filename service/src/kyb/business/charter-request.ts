import { Type } from "../../platform/http/schema.ts";
import { givenAddress } from "../member-schemas.ts";
import {
  type Address,
  type Charter,
  defaultGovernanceRule,
  hasKey,
  isBlank,
  isShowable,
  lengthOf,
} from "@svc/protocol";
import { readAddress } from "../../platform/http/address-input.ts";
import { invalidRequest } from "../../platform/http/problems.ts";

/** The contract allows 100. This service allows fewer, because all members are asked at once. */
const membersMax = 50;
const nameMax = 100;

const ruleFor = (what: string) =>
  Type.Optional(
    Type.Union([Type.Literal("MAJORITY"), Type.Literal("UNANIMOUS")], {
      description: `For ${what}: more than half of the voting members, or all of them.`,
    }),
  );

/** The schema of rules in a body. @param description what happens to rules that are absent */
export function rulesBody(description: string) {
  return Type.Object(
    {
      signature_requests: ruleFor("signatures and logins"),
      data_requests: ruleFor("releases of data"),
      governance: ruleFor("proposals, such as changes of members and rules"),
    },
    { additionalProperties: false, description },
  );
}

/** The schema of members in a body. */
export const MembersBody = Type.Array(
  Type.Object(
    {
      address: givenAddress("The member's identity"),
      name: Type.String({
        minLength: 1,
        maxLength: nameMax,
        description: "Shown beside the address, to tell the members apart; one line.",
      }),
      votingRights: Type.Boolean({ description: "False for a member who only observes." }),
    },
    { additionalProperties: false },
  ),
  {
    minItems: 1,
    maxItems: membersMax,
    description: "All members, each once; at least one has `votingRights`.",
  },
);

/** A member with its name, as requested. */
export interface NamedMember {
  readonly address: Address;
  readonly name: string;
  readonly isVoting: boolean;
}

interface RequestedMember {
  readonly address: string;
  readonly name: string;
  readonly votingRights: boolean;
}

/** Members and rules in a body. */
export interface RequestedCharter {
  readonly members: readonly RequestedMember[];
  readonly rules?: Partial<Charter["rules"]>;
}

/** Checks members and rules of a new business, or of a change. @throws {Problem} invalid_request */
export function parseCharter(body: RequestedCharter): {
  charter: Charter;
  members: NamedMember[];
} {
  const members = body.members.map(parseMember);
  const addresses = members.map(({ address }) => address);
  const repeated = addresses.find((address, at) => addresses.indexOf(address) < at);
  if (repeated !== undefined) throw invalidRequest(`members holds ${repeated} twice`);
  const voters = members.filter(({ isVoting }) => isVoting).length;
  if (voters === 0) throw invalidRequest("members must hold one with votingRights");
  const rules = {
    signature_requests: body.rules?.signature_requests ?? "MAJORITY",
    data_requests: body.rules?.data_requests ?? "MAJORITY",
    governance: body.rules?.governance ?? defaultGovernanceRule(voters),
  };
  return { charter: { rules, members }, members };
}

/** Checks a name. @param memberName the body's member, for messages. @throws {Problem} invalid_request */
export function parseName(memberName: string, text: string): string {
  const name = text.trim();
  if (isBlank(name) || lengthOf(name) > nameMax)
    throw invalidRequest(`${memberName} has 1 to ${nameMax} characters`);
  if (!isShowable(name) || name.includes("\n"))
    throw invalidRequest(`${memberName} holds control or bidirectional characters`);
  return name;
}

/** Checks an address. @param memberName the body's member, for messages. @throws {Problem} invalid_request */
export function parseMemberAddress(memberName: string, text: string): Address {
  const address = readAddress(memberName, text);
  if (!hasKey(address))
    throw invalidRequest(`${memberName} is an address that nobody has the key of`);
  return address;
}

function parseMember({ address, name, votingRights }: RequestedMember, at: number): NamedMember {
  return {
    address: parseMemberAddress(`members[${at}].address`, address),
    name: parseName(`members[${at}].name`, name),
    isVoting: votingRights,
  };
}
