// The official Node SDKs keep a session going: `node node_sdks.mjs TOOLS URL API ROUNDS` prints what was said.
import { createRequire } from "node:module";

const [tools, url, api, rounds] = process.argv.slice(2);
const load = createRequire(`${tools}/`);
const filler = "Every word of it is needed. ".repeat(60);
const heads = [];
const options = {
  apiKey: "any",
  maxRetries: 0,
  fetch: async (...asked) => {
    const response = await fetch(...asked);
    heads.push(response.headers.get("foldline-view"));
    return response;
  },
};

async function chat(client, messages) {
  const stream = client.chat.completions.stream({ model: "m", messages });
  const { content } = (await stream.finalChatCompletion()).choices[0].message;
  messages.push({ role: "assistant", content });
  return content;
}

async function responses(client, input) {
  const stream = client.responses.stream({ model: "m", input, store: false });
  const { output, output_text } = await stream.finalResponse();
  input.push(...output.map(({ id, type, role, status, content }) => ({ id, type, role, status, content })));
  return output_text ?? output[0].content[0].text;
}

async function messages(client, said) {
  const stream = client.messages.stream({ model: "m", max_tokens: 1000, messages: said });
  const { content } = await stream.finalMessage();
  said.push({ role: "assistant", content });
  return content[0].text;
}

const library = load(api === "messages" ? "@anthropic-ai/sdk" : "openai");
const Client = library.default ?? library;
const client = new Client({ ...options, baseURL: api === "messages" ? url : `${url}/v1` });
const ask = { chat, responses, messages }[api];
const history = [];
const said = [];
for (let round = 0; round < Number(rounds); round += 1) {
  history.push({ role: "user", content: `Question ${round}. ${filler}` });
  said.push((await ask(client, history)).split(".")[0]);
}
console.log(JSON.stringify({ said, folds: heads.filter((head) => head?.includes("reason=")).length }));
