// Node.js against a real service: node test/client.mjs URL [TOKEN]

import assert from "node:assert/strict";
import { events, foldline } from "../dist/index.js";

const [url, token] = process.argv.slice(2);
const client = foldline(url, token);
const session = "from-node";
const params = { path: { session } };

const begun = await client.POST("/sessions", { body: { id: session, title: "From Node.js", user: "ada" } });
assert.equal(begun.response.status, 201);
const said = await client.POST("/sessions/{session}/messages", {
  params,
  body: { messages: [{ role: "user", content: "Never push to main." }, { role: "assistant", content: "Understood." }] },
});
assert.equal(said.data?.entries.length, 2);

const names = [];
const turn = await client.POST("/sessions/{session}/turns", { params, body: { text: "Hello." }, parseAs: "stream" });
for await (const { event, data } of events(turn.data)) {
  names.push(event);
  if (event === "done") assert.equal(data.how, "done");
}
assert.equal(names.at(-1), "done");
assert.ok(names.includes("message.delta"));

const listed = await client.GET("/sessions", { params: { query: { user: "ada" } } });
assert.deepEqual(listed.data?.sessions.map((one) => one.id), [session]);
const missing = await client.GET("/sessions/{session}", { params: { path: { session: "none" } } });
assert.equal(missing.error?.title, "no such session");
const deleted = await client.DELETE("/sessions", { params: { query: { user: "ada" } } });
assert.equal(deleted.data?.deleted, 1);
console.log(JSON.stringify(names));
