// Follows a primary with zongji, by GTID ("gtid"), or by file and position ("file"): then from the oldest file on,
// without what the given GTIDs cover. It does not reconnect: its first error ends this program, which goes on where it
// was when it is started again.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import ZongJi, { MariadbGtidPosition } from "@vlasky/zongji";

const isByGtid = process.argv[2] === "gtid";
const KINDS = { writerows: "insert", updaterows: "update", deleterows: "delete" };
const isUtf8 = new TextDecoder("utf-8", { fatal: true });
const sleeping = new Int32Array(new SharedArrayBuffer(4));
const keys = new Map(); // of tables, by the number of their table map: numbers of columns
let isStandalone = false; // the group is one statement, and has no XID

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

function follow(given) {
  const known = MariadbGtidPosition.parse(given.start);
  const zongji = new ZongJi({
    host: given.host,
    port: given.port,
    user: given.user,
    password: given.password,
    ssl: given.tls ? { rejectUnauthorized: false } : undefined, // the certificate was made for this test
    dateStrings: true,
    timezone: "Z",
  });
  zongji.on("error", stop);
  zongji.on("binlog", (event) => {
    if (given.delay_ms) Atomics.wait(sleeping, 0, 0, given.delay_ms);
    if (given.tables && event.getEventName() === "tablemap") keys.set(event.tableId, event.primaryKey);
    if (isByGtid || !known.covers(event.gtid)) take(event, zongji, given.tables);
  });
  const start = isByGtid ? { gtidSet: given.resume ?? given.start } : given.resume ?? {};
  zongji.start({ serverId: given.server_id, ...start });
}

function take(event, zongji, tellsTables) {
  const name = event.getEventName();
  switch (name) {
    case "mariadbgtid":
      isStandalone = event.standalone;
      return say({ event: "begin", gtid: event.gtid });
    case "writerows":
    case "updaterows":
    case "deleterows": {
      const map = event.tableMap[event.tableId];
      const table = `${map.parentSchema}.${map.tableName}`;
      if (tellsTables) sayTable(table, map.columnSchemas, keys.get(event.tableId));
      for (const row of event.rows) say({ event: "change", table, kind: KINDS[name], ...images(name, row, map) });
      return;
    }
    case "query": {
      const isEnd = event.query === "COMMIT" || event.query === "ROLLBACK";
      if (!isEnd) say({ event: "statement", sql: event.query });
      if (isEnd || isStandalone || /^XA (COMMIT|ROLLBACK)/.test(event.query)) sayCommit(event, zongji);
      return;
    }
    case "xid":
    case "xaprepare":
      return sayCommit(event, zongji);
    case "unknown":
      return say({ event: "unknown", text: "unknown event" });
  }
}

function sayTable(table, schemas, key) {
  const columns = schemas.map((column) => column.COLUMN_NAME);
  const types = schemas.map((column) => column.COLUMN_TYPE);
  say({ event: "table", table, columns, key: key?.map((number) => columns[number]), types });
}

function sayCommit(event, zongji) {
  say({ event: "commit", gtid: event.gtid ?? null });
  const { filename, position } = zongji.options;
  const resume = isByGtid ? zongji.gtidSet : filename && { filename, position };
  if (resume !== undefined) say({ event: "position", position: resume });
}

function images(name, row, map) {
  if (name === "updaterows") return { before: printable(row.before, map), after: printable(row.after, map) };
  const image = printable(row, map);
  return name === "writerows" ? { before: null, after: image } : { before: image, after: null };
}

function printable(row, map) {
  const types = map.columnSchemas.map((column) => column.COLUMN_TYPE);
  return Object.fromEntries(Object.entries(row).map(([name, value], i) => [name, text(value, types[i])]));
}

function text(value, type) {
  if (!Buffer.isBuffer(value)) return value;
  if (/^bit\b/i.test(type)) return Number(`0x${value.toString("hex")}`);
  try {
    return isUtf8.decode(value);
  } catch {
    return `0x${value.toString("hex")}`;
  }
}

// What zongji announces is an Error of its own, of mysql2 or of the system; these are what JavaScript throws by itself.
const INTERNAL = [TypeError, RangeError, ReferenceError, SyntaxError];

function stop(error) {
  const isInternal = INTERNAL.some((kind) => error instanceof kind);
  say({ event: "error", text: `${error.name}: ${error.message}`, is_fatal: true, is_internal: isInternal });
  process.stdout.write("", () => process.exit(1));
}

process.on("uncaughtException", stop);
const found = JSON.parse(readFileSync(new URL("node_modules/@vlasky/zongji/package.json", import.meta.url)));
say({ event: "version", text: `zongji ${found.version}, Node ${process.version}` });
const stdin = createInterface({ input: process.stdin });
stdin.once("line", (line) => follow(JSON.parse(line)));
stdin.once("close", () => process.exit(0));
