// Connects with mysql2 or mariadb of npm, asks each statement that stands in the input, and prints what comes.
"use strict";
const fs = require("fs");

async function main([driver, host, port, user, password]) {
  const options = { host, port: Number(port), user, password, dateStrings: true, rowsAsArray: true, connectTimeout: 60000 };
  const connection =
    driver === "mysql2"
      ? await require("mysql2/promise").createConnection({ ...options, supportBigNumbers: true, bigNumberStrings: true })
      : await require("mariadb").createConnection({ ...options, bigIntAsNumber: false, initSql: ["SET time_zone='+00:00'"] });
  await connection.ping();
  console.log(`connected\t${driver}`);
  for (const sql of fs.readFileSync(0, "utf8").split("\n").filter((line) => line.trim())) {
    console.log(`${sql}\t${await answer(driver, connection, sql)}`);
  }
  await connection.beginTransaction();
  await connection.rollback();
  await connection.end();
}

async function answer(driver, connection, sql) {
  try {
    const found = await connection.query(sql);
    const rows = driver === "mysql2" ? found[0] : found;
    if (!Array.isArray(rows)) return "OK";
    const lines = Array.from(rows, (row) => Array.from(row, text).join("|"));
    return ["ROWS", ...lines].join("\t");
  } catch (error) {
    return `ERROR\t${error.errno}`;
  }
}

function text(value) {
  return Buffer.isBuffer(value) ? value.toString() : String(value);
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
