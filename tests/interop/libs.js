// The official JavaScript library, asked by interop.py: a line of JSON in, a line of JSON out.
//   {"verify": {"secret", "headers", "body"}}            → {"ok": true} or {"error": "…"}
//   {"sign": {"secret", "id", "timestamp", "body"}}      → {"signature": "v1,…"}
"use strict";
const readline = require("node:readline");
const { Webhook } = require("standardwebhooks");

function answer(asked) {
    if (asked.sign) {
        const { secret, id, timestamp, body } = asked.sign;
        return { signature: new Webhook(secret).sign(id, new Date(timestamp * 1000), body) };
    }
    const { secret, headers, body } = asked.verify;
    new Webhook(secret).verify(body, headers, { jsonParse: false });
    return { ok: true };
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
    let told;
    try {
        told = answer(JSON.parse(line));
    } catch (error) {
        told = { error: String(error.message) };
    }
    process.stdout.write(JSON.stringify(told) + "\n");
});
