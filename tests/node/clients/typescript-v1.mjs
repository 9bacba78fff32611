// The TypeScript SDK, version 1.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { main } from "./plan.mjs";
import { sessionOf } from "./sdk.mjs";

await main(async (url) => {
  const client = new Client({ name: "typescript-v1", version: "0" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return sessionOf(client);
});
