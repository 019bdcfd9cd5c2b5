// What the head of the pages calls the API.

import assert from "node:assert/strict";
import { test } from "node:test";

import { apiName } from "../web/format.js";

test("an API of API Gateway is its id, with the endpoint's where it has one", () => {
  assert.equal(apiName("https://a1b2c3.execute-api.us-east-1.amazonaws.com/prod"), "a1b2c3");
  assert.equal(apiName("https://a1b2c3-vpce-0f.execute-api.us-east-1.amazonaws.com/prod"), "a1b2c3-vpce-0f");
});

test("an address or a host without a domain is whole", () => {
  assert.equal(apiName("http://127.0.0.1:8080/prod"), "127.0.0.1:8080");
  assert.equal(apiName("http://[::1]:8080/prod"), "[::1]:8080");
  assert.equal(apiName("http://localhost:8080"), "localhost:8080");
});

test("without an API there is no name", () => {
  assert.equal(apiName(undefined), "");
});
