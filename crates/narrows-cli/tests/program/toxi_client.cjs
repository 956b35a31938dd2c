// What a test suite does with toxiproxy-node-client, against the server at the address given. Run by toxi.rs.
const assert = require("node:assert");
const dgram = require("node:dgram");
const net = require("node:net");
const { Toxiproxy } = require("toxiproxy-node-client");

const attributes = {
  latency: { latency: 1000, jitter: 100 },
  bandwidth: { rate: 1000 },
  slow_close: { delay: 1000 },
  timeout: { timeout: 5000 },
  reset_peer: { timeout: 1000 },
  slicer: { average_size: 1000, size_variation: 1000, delay: 1000 },
  limit_data: { bytes: 42 },
};

/** The status with which a request is refused. */
async function refused(promise) {
  try {
    await promise;
  } catch (error) {
    return error.response?.status ?? Number(/\d{3}/.exec(error.message)?.[0]);
  }
  assert.fail("it was not refused");
}

/** The first data that a connection brings, and the milliseconds until then. */
function answer(address) {
  const [host, port] = address.split(":");
  const start = performance.now();
  return new Promise((resolve, reject) => {
    const socket = net.connect(Number(port), host, () => socket.write("hello"));
    socket.on("data", (data) => {
      socket.destroy();
      resolve([data.toString(), performance.now() - start]);
    });
    socket.on("close", () => reject(new Error("closed")));
    socket.on("error", reject);
  });
}

async function main() {
  const server = net.createServer((socket) => socket.on("data", (data) => socket.write(data)).on("error", () => {}));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const upstream = `127.0.0.1:${server.address().port}`;
  const toxiproxy = new Toxiproxy(process.argv[2]);

  assert.match(JSON.stringify(await toxiproxy.getVersion()), /2\.\d+\.\d+/);
  const body = { name: "echo", listen: "127.0.0.1:0", upstream };
  const proxy = await toxiproxy.createProxy(body);
  assert.equal(await refused(toxiproxy.createProxy(body)), 409);
  assert.equal((await toxiproxy.get("echo")).upstream, upstream);
  assert.deepEqual(Object.keys(await toxiproxy.getAll()), ["echo"]);
  assert.equal(await refused(toxiproxy.get("none")), 404);
  assert.equal((await answer(proxy.listen))[0], "hello");

  for (const [type, wanted] of Object.entries(attributes)) {
    const toxic = await proxy.addToxic({ type, attributes: wanted });
    assert.deepEqual([toxic.name, toxic.toxicity], [`${type}_downstream`, 1]);
    assert.deepEqual({ ...toxic.attributes }, wanted);
    assert.equal(await refused(proxy.addToxic({ type, attributes: wanted })), 409);
    assert.deepEqual({ ...(await proxy.getToxic(toxic.name)).attributes }, wanted);
    await toxic.remove();
    assert.equal(await refused(proxy.getToxic(toxic.name)), 404);
  }

  const slow = await proxy.addToxic({ type: "latency", stream: "upstream", attributes: { latency: 150, jitter: 0 } });
  assert.ok((await answer(proxy.listen))[1] >= 149);
  await slow.update({ attributes: { latency: 300 } });
  assert.equal((await proxy.getToxic(slow.name)).attributes.latency, 300);
  assert.ok((await answer(proxy.listen))[1] >= 299);
  await proxy.update({ enabled: false, listen: proxy.listen, upstream });
  await assert.rejects(answer(proxy.listen));
  await toxiproxy.reset();
  assert.equal((await answer(proxy.listen))[0], "hello");
  assert.equal(await refused(proxy.getToxic(slow.name)), 404);

  // The same library, and UDP.
  const echo = dgram.createSocket("udp4");
  echo.on("message", (data, from) => echo.send(data, from.port, from.address));
  await new Promise((resolve) => echo.bind(0, "127.0.0.1", resolve));
  const target = `127.0.0.1:${echo.address().port}`;
  const { udp: datagrams } = await toxiproxy.populate([{ name: "udp", listen: "udp://127.0.0.1:0", upstream: target }]);
  const link = await datagrams.addToxic({ type: "link", attributes: { delay: "200ms", loss: "0%" } });
  assert.deepEqual({ ...link.attributes }, { delay: "200ms", loss: "0%" });
  const client = dgram.createSocket("udp4");
  const start = performance.now();
  const arrived = new Promise((resolve) => client.once("message", (data) => resolve(data.toString())));
  client.send("ping", Number(datagrams.listen.split(":").pop()), "127.0.0.1");
  assert.equal(await arrived, "ping");
  assert.ok(performance.now() - start >= 199);

  for (const each of Object.values(await toxiproxy.getAll())) {
    await each.remove();
  }
  assert.deepEqual(await toxiproxy.getAll(), {});
  console.log("all as expected");
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
