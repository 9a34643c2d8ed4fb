import assert from "node:assert/strict";
import { test } from "node:test";
import { nameTypes } from "./named-types.ts";

const answer = (schema: object): object => ({ description: "What came of it.", content: schema });
const person = { type: "object", title: "Person", properties: { name: { type: "string" } } };

test("a schema with a title stands once in the document, wherever and however often it is answered", () => {
  const house = { type: "object", title: "House", properties: { owners: { items: person } } };
  const paths = {
    "/one": answer({ ...person, description: "The first." }),
    "/both": answer({ type: "array", items: [house, person] }),
  };
  const owner = { $ref: "#/components/schemas/Person" };
  const { title: _person, ...Person } = person;
  const House = { type: "object", properties: { owners: { items: owner } } };
  const webhooks = { told: answer(person) };
  assert.deepEqual(nameTypes({ info: { title: "svc" }, paths, webhooks }), {
    info: { title: "svc" },
    components: { schemas: { House, Person } },
    paths: {
      "/one": answer(owner),
      "/both": answer({ type: "array", items: [{ $ref: "#/components/schemas/House" }, owner] }),
    },
    webhooks: { told: answer(owner) },
  });
});

test("two types that differ never have the same name", () => {
  const other = { ...person, properties: {} };
  assert.throws(() => nameTypes({ paths: { "/one": person, "/other": other } }), /called Person/);
});
