/** A client of Foldline's service. `npm run build` makes its types from the OpenAPI document of a service. */

import createClient, { type Client } from "openapi-fetch";
import type { paths } from "./schema.js";

export type { components, paths } from "./schema.js";

export type Foldline = Client<paths>;

/** An event of a turn, or of a session that is followed. */
export interface StreamEvent {
  event: string;
  data: Record<string, unknown>;
  id?: string;
}

/** A client of the service at a URL such as `http://localhost:8400`; a token where the service has tokens. */
export function foldline(url: string, token?: string): Foldline {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  return createClient<paths>({ baseUrl: `${url}/api`, headers });
}

/** The events of an answer that was asked for with `parseAs: "stream"`. */
export async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of body) {
    const blocks = (rest + decoder.decode(piece, { stream: true })).split(/\r?\n\r?\n/);
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const lines = block.split(/\r?\n/).filter((line) => line !== "" && !line.startsWith(":"));
      const field = (name: string) =>
        lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      const data = field("data");
      if (data !== undefined) yield { event: field("event") ?? "message", data: JSON.parse(data), id: field("id") };
    }
  }
}
