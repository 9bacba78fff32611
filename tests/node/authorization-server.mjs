// The authorization server of the tests: oauth2-mock-server on a free port of loopback, led by JSON
// lines on standard input, each answered with one on standard output.
//
//   node authorization-server.mjs PATH_OF_ITS_METADATA

import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { OAuth2Issuer, OAuth2Service } from "oauth2-mock-server";

const issuer = new OAuth2Issuer();
const service = new OAuth2Service(issuer, { wellKnownDocument: process.argv[2] });
const withdrawn = new Set();
let asked = {};
let down = false;
let newest;
let published; // instead of its own keys

// An access token names whose it is and what it is for: the resource its client asked for (RFC 8707).
service.on("beforeTokenSigning", (token, request) => {
  token.payload.sub ??= "service-account";
  token.payload.aud = request.body.resource ?? token.payload.aud;
});

const server = createServer((request, response) => {
  const path = request.url.split("?")[0];
  asked[path] = (asked[path] ?? 0) + 1;
  if (down) {
    response.writeHead(503).end();
  } else if (path === "/jwks") {
    const own = issuer.keys.toJSON().filter((key) => !withdrawn.has(key.kid));
    const keys = published ?? own;
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ keys }));
  } else {
    service.requestHandler(request, response);
  }
});

const orders = {
  async token({ claims = {}, header = {}, kid = newest }) {
    const transform = (head, payload) => {
      Object.assign(head, header);
      Object.assign(payload, claims);
      for (const name in claims) if (claims[name] === null) delete payload[name];
    };
    return { token: await issuer.buildToken({ kid, scopesOrTransform: transform }) };
  },
  async rotate({ alg }) {
    newest = (await issuer.keys.generate(alg)).kid;
    return { kid: newest };
  },
  withdraw({ kid }) {
    withdrawn.add(kid);
    return {};
  },
  publish({ keys }) {
    published = keys;
    return {};
  },
  down({ value }) {
    down = value;
    return {};
  },
  asked() {
    const counted = asked;
    asked = {};
    return counted;
  },
};

await orders.rotate({ alg: "RS256" });
server.listen(0, "127.0.0.1", () => {
  issuer.url = `http://127.0.0.1:${server.address().port}`;
  console.log(JSON.stringify({ issuer: issuer.url, kid: newest }));
});
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  console.log(JSON.stringify(await orders[order.do](order)));
}
process.exit();
