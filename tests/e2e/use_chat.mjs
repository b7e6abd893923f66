// What `useChat` of the AI SDK does with turns: `node use_chat.mjs TOOLS VERSION URL TURNS [BODY]` prints what it kept.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [tools, version, url, turns, body] = process.argv.slice(2);
const place = createRequire(`${tools}/`).resolve(`ai${version}`);
const { AbstractChat, DefaultChatTransport } = await import(pathToFileURL(place));

const filler = "Every word of it is needed. ".repeat(60);
const heard = [];
const errors = [];

class State {
  status = "ready";
  error = undefined;
  messages = [];
  pushMessage = (message) => { this.messages = [...this.messages, message]; };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (at, message) => {
    this.messages = [...this.messages.slice(0, at), this.snapshot(message), ...this.messages.slice(at + 1)];
  };
  snapshot = (value) => structuredClone(value);
}

class Chat extends AbstractChat {
  constructor(options) {
    super({ ...options, state: new State() });
  }
}

const chat = new Chat({
  transport: new DefaultChatTransport({
    api: `${url}/api/turn`,
    headers: { authorization: "Bearer any" },
    body: { model: "openai:scripted", ...JSON.parse(body ?? "{}") },
  }),
  onData: (part) => heard.push(part.type),
  onError: (error) => errors.push(`${error.name}: ${error.message}`.slice(0, 300)),
});
for (let turn = 0; turn < Number(turns); turn += 1) {
  await chat.sendMessage({ text: `Question ${turn}. ${filler}` });
  if (chat.status === "error") break;
}
const parts = chat.messages.map(({ role, parts }) => [role, ...parts.map(({ type }) => type)]);
const texts = chat.messages.map(({ parts }) => parts.filter(({ type }) => type === "text").map(({ text }) => text));
console.log(JSON.stringify({ status: chat.status, errors, heard, parts, texts: texts.flat() }));
