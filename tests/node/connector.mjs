// An app that connects as Claude on the web does, with the official TypeScript client: it registers,
// prints the address that a person must open, waits for the answer, and lists the tools.
import { createServer } from "node:http";
import { once } from "node:events";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const endpoint = new URL(process.argv[2]);
const callbacks = createServer();
callbacks.listen(0, "127.0.0.1");
await once(callbacks, "listening");
const redirectUrl = `http://127.0.0.1:${callbacks.address().port}/callback`;

const kept = {};
const provider = {
  redirectUrl,
  clientMetadata: {
    client_name: "TypeScript app",
    redirect_uris: [redirectUrl],
    token_endpoint_auth_method: "none",
  },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; },
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  redirectToAuthorization: (url) => { console.log(JSON.stringify({ open: url.href })); },
};

const first = new StreamableHTTPClientTransport(endpoint, { authProvider: provider });
try {
  await new Client({ name: "app", version: "1" }).connect(first);
  throw new Error("connected without a sign-in");
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
}
const [request, response] = await once(callbacks, "request");
response.setHeader("Content-Type", "text/html");
response.end("<!doctype html><title>Connected</title><p>You can close this page.");
await first.finishAuth(new URL(request.url, redirectUrl).searchParams.get("code"));

const client = new Client({ name: "app", version: "1" });
await client.connect(new StreamableHTTPClientTransport(endpoint, { authProvider: provider }));
const { tools } = await client.listTools();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), scope: kept.tokens.scope }));
await client.close();
callbacks.close();
callbacks.closeAllConnections();
