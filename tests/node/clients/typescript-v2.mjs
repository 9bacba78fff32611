// The TypeScript SDK, version 2.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

import { main } from "./plan.mjs";
import { sessionOf } from "./sdk.mjs";

await main(async (url) => {
  const client = new Client({ name: "typescript-v2", version: "0" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return sessionOf(client);
});
