// Calls a tool as a client that can ask its user, or as one that cannot, and prints what came back.
// Arguments: the SDK (`v1`, `v2`), the address, `legacy` or `modern`, what the user does (`none`: the
// client does not declare that it asks), the tool, its arguments as JSON.
const [sdk, address, era, action, name, json] = process.argv.slice(2);
const { Client, StreamableHTTPClientTransport } = await load();
const asked = [];
const declares = action !== "none";
const options = { capabilities: declares ? { elicitation: {} } : {} };
if (sdk === "v2") options.versionNegotiation = { mode: era === "modern" ? { pin: "2026-07-28" } : "legacy" };
const client = new Client({ name: `consent-${sdk}`, version: "0" }, options);
if (declares) {
  const answer = async (request) => {
    asked.push(request.params.message);
    return action === "accept" ? { action, content: {} } : { action };
  };
  if (sdk === "v2") client.setRequestHandler("elicitation/create", answer);
  else client.setRequestHandler((await import("@modelcontextprotocol/sdk/types.js")).ElicitRequestSchema, answer);
}
await client.connect(new StreamableHTTPClientTransport(new URL(address)));
const { isError, content } = await client.callTool({ name, arguments: JSON.parse(json) });
console.log(JSON.stringify({ asked, isError: isError ?? false, text: content[0].text }));
await client.close();

async function load() {
  if (sdk === "v2") return import("@modelcontextprotocol/client");
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  return { Client, ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")) };
}
